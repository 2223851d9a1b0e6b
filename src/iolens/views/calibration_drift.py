"""Drift for people: targets that differ from their class, how coefficients change, and each month."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.models.drift import LEAST_FACTOR
from iolens.units import MIB
from iolens.views.render import tables as t
from iolens.views.render.figures import FSU, READ, WRITE, Axis, BandMark, Figure, LineMark, Mark, Panel, PointsMark
from iolens.views.render.section import Answer, Notice, ReportSection
from iolens.views.render.window_axes import midnight_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from iolens.analyses.calibration_drift import CalibrationDrift, CostChange, MonthlyCost, TargetDrift
    from iolens.views.render.tables import Row, TableView


NAMES: Final = {"frontier": "limit reached", "busy_time": "busy time", "latency": "latency by size"}
COEFFICIENTS: Final = {"latency": "latency", "s_per_byte": "time per byte"}
SHOWN: Final = 12  # targets; JSON has them all
BOTH: Final = "both"


def tables(result: CalibrationDrift) -> list[TableView]:
    """Slow targets, changes, months, then the factor of every target."""
    return [slow(result), changes(result), months_table(result), targets(result)]


def slow(result: CalibrationDrift) -> TableView:
    """Each target that differs, by its surest evidence."""
    note = "" if result.slow else nobody(result)
    return _targets(
        "Targets slower than their class", "slow", result.slow, "\n".join([note or drift_words(result), *result.notes])
    )


def drift_words(result: CalibrationDrift) -> str:
    """The sentences, the slowest target first; empty where none differs."""
    more = len(result.sentences) - SHOWN
    return "\n".join([*result.sentences[:SHOWN], *([f"… and {more} more targets."] if more > 0 else [])])


def nobody(result: CalibrationDrift) -> str:
    """That none is slow, or that none can be compared."""
    if not result.compared:
        return "No target can be compared with its class: too little evidence."
    every = {item.target for item in result.targets}
    return (
        f"None of the {len(result.compared)} targets with enough evidence (of {len(every)}) is slower than its class."
    )


def targets(result: CalibrationDrift) -> TableView:
    """Of every target, the slowest first; those without a factor last."""
    order = sorted(result.targets, key=lambda item: (item.factor is None, -(item.factor or 0.0), item.target))
    more = len(order) - SHOWN
    note = f"… and {more} more lines; JSON has them all." if more > 0 else ""
    return _targets("Factor of each target", "targets", order[:SHOWN], note)


def _targets(title: str, name: str, items: Sequence[TargetDrift], note: str) -> TableView:
    columns = (
        t.text("target", "Target"), t.text("class", "Class"), t.text("direction", "Direction"),
        t.text("evidence", "Evidence"), t.number("factor", "Factor", "", ".2f"), t.text("interval", "95 %"),
        t.text("sure_interval", "All targets together"), t.day("since", "Since"),
        t.number("before", "Before", "", ".2f"), t.count("days", "Days"), t.count("ticks", "Ticks"),
        t.text("why", "Note"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            item.target, item.target_class, item.direction or BOTH, NAMES[item.evidence], item.factor,
            _interval(item.factor_low, item.factor_high, ".2f"), _interval(item.sure_low, item.sure_high, ".2f"),
            item.since, item.before, item.days, item.ticks, item.why,
        )
        for item in items
    ]  # fmt: skip
    return t.TableView(title, columns, rows, note, name=name, keep=("target", "factor", "interval", "since"))


def changes(result: CalibrationDrift) -> TableView:
    """What a year and ten points of fullness add."""
    columns = (
        t.text("class", "Class"), t.text("direction", "Direction"), t.text("coefficient", "Coefficient"),
        t.text("evidence", "Evidence"), t.count("months", "Months"),
        t.number("per_year_pct", "A year", "%", "+.1f"), t.text("per_year_interval", "95 %"),
        t.number("per_10_points_pct", "10 points fuller", "%", "+.1f"), t.text("per_10_points_interval", "95 %"),
        t.text("note", "Note"),
    )  # fmt: skip
    return t.TableView("Change", columns, [_change(item) for item in result.changes], name="changes")


def _change(item: CostChange) -> Row:
    return (
        item.target_class, item.direction, COEFFICIENTS[item.coefficient],
        NAMES[item.evidence] if item.evidence else None, item.months,
        item.per_year_pct, _interval(item.per_year_low_pct, item.per_year_high_pct, "+.1f"),
        item.per_10_points_pct, _interval(item.per_10_points_low_pct, item.per_10_points_high_pct, "+.1f"), item.note,
    )  # fmt: skip


def months_table(result: CalibrationDrift) -> TableView:
    """Coefficients by month."""
    columns = (
        t.text("month", "Month"), t.text("class", "Class"), t.text("direction", "Direction"),
        t.text("evidence", "Evidence"), t.text("means", "Means"), t.number("latency_s", "Latency", "s", ".3e"),
        t.text("latency_interval", "95 %"), t.number("s_per_byte", "Time per byte", "s/B", ".3e"),
        t.text("s_per_byte_interval", "95 %"), t.percent("fullness_pct", "Full"), t.count("days", "Days"),
        t.count("ticks", "Ticks"), t.count("targets", "Targets"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            f"{item.month:%Y-%m}", item.target_class, item.direction, NAMES[item.evidence], _means(item),
            item.latency_s, _interval(item.latency_low_s, item.latency_high_s, ".3e"), item.s_per_byte,
            _interval(item.s_per_byte_low, item.s_per_byte_high, ".3e"), item.fullness_pct, item.days, item.ticks,
            item.targets,
        )
        for item in result.months
    ]  # fmt: skip
    return t.TableView(
        "Coefficients by month", columns, rows, name="months", keep=("month", "direction", "latency_s", "s_per_byte")
    )


def _means(item: MonthlyCost) -> str:
    if item.upper_bound:
        return "upper bound of FSU"
    known = [COEFFICIENTS[name] for name in item.identified]
    whole = "one I/O at a time" if item.one_at_a_time else "estimate"
    return whole if len(known) == len(COEFFICIENTS) else f"{whole}; identified: {', '.join(known) or 'neither'}"


def _interval(low: float | None, high: float | None, form: str) -> str | None:
    return None if low is None or high is None else f"{low:{form}} to {high:{form}}"


# Coefficients over months with their bands, and the fullness beside them ----------------------------------------------

COLOURS: Final = {"write": WRITE, "read": READ}
PALE: Final = 0.25
FIGURES: Final = ("drift",)
NOTHING: Final = "no month in which this coefficient is identified"
MIDDLE_US: Final = 14 * 86_400_000_000  # after the first day of the month, about
_WEIGHT: Final = 2.5


def figures(result: CalibrationDrift) -> dict[str, Callable[[], Figure]]:
    """The one there is."""
    return {"drift": lambda: drift(result)}


def drift(result: CalibrationDrift) -> Figure:
    """Latency, and time per MiB, of each class; the last panel is their fullness."""
    names = [chosen.name for chosen in result.classes]
    panels: list[Panel] = []
    ends = _ends(result.months)
    for name in names:
        of_class = [item for item in result.months if item.target_class == name]
        panels += [
            _panel(of_class, name, ends, ("latency", "latency_s", "latency_low_s", "latency_high_s"), 1e3, "ms"),
            _panel(
                of_class, name, ends, ("s_per_byte", "s_per_byte", "s_per_byte_low", "s_per_byte_high"),
                1e3 * MIB, "ms per MiB",
            ),
        ]  # fmt: skip
    return Figure("drift", "What a disk I/O costs, month by month", (*panels, *_fullness(result, ends)), linked_x=True)


def _ends(months: Sequence[MonthlyCost]) -> tuple[float, float]:
    times = [_time(item) for item in months]
    return (min(times) - MIDDLE_US, max(times) + MIDDLE_US) if times else (0.0, 1.0)


def _time(item: MonthlyCost) -> float:
    return float(midnight_us(item.month) + MIDDLE_US)


def _panel(
    months: Sequence[MonthlyCost],
    name: str | None,
    ends: tuple[float, float],
    fields: tuple[str, str, str, str],
    factor: float,
    unit: str,
) -> Panel:
    """One coefficient of one class: only months in which it is identified."""
    coefficient, *columns = fields
    marks: list[Mark] = []
    highest = 0.0
    for direction, colour in COLOURS.items():
        same = [item for item in months if item.direction == direction]
        is_known = [coefficient in item.identified and not item.upper_bound for item in same]
        if not any(is_known):
            continue
        x = np.array([_time(item) for item in same])
        value, low, high = (_values(same, is_known, column) * factor for column in columns)
        marks += [
            BandMark(x, low, high, f"{direction}s, 95 %", colour, PALE),
            LineMark(x, value, f"{direction}s", colour),
            PointsMark(x, value, "", colour, weight=_WEIGHT),
        ]
        highest = max(highest, float(np.nanmax(high)))
    what = "Latency" if coefficient == "latency" else "Time per byte"
    title = f"{what} of {name}" if name else what
    y = Axis(f"{what.lower()} ({unit})", low=0, high=1.1 * highest or None)
    return Panel(title, Axis("time", "time", *ends), y, tuple(marks), message="" if marks else NOTHING)


def _values(months: Sequence[MonthlyCost], is_known: Sequence[bool], column: str) -> NDArray[Any]:
    values = [getattr(item, column) if known else None for item, known in zip(months, is_known, strict=True)]
    return np.array([np.nan if value is None else value for value in values])


def _fullness(result: CalibrationDrift, ends: tuple[float, float]) -> list[Panel]:
    """Of each class, where it is stored."""
    marks: list[Mark] = []
    for chosen in result.classes:
        same = {item.month: item for item in result.months if item.target_class == chosen.name}
        known = [item for item in same.values() if item.fullness_pct is not None]
        if known:
            x = np.array([_time(item) for item in known])
            y = np.array([item.fullness_pct for item in known])
            label = chosen.name or "all targets"
            marks += [LineMark(x, y, label, FSU), PointsMark(x, y, "", FSU, weight=_WEIGHT)]
    message = "" if marks else "fullness is not stored"
    axes = Axis("time", "time", *ends), Axis("full (%)", low=0, high=105)
    return [Panel("Fullness", *axes, tuple(marks), message=message, height=0.7)]


# Drift in the report --------------------------------------------------------------------------------------------------
# Slow targets, and what an I/O costs month by month; nothing where nothing is known.

REPORT_ORDER: Final = 32


def report_answers(result: CalibrationDrift) -> list[Answer]:
    """Who is slow, by name; that nobody is, where that is known."""
    words = drift_words(result) or (nobody(result) if result.compared else "")
    return [Answer("targets", (words,))] if words else []


def report_notices(result: CalibrationDrift) -> list[Notice]:
    """The slow targets."""
    step = "Check the drives and the RAID state of that target: a slow disk, a rebuild, a degraded array."
    words = drift_words(result)
    return [Notice("warn", "targets", words, step, ("calibrate", "drift"))] if words else []


def report_sections(result: CalibrationDrift) -> list[ReportSection]:
    """Factors of targets, and months where any coefficient is identified."""
    parts = [slow(result), targets(result)] if result.compared else []
    known = any(item.identified and not item.upper_bound for item in result.months)
    months = (drift(result), changes(result), months_table(result)) if known else ()
    return (
        [ReportSection("What a disk I/O costs, by target and month", (*parts, *months), "targets")]
        if parts or known
        else []
    )


def report_methods(results: Sequence[CalibrationDrift]) -> list[ReportSection]:
    """What the factor is."""
    text = (
        "The factor of a target is the time of an I/O of like size in ticks in which its queue never ran empty,"
        " relative to the median of the other targets of its class; the median over days, with 95 % of resampled days."
        f" A target is named if the factor is at least {LEAST_FACTOR:g} and an interval as wide as the number of"
        " targets asks for (Bonferroni) excludes 1."
    )
    return [ReportSection("Slow targets", (text,))] if any(result.compared for result in results) else []
