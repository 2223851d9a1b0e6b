"""Calibrations from telemetry for people: what each kind of evidence says, whether they agree, what is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.units import MIB
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.analyses.calibration_estimate.analysis import CalibrationEstimate, EvidenceEstimate
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


NAMES = {"frontier": "limit reached", "busy_time": "busy time", "latency": "latency by size"}


def tables(result: CalibrationEstimate) -> list[TableView]:
    """Estimates first; classes and comparisons where there are several."""
    views = [_estimates(result), _basis(result)]
    views += [_classes(result)] if len(result.classes) > 1 else []
    views += [_agreement(result)] if result.agreement else []
    return [*views, _ceilings(result)] if result.ceilings else views


def figures(result: CalibrationEstimate) -> dict[str, Callable[[], Figure]]:
    """None: tables say it."""
    return {}


def _estimates(result: CalibrationEstimate) -> TableView:
    columns = (
        t.text("class", "Class"), t.text("direction", "Direction"), t.text("evidence", "Evidence"),
        t.text("means", "Means"), t.number("latency_s", "Latency", "s", ".3e"), t.text("latency_interval", "95 %"),
        t.number("s_per_byte", "Time per byte", "s/B", ".3e"), t.text("s_per_byte_interval", "95 %"),
        t.number("limit_iops", "Limit", "IOPS", ",.0f"), t.number("limit_mib_per_s", "Limit", "MiB/s", ",.0f"),
        t.count("days", "Days"), t.count("ticks", "Ticks"), t.count("targets", "Targets"), t.text("note", "Note"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            item.target_class, item.direction, NAMES[item.evidence], _means(item), item.latency_s,
            _interval(item.latency_low_s, item.latency_high_s), item.s_per_byte,
            _interval(item.s_per_byte_low, item.s_per_byte_high), _limit(item.latency_s),
            _limit(item.s_per_byte, MIB), item.days, item.ticks, item.targets, item.note,
        )
        for item in result.estimates
    ]  # fmt: skip
    return t.TableView(
        "What a disk I/O costs, by telemetry",
        columns,
        rows,
        "\n".join([*result.missing, *result.notes]),
        sideways=True,
        name="estimates",
        keep=("class", "direction", "evidence", "means", "latency_s", "s_per_byte"),
    )


def _means(item: EvidenceEstimate) -> str:
    """What may be said with the coefficients."""
    if item.upper_bound:
        return "upper bound of FSU"
    words = "one I/O at a time" if item.one_at_a_time else "estimate"
    if item.is_identified:
        return words
    if not item.identified:
        return f"{words}; the coefficients are not separated"
    names = {"latency": "latency", "s_per_byte": "time per byte"}
    return f"{words}; only {' and '.join(names[name] for name in item.identified)} is identified"


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.3e} to {high:.3e}"


def _limit(cost: float | None, unit: float = 1.0) -> float | None:
    return 1.0 / cost / unit if cost else None


def _basis(result: CalibrationEstimate) -> TableView:
    columns = (
        t.text("what", "What"), t.text("in_use", "Calibration in use"), t.text("state", "State"),
        t.count("days", "Days"), t.count("targets", "Targets"), t.count("samples", "Ticks of one direction"),
        t.number("tick_s", "Length of a tick", "s", ",.0f"),
    )  # fmt: skip
    row = (
        "basis", result.in_use.name or "none", result.in_use.state, result.days, result.targets, result.samples,
        result.tick_s,
    )  # fmt: skip
    return t.TableView("Basis", columns, [row], sideways=True, name="basis")


def _classes(result: CalibrationEstimate) -> TableView:
    columns = (t.text("class", "Class"), t.count("targets", "Targets"), t.text("names", "Names"))
    rows: list[Row] = [
        (chosen.name or "no class", len(chosen.targets), ", ".join(chosen.targets)) for chosen in result.classes
    ]
    return t.TableView("Classes of targets", columns, rows, name="classes")


def _agreement(result: CalibrationEstimate) -> TableView:
    columns = (
        t.text("class", "Class"), t.text("direction", "Direction"), t.text("coefficient", "Coefficient"),
        t.text("first", "By"), t.text("second", "And by"), t.number("first_value", "First", "", ".3e"),
        t.number("second_value", "Second", "", ".3e"), t.number("ratio", "Second ÷ first", "", ".2f"),
        t.text("agrees", "Agree"), t.number("served_at_once", "Served at once", "", ".1f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            pair.target_class, pair.direction, pair.coefficient, NAMES[pair.first], NAMES[pair.second],
            pair.first_value, pair.second_value, pair.ratio, _agrees(pair.agrees), pair.served_at_once,
        )
        for pair in result.agreement
    ]  # fmt: skip
    note = "Agree: the intervals overlap. Where they do not, the evidence contradicts itself: nothing is averaged."
    return t.TableView("Agreement", columns, rows, note, name="agreement")


def _ceilings(result: CalibrationEstimate) -> TableView:
    columns = (
        t.text("class", "Class"), t.text("calibration", "By the calibration"),
        t.number("ceiling_fsu_pct", "FSU at the limit", "%", ".0f"), t.text("ceiling_interval", "95 %"),
        t.count("ticks", "Queued ticks"), t.text("note", "Note"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            item.target_class, item.calibration or "this estimate", item.ceiling_fsu_pct,
            _pct_interval(item.ceiling_low_pct, item.ceiling_high_pct), item.ticks, item.note,
        )
        for item in result.ceilings
    ]  # fmt: skip
    note = "The ceiling that the telemetry shows: a steady load from 0.9 of it on has no more to give."
    return t.TableView("FSU of targets at their limit", columns, rows, note, name="ceilings")


def _pct_interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.0f} to {high:.0f}"


def _agrees(agrees: bool | None) -> str:
    return "not comparable" if agrees is None else "yes" if agrees else "no"
