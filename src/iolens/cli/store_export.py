"""Write a table, or a window of it, to one Parquet or CSV file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.output_options import output_option
from iolens.cli.shared_store_options import store_options
from iolens.cli.shared_time_options import window_options
from iolens.visible_text import counted


@verb(
    "store export",
    "Write a table, or a window of it, to one Parquet or CSV file",
    epilog="Example: iolens store export target_io --filesystem scratch -o out.parquet",
)
@click.argument("table")
@click.option("--filesystem", "-f", metavar="NAME", help="File system; not needed if the store has only one")
@window_options
@click.option("--resolution", type=click.Choice(["raw", "60s", "1h"]), default="raw", show_default=True)
@output_option("FILE.parquet or FILE.csv", required=True)
@store_options
def store_export(
    table: str,
    filesystem: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str,
    output: Path,
    store: str | None,
    config: str | None,
) -> None:
    """Write a table, or a window of it, to one Parquet or CSV file."""
    from iolens.store.maintenance import export_table

    rows = export_table(opened_store(store, config), table, output, filesystem, since, until, resolution)
    click.echo(f"{counted(rows, 'row')} of {table} written to {output}")
