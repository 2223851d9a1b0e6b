"""Bandwidth and operations of the next system for people, and the demand they follow from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si, tick_word
from iolens.views.plan_inputs import inputs, warned
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from iolens.plans.performance import PerformancePlan
    from iolens.views.render.tables import Row, TableColumn, TableView

NAMES: Final = {
    "read_bytes_per_s": "read bandwidth",
    "write_bytes_per_s": "write bandwidth",
    "bytes_per_s": "bandwidth",
    "read_ops_per_s": "reads",
    "write_ops_per_s": "writes",
    "ops_per_s": "reads and writes",
    "disk_read_ios_per_s": "disk reads",
    "disk_write_ios_per_s": "disk writes",
    "disk_ios_per_s": "disk I/Os",
    "metadata_ops_per_s": "metadata operations",
}


def tables(result: PerformancePlan) -> list[TableView]:
    """Cases first."""
    views = [cases(result), *([demand(result)] if result.demand else []), inputs(result.inputs)]
    return warned(views, result.warnings)


def measure_name(measure: str) -> str:
    """`write bandwidth`."""
    return NAMES.get(measure, measure.removesuffix("_per_s").replace("_", " "))


class Rate(float):
    """A rate that knows whether it counts bytes, so that one column can show bandwidth and operations alike."""

    is_bytes: bool

    @classmethod
    def of(cls, measure: str, value: float | None) -> Rate | None:
        """The rate of a measure; None where it is missing."""
        if value is None or t.is_missing(value):
            return None
        rate = cls(value)
        rate.is_bytes = "bytes" in measure
        return rate

    def __str__(self) -> str:
        if self.is_bytes:
            return f"{format_bytes_si(float(self))}/s"
        return f"{float(self):,.0f} /s" if self >= 10 else f"{float(self):.2g} /s"


def rate(name: str, heading: str) -> TableColumn:
    """`35 GB/s` or `120,000 /s`."""
    return t.TableColumn(name, heading, "number", str)


def percentile_name(percentile: float | None) -> str:
    """`95%`, `largest`, `given`."""
    return "given" if percentile is None else "largest" if percentile == 100 else f"{percentile:g}%"


MEASURE: Final = t.TableColumn("measure", "Measure", "text", measure_name)


def cases(result: PerformancePlan) -> TableView:
    """What every speed asks for."""
    columns = (
        t.number("ssi", "SSI", form="g"), MEASURE,
        t.TableColumn("percentile", f"Of {tick_word(result.tick_s)}s", "number", percentile_name, ""),
        rate("demand", "Demand"), rate("required", "Required"), rate("low_required", "… low"),
        rate("high_required", "… high"), rate("ci95_low", "95 % interval from"), rate("ci95_high", "… to"),
    )  # fmt: skip
    rows: list[Row] = []
    for case in result.cases:
        amounts = (case.demand, case.required, case.low_required, case.high_required, *(case.ci95 or (None, None)))
        shown = [Rate.of(case.measure, amount) for amount in amounts]
        rows.append((case.ssi, case.measure, case.percentile, *shown))
    note = "\n".join(map(t.sentence, result.notes))
    return t.TableView(f"Performance: {result.equation}", columns, rows, note, name="cases")


def demand(result: PerformancePlan) -> TableView:
    """The reference system's ticks."""
    word = tick_word(result.tick_s)
    columns = (
        MEASURE, t.count("ticks", f"{word.capitalize()}s"), t.count("days", "Days"),
        t.count("complete_days", "… complete"), rate("mean", "Mean"),
        rate("p50", "50 %"), rate("p95", "95 %"), rate("p99", "99 %"), rate("max", "Largest"),
        t.time("max_time", "Largest at"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            entry.measure, entry.ticks, entry.days, entry.complete_days,
            *(Rate.of(entry.measure, value) for value in (entry.mean, entry.p50, entry.p95, entry.p99, entry.max)),
            entry.max_time,
        )
        for entry in result.demand
    ]  # fmt: skip
    lasts = f"A tick lasts {result.tick_s:g} s; " if word == "tick" else ""
    notes = [] if result.tick_s is None else [t.sentence(f"{lasts}days are UTC days")]
    if result.partial_days:
        days = ", ".join(map(str, result.partial_days[:5])) + (", …" if len(result.partial_days) > 5 else "")
        notes.append(f"Days with less than 95 % of their {word}s: {days}.")
    return t.TableView(
        f"Demand on {result.filesystem}", columns, rows, "\n".join(notes), name="demand", keep=("p99", "max")
    )
