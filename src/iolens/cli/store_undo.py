"""Take back what was ingested: a wrong zone, a forged sample."""

from __future__ import annotations

from datetime import datetime

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import TIME
from iolens.visible_text import counted, visible


@verb(
    "store undo",
    "Take back what was ingested: a wrong zone, a forged sample",
    epilog="""\b
Examples:
  iolens store undo /captures/sacct.txt --dry-run
  iolens store undo file/3f2a9c81 --store centre
  iolens store undo --source slurm --since 2026-01-05T12:00
""",
)
@click.argument("batches", nargs=-1, metavar="[BATCH|FILE]...")
@click.option("--source", metavar="NAME", help="All batches of this source that were ingested since --since")
@click.option("--since", type=TIME, metavar="TIME", help="Only batches that were ingested since then")
@click.option("--dry-run", is_flag=True, help="Only show what would be done")
@store_options
def store_undo(
    batches: tuple[str, ...],
    source: str | None,
    since: datetime | None,
    dry_run: bool,
    store: str | None,
    config: str | None,
) -> int:
    """Take out exactly the rows of batches, as `iolens store log` lists them, and make anew what followed from them.

    The same files can be ingested again. Exit code 3 if an interval after them could not be made anew.
    """
    from iolens.api import OpenStore

    with OpenStore(store, config=config) as opened:
        opened.store.check_that_it_exists()
        done = opened.undo(*batches, source=source, since=since, dry_run=dry_run)
    would = "would be " if dry_run else ""
    for batch in done.batches:
        click.echo(visible(f"{would}taken back: {batch}"))
    for name, rows in sorted(done.removed.items()):
        click.echo(f"{name}: {counted(rows, 'row')} {would}removed")
    for name, rows in sorted(done.joined.items()):
        click.echo(f"{name}: {counted(rows, 'row')} after them {would}made anew")
    for lost in done.lost:
        click.echo(visible(f"{would}removed too, the interval after them: {lost}"), err=True)
    for batch in done.again:
        click.echo(visible(f"may lack what was dropped because of them; it is accepted again: {batch}"))
    return 3 if done.lost else 0
