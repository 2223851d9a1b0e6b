"""Usage and where it is heading, for people: the headline, both projections, purges and surges, targets, inodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import DAY_US, epoch_us, format_bytes_si
from iolens.views.growth import byte_unit, interval, per_day
from iolens.views.render import tables as t
from iolens.views.render.figures import (
    FSU,
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
from iolens.views.render.figures import PURGE as FIGURES_PURGE
from iolens.views.render.section import Answer, Fact, Notice, Part, ReportSection
from iolens.views.render.window_axes import EMPTY, midnight_us, names_axis, window_title
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from numpy.typing import NDArray

    from iolens.analyses.capacity.analysis import ByteEvent, ByteProjection, Capacity, InodeEvent, InodeUsage
    from iolens.analyses.capacity.readings import Outlook, ProjectedUsage
    from iolens.views.render.tables import Row, TableView


READINGS_SHOWN: Final = 14
TARGETS_SHOWN: Final = 24
EXTREMES_SHOWN: Final = 10
NO_DATA: Final = "No readings of capacity in this window."
METHODS: Final = {"linear": "least squares", "theil-sen": "Theil–Sen"}
STATES: Final = {"reached": "reached on", "projected": "expected on"}


def tables(result: Capacity) -> list[TableView]:
    """Everything the result says."""
    if not result.samples and not result.per_target:
        return [headline(result)]
    views = [headline(result), projections(result), events(result), usage(result)]
    if result.fullness is not None:
        views.append(spread(result))
    views.append(per_target(result))
    if result.inodes is not None:
        views.append(inodes(result.inodes))
    return [*views, changes(result)] if result.target_changes else views


def verdict(result: Capacity) -> str:
    """In one sentence, how full it is and when it will be too full."""
    if result.used_bytes is None:
        return NO_DATA
    full = "" if result.fullness_pct is None else f", {t.show_percent(result.fullness_pct)} % of its capacity"
    begins = f"{format_bytes_si(result.used_bytes)} are used{full}"
    if result.slope_bytes_per_day is None:
        reached = f" {_threshold(result)}" if result.threshold_state == "reached" else ""
        return f"{begins}; {result.too_little_data}.{reached}"
    pace = f"{'+' if result.slope_bytes_per_day >= 0 else '−'}{format_bytes_si(abs(result.slope_bytes_per_day))} a day"
    return f"{begins}, {pace} ({METHODS[result.method]}). {_threshold(result)}"


def _threshold(result: Capacity) -> str:
    border = f"{result.threshold_pct:g} %"
    if result.threshold_state in STATES and result.threshold_date is not None:
        between = _dates(result.threshold_ci95)
        sure = f" (95 % interval {between})" if between is not None else ""
        return f"{border} {'was' if result.threshold_state == 'reached' else 'is'} " + (
            f"{STATES[result.threshold_state]} {result.threshold_date}{sure}."
        )
    if result.threshold_state == "reached":
        return f"{border} is reached."
    words = {"not growing": f"At this pace {border} is never reached.", "unknown": "Its capacity is not known."}
    return words.get(result.threshold_state, f"{border} is {result.threshold_state}.")


def _dates(ends: tuple[date | None, date | None] | None) -> str | None:
    if ends is None:
        return None
    early, late = (str(end) if end is not None else "never" for end in ends)
    return f"{early} … {late}"


def usage(result: Capacity) -> TableView:
    """The last readings."""
    columns = (t.time("time", "Time"), t.volume("bytes", "Used"))
    shown = result.used[-READINGS_SHOWN:]
    note = f"The last {len(shown)} of {len(result.used)} readings; JSON has them all."
    return t.TableView(
        "Usage", columns, t.rows_of(shown, columns), note if len(shown) < len(result.used) else "", name="usage"
    )


def headline(result: Capacity) -> TableView:
    """The file system at its last reading, and what the answer rests on."""
    columns = (
        t.text("filesystem", "File system"), t.time("window_start", "From"), t.time("window_end", "To"),
        t.volume("capacity_bytes", "Capacity"), t.volume("used_bytes", "Used"), t.percent("fullness_pct", "Full"),
        t.volume("threshold_bytes", "Threshold"), per_day("usual_bytes_per_day", "Usual change"),
        per_day("usual_spread_bytes_per_day", "… its spread"), t.count("samples", "Complete readings"),
        t.count("incomplete_readings", "Incomplete readings"), t.text("step", "Readings taken"),
        t.text("target_kinds", "Targets are"), t.text("sources", "Sources"),
        t.count("overlapping_rows", "Overlapping rows left out"),
    )  # fmt: skip
    row = t.row_of(result, columns)
    notes = [verdict(result), *map(t.sentence, result.notes)]
    return t.TableView(
        f"{result.filesystem}: capacity", columns, [row], "\n".join(notes), sideways=True, name="summary"
    )


def projections(result: Capacity) -> TableView:
    """Both lines through the readings."""
    columns = (
        t.text("method", "Line"), per_day("slope_bytes_per_day", "Change"), t.text("slope_ci95", "95 % interval"),
        t.text("threshold_state", f"{result.threshold_pct:g} % full"), t.day("threshold_date", "on"),
        t.text("threshold_ci95", "95 % interval"), t.text("expected", "Usage to expect"),
    )  # fmt: skip
    rows: list[Row] = [_projection(projection) for projection in result.projections]
    note = "Intervals: 2,000 resamples, with noise as large and persistent as that of the readings."
    return t.TableView("Projection", columns, rows, note if rows else _no_line(result), name="projections")


def _no_line(result: Capacity) -> str:
    """Why no line is drawn."""
    return NO_DATA if result.too_little_data is None else t.sentence(result.too_little_data)


def _projection(projection: ByteProjection) -> Row:
    ahead = [f"{expected.date}: {format_bytes_si(expected.bytes)}" for expected in projection.expected]
    return (
        METHODS[projection.method],
        projection.slope_bytes_per_day,
        interval(projection.slope_ci95),
        projection.threshold_state,
        projection.threshold_date,
        _dates(projection.threshold_ci95),
        ahead or None,
    )


def events(result: Capacity) -> TableView:
    """Purges and surges."""
    columns = (
        t.text("kind", "Event"), t.time("start", "From"), t.time("end", "To"),
        t.number("days", "Length", "d", ",.1f"), t.volume("bytes", "Change"),
    )  # fmt: skip
    rows: list[Row] = [
        (event.kind, event.start, event.end, (event.end - event.start).total_seconds() / 86400, event.bytes)
        for event in result.events
    ]
    least = format_bytes_si(result.least_event_bytes)
    rule = f"Far beyond the usual change between readings, and at least {least}."
    return t.TableView("Purges and surges", columns, rows, rule if rows else f"None found. {rule}", name="events")


def spread(result: Capacity) -> TableView:
    """How evenly the targets are filled."""
    columns = (
        t.count("targets", "Targets"), t.percent("mean_pct", "Mean fullness"), t.percent("median_pct", "Median"),
        t.percent("min_pct", "Emptiest"), t.text("emptiest", "… is"), t.percent("max_pct", "Fullest"),
        t.text("fullest", "… is"), t.number("stddev_pct", "Standard deviation", "points", ".2f"),
        t.text("above_threshold", f"At {result.threshold_pct:g} % or more"),
    )  # fmt: skip
    return t.TableView(
        "Imbalance of fullness", columns, [t.row_of(result.fullness, columns)], sideways=True, name="spread"
    )


def per_target(result: Capacity) -> TableView:
    """All targets, or the fullest and the emptiest of many."""
    columns = (
        t.text("target", "Target"), t.text("target_kind", "Kind"), t.volume("total_bytes", "Capacity"),
        t.volume("used_bytes", "Used"), t.percent("fullness_pct", "Full"), t.count("total_inodes", "Inodes"),
        t.count("used_inodes", "Inodes used"), t.percent("inodes_pct", "Inodes full"),
    )  # fmt: skip
    ordered = sorted(result.per_target, key=lambda fullness: (-(fullness.fullness_pct or 0.0), fullness.target))
    few = len(ordered) <= TARGETS_SHOWN
    shown = ordered if few else [*ordered[:EXTREMES_SHOWN], *ordered[-EXTREMES_SHOWN:]]
    rows = t.rows_of(shown, columns)
    note = "" if few else f"The {EXTREMES_SHOWN} fullest and {EXTREMES_SHOWN} emptiest of {len(ordered)}; JSON has all."
    return t.TableView("Fullness of targets", columns, rows, note, name="per_target")


def inodes(usage: InodeUsage) -> TableView:
    """The same for inodes."""
    columns = (
        t.text("target_kinds", "Inodes of"), t.count("total_inodes", "Inodes"), t.count("used_inodes", "Used"),
        t.percent("fullness_pct", "Full"), t.number("slope_inodes_per_day", "Change", "a day", "+,.0f"),
        t.text("slope_ci95", "… 95 % interval"), t.text("threshold_state", "Threshold"),
        t.day("threshold_date", "… on"), t.text("too_little_data", "No forecast"),
        t.text("events", "Purges and surges"),
        t.count("incomplete_readings", "Incomplete readings"),
    )  # fmt: skip
    shown: dict[str, Any] = {
        "slope_ci95": None if usage.slope_ci95 is None else "{:+,.0f} … {:+,.0f}".format(*usage.slope_ci95),
        "events": [f"{event.kind} {event.start:%Y-%m-%d} {event.inodes:+,}" for event in usage.events],
    }
    row = tuple(shown.get(column.name, getattr(usage, column.name)) for column in columns)
    return t.TableView("Inodes", columns, [row], sideways=True, name="inodes")


def changes(result: Capacity) -> TableView:
    """Times at which targets came or went."""
    columns = (
        t.time("time", "Time"), t.count("targets_before", "Targets before"),
        t.count("targets_after", "Targets after"),
    )  # fmt: skip
    return t.TableView("Targets came or went", columns, t.rows_of(result.target_changes, columns), name="changes")


# Figures of capacity --------------------------------------------------------------------------------------------------
# Usage with projections, purges and surges (Fig. 14 of paper S), targets, inodes.

LINES: Final = {"linear": ("least squares", WRITE), "theil-sen": ("Theil–Sen", READ)}
LINE_AT_MOST: Final = 60
FARTHEST: Final = 60  # a projected date is shown up to so many times the length of the readings
COUNTS: Final = ((1e9, "billions"), (1e6, "millions"), (1e3, "thousands"), (1.0, ""))


FIGURES: Final = ("usage", "targets", "inodes")


def figures(result: Capacity) -> dict[str, Callable[[], Figure]]:
    """Usage with its projections and events (Fig. 14 of paper S), targets, inodes."""
    return {
        "usage": lambda: usage_figure(result),
        "targets": lambda: targets(result),
        "inodes": lambda: inodes_figure(result),
    }


def usage_figure(result: Capacity) -> Figure:
    """Bytes used, where both lines lead from the last reading, the threshold, and what stood out."""
    heading = "Usage, its projection, purges and surges"
    if not result.used:
        return _empty("usage", heading, result, "used")
    times = np.array([epoch_us(used_bytes.time) for used_bytes in result.used])
    used = np.array([float(used_bytes.bytes) for used_bytes in result.used])
    factor, unit = byte_unit(float(result.capacity_bytes or used.max()))
    panel = _panel(result, times, used, factor, f"used ({unit})", result.capacity_bytes, result.outlook, result.events)
    return Figure("usage", heading, (panel,))


def inodes_figure(result: Capacity) -> Figure:
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
    colours = {"purge": FIGURES_PURGE, "surge": SATURATED}
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


# Capacity in the report; nothing where no reading is complete ---------------------------------------------------------

REPORT_ORDER: Final = 40
SOON_DAYS: Final = 180
PURGE: Final = "See what can be purged or moved, and size the next system with `iolens plan capacity`."


def report_answers(result: Capacity) -> list[Answer]:
    """How full it is and when it will be too full."""
    return [Answer("capacity", (verdict(result),), usage_figure(result))] if result.samples else []


def report_identity(result: Capacity) -> list[str]:
    """Its capacity."""
    if not result.samples or result.capacity_bytes is None:
        return []
    return [f"{format_bytes_si(result.capacity_bytes)} of capacity"]


def report_facts(result: Capacity) -> list[Fact]:
    """How full it is."""
    if not result.samples or result.fullness_pct is None or result.used_bytes is None:
        return []
    return [Fact(f"{t.show_percent(result.fullness_pct)} %", "full", f"{format_bytes_si(result.used_bytes)} used")]


def report_now(result: Capacity) -> list[Fact]:
    """How full it is, and when it will be too full."""
    facts = report_facts(result)
    if facts and result.too_little_data is not None and result.threshold_state != "reached":
        return [replace(facts[0], remark=result.too_little_data)]
    if not facts or result.threshold_state != "projected" or result.threshold_date is None:
        return facts
    return [replace(facts[0], remark=f"{result.threshold_pct:g} % on {result.threshold_date}")]


def report_notices(result: Capacity) -> list[Notice]:
    """A threshold that is passed, or will be soon, for bytes and for inodes."""
    if not result.samples or result.window_end is None:
        return []
    measured: list[tuple[str, Any]] = [("the bytes", result)]
    measured += [("the inodes", result.inodes)] if result.inodes is not None else []
    return [notice for what, usage in measured for notice in _threshold_words(what, usage, result)]


def _threshold_words(what: str, usage: Any, result: Capacity) -> list[Notice]:
    full = usage.fullness_pct
    if full is None or t.is_missing(full) or result.window_end is None:
        return []
    now = f"{t.show_percent(full)} % of {what} are used"
    if full >= result.threshold_pct:
        return [Notice("high", "capacity", f"{now}: above {result.threshold_pct:g} %.", PURGE, ("contents",))]
    if usage.threshold_state != "projected" or usage.threshold_date is None:
        return []
    days = (usage.threshold_date - result.window_end.date()).days
    if not 0 <= days <= SOON_DAYS:
        return []
    soon = f"{result.threshold_pct:g} % is expected on {usage.threshold_date}, in {counted(days, 'day')}"
    return [Notice("warn", "capacity", f"{now}; {soon}.", PURGE, ("contents",))]


def report_sections(result: Capacity) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.samples:
        return []
    parts: list[Part] = [projections(result), events(result)]
    if result.fullness is not None:
        parts += [targets(result), spread(result)]
    if result.inodes is not None:
        parts.append(inodes(result.inodes))
    return [ReportSection("Capacity", (*parts, headline(result)), "capacity")]


def report_methods(results: Sequence[Capacity]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.samples for result in results):
        return []
    return [
        ReportSection(
            "Capacity over time",
            (
                "Usage is the sum over all targets at times when each of them answered. Two lines are fitted to it:"
                " least squares, and Theil–Sen (the median slope of all pairs of readings), on which purges have little"
                " effect. Their intervals come from 2,000 resamples with noise as large and persistent as that"
                " of the readings.",
                "A purge or surge is a run of changes on one side of the usual pace that adds up to more than four"
                " times what the usual spread would, and to at least one per cent of the capacity.",
            ),
        )
    ]
