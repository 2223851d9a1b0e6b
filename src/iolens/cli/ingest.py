"""Load captured telemetry into the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import DURATION, TIME, in_zone, progress, store_options

if TYPE_CHECKING:
    from iolens.config import Config
    from iolens.records import Capture, Problem
    from iolens.sources import ReadOptions, Source
    from iolens.store.ingest import Tally

SHOWN_PROBLEMS = 20
SHOWN_PATHS = 20
URL = re.compile(r"[a-z][a-z0-9+]*://")


@click.command(
    "ingest",
    epilog="""\b
Examples:
  iolens ingest capture.txt snapshots/             recognise each file, and say what it was taken for
  iolens ingest lustre-lctl snap-*.txt             one snapshot per file, in any order
  iolens ingest lustre-proc /root1 --at 2026-01-05T12:00:00Z
  iolens ingest lmt-db mysql://reader@lmt/filesystem_scratch --timezone Europe/Berlin
""",
)
@click.argument("arguments", nargs=-1, required=True, metavar="[SOURCE] PATH|URL...")
@click.option("--filesystem", "-f", metavar="NAME", help="Supply the file system where the format lacks it")
@click.option("--target", metavar="NAME", help="Supply the target where the format lacks it")
@click.option("--timezone", metavar="ZONE", help="Supply the time zone where the format lacks it")
@click.option(
    "--interval", type=DURATION, metavar="TIME", help="Nominal sampling interval, such as 5s, instead of the one found"
)
@click.option("--at", type=TIME, metavar="TIME", help="When the snapshot was taken, where the files do not say")
@click.option("--from", "since", type=TIME, metavar="TIME", help="Read a database only from this moment on")
@click.option("--to", "until", type=TIME, metavar="TIME", help="Read a database only up to this moment")
@click.option("--rebuild", is_flag=True, help="Fit samples older than what is stored between the stored ones")
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Processes that parse many files at once [one per core]"
)
@store_options
def COMMAND(
    arguments: tuple[str, ...],
    filesystem: str | None,
    target: str | None,
    timezone: str | None,
    interval: float | None,
    at: datetime | None,
    since: datetime | None,
    until: datetime | None,
    rebuild: bool,
    workers: int | None,
    store: str | None,
    config: str | None,
) -> int:
    """Load files, directories or databases into the store. Loading the same file twice adds nothing.

    The first argument may name the source format; otherwise each file's format is recognised. A directory stands for
    the files below it.
    """
    import os

    from iolens.config import load_config
    from iolens.open_files import each_file_opened_once
    from iolens.sources import ReadOptions, source_names
    from iolens.store.ceilings import RateCeilings
    from iolens.store.ingest import Tally
    from iolens.store.store import Store

    named = arguments[0] if arguments[0] in source_names() else None
    places = arguments[1:] if named else arguments
    if not places:
        raise click.UsageError(f"name at least one file, directory or database after {named}")
    loaded = load_config(config)
    _refuse_unknown_sections(loaded)
    zones = {name: one.timezone for name, one in loaded.filesystems.items() if one.timezone}
    at, since, until = (in_zone(moment, timezone) for moment in (at, since, until))
    options = ReadOptions(
        filesystem, target, timezone, interval, at, since, until, {}, zones, loaded.devices, loaded.projects
    )
    opened = Store(loaded.store_url(store))
    total = Tally()
    load = partial(
        opened.ingest,
        rebuild=rebuild,
        workers=workers or os.cpu_count() or 1,
        ceilings=RateCeilings.of_config(loaded.filesystems),
    )
    with each_file_opened_once():
        for name, found in _by_source(named, places, total).items():
            _load(load, name, found, replace(options, settings=loaded.sources.get(name, {})), total)
    return _report(total, opened.url)


@dataclass(slots=True)
class Places:
    """What one source is to read."""

    paths: list[Path] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)


def _refuse_unknown_sections(config: Config) -> None:
    from iolens.errors import InputError
    from iolens.sources import source_names

    for name in config.sources:
        if name not in source_names():
            raise InputError(
                str(config.path), f"[sources.{name}]: no such source", f"one of {', '.join(source_names())}"
            )


def _by_source(named: str | None, places: tuple[str, ...], total: Tally) -> dict[str, Places]:
    """Places by the source that reads them; says what it took each for when it had to recognise them."""
    from iolens.errors import InputError

    groups: dict[str, Places] = {}
    for place in places:
        try:
            if URL.match(place):
                groups.setdefault(named or _source_of_url(place), Places()).urls.append(place)
                continue
            for path, name in _files(Path(place), named, total):
                groups.setdefault(name, Places()).paths.append(path)
        except InputError as error:
            total.captures += 1
            total.refuse_input(error)
    if named is None:
        _say_what_each_was_taken_for(groups)
    return groups


def _source_of_url(url: str) -> str:
    from iolens.errors import InputError
    from iolens.sources import all_sources

    scheme = url.partition("://")[0]
    for source in all_sources():
        if scheme in getattr(source, "schemes", ()):
            return source.name
    raise InputError(f"{scheme}://…", "no source reads this kind of address", "a file, a directory or mysql://…")


def _files(path: Path, named: str | None, total: Tally) -> Iterator[tuple[Path, str]]:
    """The file or directory itself where a source takes it whole, else every file below it that a source knows."""
    from iolens.errors import InputError
    from iolens.sources import get_source, recognise

    if not path.exists():
        if named is None or not getattr(get_source(named), "takes_base_names", False):
            raise InputError(str(path), "no such file or directory")
        yield path, named
        return
    if named is not None:
        takes_whole = not path.is_dir() or getattr(get_source(named), "whole_directories", False)
        yield from ((one, named) for one in ([path] if takes_whole else _below(path)))
        return
    whole = _recognised(path)
    if whole is not None or not path.is_dir():
        yield path, (whole or recognise(path)).name
        return
    found = [(one, _recognised(one)) for one in _below(path)]
    if not any(source for _, source in found):
        recognise(path)  # raises, with the sources there are
    for one, source in found:
        if source is not None:
            yield one, source.name
        else:
            total.captures += 1
            total.refuse_input(InputError(str(one), "format not recognised"))


def _recognised(path: Path) -> Source | None:
    from iolens.errors import InputError
    from iolens.sources import recognise

    try:
        return recognise(path)
    except InputError:
        return None


def _below(directory: Path) -> list[Path]:
    """Every file below a directory, hidden ones left out."""
    from iolens.errors import InputError

    files = [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(directory).parts)
    ]
    if not files:
        raise InputError(str(directory), "no file below this directory")
    return files


def _say_what_each_was_taken_for(groups: dict[str, Places]) -> None:
    for name, places in groups.items():
        if len(places.paths) > SHOWN_PATHS:
            click.echo(f"{len(places.paths)} files taken for {name}", err=True)
            continue
        for path in places.paths:
            click.echo(f"{path}: taken for {name}", err=True)


def _load(load: Callable[..., Tally], name: str, places: Places, options: ReadOptions, total: Tally) -> None:
    from iolens.errors import InputError
    from iolens.sources import get_source

    with progress(len(places.paths) or None, f"loading {name}") as step:
        try:
            source = get_source(name)
            stored_as = getattr(source, "stored_as", name)  # what an agent spooled is the agent's, however it came
            captures = _captures(source, places, options)
            total.add(load(captures, stored_as, progress=lambda one: step(Path(one.origin).name)))
        except InputError as error:
            total.refuse_input(error)


def _captures(source: Source, places: Places, options: ReadOptions) -> Iterator[Capture]:
    from iolens.errors import UsageError

    if places.paths:
        yield from source.captures(places.paths, options)
    if places.urls:
        if not hasattr(source, "url_captures"):
            raise UsageError(f"{source.name} reads files, not addresses")
        yield from source.url_captures(places.urls, options)


def _report(total: Tally, url: str) -> int:
    """One line of what happened, then what was refused; 3 when part of the input was, 1 when nothing was good."""
    rows = ", ".join(f"{count} {name}" for name, count in sorted(total.rows.items())) or "no rows"
    click.echo(f"{url}: {total.captures} captures, {total.samples} samples: {rows}")
    counts = (
        (total.already_present, "captures were already present and added nothing"),
        (total.baselines, "first samples, kept as baselines for the next"),
        (total.repeated, "samples or rows already present, dropped"),
        (total.older, "samples older than what is stored, refused (take them with --rebuild)"),
        (total.placed, "late samples fitted between the stored ones"),
        (total.unplaced, "late samples or rows contradict what is stored, refused: what is stored stays"),
        (total.set_back, "samples after the clock was set back: what moved is counted in the next later interval"),
        (total.resets, "counter resets: what moved since each is counted, and marked"),
        (total.glitches, "single counters stepped back: counted as zero"),
    )
    for count, what in counts:
        if count:
            click.echo(f"  {count} {what}")
    notes = _each_once(total.notes)
    _list(total.noted - len(total.notes) + len(notes), notes, "left out by rule")
    _list(total.refused, total.problems, "places not understood or not possible, refused")
    if not total.refused and not total.older and not total.unplaced:
        return 0
    return 3 if total.samples or total.already_present or total.rows else 1


def _each_once(notes: list[Problem]) -> list[Problem]:
    """The first note of each reason: a hundred captures of one server leave out the same."""
    return list({note.reason: note for note in reversed(notes)}.values())[::-1]


def _list(count: int, places: list[Problem], what: str) -> None:
    if not count:
        return
    click.echo(f"  {count} {what}:", err=True)
    for place in places[:SHOWN_PROBLEMS]:
        click.echo(f"    {place}", err=True)
    if count > SHOWN_PROBLEMS:
        click.echo(f"    … and {count - SHOWN_PROBLEMS} more, listed in the table `batches`", err=True)
