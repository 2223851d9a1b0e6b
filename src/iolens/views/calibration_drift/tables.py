"""Drift for people: targets that differ from their class, how coefficients change, and each month."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.calibration_drift import CalibrationDrift, CostChange, MonthlyCost, TargetDrift
    from iolens.views.render.tables import Row, TableView

NAMES: Final = {"frontier": "limit reached", "busy_time": "busy time", "latency": "latency by size"}
COEFFICIENTS: Final = {"latency": "latency", "s_per_byte": "time per byte"}
SHOWN: Final = 12  # targets; JSON has them all
BOTH: Final = "both"


def tables(result: CalibrationDrift) -> list[TableView]:
    """Slow targets, changes, months, then the factor of every target."""
    return [slow(result), changes(result), months(result), targets(result)]


def slow(result: CalibrationDrift) -> TableView:
    """Each target that differs, by its surest evidence."""
    note = "" if result.slow else nobody(result)
    return _targets(
        "Targets slower than their class", "slow", result.slow, "\n".join([note or words(result), *result.notes])
    )


def words(result: CalibrationDrift) -> str:
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


def months(result: CalibrationDrift) -> TableView:
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
