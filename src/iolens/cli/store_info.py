"""Tables, rows, files, bytes and the time they span."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.opened_store import opened_store
from iolens.cli.output_options import format_option
from iolens.cli.shared_store_options import store_options


@verb(
    "store info",
    "Tables, rows, files, bytes and the time they span",
    epilog="Example: iolens store info --store centre",
)
@format_option("table", "json")
@store_options
def store_info(format_: str, store: str | None, config: str | None) -> None:
    """Tables, rows, files, bytes and the time they span."""
    import json

    from iolens.store.maintenance import store_info
    from iolens.units import format_bytes
    from iolens.visible_text import counted

    info = store_info(opened_store(store, config))
    if format_ == "json":
        click.echo(json.dumps(info, indent=2))
        return
    click.echo(f"{info['url']}  schema {info['schema_version']}")
    for filesystem, targets in info["filesystems"].items():
        click.echo(f"  {filesystem}: {targets} targets")
    for table in info["tables"]:
        span = f"{table['first_time']} … {table['last_time']}" if table["first_time"] else ""
        counts = f"{table['rows']:>14,} rows {table['files']:>7,} files {format_bytes(table['bytes']):>9}"
        click.echo(f"  {table['name']:24} {counts}  {span}")
    for what in ("remembered", "kept"):
        for parts in info[what]:
            name = f"{what} {parts['form']}"
            click.echo(f"  {name:45} {counted(parts['parts'], 'part'):>13} {format_bytes(parts['bytes']):>9}")
