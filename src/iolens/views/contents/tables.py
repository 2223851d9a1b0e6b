"""What a file system holds, for people: the headline, two scans side by side, sizes, ages, and who holds what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iolens.units import DAY_S, format_bytes, format_bytes_si
from iolens.views.capacity import METHODS
from iolens.views.render import tables as t
from iolens.views.render.shown_times import zone_name
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.contents.analysis import Contents
    from iolens.analyses.contents.change import AmountChange, CountLine, Projection, ScanComparison
    from iolens.analyses.contents.distribution import AgePoint, AtMost, SizePoint, Within
    from iolens.views.render.tables import Row, TableColumn, TableView

NO_DATA: Final = "No scan in this window."
HOUR_S: Final = 3600
YEAR_DAYS: Final = 365
MOST_FILES_PCT: Final = 95.0
STALE_S: Final = 90 * DAY_S
SCANS_SHOWN: Final = 14


def tables(result: Contents) -> list[TableView]:
    """Everything the result says."""
    if not result.samples:
        return [headline(result)]
    views = [headline(result)]
    if result.comparison is not None:
        views += [comparison(result, result.comparison), *_growers(result, result.comparison)]
    if result.projections:
        views += [projections(result), history(result)]
    if result.size_cdf:
        views += [at_most(result), sizes(result)]
    if result.within:
        views += [used_within(result), ages(result)]
    views += [by_project(result)] if _is_reported([contents.project for contents in result.by_project]) else []
    views += [by_owner(result)] if _is_reported([contents.owner for contents in result.by_owner]) else []
    views.append(by_type(result))
    return [*views, widths(result)] if result.widths is not None else views


def _is_reported(names: Sequence[str | None]) -> bool:
    return any(name is not None for name in names)


# In words.


def verdict(result: Contents) -> str:
    """In a few sentences, how many files, how large, how old."""
    if result.files is None:
        return NO_DATA
    parts = [f"{counted(result.files, 'file')}{_held(result)}."]
    if result.sizes.median_bytes is not None and result.files > 1:
        parts.append(f"Half of them are at most {format_bytes(result.sizes.median_bytes)}; {_most_files(result)}.")
    parts += [words for words in (_stale(result), _changed(result)) if words]
    return " ".join(parts)


def _held(result: Contents) -> str:
    hold = "holds" if result.files == 1 else "hold"
    if result.bytes is not None:
        return f" {hold} {format_bytes_si(result.bytes)}"
    if result.min_bytes is not None and result.max_bytes is not None:
        return f" {hold} {format_bytes_si(result.min_bytes)} to {format_bytes_si(result.max_bytes)}, by their bins"
    return ""


def _most_files(result: Contents) -> str:
    """`95 % of them, up to 32 MiB, hold 5.3 % of the bytes`."""
    point = next(point for point in result.size_cdf if point.files_pct >= MOST_FILES_PCT)
    size = "of any size" if point.size_bytes is None else f"up to {format_bytes(point.size_bytes)}"
    size = "all empty" if point.size_bytes == 0 else size
    begins = f"{t.show_percent(point.files_pct)} % of them, {size}, hold"
    if point.bytes_pct is not None:
        return f"{begins} {t.show_percent(point.bytes_pct)} % of the bytes"
    if point.bytes_min_pct is None or point.bytes_max_pct is None:
        return f"{begins} an unknown share of the bytes"
    ends = f"{t.show_percent(point.bytes_min_pct)} … {t.show_percent(point.bytes_max_pct)} %"
    if point.bytes_avg_pct is None:
        return f"{begins} {ends} of the bytes"
    return f"{begins} about {t.show_percent(point.bytes_avg_pct)} % of the bytes ({ends})"


def _stale(result: Contents) -> str:
    for within in result.within:
        if within.age_s == STALE_S and within.files_pct is not None:
            word = {"atime": "used", "mtime": "changed"}[within.clock]
            size = "" if within.bytes_pct is None else f" and {t.show_percent(100.0 - within.bytes_pct)} % of the bytes"
            files = t.show_percent(100.0 - within.files_pct)
            return f"{files} % of the files{size} were not {word} for {show_age(STALE_S)}."
    return ""


def _changed(result: Contents) -> str:
    scan_comparison = result.comparison
    if scan_comparison is None or scan_comparison.total.files.change_pct is None:
        return ""
    begins = (
        f"Since {scan_comparison.earlier.time:%Y-%m-%d}: files {_signed_pct(scan_comparison.total.files.change_pct)} %"
    )
    size = scan_comparison.total.bytes.change_pct
    return f"{begins}, bytes {_signed_pct(size)} %." if size is not None else f"{begins}."


def _signed_pct(value: float) -> str:
    """With its sign, unless it is nothing; more digits where one decimal would be nothing."""
    if value == 0:
        return "0.0"
    return f"{value:+.2g}" if abs(value) < 0.1 else f"{value:+,.1f}"


def show_age(seconds: float) -> str:
    """`6 hours`, `90 days`, `2 years`."""
    if seconds <= 0:
        return "not before the scan"
    if seconds < DAY_S:
        return _counted(seconds / HOUR_S, "hour")
    days = seconds / DAY_S
    return _counted(days / YEAR_DAYS, "year") if days % YEAR_DAYS == 0 else _counted(days, "day")


def _counted(number: float, word: str) -> str:
    return f"{number:,.3g} {word}{'' if number == 1 else 's'}"


# Tables.


def headline(result: Contents) -> TableView:
    """The scan in a few numbers."""
    columns = (
        t.text("filesystem", "File system"), t.time("time", "Scan of"), t.text("source", "Source"),
        t.text("scan", "Name of the scan"), t.count("files", "Files"), t.volume("bytes", "Bytes of files"),
        t.volume("min_bytes", "… at least, by bins"), t.volume("avg_bytes", "… in the middle of the bins"),
        t.volume("max_bytes", "… at most, by bins"), t.volume("allocated_bytes", "Allocated"),
        t.percent("allocated_pct", "… of the bytes"), t.size("mean_bytes", "Mean size"),
        t.size("median_bytes", "Median size, at most"), t.size("p95_bytes", "95 % of files are at most"),
        t.size("p99_bytes", "99 % of files are at most"), t.text("most_common", "Most common size"),
        t.size("largest_bytes", "Largest file, at most"), t.count("directories", "Directories"),
        t.count("inodes", "Inodes"), t.count("owners", "Owners"), t.count("projects", "Projects"),
        t.count("samples", "Scans of this source"),
    )  # fmt: skip
    own: dict[str, Any] = {
        "most_common": _most_common(result),
        "owners": result.coverage.owners if result.coverage is not None else None,
        "projects": result.coverage.projects if result.coverage is not None else None,
        **{name: getattr(result.sizes, name) for name in _OF_SIZES},
    }
    row = t.row_of(result, columns, own)
    shown = [(column, value) for column, value in zip(columns, row, strict=True) if column.name not in _IF_KNOWN
             or value is not None]  # fmt: skip
    chosen = [f"Only {word} {', '.join(names)}." for word, names in
              (("the projects", result.projects), ("the owners", result.owners)) if names]  # fmt: skip
    notes = [verdict(result), *chosen, *map(t.sentence, result.notes)]
    title = f"{result.filesystem}: contents"
    return t.TableView(
        title,
        tuple(column for column, _ in shown),
        [tuple(value for _, value in shown)],
        "\n".join(notes),
        True,
        name="summary",
    )


_OF_SIZES: Final = ("mean_bytes", "median_bytes", "p95_bytes", "p99_bytes", "largest_bytes")
_IF_KNOWN: Final = ("scan", "min_bytes", "avg_bytes", "max_bytes")


def _most_common(result: Contents) -> str | None:
    summary = result.sizes
    if summary.most_common_files is None:
        return None
    if summary.most_common_bytes == 0:
        size = "empty"
    elif summary.most_common_bytes is None:
        size = f"above {format_bytes(summary.most_common_above_bytes or 0)}"
    else:
        size = f"{format_bytes(summary.most_common_above_bytes or 0)} to {format_bytes(summary.most_common_bytes)}"
    return f"{size}: {summary.most_common_files:,} files"


def comparison(result: Contents, scan_comparison: ScanComparison) -> TableView:
    """Two scans side by side (Table V): the whole, the rest without the removed projects, and every project."""
    columns = (
        t.text("name", "What"), t.volume("bytes_before", "Usage before"), t.volume("bytes_after", "Usage after"),
        _change_pct("bytes_change_pct", "Change"), t.percent("bytes_share_pct", "Of the growth"),
        t.count("files_before", "Files before"), t.count("files_after", "Files after"),
        _change_pct("files_change_pct", "Change"), t.percent("files_share_pct", "Of the growth"),
    )  # fmt: skip
    rows: list[Row] = [("all", *_changes(scan_comparison.total.bytes, scan_comparison.total.files))]
    if scan_comparison.without is not None and result.without is not None:
        rows.append((_without(result), *_changes(scan_comparison.without.bytes, scan_comparison.without.files)))
    shown = scan_comparison.by_project[: result.top]
    rows += [(change.project or "no project", *_changes(change.bytes, change.files)) for change in shown]
    more = len(scan_comparison.by_project) - len(shown)
    note = f"{counted(more, 'more project')}, which gained no more files; JSON has all." if more > 0 else ""
    window = f"From {t.show_time(scan_comparison.earlier.time)} to {_time(result)} {zone_name()}"
    title = f"{window}, {scan_comparison.days:,.1f} days"
    return t.TableView(title, columns, rows, note, name="comparison")


def _growers(result: Contents, scan_comparison: ScanComparison) -> list[TableView]:
    """Owners that gained most files."""
    if not scan_comparison.by_owner:
        return []
    columns = (
        t.text("owner", "Owner"), t.count("files_change", "Files gained"), _change_pct("files_change_pct", "Change"),
        t.percent("files_share_pct", "Of the growth"), t.volume("bytes_change", "Bytes gained"),
    )  # fmt: skip
    shown = scan_comparison.by_owner[: result.top]
    rows: list[Row] = [
        (
            change.owner or "not reported",
            change.files.change,
            change.files.change_pct,
            change.files.share_pct,
            change.bytes.change,
        )
        for change in shown
    ]
    return [
        t.TableView(
            "Owners that gained most files",
            columns,
            rows,
            _rest(len(scan_comparison.by_owner), len(shown)),
            name="owner_growth",
        )
    ]


def _changes(size: AmountChange, files: AmountChange) -> Row:
    return (
        size.before, size.after, size.change_pct, size.share_pct, files.before, files.after, files.change_pct,
        files.share_pct,
    )  # fmt: skip


def _change_pct(name: str, heading: str) -> TableColumn:
    return t.TableColumn(name, heading, "number", _signed_pct, "%")


def _time(result: Contents) -> str:
    return t.show_time(result.time) if result.time is not None else "–"


def _without(result: Contents) -> str:
    return f"without {', '.join(result.without.projects)}" if result.without is not None else ""


def _rest(whole: int, shown: int) -> str:
    return f"{shown} of {whole}; JSON has all." if shown < whole else ""


def at_most(result: Contents) -> TableView:
    """Share of files and bytes up to some sizes."""
    others = {most.size_bytes: most for most in result.without.at_most} if result.without is not None else {}
    columns = [t.size("size_bytes", "Files of at most"), t.text("files", "Files (%)"), t.text("bytes", "Bytes (%)")]
    columns += [t.text("rest_files", f"Files {_without(result)} (%)"), t.text("rest_bytes", "… bytes (%)")] * bool(
        others
    )
    rows: list[Row] = []
    for item in result.at_most:
        beside = others.get(item.size_bytes)
        rows.append((item.size_bytes, *_pair(item), *(_pair(beside) if beside is not None else ())))
    note = "Where two numbers are given, the size is inside a bin or the bytes of bins are not reported."
    open_ended = any("…" in str(cell) for row in rows for cell in row)
    return t.TableView("Small files", tuple(columns), rows, note if open_ended else "", name="small_files")


def used_within(result: Contents) -> TableView:
    """Share of files and bytes used and changed not long ago."""
    others = (
        {(within.clock, within.age_s): within for within in result.without.within} if result.without is not None else {}
    )
    columns = [
        t.text("age", "Within"),
        t.text("clock", "Were"),
        t.text("files", "Files (%)"),
        t.text("bytes", "Bytes (%)"),
    ]
    rest = [t.text("rest_files", f"Files {_without(result)} (%)"), t.text("rest_bytes", "… bytes (%)")]
    rows: list[Row] = []
    for item in result.within:
        beside = others.get((item.clock, item.age_s))
        word = {"atime": "used", "mtime": "changed"}[item.clock]
        rows.append((show_age(item.age_s), word, *_pair(item), *(_pair(beside) if beside is not None else ())))
    return t.TableView("Files in use", tuple(columns + rest * bool(others)), rows, name="files_in_use")


def _pair(most: AtMost | Within) -> tuple[str | None, str | None]:
    return (
        _between(most.files_pct, most.files_min_pct, most.files_max_pct),
        _between(most.bytes_pct, most.bytes_min_pct, most.bytes_max_pct),
    )


def _between(exact: float | None, low: float | None, high: float | None) -> str | None:
    if exact is not None:
        return t.show_percent(exact)
    return None if low is None or high is None else f"{t.show_percent(low)} … {t.show_percent(high)}"


def sizes(result: Contents) -> TableView:
    """The cumulative distribution of sizes, with and without the removed projects."""
    columns = [
        t.text("size", "Up to"),
        t.count("files", "Files"),
        t.percent("files_pct", "Files"),
        *_byte_columns(result),
    ]
    others: list[SizePoint] = result.without.size_cdf if result.without is not None else []
    columns += [
        t.percent("rest_files_pct", f"Files {_without(result)}"),
        t.text("rest_bytes_pct", "… bytes (%)"),
    ] * bool(others)
    rows: list[Row] = []
    for place, point in enumerate(result.size_cdf):
        size = (
            "any size"
            if point.size_bytes is None
            else "empty"
            if point.size_bytes == 0
            else format_bytes(point.size_bytes)
        )
        row: Row = (size, point.files, point.files_pct, point.bytes_pct if _is_exact(result) else _point_bytes(point))
        rows.append((*row, others[place].files_pct, _point_bytes(others[place])) if others else row)
    return t.TableView("Files by size, added up", tuple(columns), rows, name="sizes")


def _is_exact(result: Contents) -> bool:
    return all(point.bytes is not None for point in result.size_cdf)


def _byte_columns(result: Contents) -> list[TableColumn]:
    return [t.percent("bytes_pct", "Bytes") if _is_exact(result) else t.text("bytes_pct", "Bytes (%)")]


def _point_bytes(point: SizePoint) -> str | None:
    return _between(point.bytes_pct, point.bytes_min_pct, point.bytes_max_pct)


def ages(result: Contents) -> TableView:
    """How long ago files were used and changed, added up, with and without the removed projects."""
    rest = result.without
    kinds: list[tuple[str, str, Sequence[AgePoint]]] = [
        ("atime", "Used: files", result.atime_cdf),
        ("rest_atime", f"… {_without(result)}", rest.atime_cdf if rest is not None else []),
        ("mtime", "Changed: files", result.mtime_cdf),
        ("rest_mtime", f"… {_without(result)}", rest.mtime_cdf if rest is not None else []),
    ]
    reported = [(name, heading, points) for name, heading, points in kinds if points]
    columns = [t.text("age", "Within")]
    for name, heading, _ in reported:
        columns += [t.percent(f"{name}_files_pct", heading), t.percent(f"{name}_bytes_pct", "… bytes")]
    ends = sorted({point.age_s for _, _, points in reported for point in points}, key=_with_open_last)
    rows: list[Row] = [
        ("ever" if end is None else show_age(end), *(cell for _, _, points in reported for cell in _up_to(points, end)))
        for end in ends
    ]
    return t.TableView("Files by age, added up", tuple(columns), rows, name="ages")


def _with_open_last(end: int | None) -> float:
    return float("inf") if end is None else float(end)


def _up_to(points: Sequence[AgePoint], end: int | None) -> tuple[float, float | None]:
    """Shares up to an age; before the first bin that holds anything, nothing."""
    within = [point for point in points if _with_open_last(point.age_s) <= _with_open_last(end)]
    if within:
        return within[-1].files_pct, within[-1].bytes_pct
    return 0.0, None if points[0].bytes_pct is None else 0.0


def by_project(result: Contents) -> TableView:
    """Projects with most bytes."""
    shown = result.by_project[: result.top]
    rows: list[Row] = [(contents.project or "no project", *_holding(contents)) for contents in shown]
    columns = (t.text("project", "Project"), *_HELD)
    return t.TableView("Projects", columns, rows, _rest(len(result.by_project), len(shown)), name="projects")


def by_owner(result: Contents) -> TableView:
    """Owners with most bytes."""
    shown = result.by_owner[: result.top]
    rows: list[Row] = [(contents.owner or "not reported", *_holding(contents)) for contents in shown]
    return t.TableView(
        "Owners", (t.text("owner", "Owner"), *_HELD), rows, _rest(len(result.by_owner), len(shown)), name="owners"
    )


_HELD: Final = (
    t.count("files", "Files"), t.percent("files_pct", "Of all files"), t.volume("bytes", "Bytes"),
    t.percent("bytes_pct", "Of all bytes"), t.size("mean_file_bytes", "Mean size"),
    t.volume("allocated_bytes", "Allocated"), t.count("directories", "Directories"), t.count("inodes", "Inodes"),
)  # fmt: skip


def _holding(value: object) -> Row:
    return tuple(getattr(value, column.name) for column in _HELD)


def by_type(result: Contents) -> TableView:
    """Types of inodes."""
    columns = (
        t.text("inode_type", "Type"), t.count("inodes", "Inodes"), t.percent("inodes_pct", "Of all"),
        t.volume("bytes", "Bytes"), t.volume("allocated_bytes", "Allocated"),
    )  # fmt: skip
    return t.TableView("Types of inodes", columns, t.rows_of(result.by_type, columns), name="types")


def widths(result: Contents) -> TableView:
    """How many entries directories have."""
    columns = (
        t.count("directories", "Directories"), t.number("mean_entries", "Mean entries", "", ",.1f"),
        t.count("median_entries", "Median, at most"), t.count("p99_entries", "99 % have at most"),
        t.count("widest_entries", "Widest, at most"),
    )  # fmt: skip
    return t.TableView("Directories", columns, [t.row_of(result.widths, columns)], name="directories")


def history(result: Contents) -> TableView:
    """The last scans."""
    columns = (
        t.time("time", "Scan of"), t.count("files", "Files"), t.volume("bytes", "Bytes of files"),
        t.count("directories", "Directories"), t.count("inodes", "Inodes"),
    )  # fmt: skip
    shown = result.history[-SCANS_SHOWN:]
    return t.TableView(
        "Scans", columns, t.rows_of(shown, columns), _rest(len(result.history), len(shown)), name="scans"
    )


def projections(result: Contents) -> TableView:
    """Where the number of files is heading, by both lines."""
    columns = (
        t.text("unit", "Number of"), t.text("method", "Line"), t.number("per_day", "A day", "", "+,.0f"),
        t.text("per_day_ci95", "95 % interval"), t.number("per_year", "A year", "", "+,.0f"),
        _change_pct("per_year_pct", "… of now"), t.text("limit", "Limit"), t.text("limit_state", "Limit is"),
        t.day("limit_date", "on"), t.text("limit_ci95", "95 % interval"), t.text("expected", "To expect"),
    )  # fmt: skip
    rows: list[Row] = [_line(projection, line) for projection in result.projections for line in projection.lines]
    fewest = min(projection.scans for projection in result.projections)
    note = "There is no interval for fewer than 8 scans." if fewest < 8 else (
        "Intervals: 2,000 resamples, with noise as large and persistent as that of the scans."
    )  # fmt: skip
    return t.TableView(
        "Projection of the number of files", columns, rows, note, name="projections", keep=("per_day", "limit_date")
    )


def _line(projection: Projection, line: CountLine) -> Row:
    pace = None if line.per_day_ci95 is None else "{:+,.0f} … {:+,.0f}".format(*line.per_day_ci95)
    ahead = [f"{expected.date}: {expected.count:,.0f}" for expected in line.expected]
    limit = None if projection.limit is None else f"{projection.limit:,} ({projection.limit_origin})"
    ends = None if line.limit_ci95 is None else " … ".join(str(end or "never") for end in line.limit_ci95)
    return (
        projection.unit, METHODS[line.method], line.per_day, pace, line.per_year, line.per_year_pct, limit,
        line.limit_state if projection.limit is not None else None, line.limit_date, ends, ahead or None,
    )  # fmt: skip
