"""Take out what cannot be read, put back what can be, name losses."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.shared_store_options import store_options


@verb(
    "store repair",
    "Take out what cannot be read, put back what can be, name losses",
    epilog="Example: iolens store repair --dry-run --store centre",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done")
@store_options
def store_repair(dry_run: bool, store: str | None, config: str | None) -> int:
    """Take out what cannot be read, put back what only the log lost, and name what is gone; exit code 1 if any is."""
    from iolens.store.verification import repair_store

    result = repair_store(opened_store(store, config), dry_run=dry_run)
    for line in result.done:
        click.echo(line)
    for line in result.lost:
        click.echo(f"lost: {line}", err=True)
    if result.lost:
        click.echo("send again what is lost: `iolens ingest … --rebuild`", err=True)
    elif not result.done:
        click.echo("nothing to repair")
    return 1 if result.lost else 0
