"""What a file system holds (SPEC D2; paper D, section 4.2, Figs. 8, 9 and Table V).

The newest scan of the window: files and bytes by size, age, owner, project and type; the same without some projects;
the change since an earlier scan; where the number of files is heading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import narwhals as nw

from iolens.analyses import Analysis
from iolens.analyses.contents.change import (
    FIRST,
    Projection,
    ScanComparison,
    ScanTotals,
    compared,
    earlier_scan,
    history_of,
    projections_of,
)
from iolens.analyses.contents.distribution import (
    AgePoint,
    AtMost,
    CumulativeHistogram,
    Holdings,
    Limits,
    Name,
    Remainder,
    ScanHistograms,
    SizePoint,
    SizeSummary,
    Widths,
    Within,
    age_points,
    at_most,
    bins_of,
    holdings_of,
    marked_bins,
    mean_size,
    remainder,
    size_points,
    size_summary,
    widths_of,
    within,
)
from iolens.analyses.contents.scans import (
    DIRECTORY,
    FILE,
    SIZE,
    TOTAL,
    InodeSum,
    Scan,
    collected,
    one_per_time,
    scan_rows,
    scans,
)
from iolens.analyses.results import pct
from iolens.errors import UsageError
from iolens.store.selection import Selection
from iolens.units import DAY_S, KIB, MIB

AT_MOST_BYTES: Final = (4 * KIB, 64 * KIB, MIB, 128 * MIB, 1024 * MIB)
WITHIN_S: Final = tuple(days * DAY_S for days in (1, 7, 30, 90, 180, 365))
TOP: Final = 20
LARGEST: Final = 2.0**63
NAMED: Final = 12  # names a message lists


@dataclass(frozen=True, slots=True)
class ProjectContents:
    """What belongs to a project (None: to none, or it is not reported)."""

    project: str | None
    files: int | None
    bytes: int | None
    files_pct: float | None
    bytes_pct: float | None
    mean_file_bytes: float | None
    allocated_bytes: int | None
    directories: int | None
    inodes: int | None


@dataclass(frozen=True, slots=True)
class OwnerContents:
    """What belongs to an owner (None: it is not reported whose it is)."""

    owner: str | None
    files: int | None
    bytes: int | None
    files_pct: float | None
    bytes_pct: float | None
    mean_file_bytes: float | None
    allocated_bytes: int | None
    directories: int | None
    inodes: int | None


@dataclass(frozen=True, slots=True)
class TypeContents:
    """Inodes of one type."""

    inode_type: str | None
    inodes: int | None
    inodes_pct: float | None
    bytes: int | None
    allocated_bytes: int | None


@dataclass(frozen=True, slots=True)
class ScanCoverage:
    """What the scan tells, as shares of its files."""

    rows: int
    owners: int
    projects: int
    with_owner_pct: float | None
    with_project_pct: float | None
    with_size_pct: float | None
    with_atime_pct: float | None
    with_mtime_pct: float | None
    bytes_told: str


@dataclass(frozen=True, slots=True)
class Contents:
    """All of SPEC D2 for one file system: the newest scan of the window, and those before it."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    samples: int
    time: datetime | None
    source: str | None
    scan: str | None
    projects: list[str]
    owners: list[str]
    files: int | None
    bytes: int | None
    min_bytes: int | None
    avg_bytes: int | None
    max_bytes: int | None
    allocated_bytes: int | None
    allocated_pct: float | None
    inodes: int | None
    directories: int | None
    sizes: SizeSummary
    at_most: list[AtMost]
    within: list[Within]
    size_cdf: list[SizePoint]
    atime_cdf: list[AgePoint]
    mtime_cdf: list[AgePoint]
    by_project: list[ProjectContents]
    by_owner: list[OwnerContents]
    by_type: list[TypeContents]
    widths: Widths | None
    without: Remainder | None
    comparison: ScanComparison | None
    history: list[ScanTotals]
    projections: list[Projection]
    coverage: ScanCoverage | None
    sources: list[str]
    top: int
    notes: list[str]


