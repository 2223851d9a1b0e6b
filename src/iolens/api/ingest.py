"""Load files, directories and databases into a store: which source reads which place, and what was loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from iolens.api.store_analyses import StoreAnalyses
from iolens.api.store_state import LOAD, stored_days
from iolens.config import Config
from iolens.counters.ceilings import RateCeilings
from iolens.errors import InputError, UsageError
from iolens.open_files import each_file_opened_once
from iolens.records import Capture
from iolens.sources import ReadOptions, Source, all_sources, get_source, recognise, source_names
from iolens.store.ingest import Tally
from iolens.store.store import Store

URL: Final = re.compile(r"[a-z][a-z0-9+]*://")

LoadWatcher = Callable[[int | None, str], AbstractContextManager[Callable[[str], None]]]
"""Called with the number of files of a source and a title; what it enters hears the name of each that is loaded."""


@dataclass(slots=True)
class Places:
    """What one source is to read."""

    paths: list[Path] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)


def _unwatched(total: int | None, title: str) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda label: None)


def ingest_places(
    store: Store,
    config: Config,
    places: Sequence[str],
    options: ReadOptions,
    *,
    source: str | None = None,
    rebuild: bool = False,
    workers: int | None = None,
    recognised: Callable[[dict[str, Places]], None] = lambda groups: None,
    watcher: LoadWatcher = _unwatched,
) -> Tally:
    """Load every place; without a `source` each file's format is recognised, and `recognised` hears as what.

    What the configuration says of zones, devices, projects and of each source completes the options.
    """
    _refuse_unknown_sections(config)
    zones = {name: known.timezone for name, known in config.filesystems.items() if known.timezone}
    mounts = {mount: name for name, known in config.filesystems.items() for mount in known.mounts}
    options = replace(options, zones=zones, mounts=mounts, devices=config.devices, projects=config.projects)
    load = partial(
        store.ingest,
        rebuild=rebuild,
        workers=workers or os.cpu_count() or 1,
        ceilings=RateCeilings.of_config(config.filesystems),
    )
    total = Tally()
    with each_file_opened_once():
        groups = _by_source(source, places, total)
        if source is None:
            recognised(groups)
        for name, group in groups.items():
            last = store.last_jobs(name) if group.urls and getattr(get_source(name), "continues", False) else {}
            of_source = replace(options, settings=config.sources.get(name, {}), last_jobs=last)
            _load(load, name, group, of_source, total, watcher)
    return total


def ingest_and_estimate(opened: StoreAnalyses, places: Sequence[str], options: ReadOptions, **how: Any) -> Tally:
    """Load as `ingest_places`; where days of telemetry came, estimate what disk I/Os cost if nobody calibrated them."""
    before = stored_days(opened)
    tally = ingest_places(opened.store, opened.config, places, options, **how)
    if not tally.rows.keys().isdisjoint(LOAD):
        from iolens.api.calibration_estimate import estimate_by_itself

        tally.estimated += estimate_by_itself(opened, before)
    return tally


def _refuse_unknown_sections(config: Config) -> None:
    for name in config.sources:
        if name not in source_names():
            raise InputError(
                str(config.path), f"[sources.{name}]: no such source", f"one of {', '.join(source_names())}"
            )


def _by_source(named: str | None, places: Sequence[str], total: Tally) -> dict[str, Places]:
    """Places by the source that reads them."""
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
    return groups


def _source_of_url(url: str) -> str:
    scheme = url.partition("://")[0]
    for source in all_sources():
        if scheme in getattr(source, "schemes", ()):
            return source.name
    raise InputError(
        f"{scheme}://…", "no source reads this kind of address", "a file, a directory, mysql://… or slurm://"
    )


def _files(path: Path, named: str | None, total: Tally) -> Iterator[tuple[Path, str]]:
    """The file or directory itself where a source takes it whole, else every file below it that a source knows."""
    if not path.exists():
        if named is None or not getattr(get_source(named), "takes_base_names", False):
            raise InputError(str(path), "no such file or directory")
        yield path, named
        return
    if named is not None:
        takes_whole = not path.is_dir() or getattr(get_source(named), "whole_directories", False)
        yield from ((file, named) for file in ([path] if takes_whole else _below(path)))
        return
    whole = _recognised(path)
    if whole is not None or not path.is_dir():
        yield path, (whole or recognise(path)).name
        return
    files = [(file, _recognised(file)) for file in _below(path)]
    if not any(source for _, source in files):
        recognise(path)  # raises, with the sources there are
    for file, source in files:
        if source is not None:
            yield file, source.name
        else:
            total.captures += 1
            total.refuse_input(InputError(str(file), "format not recognised"))


def _recognised(path: Path) -> Source | None:
    try:
        return recognise(path)
    except InputError:
        return None


def _below(directory: Path) -> list[Path]:
    """Every file below a directory in sorted order, hidden ones left out."""
    if not (files := [*map(Path, _walked(directory))]):
        raise InputError(str(directory), "no file below this directory")
    return files


def _walked(directory: str | Path) -> Iterator[str]:
    try:
        with os.scandir(directory) as listing:
            entries = sorted((entry for entry in listing if not entry.name.startswith(".")), key=attrgetter("name"))
    except PermissionError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walked(entry.path)
        elif entry.is_file():
            yield entry.path


def _load(
    load: Callable[..., Tally], name: str, places: Places, options: ReadOptions, total: Tally, watcher: LoadWatcher
) -> None:
    with watcher(len(places.paths) or None, f"loading {name}") as step:
        try:
            source = get_source(name)
            stored_as = getattr(source, "stored_as", name)  # what an agent spooled is the agent's, however it came
            captures = _captures(source, places, options)
            total.add(
                load(captures, stored_as, progress=lambda capture: step(capture.origin.rstrip("/").rpartition("/")[2]))
            )
        except InputError as error:
            total.refuse_input(error)


def _captures(source: Source, places: Places, options: ReadOptions) -> Iterator[Capture]:
    if places.paths:
        order = {str(path): place for place, path in enumerate(places.paths, 1)}
        for capture in source.captures(places.paths, options):
            yield replace(capture, place=order.get(capture.origin, 0))
    if places.urls:
        if not hasattr(source, "url_captures"):
            raise UsageError(f"{source.name} reads files, not addresses")
        yield from source.url_captures(places.urls, options)
