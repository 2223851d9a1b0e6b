"""Drop raw rows older than a limit that a rollup sums up."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import progress
from iolens.cli.value_types import DURATION
from iolens.messages import say
from iolens.visible_text import counted


@verb(
    "store retain",
    "Drop raw rows older than a limit that a rollup sums up",
    epilog="Example: iolens store retain --raw 90d",
)
@click.option("--raw", type=DURATION, required=True, metavar="TIME", help="Keep raw rows this long, such as 90d")
@click.option("--without-rollup", is_flag=True, help="Remove days even if there is no rollup of them")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed")
@store_options
def store_retain(raw: float, without_rollup: bool, dry_run: bool, store: str | None, config: str | None) -> None:
    """Drop raw rows older than a limit, once a rollup holds their sums.

    Parts of these days are kept for `workload`, `imbalance` and `utilization`, so that their results do not change.
    """
    from iolens.api import OpenStore
    from iolens.api.retention import retain

    with OpenStore(store, config=config) as opened, progress(None, "keeping") as step:
        opened.store.check_that_it_exists()
        done = retain(opened, raw, without_rollup=without_rollup, dry_run=dry_run, step=step)
    for line in done.kept:
        say(f"  kept: {line}")
    click.echo(
        f"{counted(done.days, 'table-day')}, {counted(done.rows, 'row')} {'would be ' if dry_run else ''}dropped"
    )
