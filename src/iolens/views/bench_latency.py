"""The latency of small writes and reads in sentences, from the same numbers as the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import KIB, format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import KINDS, Axis, Figure, Panel, side_by_side
from iolens.views.render.log_scales import log_axis
from iolens.visible_text import listed, shown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.bench_latency import BenchLatency, CallLatency, OperationLatency, PlaceFactor
    from iolens.arrays import Floats
    from iolens.views.render.tables import Row, TableView


NO_DATA: Final = "No system call was timed."
MOST_CALLS: Final = 3  # that are named
MOST_COST_PCT: Final = 50.0  # of the time: beyond it, the cost of measuring is most of what was measured
_TRACERS: Final = {"strace": "tracing with strace", "loop": "timing in our own loop"}
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def shown_latency(seconds: float) -> str:
    """`325 µs`, `1.2 ms`."""
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def shown_factor(factor: float) -> str:
    """`1.8`, `39.9`, `120`."""
    return f"{factor:,.0f}" if factor >= 99.95 else f"{factor:.3g}" if factor < 1.0 else f"{factor:.1f}"


def direction_words(result: BenchLatency, direction: str) -> str:
    """What an operation takes in each place, which calls it is spent in, and how places differ."""
    operations = [item for item in result.operations if item.direction == direction]
    return "\n".join(f"{_taken(result, item)}{_compared(result, item)}" for item in operations) or NO_DATA


def cost_words(result: BenchLatency) -> tuple[str, ...]:
    """A warning where measuring took most of the time; factors are then nearer to 1 than those of the calls alone."""
    most = max((item for item in result.operations), key=lambda item: item.idle_pct or 0.0, default=None)
    if most is None or most.idle_s is None or most.idle_pct is None or most.idle_pct <= MOST_COST_PCT:
        return ()
    return (
        f"{_TRACERS.get(most.tool, most.tool)} costs about {shown_latency(most.idle_s)} per call (getppid, which asks"
        f" no file system): up to {min(most.idle_pct, 100.0):.0f} % of an operation, so that factors are nearer to 1"
        " than those of the calls alone",
    )


def _taken(result: BenchLatency, operation: OperationLatency) -> str:
    head = f"{one_operation(result, operation.direction)} on {series_name(result, operation)}"
    taken = f"takes {shown_latency(operation.mean_s)} in {operation.calls_per_operation:.3g} calls"
    return f"{head[0].upper()}{head[1:]} {taken}, {_spent(result.slowest_calls(operation))}."


def one_operation(result: BenchLatency, direction: str) -> str:
    """`an 8-byte write`, `a 64 KiB read`; `a small write` where the size is not known."""
    size = result.transfer_bytes
    if size is None:
        return f"a small {direction}"
    shown = f"{size}-byte" if size < KIB else format_bytes(size)
    article = "an" if shown.startswith("8") or size in (11, 18) else "a"
    return f"{article} {shown} {direction}"


def _spent(slowest: Sequence[CallLatency]) -> str:
    """Which calls take most of the time, if they are few."""
    shares = [f"{item.call} ({item.share_pct or 0.0:.0f} %)" for item in slowest]
    return f"most of it in {listed(shares, MOST_CALLS)}" if len(shares) <= MOST_CALLS else f"the longest is {shares[0]}"


def _compared(result: BenchLatency, operation: OperationLatency) -> str:
    against = operation.against
    if against is None or against.beyond_spread is None or result.reference is None:
        return ""
    reference, item = shown_name(result.reference), result.most_different_call(operation)
    total = f" That is {_times(against)} {reference}." if result.is_different(operation) else ""
    if item is None or item.against is None:
        return f"{total} No single call differs from {reference} by more than iterations, or getppid, do."
    factor = f"{shown_latency(item.mean_s)}, {_times(item.against)} {reference}"
    return f"{total} Of its calls {item.call} differs most: {factor}."


def _times(against: PlaceFactor) -> str:
    return f"{shown_factor(against.factor)} times as long as on"


def series_name(result: BenchLatency, item: CallLatency | OperationLatency) -> str:
    """The place, with the tool where there are several."""
    place = shown_name(item.place)
    return f"{place} ({item.tool})" if len(result.tools) > 1 else place


# Latency of system calls for people -----------------------------------------------------------------------------------
# Operations by place, then every call of a write and of a read.

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


# Figures 10 and 11 of paper N -----------------------------------------------------------------------------------------
# Mean latency of every system call of a small write and of a small read, by place.

FIGURES: Final = ("write", "read")
LOG_FROM: Final = 10.0  # times the shortest: on a linear axis nothing would be seen of it
_CALLS: Final = "system call (getppid asks no file system: what measuring costs)"
_LABEL: Final = "mean time of a call (µs)"


def figures(result: BenchLatency) -> dict[str, Callable[[], Figure]]:
    """One per direction."""
    return {"write": lambda: calls_figure(result, "write"), "read": lambda: calls_figure(result, "read")}


def calls_figure(result: BenchLatency, direction: str) -> Figure:
    """Bars of the means, place beside place."""
    measured = [item for item in result.calls if item.direction == direction]
    return Figure(direction, f"System calls of {one_operation(result, direction)}", (_panel(result, measured),))


def _panel(result: BenchLatency, measured: list[CallLatency]) -> Panel:
    if not measured:
        return Panel("", Axis(_CALLS), Axis(_LABEL), message=NO_DATA)
    names = tuple(dict.fromkeys(item.call for item in measured))
    groups: dict[str, Floats] = {}
    for item in measured:
        heights = groups.setdefault(series_name(result, item), np.full(len(names), np.nan))
        heights[names.index(item.call)] = item.mean_s * 1e6
    bars = side_by_side(
        [(name, KINDS[i % len(KINDS)], heights) for i, (name, heights) in enumerate(groups.items())], names
    )
    x = Axis(_CALLS, low=-0.6, high=len(names) - 0.4, ticks=tuple((float(i), label) for i, label in enumerate(names)))
    return Panel("", x, _time_axis(np.concatenate(list(groups.values()))), bars)


def _time_axis(values: Floats) -> Axis:
    """Logarithmic where values differ much."""
    positive = values[np.isfinite(values) & (values > 0.0)]
    if positive.size and positive.max() >= LOG_FROM * positive.min():
        return log_axis(f"{_LABEL}, log scale", positive)
    return Axis(_LABEL, low=0, high=1.1 * float(positive.max()) if positive.size else None)
