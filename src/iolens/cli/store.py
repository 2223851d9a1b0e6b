"""`iolens store`: look after a store."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import format_option, progress
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import BYTES, DURATION, TIME
from iolens.messages import say
from iolens.visible_text import counted, visible

if TYPE_CHECKING:
    from iolens.store.store import Store


# Look after the store: size, upkeep, checks, repair, export -----------------------------------------------------------


@verb_group("store", "Look after the store: size, upkeep, checks, repair, export")
def store() -> None:
    """Look after a store of telemetry."""


# The store that verbs which look after one work on --------------------------------------------------------------------


def opened_store(store: str | None, config: str | None) -> Store:
    """The store named, or the usual one; it must be there."""
    from iolens.config import load_config
    from iolens.store.store import Store

    opened = Store(load_config(config).store_url(store))
    opened.check_that_it_exists()
    return opened


# Tables, rows, files, bytes and the time they span --------------------------------------------------------------------


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


# Merge small files of each day into one, in time order ----------------------------------------------------------------


@verb(
    "store compact",
    "Merge small files of each day into one, in time order",
    epilog="Example: iolens store compact --store centre",
)
@store_options
def store_compact(store: str | None, config: str | None) -> None:
    """Merge small files of each day into one, in time order."""
    from iolens.store.maintenance import compact_store

    with progress(None, "compacting") as step:
        done = compact_store(opened_store(store, config), step)
    click.echo(f"{counted(done.files_before, 'file')} of {counted(done.days, 'table-day')} became {done.files_after:,}")


# Remove files that no snapshot needs any more -------------------------------------------------------------------------


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


# Check that every file is there and is the one written ----------------------------------------------------------------


@verb(
    "store verify",
    "Check that every file is there and is the one written",
    epilog="Example: iolens store verify --store centre",
)
@store_options
def store_verify(store: str | None, config: str | None) -> int:
    """Check that every file is there and is the one that was written; exit code 1 when not."""
    from iolens.store.maintenance import verify_store

    with progress(None, "verifying") as step:
        result = verify_store(opened_store(store, config), step)
    for fault in result.faults:
        click.echo(f"{fault}", err=True)
    for line in result.unchecked:
        click.echo(f"not checked: {line}", err=True)
    click.echo(
        f"{counted(result.files, 'file')} checked, {result.unrecorded:,} without a recorded checksum, "
        f"{counted(len(result.faults), 'fault')}"
    )
    return 1 if result.faults else 0


# Take out what cannot be read, put back what can be, name losses ------------------------------------------------------


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


# Sum 5 s rows to 60 s and 60 s to 1 h, where days changed -------------------------------------------------------------


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


# Drop raw rows older than a limit that a rollup sums up ---------------------------------------------------------------


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


# Take back what was ingested: a wrong zone, a forged sample -----------------------------------------------------------


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
