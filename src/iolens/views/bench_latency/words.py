"""The latency of small writes and reads in sentences, from the same numbers as the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import KIB, format_bytes
from iolens.visible_text import listed, shown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.bench_latency import BenchLatency, CallLatency, OperationLatency, PlaceFactor

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
