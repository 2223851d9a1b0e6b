"""Figures of contents: sizes (Fig. 8 of paper D), ages (Fig. 9), projects, directories, and files over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import DAY_S, DAY_US, epoch_us, format_bytes
from iolens.views.capacity import COUNTS, LINES
from iolens.views.render.figures import (
    FSU,
    KINDS,
    READ,
    READ_SHADES,
    WRITE,
    Axis,
    BandMark,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
    Rule,
    side_by_side,
)
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.window_axes import midnight_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from iolens.analyses.contents.analysis import Contents
    from iolens.analyses.contents.change import CountLine, Projection
    from iolens.analyses.contents.distribution import AgePoint, SizePoint

EMPTY: Final = "no scan in this window"
NO_SIZES: Final = "this source does not report sizes of single files"
BYTE_BAND: Final = READ_SHADES[0]
REST_FILES, REST_BYTES = KINDS[4], KINDS[1]
PROJECTS_SHOWN: Final = 12
NAME_LENGTH: Final = 12
TICK_POWERS: Final = 5  # powers of two between two names on the axis of sizes
HOUR_S: Final = 3600
AGE_TICKS: Final = (
    (HOUR_S, "1 h"), *((days * DAY_S, f"{days} d") for days in (1, 7, 30, 90)),
    *((years * 365 * DAY_S, f"{years} y") for years in (1, 2, 5, 10)),
)  # fmt: skip
EMPTY_AT: Final = -1.0  # where empty files, and those of the scan's own time, stand


FIGURES: Final = ("sizes", "ages", "projects", "widths", "history")


def figures(result: Contents) -> dict[str, Callable[[], Figure]]:
    """Sizes (Fig. 8 of paper D), ages (Fig. 9), projects, directories, and files over time."""
    return {
        "sizes": lambda: sizes(result),
        "ages": lambda: ages(result),
        "projects": lambda: projects(result),
        "widths": lambda: widths(result),
        "history": lambda: history(result),
    }


def sizes(result: Contents) -> Figure:
    """Cumulative shares of files and bytes by size, with and without the removed projects (Fig. 8)."""
    heading, name = "Files and bytes by size", "sizes"
    if not result.size_cdf:
        message = EMPTY if result.time is None else NO_SIZES
        return Figure(name, heading, (Panel(_title(result), Axis("file size"), _share_axis(), message=message),))
    marks = [*_size_marks(result.size_cdf, "", (WRITE, READ))]
    if result.without is not None:
        marks += _size_marks(result.without.size_cdf, f" without {_listed(result.without.projects)}",
                             (REST_FILES, REST_BYTES))  # fmt: skip
    high = max(_power(point.size_bytes) for point in result.size_cdf if point.size_bytes is not None)
    powers = range(TICK_POWERS, math.floor(high) + 1, TICK_POWERS)
    ticks = ((EMPTY_AT, "0"), *((float(power), format_bytes(2.0**power)) for power in powers))
    x = Axis("file size, at most", low=EMPTY_AT - 0.5, high=max(high, 1.0) + 0.5, ticks=ticks)
    return Figure(name, heading, (Panel(_title(result), x, _share_axis(), tuple(marks)),))


def _size_marks(points: Sequence[SizePoint], words: str, colours: tuple[str, str]) -> list[Mark]:
    """The line of the files, and that of the bytes with its band where bins do not tell them."""
    closed = [point for point in points if point.size_bytes is not None]
    x = np.array([_power(point.size_bytes or 0) for point in closed])
    marks: list[Mark] = [LineMark(x, np.array([point.files_pct for point in closed]), f"files{words}", colours[0])]
    if all(point.bytes_pct is not None for point in closed):
        return [*marks, LineMark(x, _column(closed, "bytes_pct"), f"bytes{words}", colours[1])]
    low, high = _column(closed, "bytes_min_pct"), _column(closed, "bytes_max_pct")
    if not words:
        marks.insert(0, BandMark(x, low, high, "bytes, lowest to highest", BYTE_BAND))
    middle = _column(closed, "bytes_avg_pct")
    return (
        [*marks, LineMark(x, middle, f"bytes{words}, bins' middle", colours[1])] if np.isfinite(middle).any() else marks
    )


def ages(result: Contents) -> Figure:
    """Cumulative shares of files and bytes by the time since they were used, and changed (Fig. 9)."""
    kinds = (("last used", "atime_cdf", "Last access"), ("last changed", "mtime_cdf", "Last modification"))
    panels = tuple(_age_panel(result, words, key, title) for words, key, title in kinds)
    return Figure("ages", "Files and bytes by age", panels)


def _age_panel(result: Contents, words: str, key: str, title: str) -> Panel:
    points: list[AgePoint] = getattr(result, key)
    label = f"{words} at most … before the scan"
    if not points:
        message = EMPTY if result.time is None else f"this source does not report when files were {words}"
        return Panel(f"{title}, {_title(result)}", Axis(label), _share_axis(), message=message)
    marks = [*_age_marks(points, "", (WRITE, READ))]
    if result.without is not None:
        rest: list[AgePoint] = getattr(result.without, key)
        marks += _age_marks(rest, f" without {_listed(result.without.projects)}", (REST_FILES, REST_BYTES))
    ends = [_age_place(point.age_s) for point in points if point.age_s is not None]
    high = max([*ends, _age_place(365 * DAY_S)])
    ticks = tuple((_age_place(age), name) for age, name in AGE_TICKS if _age_place(age) <= high)
    x = Axis(label, low=min([*ends, _age_place(HOUR_S)]) - 0.2, high=high + 0.2, ticks=ticks)
    return Panel(f"{title}, {_title(result)}", x, _share_axis(), tuple(marks))


def _age_marks(points: Sequence[AgePoint], words: str, colours: tuple[str, str]) -> list[Mark]:
    closed = [point for point in points if point.age_s is not None]
    x = np.array([_age_place(point.age_s or 0) for point in closed])
    marks: list[Mark] = [LineMark(x, _column(closed, "files_pct"), f"files{words}", colours[0])]
    reported = any(point.bytes_pct is not None for point in closed)
    return [*marks, LineMark(x, _column(closed, "bytes_pct"), f"bytes{words}", colours[1])] if reported else marks


def _age_place(seconds: float) -> float:
    """Powers of ten of hours; what is not before the scan stands left of them."""
    return math.log10(seconds / HOUR_S) if seconds > 0 else EMPTY_AT


def projects(result: Contents) -> Figure:
    """Shares of files and bytes of the projects that hold most; of owners where no project is reported."""
    named = [(contents.project, contents.files_pct, contents.bytes_pct) for contents in result.by_project]
    word = "project"
    if not any(name is not None for name, _, _ in named):
        named, word = (
            [(contents.owner, contents.files_pct, contents.bytes_pct) for contents in result.by_owner],
            "owner",
        )
    heading = f"Who holds most, by {word}"
    if not any(name is not None for name, _, _ in named):
        message = EMPTY if result.time is None else "neither projects nor owners are reported"
        axis = Axis("project or owner")
        return Figure("projects", "Who holds most", (Panel(_title(result), axis, _share_axis(), message=message),))
    shown = named[:PROJECTS_SHOWN]
    names = tuple(_short(name) if name is not None else f"no {word}" for name, _, _ in shown)
    groups = [
        ("files", WRITE, np.array([files or 0.0 for _, files, _ in shown])),
        ("bytes", READ, np.array([size or 0.0 for _, _, size in shown])),
    ]
    if all(size is None for _, _, size in shown):
        groups = groups[:1]
    bars = side_by_side(groups, names)
    top = max(float(heights.max()) for _, _, heights in groups)
    ticks = tuple((float(place), name) for place, name in enumerate(names))
    label = word if len(named) == len(shown) else f"{word} ({len(shown)} of {len(named)})"
    x = Axis(label, low=-0.6, high=len(shown) - 0.4, ticks=ticks)
    y = Axis("share (%)", low=0, high=1.1 * top or 1.0)
    return Figure("projects", heading, (Panel(_title(result), x, y, bars),))


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def widths(result: Contents) -> Figure:
    """Cumulative share of directories by number of entries."""
    heading, name, label = "Directories by number of entries", "widths", "entries of a directory, at most"
    y = Axis("cumulative share of directories (%)", low=0, high=102)
    closed = (
        [point for point in result.widths.width_cdf if point.entries is not None] if result.widths is not None else []
    )
    if not closed:
        message = EMPTY if result.time is None else "this source does not report how many entries directories have"
        return Figure(name, heading, (Panel(_title(result), Axis(label), y, message=message),))
    x = np.array([_power(point.entries or 0) for point in closed])
    line = LineMark(x, np.array([point.directories_pct for point in closed]), "directories", FSU)
    ticks = ((EMPTY_AT, "0"), *((float(power), f"{2**power:,}") for power in range(0, int(x.max()) + 1, 3)))
    axis = Axis(label, low=EMPTY_AT - 0.3, high=max(float(x.max()), 1.0) + 0.3, ticks=ticks)
    return Figure(name, heading, (Panel(_title(result), axis, y, (line,)),))


def history(result: Contents) -> Figure:
    """Number of files, scan by scan, with both lines and the limit."""
    heading, name = "Files over time, and where they are heading", "history"
    reported = [scan_totals for scan_totals in result.history if scan_totals.files is not None]
    if not reported:
        axis = Axis("time", "time")
        return Figure(name, heading, (Panel(_title(result), axis, Axis("files"), message=EMPTY),))
    times = np.array([epoch_us(scan_totals.time) for scan_totals in reported])
    files = np.array([float(scan_totals.files or 0) for scan_totals in reported])
    factor, word = next((unit for unit in COUNTS if files.max() >= unit[0]), COUNTS[-1])
    projection = next((projection for projection in result.projections if projection.unit == "files"), None)
    lines = projection.lines if projection is not None else []
    end = _horizon(times, lines)
    marks: list[Mark] = [PointsMark(times, files / factor, "files", FSU, weight=2.0)]
    marks += [_line(line, times, end, factor) for line in lines]
    marks += [Rule(float(times[-1]), "vertical", "last scan")] if end > times[-1] else []
    limit = _shown_limit(projection, lines, end)
    marks += [Rule(limit / factor, "horizontal", f"{limit:,} files")] if limit is not None else []
    tops = [float(files.max()), *(_at(line, times, end) for line in lines), float(limit or 0)]
    y = Axis(f"files ({word})" if word else "files", low=0, high=1.08 * max(tops) / factor or 1.0)
    x = Axis("time", "time", float(times[0]) - 0.02 * (end - float(times[0])), float(end))
    return Figure(name, heading, (Panel(result.filesystem, x, y, tuple(marks)),))


def _horizon(times: NDArray[Any], lines: Sequence[CountLine]) -> int:
    """Half as far ahead as the scans reach back; to the limit, however far, where a line reaches it in time to plan."""
    span = int(times[-1] - times[0])
    reached = [midnight_us(line.limit_date) for line in lines if line.limit_date is not None]
    ahead = [at + (at - int(times[0])) // 20 for at in reached if int(times[-1]) < at <= int(times[-1]) + 12 * span]
    return max([int(times[-1]) + (span // 2 or DAY_US), *ahead])


def _shown_limit(projection: Projection | None, lines: Sequence[CountLine], end: int) -> int | None:
    """The limit, unless it is so far off that the files would be a line at the bottom."""
    if projection is None or projection.limit is None:
        return None
    near = any(line.limit_date is not None and midnight_us(line.limit_date) <= end for line in lines)
    return projection.limit if near else None


def _at(line: CountLine, times: NDArray[Any], time: int) -> float:
    """The line at a time; there are never less than no files."""
    return max(line.level + line.per_day * (time - int(times[-1])) / DAY_US, 0.0)


def _line(line: CountLine, times: NDArray[Any], end: int, factor: float) -> LineMark:
    word, colour = LINES[line.method]
    x = np.array([int(times[0]), end])
    y = np.array([_at(line, times, int(at)) for at in x]) / factor
    return LineMark(x, y, word, colour)


def _column(points: Sequence[Any], name: str) -> NDArray[Any]:
    return np.array([np.nan if (value := getattr(point, name)) is None else float(value) for point in points])


def _power(size: float) -> float:
    return math.log2(size) if size >= 1 else EMPTY_AT


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _share_axis() -> Axis:
    return Axis("cumulative share (%)", low=0, high=102)


def _title(result: Contents) -> str:
    return f"{result.filesystem}, {time_with_zone(result.time)}" if result.time is not None else result.filesystem
