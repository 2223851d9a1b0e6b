"""Calibrations for people: what each says an I/O costs, and how they changed from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.units import MIB
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.analyses.calibration.stored import KnownCalibrations
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


def tables(result: KnownCalibrations) -> list[TableView]:
    """The calibrations, and their drift where a file system has several."""
    views = [_calibrations(result)]
    return [*views, _drift(result)] if result.drift else views


def figures(result: KnownCalibrations) -> dict[str, Callable[[], Figure]]:
    """None yet: tables say it."""
    return {}


def _calibrations(result: KnownCalibrations) -> TableView:
    columns = [
        t.text("name", "Calibration"), t.text("filesystem", "File system"), t.text("target_class", "Class"),
        t.text("state", "State"), t.time("valid_from", "From"), t.count("queue_depth", "Queue depth"),
        t.percent("ceiling_fsu_pct", "FSU when full"),
    ]  # fmt: skip
    for direction in ("write", "read"):
        columns += [
            t.number(f"{direction}_latency_s", f"{direction.capitalize()} latency", "s", ".3e"),
            t.number(f"{direction}_s_per_byte", f"{direction.capitalize()} time per byte", "s/B", ".3e"),
            t.number(f"{direction}_limit_mib_per_s", f"{direction.capitalize()} limit", "MiB/s", ",.0f"),
            t.number(f"{direction}_limit_iops", f"{direction.capitalize()} limit", "IOPS", ",.0f"),
        ]
    columns.append(t.text("origin", "Origin"))
    rows: list[Row] = []
    for known in result.calibrations:
        cells: list[object] = [
            known.name, known.filesystem, known.target_class, known.state, known.valid_from, known.queue_depth,
            known.ceiling_fsu_pct,
        ]  # fmt: skip
        for direction in ("write", "read"):
            cost = known.calibration.of(direction)
            cells += [cost.latency_s, cost.s_per_byte, cost.bytes_per_s_limit / MIB, cost.iops_limit]
        rows.append((*cells, known.origin))
    return t.TableView("Calibrations", tuple(columns), rows, sideways=True, name="calibrations")


def _drift(result: KnownCalibrations) -> TableView:
    columns = (
        t.text("filesystem", "File system"), t.text("target_class", "Class"), t.text("earlier", "Earlier"),
        t.text("later", "Later"), t.number("years", "Apart", "years", ".2f"), t.text("coefficient", "Coefficient"),
        t.number("before", "Before", "", ".3e"), t.number("after", "After", "", ".3e"),
        t.number("change_pct", "Change", "%", "+.1f"), t.number("change_pct_per_year", "Per year", "%", "+.1f"),
        t.number("fullness_change_pct", "Fuller by", "% points", "+.1f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            drift.filesystem, drift.target_class, drift.earlier, drift.later, drift.years, change.coefficient,
            change.before, change.after, change.change_pct, change.change_pct_per_year, drift.fullness_change_pct,
        )
        for drift in result.drift
        for change in drift.changes
    ]  # fmt: skip
    return t.TableView(
        "Drift",
        columns,
        rows,
        "A larger coefficient means a slower disk.",
        name="drift",
        keep=("earlier", "later", "coefficient", "change_pct", "change_pct_per_year"),
    )
