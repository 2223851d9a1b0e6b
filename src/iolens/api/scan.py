"""Scan a tree, or put saved parts of one together: walk it, keep the progress, store the histograms, sum them up."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.scan_summary import ScannedPlace, ScanSummary, Walk, summarise
from iolens.api.listener import Listener
from iolens.config import Config, load_config, project_directory
from iolens.errors import IolensError, OptionError
from iolens.records import Capture, Item
from iolens.scan.journal import Journal, NoPlaceError, Progress
from iolens.scan.mounts import FilesystemName, filesystem_name, mounts, storable
from iolens.scan.parts import PartHeader, WholeScan, merged, packed, saved
from iolens.scan.walk import ScanPart
from iolens.scan.workers import Advance, Interrupted, ScanOrder, new_progress, run_scan
from iolens.times import utc_time
from iolens.units import epoch_us, from_epoch_us
from iolens.views.render import atomic
from iolens.visible_text import visible

if TYPE_CHECKING:
    from iolens.store.store import Store

CHANGES_SHOWN: Final = 5
_PART: Final = re.compile(r"([0-9]+)/([0-9]+)")

StoreOpener = Callable[[], "Store"]
"""Called when the scan is over: its processes are forked, and engines are better loaded after that."""
ScanWatcher = Callable[[int | None], AbstractContextManager[Callable[[Advance], None]]]
"""Called with the number of inodes that are expected; what it enters hears how far the scan is."""


class ScanInterruptedError(IolensError):
    """The scan was broken off."""

    exit_code = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """What is to be scanned, and how. `part` is the number of the part and of how many, `at` when ages count from."""

    root: Path
    filesystem: str | None = None
    workers: int | None = None
    rules: Sequence[str] = ()
    project_ids: bool = False
    exclude: Sequence[str] = ()
    cross_filesystems: bool = False
    max_rate: float | None = None
    lookups: int | None = None
    at: datetime | None = None
    part: tuple[int, int] | None = None
    part_depth: int = 2
    save: Path | None = None
    keep_entries: Path | None = None
    state: Path | None = None
    resume: bool = False
    restart: bool = False
    top: int = 10


def parse_part(text: str) -> tuple[int, int]:
    """Which part of how many, from `2/8`."""
    parts = _PART.fullmatch(text)
    if not parts or not 1 <= int(parts[1]) <= int(parts[2]):
        raise ValueError(f"{text!r} is no part; write 2/8 for the second of eight")
    return int(parts[1]), int(parts[2])


def _unwatched(expected: int | None) -> AbstractContextManager[Callable[[Advance], None]]:
    return nullcontext(lambda advance: None)


@contextmanager
def scanned(
    request: ScanRequest,
    config: Config,
    store: StoreOpener | None,
    *,
    listener: Listener | None = None,
    watcher: ScanWatcher = _unwatched,
) -> Iterator[ScanSummary]:
    """The summary of a scan that is stored; without a store it is only counted, or saved.

    Progress is kept until the block ends well, so that a summary that cannot be written can be had again.
    """
    _refuse_contradictions(request)
    heard = listener or Listener()
    order = _order(request, config)
    order.device()  # of a path that cannot be scanned no progress is kept
    with _kept_state(order, request.state, heard) as journal:
        order, progress = _begin(order, journal, request, heard)
        yield _scan(order, progress, journal, request, store, watcher)
        if journal is not None:
            journal.discard()


def scan_tree(
    path: str | Path,
    store: StoreOpener | None = None,
    config: Config | None = None,
    *,
    at: str | datetime | None = None,
    listener: Listener | None = None,
    **options: Any,
) -> ScanSummary:
    """Scan a directory from Python: as `scanned`, with texts where people write them. What is saved is not stored."""
    places = {name: Path(options[name]) for name in ("save", "keep_entries", "state") if options.get(name) is not None}
    if isinstance(options.get("part"), str):
        options["part"] = parse_part(options["part"])
    request = ScanRequest(root=Path(path), at=utc_time(at), **{**options, **places})
    kept = store if request.save is None else None
    with scanned(request, config or load_config(None), kept, listener=listener) as summary:
        return summary


def merged_parts(
    paths: Sequence[Path], store: StoreOpener | None, filesystem: str | None = None, top: int = 10
) -> ScanSummary:
    """The summary of saved parts that are put together and stored."""
    whole = merged(list(paths))
    if filesystem is not None:
        whole = replace(whole, filesystem=filesystem)
    origin = "--filesystem" if filesystem else "the saved parts"
    facts = _facts(whole.findings)
    walk = Walk(whole.filesystem, origin, whole.roots, None, from_epoch_us(whole.time_us), None, None, *facts)
    return _finish(whole, walk, store, None, top)


def _refuse_contradictions(request: ScanRequest) -> None:
    if request.part is not None and (request.save is None or request.at is None):
        raise OptionError("--part needs --save FILE, and --at TIME, the same for all parts")
    if request.save is not None and request.cross_filesystems:
        raise OptionError("--cross-filesystems cannot be saved: device numbers differ between nodes")
    if request.resume and request.restart:
        raise OptionError("--resume and --restart contradict each other")


def _order(request: ScanRequest, config: Config) -> ScanOrder:
    directories = (*(project_directory("--project-rule", rule) for rule in request.rules), *config.projects.directories)
    kept = request.keep_entries
    return ScanOrder(
        os.path.abspath(request.root),  # noqa: PTH100 # symbolic links stay: rules name places as people do
        epoch_us(request.at or datetime.now(UTC)),
        request.cross_filesystems,
        tuple(request.exclude),
        replace(config.projects, directories=directories),
        request.project_ids,
        ScanPart(*(request.part or ()))._replace(depth=request.part_depth),
        None if kept is None else kept.absolute().with_name(f"{kept.name}.pieces"),
    )


@contextmanager
def _kept_state(order: ScanOrder, given: Path | None, listener: Listener) -> Iterator[Journal | None]:
    """Where progress is kept; None, with a word, where nothing can be."""
    base = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"))  # noqa: PTH111 # never fails
    key = f"{os.path.realpath(order.root)}\0{order.part}"
    try:
        journal = Journal(given or base / "iolens" / f"scan-{hashlib.sha256(os.fsencode(key)).hexdigest()[:16]}")
    except NoPlaceError as error:
        if given is not None:
            raise
        listener.say(f"{error}; this scan cannot be resumed: give it a place with --state DIR")
        yield None
        return
    try:
        yield journal
    finally:
        journal.close()


def _begin(
    order: ScanOrder, journal: Journal | None, request: ScanRequest, listener: Listener
) -> tuple[ScanOrder, Progress]:
    """A new scan, or the one that was interrupted."""
    progress = new_progress(order)
    if journal is None:
        _prepare_pieces(order, progress)
        return order, progress
    before = None if request.restart else journal.order()
    if before is not None and not request.resume:
        root = visible(str(before.get("root")))
        raise OptionError(f"a scan of {root} was interrupted ({journal.folder}): go on with --resume, or --restart")
    if before is not None:
        order = order if request.at is not None else replace(order, time_us=before.get("time_us", 0))
        _refuse_other_order(before, order.plain())
        progress = journal.progress()
        listener.say(f"goes on after {progress.findings.names:,} entries")
    _prepare_pieces(order, progress)
    journal.begin(order.plain(), progress)
    return order, progress


def _refuse_other_order(before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        what = "; ".join(f"{name} was {before.get(name)!r}" for name in changed[:CHANGES_SHOWN])
        raise OptionError(f"the interrupted scan was asked otherwise: {what}; ask the same, or --restart")


def _prepare_pieces(order: ScanOrder, progress: Progress) -> None:
    """The folder of kept entries, without pieces nobody mentions."""
    if order.pieces is None:
        return
    order.pieces.mkdir(exist_ok=True)
    for piece in order.pieces.glob("*.parquet"):
        if piece.name not in progress.pieces:
            piece.unlink()


def _scan(
    order: ScanOrder,
    progress: Progress,
    journal: Journal | None,
    request: ScanRequest,
    store: StoreOpener | None,
    watcher: ScanWatcher,
) -> ScanSummary:
    known, workers = mounts(), request.workers or os.cpu_count() or 1
    naming = filesystem_name(os.path.realpath(order.root), known)
    if request.filesystem is not None:
        naming = FilesystemName(request.filesystem, "--filesystem")
    began, before = time.monotonic(), progress.findings.names
    try:
        with watcher(_expected(order)) as tell:
            run_scan(
                order,
                progress,
                workers=workers,
                journal=journal,
                mounts=known,
                max_rate=request.max_rate,
                lookups=request.lookups,
                tell=tell,
            )
    except Interrupted as error:
        advice = f"go on with --resume (progress is in {journal.folder})" if journal else "it cannot be resumed"
        raise ScanInterruptedError(f"interrupted after {progress.findings.names:,} entries; {advice}") from error
    passed_s = time.monotonic() - began
    header = PartHeader(storable(naming.name), storable(order.root), order.time_us, progress.scan, order.part)
    kept = _join_entries(order, progress, request.keep_entries)
    walked = _walk(naming, header, progress, from_epoch_us(order.time_us), passed_s, workers)
    walked = replace(walked, names=progress.findings.names, notes=_notes(progress, before, kept))
    if request.save is not None:
        atomic.write(request.save, packed(request.save, saved(header, progress.findings)))
    return _finish(_whole(header, progress), walked, store, request.save, request.top)


def _whole(header: PartHeader, progress: Progress) -> WholeScan:
    links = progress.findings.settle()
    return WholeScan(header.filesystem, (header.root,), header.time_us, header.scan, progress.findings, links)


def _walk(
    naming: FilesystemName, header: PartHeader, progress: Progress, time: datetime, passed_s: float, workers: int
) -> Walk:
    part = header.part
    which = f"{part.number}/{part.of}" if part.of > 1 else None
    return Walk(naming.name, naming.origin, (header.root,), which, time, passed_s, workers, *_facts(progress.findings))


def _facts(findings: Any) -> tuple[Any, ...]:
    """The findings' own words for `Walk`, with linked inodes still to be counted."""
    places = tuple(ScannedPlace(*place) for place in findings.unreadable_places)
    others = tuple(other.path for other in findings.other_filesystems)
    return findings.names, 0, 0, findings.vanished, findings.excluded, findings.unreadable, places, others


