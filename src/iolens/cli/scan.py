"""Scan a directory tree: what is in a file system, by size, age, type, owner and project."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from iolens.cli.options import TIME, in_zone, store_options

if TYPE_CHECKING:
    from iolens.analyses.scan_summary import Walk
    from iolens.records import Item
    from iolens.scan.journal import Journal, Progress
    from iolens.scan.parts import WholeScan
    from iolens.scan.walk import ScanPart
    from iolens.scan.workers import Advance, ScanOrder

LINE_EVERY_S: Final = 30.0  # without a terminal, a line of progress this often
CHANGES_SHOWN: Final = 5
_PART: Final = re.compile(r"([0-9]+)/([0-9]+)")


class PartType(click.ParamType["ScanPart"]):
    """`2/8`."""

    name = "part"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Which part of how many."""
        from iolens.scan.walk import ScanPart

        found = _PART.fullmatch(str(value))
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value!r} is no part; write 2/8 for the second of eight", param, ctx)
        return ScanPart(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What is to become of the findings."""

    filesystem: str | None
    store: str | None
    no_store: bool
    save: Path | None
    keep_entries: Path | None
    format_: str
    output: Path | None
    top: int


@click.command(
    "scan",
    epilog="""\b
Examples:
  iolens scan /scratch --store centre --project-rule '/scratch/{project}'
  iolens scan /scratch --max-rate 20000 --workers 4      spare the metadata server
  iolens scan /scratch --resume                          go on after an interruption
  iolens scan /scratch --part 1/2 --at 2026-01-05T00:00Z --save one.json.gz
  iolens scan --merge one.json.gz two.json.gz --store centre
""",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH", type=click.Path(path_type=Path))
@click.option("--filesystem", "-f", metavar="NAME", help="What the file system is called [as its mount tells]")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes that walk the tree [one per core]")
@click.option(
    "--project-rule", "rules", multiple=True, metavar="PATH",
    help="Where projects are, such as /scratch/{project}; repeatable; before those of [projects]",
)  # fmt: skip
@click.option("--project-ids", is_flag=True, help="Projects by the project id of each directory, where it has one")
@click.option(
    "--exclude", multiple=True, metavar="PATTERN",
    help="Leave out what is called so (.snapshot, *.tmp) or lies there (/home/*/cache); repeatable",
)  # fmt: skip
@click.option("--cross-filesystems", is_flag=True, help="Enter what is mounted inside")
@click.option(
    "--max-rate", type=click.FloatRange(0, min_open=True), metavar="N", help="At most so many entries a second"
)
@click.option("--at", type=TIME, metavar="TIME", help="Ages count from here [when the scan began]; one for all parts")
@click.option(
    "--part", type=PartType(), metavar="I/N", help="Only this part; N nodes scan one each; needs --save and --at"
)
@click.option("--part-depth", type=click.IntRange(1), default=2, show_default=True, metavar="N",
    help="Directories down to here are dealt out one by one to the parts",
)  # fmt: skip
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Save it for --merge (.json, .json.gz) instead of storing it",
)
@click.option("--merge", is_flag=True, help="PATHs are saved parts: put them together and store that")
@click.option(
    "--keep-entries",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write every entry with its path (.parquet)",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where progress is kept until the scan is done [~/.local/state/iolens]",
)
@click.option("--resume", is_flag=True, help="Go on with the scan of this path that was interrupted, if one was")
@click.option("--restart", is_flag=True, help="Forget the scan that was interrupted")
@click.option("--no-store", is_flag=True, help="Only show the summary")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Owners and projects shown")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here instead of standard output"
)
@store_options
def COMMAND(
    paths: tuple[Path, ...],
    filesystem: str | None,
    workers: int | None,
    rules: tuple[str, ...],
    project_ids: bool,
    exclude: tuple[str, ...],
    cross_filesystems: bool,
    max_rate: float | None,
    at: datetime | None,
    part: ScanPart | None,
    part_depth: int,
    save: Path | None,
    merge: bool,
    keep_entries: Path | None,
    state: Path | None,
    resume: bool,
    restart: bool,
    no_store: bool,
    top: int,
    format_: str,
    output: Path | None,
    store: str | None,
    config: str | None,
) -> int:
    """Count what lies below PATH, and store the histograms: sizes, ages, types, owners, projects; no path.

    Never follows symbolic links and never leaves the file system. Hard links count once. What cannot be read is named,
    and the exit code is then 3. An interrupted scan goes on with --resume.
    """
    from iolens.config import load_config, project_directory
    from iolens.scan.walk import ScanPart
    from iolens.scan.workers import ScanOrder
    from iolens.units import epoch_us

    loaded = load_config(config)
    url = loaded.store_url(store)
    options = ScanOptions(filesystem, url, no_store or save is not None, save, keep_entries, format_, output, top)
    if merge:
        return _merge(paths, options)
    _refuse_contradictions(paths, part, at, save, cross_filesystems, resume and restart)
    directories = (*(project_directory("--project-rule", one) for one in rules), *loaded.projects.directories)
    began = in_zone(at, None) or datetime.now(UTC)
    order = ScanOrder(
        os.path.abspath(paths[0]),  # noqa: PTH100 # symbolic links stay: rules name places as people do
        epoch_us(began),
        cross_filesystems,
        exclude,
        replace(loaded.projects, directories=directories),
        project_ids,
        (part or ScanPart())._replace(depth=part_depth),
        None if keep_entries is None else keep_entries.absolute().with_name(f"{keep_entries.name}.pieces"),
    )
    with _kept_state(order, state) as journal:
        order, progress = _begin(order, journal, at is not None, resume, restart)
        return _scan(order, progress, journal, options, workers or os.cpu_count() or 1, max_rate)


def _refuse_contradictions(
    paths: tuple[Path, ...], part: ScanPart | None, at: datetime | None, save: Path | None, cross: bool, both: bool
) -> None:
    if len(paths) > 1:
        raise click.UsageError("one PATH at a time; saved parts are put together with --merge")
    if part is not None and (save is None or at is None):
        raise click.UsageError("--part needs --save FILE, and --at TIME, the same for all parts")
    if save is not None and cross:
        raise click.UsageError("--cross-filesystems cannot be saved: device numbers differ between nodes")
    if both:
        raise click.UsageError("--resume and --restart contradict each other")


@contextmanager
def _kept_state(order: ScanOrder, given: Path | None) -> Iterator[Journal | None]:
    """Where progress is kept; None, with a word, where nothing can be."""
    from iolens.scan.journal import Journal, NoPlaceError

    base = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"))  # noqa: PTH111 # never fails
    key = f"{os.path.realpath(order.root)}\0{order.part}"
    try:
        journal = Journal(given or base / "iolens" / f"scan-{hashlib.sha256(os.fsencode(key)).hexdigest()[:16]}")
    except NoPlaceError as error:
        if given is not None:
            raise
        click.echo(f"{error}; this scan cannot be resumed: give it a place with --state DIR", err=True)
        yield None
        return
    try:
        yield journal
    finally:
        journal.close()


def _begin(
    order: ScanOrder, journal: Journal | None, at_given: bool, resume: bool, restart: bool
) -> tuple[ScanOrder, Progress]:
    """A new scan, or the one that was interrupted."""
    from iolens.scan.workers import new_progress

    progress = new_progress(order)
    if journal is None:
        _make_room(order, progress)
        return order, progress
    before = None if restart else journal.order()
    if before is not None and not resume:
        raise click.UsageError(
            f"a scan of {before.get('root')} was interrupted ({journal.folder}): go on with --resume, or --restart"
        )
    if before is not None:
        order = order if at_given else replace(order, time_us=before.get("time_us", 0))
        _refuse_other_order(before, order.plain())
        progress = journal.progress()
        click.echo(f"goes on after {progress.findings.names:,} entries", err=True)
    _make_room(order, progress)
    journal.begin(order.plain(), progress)
    return order, progress


def _refuse_other_order(before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        what = "; ".join(f"{name} was {before.get(name)!r}" for name in changed[:CHANGES_SHOWN])
        raise click.UsageError(f"the interrupted scan was asked otherwise: {what}; ask the same, or --restart")


def _make_room(order: ScanOrder, progress: Progress) -> None:
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
    options: ScanOptions,
    workers: int,
    max_rate: float | None,
) -> int:
    import time

    from iolens.scan.mounts import FilesystemName, filesystem_name, mounts
    from iolens.scan.owners import storable
    from iolens.scan.parts import PartHeader
    from iolens.scan.workers import Interrupted, run_scan
    from iolens.units import from_epoch_us

    known = mounts()
    naming = filesystem_name(os.path.realpath(order.root), known)
    if options.filesystem is not None:
        naming = FilesystemName(options.filesystem, "--filesystem")
    began, before = time.monotonic(), progress.findings.names
    try:
        with _progress(_expected(order)) as tell:
            run_scan(order, progress, workers=workers, journal=journal, mounts=known, max_rate=max_rate, tell=tell)
    except Interrupted:
        names = progress.findings.names
        advice = f"go on with --resume (progress is in {journal.folder})" if journal else "it cannot be resumed"
        click.echo(f"iolens: interrupted after {names:,} entries; {advice}", err=True)
        return 130
    passed_s = time.monotonic() - began
    header = PartHeader(storable(naming.name), storable(order.root), order.time_us, progress.scan, order.part)
    kept = _join_entries(order, progress, options)
    walked = _walk(naming, header, progress, from_epoch_us(order.time_us), passed_s, workers)
    walked = replace(walked, names=progress.findings.names, notes=_notes(progress, before, kept))
    if options.save is not None:
        _save(header, progress, options.save)
    code = _finish(_whole(header, progress), walked, options)
    if journal is not None:
        journal.discard()
    return code


def _save(header: Any, progress: Progress, path: Path) -> None:
    from iolens.scan.parts import packed, saved
    from iolens.views.render import atomic

    atomic.write(path, packed(path, saved(header, progress.findings)))


def _whole(header: Any, progress: Progress) -> WholeScan:
    from iolens.scan.parts import WholeScan

    links = progress.findings.settle()
    return WholeScan(header.filesystem, (header.root,), header.time_us, header.scan, progress.findings, links)


def _walk(naming: Any, header: Any, progress: Progress, time: datetime, passed_s: float, workers: int) -> Walk:
    from iolens.analyses.scan_summary import Walk

    part = header.part
    which = f"{part.number}/{part.of}" if part.of > 1 else None
    return Walk(naming.name, naming.origin, (header.root,), which, time, passed_s, workers, *_facts(progress.findings))


def _facts(findings: Any) -> tuple[Any, ...]:
    """The findings' own words for `Walk`, with linked inodes still to be counted."""
    from iolens.analyses.scan_summary import ScannedPlace

    places = tuple(ScannedPlace(*one) for one in findings.unreadable_places)
    others = tuple(one.path for one in findings.other_filesystems)
    return findings.names, 0, 0, findings.vanished, findings.excluded, findings.unreadable, places, others


def _notes(progress: Progress, before: int, kept: int | None) -> tuple[str, ...]:
    notes = []
    if before:
        notes.append(f"Resumed: {before:,} entries were counted before.")
    for one in progress.findings.snapshots:
        notes.append(f"{one.path} {one.reason} and was counted; leave it out with --exclude.")
    if kept is not None:
        notes.append(f"{kept:,} entries with their paths were written.")
    return tuple(notes)


def _join_entries(order: ScanOrder, progress: Progress, options: ScanOptions) -> int | None:
    if order.pieces is None or options.keep_entries is None:
        return None
    from iolens.scan.kept_entries import join_pieces

    entries = join_pieces(order.pieces, progress.pieces, options.keep_entries)
    for name in progress.pieces:
        (order.pieces / name).unlink(missing_ok=True)
    order.pieces.rmdir()
    return entries


def _merge(paths: tuple[Path, ...], options: ScanOptions) -> int:
    from iolens.analyses.scan_summary import Walk
    from iolens.scan.parts import merged
    from iolens.units import from_epoch_us

    if options.save is not None or options.keep_entries is not None:
        raise click.UsageError("--merge stores what was saved; --save and --keep-entries belong to a scan")
    whole = merged(list(paths))
    if options.filesystem is not None:
        whole = replace(whole, filesystem=options.filesystem)
    origin = "--filesystem" if options.filesystem else "the saved parts"
    facts = _facts(whole.findings)
    walk = Walk(whole.filesystem, origin, whole.roots, None, from_epoch_us(whole.time_us), None, None, *facts)
    return _finish(whole, walk, options)


def _finish(whole: WholeScan, walk: Walk, options: ScanOptions) -> int:
    """Store it unless it is not wanted, and show it; 3 where something could not be read."""
    from iolens.analyses.scan_summary import summarise
    from iolens.views.render.formats import render

    items = list(whole.items())
    rows = None if options.no_store else _store(whole, items, cast(str, options.store))
    walk = replace(walk, linked_inodes=whole.links.inodes, linked_names=whole.links.names)
    store = None if rows is None else options.store
    saved = None if options.save is None else str(options.save)
    result = summarise(walk, items, stored_rows=rows, store=store, saved=saved, top=options.top)
    render(result, cast("Any", options.format_), options.output)
    return 3 if walk.unreadable else 0


def _store(whole: WholeScan, items: list[Item], url: str) -> int:
    """How many rows it became. A scan that is sent again adds nothing."""
    from iolens.records import Capture
    from iolens.store.store import Store

    capture = Capture(", ".join(whole.roots), f"scan/{whole.scan}", partial(iter, items))
    tally = Store(url).ingest([capture], "scan")
    return tally.rows["contents"]


def _expected(order: ScanOrder) -> int | None:
    """How many inodes the file system says it has: more than there are below, if the scan does not begin at its top."""
    try:
        about = os.statvfs(order.root)
    except OSError:
        return None
    used = about.f_files - about.f_ffree
    return used // order.part.of if about.f_files and used > 0 else None


@contextmanager
def _progress(expected: int | None) -> Iterator[Callable[[Advance], None]]:
    """A bar with rate and estimate on a terminal; otherwise a line now and then."""
    if not sys.stderr.isatty():
        yield ProgressLines(expected, lambda line: click.echo(line, err=True)).tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("scanning"), BarColumn(), TextColumn("{task.description}"))
    # No thread of its own: the processes of the scan are forked while this is shown.
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=expected)

        def tell(advance: Advance) -> None:
            bar.update(task, completed=min(advance.entries, expected or advance.entries), refresh=True)
            bar.update(task, description=told(advance, expected), refresh=True)

        yield tell


class ProgressLines:
    """Progress in lines, one every half minute."""

    def __init__(self, expected: int | None, say: Callable[[str], object]) -> None:
        self.expected, self.say = expected, say
        self.due_s = LINE_EVERY_S

    def tell(self, advance: Advance) -> None:
        """A line, if it is time for one."""
        if advance.passed_s >= self.due_s:
            self.due_s = advance.passed_s + LINE_EVERY_S
            self.say(f"scanning: {told(advance, self.expected)}")


def told(advance: Advance, expected: int | None) -> str:
    """`1,200,000 of at most 5,000,000 inodes, 310,000/s, at most 12 min left`."""
    rate = (advance.entries - advance.entries_before) / advance.passed_s if advance.passed_s > 0 else 0.0
    if expected is None or expected < advance.entries:
        return f"{advance.entries:,} inodes, {rate:,.0f}/s"
    begin = f"{advance.entries:,} of at most {expected:,} inodes, {rate:,.0f}/s"
    return f"{begin}, at most {_duration((expected - advance.entries) / rate)} left" if rate else begin


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
