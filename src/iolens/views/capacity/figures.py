"""Figures of capacity: usage with projections, purges and surges (Fig. 14 of paper S), targets, inodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import DAY_US, epoch_us
from iolens.views.growth.figures import byte_unit
from iolens.views.render.figures import (
    FSU,
    PURGE,
    READ,
    SATURATED,
    WRITE,
    Axis,
    Bars,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
    Rule,
    Span,
)
from iolens.views.render.window_axes import EMPTY, midnight_us, names_axis, window_title

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from numpy.typing import NDArray

    from iolens.analyses.capacity.analysis import ByteEvent, Capacity, InodeEvent
    from iolens.analyses.capacity.readings import Outlook, ProjectedUsage

LINES: Final = {"linear": ("least squares", WRITE), "theil-sen": ("Theil–Sen", READ)}
LINE_AT_MOST: Final = 60
FARTHEST: Final = 60  # a projected date is shown up to so many times the length of the readings
COUNTS: Final = ((1e9, "billions"), (1e6, "millions"), (1e3, "thousands"), (1.0, ""))


FIGURES: Final = ("usage", "targets", "inodes")


def figures(result: Capacity) -> dict[str, Callable[[], Figure]]:
    """Usage with its projections and events (Fig. 14 of paper S), targets, inodes."""
    return {
        "usage": lambda: usage(result),
        "targets": lambda: targets(result),
        "inodes": lambda: inodes(result),
    }


def usage(result: Capacity) -> Figure:
    """Bytes used, where both lines lead from the last reading, the threshold, and what stood out."""
    heading = "Usage, its projection, purges and surges"
    if not result.used:
        return _empty("usage", heading, result, "used")
    times = np.array([epoch_us(used_bytes.time) for used_bytes in result.used])
    used = np.array([float(used_bytes.bytes) for used_bytes in result.used])
    factor, unit = byte_unit(float(result.capacity_bytes or used.max()))
    panel = _panel(result, times, used, factor, f"used ({unit})", result.capacity_bytes, result.outlook, result.events)
    return Figure("usage", heading, (panel,))


def inodes(result: Capacity) -> Figure:
    """The same for inodes."""
    heading, inode_usage = "Inodes used and their projection", result.inodes
    if inode_usage is None or not inode_usage.used:
        return _empty("inodes", heading, result, "inodes used")
    times = np.array([epoch_us(used_inodes.time) for used_inodes in inode_usage.used])
    used = np.array([float(used_inodes.inodes) for used_inodes in inode_usage.used])
    factor, word = next((unit for unit in COUNTS if used.max() >= unit[0]), COUNTS[-1])
    label = f"inodes used ({word})" if word else "inodes used"
    return Figure(
        "inodes",
        heading,
        (
            _panel(
                result, times, used, factor, label, inode_usage.total_inodes, inode_usage.outlook, inode_usage.events
            ),
        ),
    )


def targets(result: Capacity) -> Figure:
    """Fullness of every target at its last reading, and of the emptiest, mean and fullest over time."""
    heading = "Fullness of targets"
    known = sorted(
        (fullness.fullness_pct, fullness.target) for fullness in result.per_target
        if fullness.fullness_pct is not None and fullness.target_kind in result.target_kinds
    )  # fmt: skip
    if not known:
        return _empty("targets", heading, result, "full (%)")
    return Figure("targets", heading, (_target_bars(result, known), *_over_time(result)))


def _empty(name: str, heading: str, result: Capacity, label: str) -> Figure:
    panel = Panel(window_title(result), Axis("time", "time"), Axis(label), message=EMPTY)
    return Figure(name, heading, (panel,))


def _panel(
    result: Capacity,
    times: NDArray[Any],
    used: NDArray[Any],
    factor: float,
    label: str,
    total: int | None,
    outlook: Outlook | None,
    events: Sequence[ByteEvent] | Sequence[InodeEvent],
) -> Panel:
    courses = outlook.courses if outlook is not None else []
    end = _horizon(times, [course.threshold_date for course in courses])
    marks: list[Mark] = [*_spans(events)]
    shown = LineMark if len(times) <= LINE_AT_MOST else PointsMark
    marks.append(shown(times, used / factor, "used", FSU))
    marks += [_line(course, times, end, factor) for course in courses]
    marks += [Rule(float(times[-1]), "vertical", "last reading")] if end > times[-1] else []
    marks += _crossings(courses, end)
    top = float(used.max())
    if total:
        border = total * result.threshold_pct / 100.0
        marks.append(Rule(border / factor, "horizontal", f"{result.threshold_pct:g} % full"))
        top = max(top, float(total))
    y = Axis(label, low=0, high=1.05 * top / factor or 1.0)
    return Panel(window_title(result), Axis("time", "time", float(times[0]), float(end)), y, tuple(marks))


def _horizon(times: NDArray[Any], dates: Sequence[date | None]) -> int:
    """As far as the projected date of the threshold; half as far ahead as the readings reach back at the least.

    A date too far to see the readings beside it is left beyond the axis, and its rule too.
    """
    first, last = int(times[0]), int(times[-1])
    span = (last - first) or DAY_US
    crossings = [midnight_us(day) for day in dates if day is not None]
    shown = [at + (at - first) // 20 for at in crossings if last < at <= last + FARTHEST * span]
    return max([last + span // 2, *shown])


def _line(course: ProjectedUsage, times: NDArray[Any], end: int, factor: float) -> LineMark:
    word, colour = LINES[course.method]
    x = np.array([int(times[-1]), end])
    y = np.array([course.line.at((int(at) - int(times[-1])) / DAY_US) for at in x]) / factor
    return LineMark(x, np.maximum(y, 0.0), word, colour)


def _crossings(courses: Sequence[ProjectedUsage], end: int) -> list[Rule]:
    """When the lines reach the threshold, where the axis goes so far."""
    methods: dict[date, list[str]] = {}
    for course in courses:
        if course.threshold_date is not None and midnight_us(course.threshold_date) <= end:
            methods.setdefault(course.threshold_date, []).append(LINES[course.method][0])
    return [
        Rule(float(midnight_us(day)), "vertical", f"{day.isoformat()}, {words[0] if len(words) == 1 else 'both lines'}")
        for day, words in methods.items()
    ]


def _spans(events: Sequence[ByteEvent] | Sequence[InodeEvent]) -> list[Span]:
    colours = {"purge": PURGE, "surge": SATURATED}
    return [
        Span(float(epoch_us(event.start)), float(epoch_us(event.end)), event.kind, colours[event.kind])
        for event in events
    ]


def _target_bars(result: Capacity, known: list[tuple[float, str]]) -> Panel:
    shares = np.array([share for share, _ in known])
    places = np.arange(len(known), dtype=float)
    x = names_axis("target, emptiest first", [name.removeprefix(f"{result.filesystem}-") for _, name in known])
    y = Axis("full (%)", low=0, high=105)
    names = tuple(f"{name}: {share:.1f} %" for share, name in known)
    bars = Bars(places - 0.4, places + 0.4, shares, "full", WRITE, names)
    return Panel(window_title(result), x, y, (bars, Rule(result.threshold_pct, "horizontal", "threshold")))


def _over_time(result: Capacity) -> list[Panel]:
    series = result.fullness_series
    if series is None or result.fullness is None or len(series.time_us) < 2:
        return []
    lines = (("fullest", series.max_pct, READ), ("mean", series.mean_pct, FSU), ("emptiest", series.min_pct, WRITE))
    marks = tuple(LineMark(series.time_us, values, label, colour) for label, values, colour in lines)
    x = Axis("time", "time", float(series.time_us[0]), float(series.time_us[-1]))
    return [Panel("Over time", x, Axis("full (%)", low=0, high=105), marks)]
