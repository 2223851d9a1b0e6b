"""Load captured telemetry into the store."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import DURATION, TIME, in_zone, progress, store_options

if TYPE_CHECKING:
    from iolens.sources import ReadOptions
    from iolens.store.ingest import Tally
    from iolens.store.store import Store

SHOWN_PROBLEMS = 20


@click.command(
    "ingest",
    epilog="""\b
Examples:
  iolens ingest lustre-lctl capture.txt            several snapshots in one file
  iolens ingest lustre-lctl snap-*.txt             or one per file, in any order
  iolens ingest lustre-proc /root1 --at 2026-01-05T12:00:00Z
""",
)
@click.argument("arguments", nargs=-1, required=True, metavar="[SOURCE] PATH...")
@click.option("--filesystem", "-f", metavar="NAME", help="Supply the file system where the format lacks it")
@click.option("--target", metavar="NAME", help="Supply the target where the format lacks it")
@click.option("--timezone", metavar="ZONE", help="Supply the time zone where the format lacks it")
@click.option(
    "--interval", type=DURATION, metavar="TIME", help="Nominal sampling interval, such as 5s, instead of the one found"
)
@click.option("--at", type=TIME, metavar="TIME", help="When the snapshot was taken, where the files do not say")
@click.option(
    "--rebuild", is_flag=True, help="Take samples older than what is stored: rows of those intervals are replaced"
)
@store_options
def COMMAND(
    arguments: tuple[str, ...],
    filesystem: str | None,
    target: str | None,
    timezone: str | None,
    interval: float | None,
    at: datetime | None,
    rebuild: bool,
    store: str | None,
    config: str | None,
) -> int:
    """Load files or directories into the store. Loading the same file twice adds nothing.

    The first argument may name the source format; otherwise each path's format is recognised.
    """
    from iolens.config import load_config
    from iolens.sources import ReadOptions, source_names
    from iolens.store.ingest import Tally
    from iolens.store.store import Store

    named = arguments[0] if arguments[0] in source_names() else None
    paths = [Path(argument) for argument in (arguments[1:] if named else arguments)]
    if not paths:
        raise click.UsageError(f"name at least one file or directory after {named}")
    options = ReadOptions(filesystem, target, timezone, interval, in_zone(at, timezone))
    opened = Store(load_config(config).store_url(store))
    total = Tally()
    for name, group in _by_source(named, paths, total).items():
        _load(opened, name, group, options, rebuild, total)
    return _report(total, opened.url)


def _by_source(named: str | None, paths: list[Path], total: Tally) -> dict[str, list[Path]]:
    """Paths by the source that reads them; says what it took each for when it had to recognise them."""
    from iolens.errors import InputError
    from iolens.sources import recognise

    groups: dict[str, list[Path]] = {}
    for path in paths:
        try:
            if not path.exists():
                raise InputError(str(path), "no such file or directory")
            name = named or recognise(path).name
        except InputError as error:
            total.captures += 1
            total.refuse_input(error)
            continue
        if named is None:
            click.echo(f"{path}: taken for {name}", err=True)
        groups.setdefault(name, []).append(path)
    return groups


def _load(store: Store, name: str, paths: list[Path], options: ReadOptions, rebuild: bool, total: Tally) -> None:
    from iolens.errors import InputError
    from iolens.sources import get_source

    with progress(len(paths), f"loading {name}") as step:
        try:
            source = get_source(name)
            stored_as = getattr(source, "stored_as", name)  # what an agent spooled is the agent's, however it came
            captures = source.captures(paths, options)
            loaded = store.ingest(
                captures, stored_as, rebuild=rebuild, progress=lambda one: step(Path(one.origin).name)
            )
            total.add(loaded)
        except InputError as error:
            total.refuse_input(error)


def _report(total: Tally, url: str) -> int:
    """One line of what happened, then what was refused; 3 when part of the input was, 1 when nothing was good."""
    rows = ", ".join(f"{count} {name}" for name, count in sorted(total.rows.items())) or "no rows"
    click.echo(f"{url}: {total.captures} captures, {total.samples} samples: {rows}")
    notes = (
        (total.already_present, "captures were already present and added nothing"),
        (total.baselines, "first samples, kept as baselines for the next"),
        (total.repeated, "samples or rows already present, dropped"),
        (total.older, "samples older than what is stored, refused (take them with --rebuild)"),
        (total.resets, "counter resets: what moved since each is counted, and marked"),
        (total.glitches, "single counters stepped back: counted as zero"),
    )
    for count, what in notes:
        if count:
            click.echo(f"  {count} {what}")
    if total.refused:
        click.echo(f"  {total.refused} places not understood, refused:", err=True)
    for problem in total.problems[:SHOWN_PROBLEMS]:
        click.echo(f"    {problem}", err=True)
    if total.refused > SHOWN_PROBLEMS:
        click.echo(f"    … and {total.refused - SHOWN_PROBLEMS} more, listed in the table `batches`", err=True)
    if not total.refused and not total.older:
        return 0
    return 3 if total.samples or total.already_present or total.rows else 1
