"""Remove files that no snapshot needs any more."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import BYTES, DURATION
from iolens.visible_text import counted


@verb("store vacuum", "Remove files that no snapshot needs any more", epilog="Example: iolens store vacuum --older 7d")
@click.option(
    "--older", type=DURATION, default="7d", show_default=True, help="Only files that no snapshot has used for this long"
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed")
@click.option("--force", is_flag=True, help="Also files younger than an hour; only if nobody uses the store")
@click.option(
    "--remembered", type=BYTES, default="4GiB", show_default=True, metavar="SIZE",
    help="Largest size of remembered parts of results; those unused for longest are deleted first",
)  # fmt: skip
@store_options
def store_vacuum(
    older: float, dry_run: bool, force: bool, remembered: int, store: str | None, config: str | None
) -> None:
    """Remove files that no snapshot needs any more: left by compaction, retention or a crash.

    Remembered parts of results that were not used for 90 days are deleted too; they are computed again when needed.
    """
    from iolens.store.maintenance import vacuum_store

    opened = opened_store(store, config)
    count = vacuum_store(opened, older / 3600.0, dry_run=dry_run, force=force, most_bytes=remembered)
    click.echo(f"{counted(count, 'file')} {'would be ' if dry_run else ''}removed")
