"""Remove files that no snapshot needs any more."""

from __future__ import annotations

import click

from iolens.cli.opened_store import opened_store
from iolens.cli.options import BYTES, DURATION, store_options
from iolens.visible_text import counted


@click.command("vacuum", epilog="Example: iolens store vacuum --older 7d")
@click.option(
    "--older", type=DURATION, default="7d", show_default=True, help="Only files that no snapshot has used for this long"
)
@click.option("--dry-run", is_flag=True, help="Only tell what would go")
@click.option("--force", is_flag=True, help="Also files younger than an hour; only when nobody uses the store")
@click.option(
    "--remembered", type=BYTES, default="4GiB", show_default=True, metavar="SIZE",
    help="How much of remembered parts of answers stays; the longest unused go first",
)  # fmt: skip
@store_options
def COMMAND(older: float, dry_run: bool, force: bool, remembered: int, store: str | None, config: str | None) -> None:
    """Remove files that no snapshot needs any more: left by compaction, retention or a crash.

    Parts of answers that were not asked for in 90 days go, too; they are made again when they are.
    """
    from iolens.store.maintenance import vacuum_store

    opened = opened_store(store, config)
    count = vacuum_store(opened, older / 3600.0, dry_run=dry_run, force=force, most_bytes=remembered)
    click.echo(f"{counted(count, 'file')} {'would be ' if dry_run else ''}removed")