def contents(
    selection: Selection,
    *,
    projects: Sequence[str] = (),
    owners: Sequence[str] = (),
    without_projects: Sequence[str] = (),
    compare: str | datetime | None = FIRST,
    threshold_files: float | None = None,
    at_most_bytes: Sequence[int] = AT_MOST_BYTES,
    within_s: Sequence[int] = WITHIN_S,
    scan: str | None = None,
    top: int = TOP,
) -> Contents:
    """The newest scan of the window, by size, age, owner, project and type, and what became of it since before.

    `projects` and `owners` look at theirs alone; `without_projects` shows the rest beside the whole. `compare` is the
    `first` scan of the window, the `previous` one, or the last up to a time; None: not compared. `scan` is a name,
    where scans of one time have several.
    """
    _check(projects, without_projects, threshold_files, top)
    rows = scan_rows(selection)
    known = scans(selection, rows) if rows is not None else []
    if rows is None or not known:
        return _nothing(selection, projects, owners, top)
    chosen = _named([scan for scan in known if scan.histograms & {SIZE, TOTAL}] or known, scan)
    shown, limits = chosen[-1], Limits(at_most_bytes, within_s)
    _check_names(rows, "project", (*projects, *without_projects))
    _check_names(rows, "owner", owners)
    kept = _kept(rows, projects, owners)
    earlier = earlier_scan(chosen, shown, compare)
    same_source = one_per_time(scan for scan in chosen if scan.source == shown.source)
    history = history_of(kept, same_source)
    whole = holdings_of(shown.of(kept))
    marked = marked_bins(shown.of(kept), without_projects)
    bins = bins_of(marked, whole.of_type(FILE), keep_removed=True)
    before = holdings_of(earlier.of(kept)) if earlier is not None else None
    all_of_it = not (projects or owners)
    return _result(
        selection,
        shown,
        whole,
        bins,
        limits,
        rest=remainder(marked, whole, without_projects, limits) if without_projects else None,
        history=history,
        projections=projections_of(selection, history, threshold_files, all_of_it),
        comparison=compared(earlier, before, shown, whole, without_projects) if earlier and before else None,
        asked=(projects, owners, top),
        notes=[*_left_out(chosen, shown), *_said(whole, bins, history, all_of_it)],
    )


def _named(known: list[Scan], name: str | None) -> list[Scan]:
    """Scans of that name, or all."""
    results = [scan for scan in known if name in (None, scan.scan)]
    if not results:
        there = sorted({scan.scan for scan in known if scan.scan is not None})
        raise UsageError(f"no scan here is called {name!r}; there are: {_listed(there)}")
    return results


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (", ".join(names[:NAMED]) + more) or "none"


def _check(projects: Sequence[str], without: Sequence[str], threshold_files: float | None, top: int) -> None:
    if both := sorted(set(projects) & set(without)):
        raise UsageError(f"project {both[0]!r} cannot be chosen and removed at once")
    if threshold_files is not None and not 0 < threshold_files < LARGEST:
        raise UsageError(f"a number of files to look out for is above 0 and below 2⁶³, not {threshold_files:g}")
    if top < 1:
        raise UsageError(f"at least one name is shown, not {top}")


def _check_names(rows: nw.LazyFrame[Any], column: str, names: Sequence[str]) -> None:
    """A name that no scan of the window has is a slip of the pen."""
    if not names:
        return
    there = rows.filter(~nw.col(column).is_null()).select(column).unique()
    known = {str(row[column]) for row in collected(there)}
    for name in names:
        if name not in known:
            raise UsageError(f"no scan here names the {column} {name!r}; there are: {_listed(sorted(known))}")


def _kept(rows: nw.LazyFrame[Any], projects: Sequence[str], owners: Sequence[str]) -> nw.LazyFrame[Any]:
    for column, names in (("project", projects), ("owner", owners)):
        if names:
            rows = rows.filter(nw.col(column).is_in(list(names)))
    return rows


def _nothing(selection: Selection, projects: Sequence[str], owners: Sequence[str], top: int) -> Contents:
    none = CumulativeHistogram.of(())
    start, end = selection.window
    return Contents(
        filesystem=selection.filesystem, window_start=start, window_end=end, samples=0, time=None, source=None,
        scan=None, projects=list(projects), owners=list(owners), files=None, bytes=None, min_bytes=None,
        avg_bytes=None, max_bytes=None, allocated_bytes=None, allocated_pct=None, inodes=None, directories=None,
        sizes=size_summary(none, InodeSum(None, None, None)), at_most=[], within=[],
        size_cdf=[], atime_cdf=[], mtime_cdf=[],
        by_project=[], by_owner=[], by_type=[], widths=None, without=None, comparison=None, history=[],
        projections=[], coverage=None, sources=[], top=top, notes=[],
    )  # fmt: skip


def _result(
    selection: Selection,
    scan: Scan,
    whole: Holdings,
    bins: ScanHistograms,
    limits: Limits,
    *,
    rest: Remainder | None,
    history: list[ScanTotals],
    projections: list[Projection],
    comparison: ScanComparison | None,
    asked: tuple[Sequence[str], Sequence[str], int],
    notes: list[str],
) -> Contents:
    files, everything = whole.of_type(FILE), whole.everything
    start, end = selection.window
    first = comparison.earlier.time if comparison is not None else None
    earliest = min(
        time for time in (first, *(scan_totals.time for scan_totals in history), scan.time) if time is not None
    )
    estimated = files.bytes is None and bool(bins.sizes.bins)
    least, middle, most = bins.sizes.byte_range() if estimated else (None, None, None)
    return Contents(
        filesystem=selection.filesystem,
        window_start=start or earliest,
        window_end=end or scan.time,
        samples=len(history),
        time=scan.time,
        source=scan.source,
        scan=scan.scan,
        projects=list(asked[0]),
        owners=list(asked[1]),
        files=files.inodes,
        bytes=files.bytes,
        min_bytes=least,
        avg_bytes=middle,
        max_bytes=most,
        allocated_bytes=files.allocated_bytes,
        allocated_pct=pct(files.allocated_bytes, files.bytes),
        inodes=everything.inodes,
        directories=whole.directories,
        sizes=size_summary(bins.sizes, files),
        at_most=at_most(bins.sizes, limits.sizes_bytes),
        within=within(bins, limits.ages_s),
        size_cdf=size_points(bins.sizes),
        atime_cdf=age_points(bins.atimes),
        mtime_cdf=age_points(bins.mtimes),
        by_project=[ProjectContents(*columns) for columns in _parts(whole, "project")],
        by_owner=[OwnerContents(*columns) for columns in _parts(whole, "owner")],
        by_type=[_type(name, holdings.everything, everything) for name, holdings in whole.by("inode_type")],
        widths=widths_of(bins.widths, whole),
        without=rest,
        comparison=comparison,
        history=history,
        projections=projections,
        coverage=_coverage(scan, whole, bins),
        sources=[scan.source] if scan.source is not None else [],
        top=asked[2],
        notes=notes,
    )


