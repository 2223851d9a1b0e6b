"""Latency of system calls for people: operations by place, then every call of a write and of a read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.bench_latency.words import cost_words, direction_words, shown_latency
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from iolens.analyses.bench_latency import BenchLatency, CallLatency, OperationLatency
    from iolens.views.render.tables import Row, TableView

DIRECTIONS: Final = ("write", "read")
US: Final = 1e6
_DIFFERS: Final = {True: "yes", False: "no", None: None}


def tables(result: BenchLatency) -> list[TableView]:
    """Operations, calls of a write, calls of a read."""
    return [operations(result), *(calls(result, direction) for direction in DIRECTIONS)]


def headline(result: BenchLatency) -> str:
    """What a small write and a small read take."""
    words = [direction_words(result, direction).replace("\n", " ") for direction in DIRECTIONS]
    costs = [item.idle_s for item in result.operations if item.idle_s is not None]
    cost = [f"Of each call, about {shown_latency(max(costs))} is the cost of measuring it."] if costs else []
    return " ".join([*words, *cost])


def operations(result: BenchLatency) -> TableView:
    """What all calls of a write or a read take together."""
    columns = (
        t.text("direction", "Direction"), t.text("place", "Place"),
        t.number("operation_us", "Per operation", "µs", ",.2f"), t.number("factor", "Factor", "", ",.2f"),
        t.text("differs", "Differs"), t.number("idle_us", "Measuring a call", "µs", ",.2f"),
        t.percent("idle_pct", "Measuring"),
        t.number("lowest_us", "Lowest", "µs", ",.2f"), t.number("highest_us", "Highest", "µs", ",.2f"),
        t.count("operations", "Operations"), t.number("calls_per_operation", "Calls each", "", ".3g"),
        t.count("iterations", "Iterations"), t.text("tool", "Measured by"),
    )  # fmt: skip
    rows = [_operation_row(item) for item in result.operations]
    note = "\n".join(map(t.sentence, result.notes))
    return t.TableView(
        "Small operations",
        columns,
        rows,
        note,
        warnings=tuple(map(t.sentence, cost_words(result))),
        name="operations",
        keep=("factor",),
    )


def _operation_row(item: OperationLatency) -> Row:
    against = item.against
    return (
        item.direction,
        item.place,
        item.mean_s * US,
        None if against is None else against.factor,
        None if against is None else _DIFFERS[against.beyond_spread],
        _us(item.idle_s),
        item.idle_pct,
        item.lowest_mean_s * US,
        item.highest_mean_s * US,
        item.operations,
        item.calls_per_operation,
        item.iterations,
        item.tool,
    )


def calls(result: BenchLatency, direction: str) -> TableView:
    """Every call in every place, the places of one call below each other (Figs. 10 and 11 as a table)."""
    columns = (
        t.text("call", "Call"), t.text("place", "Place"), t.number("mean_us", "Mean", "µs", ",.2f"),
        t.number("median_us", "Median", "µs", ",.2f"), t.number("p99_us", "p99", "µs", ",.2f"),
        t.number("factor", "Factor", "", ",.2f"), t.text("differs", "Differs"), t.percent("share_pct", "Share"),
        t.number("above_idle_us", "Above getppid", "µs", "+,.2f"), t.count("calls", "Calls"),
        t.number("lowest_mean_us", "Lowest mean", "µs", ",.2f"),
        t.number("highest_mean_us", "Highest mean", "µs", ",.2f"),
        t.number("factor_low", "Factor from", "", ",.2f"), t.number("factor_high", "to", "", ",.2f"),
        t.count("iterations", "Iterations"), t.volume("bytes", "Bytes"), t.text("tool", "Measured by"),
    )  # fmt: skip
    measured = [item for item in result.calls if item.direction == direction]
    names = list(dict.fromkeys(item.call for item in measured))
    rows = [_call_row(item) for name in names for item in measured if item.call == name]
    title = f"System calls of a {direction}"
    return t.TableView(
        title, columns, rows, direction_words(result, direction), name=f"{direction}_calls", keep=("factor",)
    )


def _call_row(item: CallLatency) -> Row:
    against = item.against
    return (
        item.call,
        item.place,
        item.mean_s * US,
        _us(item.median_s),
        _us(item.p99_s),
        None if against is None else against.factor,
        None if against is None else _DIFFERS[against.beyond_spread],
        item.share_pct,
        _us(item.above_idle_s),
        item.calls,
        item.lowest_mean_s * US,
        item.highest_mean_s * US,
        None if against is None else against.low,
        None if against is None else against.high,
        item.iterations,
        item.bytes,
        item.tool,
    )


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * US
