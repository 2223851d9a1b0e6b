"""Sum 5 s rows to 60 s and 60 s to 1 h, where days changed."""

from __future__ import annotations

import click

from iolens.cli.opened_store import opened_store
from iolens.cli.options import store_options
from iolens.cli.terminal_output import progress
from iolens.messages import say
from iolens.visible_text import counted


@click.command("rollup", epilog="Example: iolens store rollup --store centre")
@store_options
def COMMAND(store: str | None, config: str | None) -> None:
    """Sum 5 s rows to 60 s and 60 s to 1 h, exactly; only days that changed."""
    from iolens.store.rollup import roll_up

    with progress(None, "rolling up") as step:
        done = roll_up(opened_store(store, config), step)
    for line in done.kept:
        say(f"  kept: {line}")
    rolled = f"{counted(done.days, 'table-day')} rolled up, {counted(done.rows, 'row')} written"
    click.echo(f"{rolled}, {done.current:,} {'was' if done.current == 1 else 'were'} current")