def _parts(whole: Holdings, name: Name) -> Iterator[tuple[Any, ...]]:
    """The columns of every project or owner."""
    all_files, has_directories = whole.of_type(FILE), whole.directories is not None
    for value, holdings in whole.by(name):
        files = holdings.of_type(FILE)
        yield (
            value,
            files.inodes,
            files.bytes,
            pct(files.inodes, all_files.inodes),
            pct(files.bytes, all_files.bytes),
            mean_size(files),
            files.allocated_bytes,
            holdings.of_type(DIRECTORY).inodes if has_directories else None,
            holdings.everything.inodes,
        )


def _type(name: str | None, inode_sum: InodeSum, everything: InodeSum) -> TypeContents:
    return TypeContents(
        name, inode_sum.inodes, pct(inode_sum.inodes, everything.inodes), inode_sum.bytes, inode_sum.allocated_bytes
    )


def _coverage(scan: Scan, whole: Holdings, bins: ScanHistograms) -> ScanCoverage:
    files = whole.of_type(FILE).inodes
    reported = "by size" if bins.sizes.bins and bins.sizes.has_bytes else "in total"
    return ScanCoverage(
        rows=scan.rows,
        owners=len(whole.names("owner")),
        projects=len(whole.names("project")),
        with_owner_pct=pct(whole.with_name("owner").of_type(FILE).inodes, files),
        with_project_pct=pct(whole.with_name("project").of_type(FILE).inodes, files),
        with_size_pct=pct(bins.sizes.total, files),
        with_atime_pct=pct(bins.atimes.total, files),
        with_mtime_pct=pct(bins.mtimes.total, files),
        bytes_told="not told" if whole.of_type(FILE).bytes is None else reported,
    )


def _left_out(known: Iterable[Scan], scan: Scan) -> list[str]:
    """Scans that the answer passes over."""
    notes = []
    others = Counter(str(item.source) for item in known if item.source != scan.source)
    if others:
        words = ", ".join(f"{count} of {source}" for source, count in sorted(others.items()))
        notes.append(f"scans of other sources are left out: {words}; --source chooses one")
    twins = [str(item.scan) for item in known if (item.time_us, item.source) == (scan.time_us, scan.source)]
    if len(twins) > 1:
        names = _listed(sorted(name for name in twins if name != str(scan.scan)))
        notes.append(f"of the same time are left out: {names}; --scan chooses one")
    return notes


def _said(whole: Holdings, bins: ScanHistograms, history: Sequence[ScanTotals], all_of_it: bool) -> list[str]:
    """What the scan does not tell."""
    notes = []
    files = whole.of_type(FILE)
    if files.inodes and not bins.sizes.bins:
        notes.append("the source tells totals only: there is no distribution of sizes")
    elif bins.sizes.bins and not bins.sizes.has_bytes:
        known = "tells bytes only in total" if files.bytes is not None else "does not tell bytes"
        notes.append(f"the source {known}: shares of the bytes are bounds by the ends of the bins")
    if files.inodes is not None and bins.sizes.bins and bins.sizes.total != files.inodes:
        notes.append(f"the totals count {files.inodes:,} files, the histogram of sizes {bins.sizes.total:,}")
    for name, ages in (("access", bins.atimes), ("modification", bins.mtimes)):
        if files.inodes and not ages.total:
            notes.append(f"the source does not tell times of {name}")
    if len(history) > 1:
        notes += _trust(history)
    if not all_of_it and len(history) > 1:
        notes.append("the trend is that of the chosen owners and projects")
    return notes


def _trust(history: Sequence[ScanTotals]) -> list[str]:
    days = (history[-1].time - history[0].time).total_seconds() / 86_400
    if len(history) == 2:
        return [f"two scans, {days:.1f} days apart, make a line that nothing speaks for or against"]
    return []


ANALYSIS = Analysis("contents", "Files and bytes by size, age, owner and project, and how they change.", contents)
