"""Look after the store: info, compact, vacuum, verify, repair, rollup, retain, export."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import DURATION, TIME, in_zone, store_options
from iolens.cli.terminal_output import progress

if TYPE_CHECKING:
    from iolens.store.store import Store


def _open(store: str | None, config: str | None) -> Store:
    from iolens.config import load_config
    from iolens.store.store import Store

    opened = Store(load_config(config).store_url(store))
    opened.check_that_it_exists()
    return opened


@click.group("store")
def COMMAND() -> None:
    """Look after a store of telemetry."""


@COMMAND.command(epilog="Example: iolens store info --store centre")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@store_options
def info(format_: str, store: str | None, config: str | None) -> None:
    """Tables, rows, files, bytes and the time they span."""
    import json

    from iolens.store.maintenance import store_info
    from iolens.units import format_bytes

    found = store_info(_open(store, config))
    if format_ == "json":
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{found['url']}  schema {found['schema_version']}")
    for filesystem, targets in found["filesystems"].items():
        click.echo(f"  {filesystem}: {targets} targets")
    for table in found["tables"]:
        span = f"{table['first_time']} … {table['last_time']}" if table["first_time"] else ""
        counts = f"{table['rows']:>14,} rows {table['files']:>7,} files {format_bytes(table['bytes']):>9}"
        click.echo(f"  {table['name']:24} {counts}  {span}")


@COMMAND.command(epilog="Example: iolens store compact --store centre")
@store_options
def compact(store: str | None, config: str | None) -> None:
    """Merge small files of each day into one, in time order."""
    from iolens.store.maintenance import compact_store

    with progress(None, "compacting") as step:
        done = compact_store(_open(store, config), step)
    click.echo(f"{done.files_before} files of {done.days} table-days became {done.files_after}")


@COMMAND.command(epilog="Example: iolens store vacuum --older 7d")
@click.option(
    "--older", type=DURATION, default="7d", show_default=True, help="Only files that no snapshot has used for this long"
)
@click.option("--dry-run", is_flag=True, help="Only tell what would go")
@click.option("--force", is_flag=True, help="Also files younger than an hour; only when nobody uses the store")
@store_options
def vacuum(older: float, dry_run: bool, force: bool, store: str | None, config: str | None) -> None:
    """Remove files that no snapshot needs any more: left by compaction, retention or a crash."""
    from iolens.store.maintenance import vacuum_store

    count = vacuum_store(_open(store, config), older / 3600.0, dry_run=dry_run, force=force)
    click.echo(f"{count} files {'would be ' if dry_run else ''}removed")


@COMMAND.command(epilog="Example: iolens store verify --store centre")
@store_options
def verify(store: str | None, config: str | None) -> int:
    """Check that every file is there and is the one that was written; exit code 1 when not."""
    from iolens.store.maintenance import verify_store

    with progress(None, "verifying") as step:
        found = verify_store(_open(store, config), step)
    for fault in found.faults:
        click.echo(f"{fault}", err=True)
    for line in found.unchecked:
        click.echo(f"not checked: {line}", err=True)
    click.echo(
        f"{found.files} files checked, {found.unrecorded} without a recorded checksum, {len(found.faults)} faults"
    )
    return 1 if found.faults else 0


@COMMAND.command(epilog="Example: iolens store repair --dry-run --store centre")
@click.option("--dry-run", is_flag=True, help="Only tell what would be done")
@store_options
def repair(dry_run: bool, store: str | None, config: str | None) -> int:
    """Take out what cannot be read, put back what only the log lost, and name what is gone; exit code 1 if any is."""
    from iolens.store.repair import repair_store

    found = repair_store(_open(store, config), dry_run=dry_run)
    for line in found.done:
        click.echo(line)
    for line in found.lost:
        click.echo(f"lost: {line}", err=True)
    if found.lost:
        click.echo("send again what is lost: `iolens ingest … --rebuild`", err=True)
    elif not found.done:
        click.echo("nothing to repair")
    return 1 if found.lost else 0


@COMMAND.command(epilog="Example: iolens store rollup --store centre")
@store_options
def rollup(store: str | None, config: str | None) -> None:
    """Sum 5 s rows to 60 s and 60 s to 1 h, exactly; only days that changed."""
    from iolens.store.rollup import roll_up

    with progress(None, "rolling up") as step:
        done = roll_up(_open(store, config), step)
    for line in done.kept:
        click.echo(f"  kept: {line}", err=True)
    click.echo(f"{done.days} table-days rolled up, {done.rows} rows written, {done.current} were current")


@COMMAND.command(epilog="Example: iolens store retain --raw 90d")
@click.option("--raw", type=DURATION, required=True, metavar="TIME", help="Keep raw rows this long, such as 90d")
@click.option("--without-rollup", is_flag=True, help="Remove days even if no rollup holds their sums")
@click.option("--dry-run", is_flag=True, help="Only tell what would go")
@store_options
def retain(raw: float, without_rollup: bool, dry_run: bool, store: str | None, config: str | None) -> None:
    """Drop raw rows older than a limit, once a rollup holds their sums."""
    from iolens.store.rollup import retain_raw

    done = retain_raw(_open(store, config), raw, without_rollup=without_rollup, dry_run=dry_run)
    for line in done.kept:
        click.echo(f"  kept: {line}", err=True)
    click.echo(f"{done.days} table-days, {done.rows} rows {'would be ' if dry_run else ''}dropped")


@COMMAND.command(epilog="Example: iolens store export target_io --filesystem scratch -o out.parquet")
@click.argument("table")
@click.option("--filesystem", "-f", metavar="NAME", help="File system; may be left out when the store holds one")
@click.option("--from", "since", type=TIME, metavar="TIME", help="Start of the window")
@click.option("--to", "until", type=TIME, metavar="TIME", help="End of the window, not included")
@click.option("--resolution", type=click.Choice(["raw", "60s", "1h"]), default="raw", show_default=True)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), required=True, help="FILE.parquet or FILE.csv"
)
@store_options
def export(
    table: str,
    filesystem: str | None,
    since: datetime | None,
    until: datetime | None,
    resolution: str,
    output: Path,
    store: str | None,
    config: str | None,
) -> None:
    """Write a table, or a window of it, to one Parquet or CSV file."""
    from iolens.store.maintenance import export_table

    rows = export_table(
        _open(store, config), table, output, filesystem, in_zone(since, None), in_zone(until, None), resolution
    )
    click.echo(f"{rows} rows of {table} written to {output}")