def _notes(progress: Progress, before: int, kept: int | None) -> tuple[str, ...]:
    notes = []
    if before:
        notes.append(f"Resumed: {before:,} entries were counted before.")
    for snapshot in progress.findings.snapshots:
        notes.append(f"{snapshot.path} {snapshot.reason} and was counted; leave it out with --exclude.")
    if kept is not None:
        notes.append(f"{kept:,} entries with their paths were written.")
    return tuple(notes)


def _join_entries(order: ScanOrder, progress: Progress, output: Path | None) -> int | None:
    if order.pieces is None or output is None:
        return None
    from iolens.scan.kept_entries import join_pieces

    entries = join_pieces(order.pieces, progress.pieces, output)
    for name in progress.pieces:
        (order.pieces / name).unlink(missing_ok=True)
    order.pieces.rmdir()
    return entries


def _finish(whole: WholeScan, walk: Walk, store: StoreOpener | None, saved_as: Path | None, top: int) -> ScanSummary:
    """Store it where there is a store, and sum it up."""
    items = list(whole.items())
    opened = None if store is None else store()
    rows = None if opened is None else _store(whole, items, opened)
    walk = replace(walk, linked_inodes=whole.links.inodes, linked_names=whole.links.names)
    url = None if opened is None else opened.url
    saved_text = None if saved_as is None else str(saved_as)
    return summarise(walk, items, stored_rows=rows, store=url, saved=saved_text, top=top)


def _store(whole: WholeScan, items: list[Item], store: Store) -> int:
    """How many rows it became. A scan that is sent again adds nothing."""
    capture = Capture(", ".join(whole.roots), f"scan/{whole.scan}", partial(iter, items))
    return store.ingest([capture], "scan").rows["contents"]


def _expected(order: ScanOrder) -> int | None:
    """How many inodes the file system says it has: more than there are below, if the scan does not begin at its top."""
    try:
        about = os.statvfs(order.root)
    except OSError:
        return None
    used = about.f_files - about.f_ffree
    return used // order.part.of if about.f_files and used > 0 else None
