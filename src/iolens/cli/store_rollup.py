"""Sum 5 s rows to 60 s and 60 s to 1 h, where days changed."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import progress
from iolens.messages import say
from iolens.visible_text import counted


@verb(
    "store rollup",
    "Sum 5 s rows to 60 s and 60 s to 1 h, where days changed",
    epilog="Example: iolens store rollup --store centre",
)
@store_options
def store_rollup(store: str | None, config: str | None) -> None:
    """Sum 5 s rows to 60 s and 60 s to 1 h, exactly; only days that changed.

    The utilization of all data is then made from the hours and remembered in the store, so that a page over a year is
    quick the first time. What disk I/Os cost is estimated from the last 91 days where nobody calibrated them.
    """
    from iolens.api.calibration_estimate import estimate_by_itself
    from iolens.api.open_store import OpenStore
    from iolens.api.store_state import remember_long_windows
    from iolens.store.rollup import roll_up

    with progress(None, "rolling up") as step:
        done = roll_up(opened_store(store, config), step)
    if done.days:
        with OpenStore(store, config=config) as opened:
            for sentence in estimate_by_itself(opened):
                click.echo(sentence)
            remember_long_windows(opened)
    for line in done.kept:
        say(f"  kept: {line}")
    rolled = f"{counted(done.days, 'table-day')} rolled up, {counted(done.rows, 'row')} written"
    click.echo(f"{rolled}, {done.current:,} {'was' if done.current == 1 else 'were'} current")
