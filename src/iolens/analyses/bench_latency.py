"""Latency of the system calls behind a small write and read, place by place, and the factor between places (N6).

Rows of `benchmark_runs` of `bench latency` in. The first place is the reference, as NFS is in Figs. 10 and 11 of paper
N. Over iterations, counts add and a mean is of all calls; median and 99th percentile are the median of those of the
iterations, because the single times are not kept.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from iolens.errors import UsageError
from iolens.visible_text import counted

DIRECTIONS: Final = ("write", "read")
STUDY: Final = "latency"
IDLE_CALL: Final = "getppid"  # asks no file system: what measuring a call costs
CALL_ORDER: Final = ("getcwd", "open", "ioctl", "fstat", "lseek", "ftruncate", "write", "read", "close")
LEAST_ITERATIONS: Final = 3  # of each place, before two of them are said to differ
MOST_OF_IT_PCT: Final = 50.0
NO_PLACE: Final = "(no name)"
_CACHE_NOTES: Final = {
    "dropped": "files were written to disk and dropped from the page cache before they were read",
    "warm": "files were read from the page cache, where writing had left them",
}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlaceFactor:
    """A mean divided by that of the reference; `low` and `high` are the extremes between any two of their iterations.

    `beyond_spread`: every iteration of one is above every one of the other; null with fewer than three of either.
    """

    factor: float
    low: float
    high: float
    beyond_spread: bool | None


@dataclass(frozen=True, slots=True)
class CallLatency:
    """One system call of one direction in one place; times in seconds.

    `lowest_mean_s` and `highest_mean_s` are of iterations. `share_pct` is of the time of an operation. `above_idle_s`
    is the median minus that of the call that asks no file system. `against` is null for the reference, and where the
    reference has no such call or was measured by another tool.
    """

    place: str
    tool: str
    direction: str
    call: str
    calls: int
    bytes: int | None
    iterations: int
    mean_s: float
    median_s: float | None
    p99_s: float | None
    lowest_mean_s: float
    highest_mean_s: float
    share_pct: float | None = None
    above_idle_s: float | None = None
    against: PlaceFactor | None = None


@dataclass(frozen=True, slots=True)
class OperationLatency:
    """All calls of one operation: a file opened, written or read, and closed; `mean_s` is seconds per operation.

    `idle_s` is what measuring a call usually costs: the median of the call that asks no file system. `idle_pct` is the
    share of `mean_s` that as many such calls explain.
    """

    place: str
    tool: str
    direction: str
    operations: int
    calls_per_operation: float
    iterations: int
    mean_s: float
    lowest_mean_s: float
    highest_mean_s: float
    idle_s: float | None
    idle_pct: float | None
    against: PlaceFactor | None = None


@dataclass(frozen=True, slots=True)
class BenchLatency:
    """Calls and operations by direction and place, the reference first; `rows_left_out` had no numbers to use."""

    transfer_bytes: int | None
    reference: str | None
    places: list[str]
    tools: list[str]
    operations: list[OperationLatency]
    calls: list[CallLatency]
    rows_left_out: int
    notes: list[str]

    def calls_of(self, operation: OperationLatency) -> list[CallLatency]:
        """Its calls, without the one that asks no file system."""
        return [item for item in self.calls if _is_same_series(item, operation) and item.call != IDLE_CALL]

    def slowest_calls(self, operation: OperationLatency) -> list[CallLatency]:
        """The calls in which more than half of its time is spent, as few as possible, the longest first."""
        chosen: list[CallLatency] = []
        for item in sorted(self.calls_of(operation), key=lambda item: item.share_pct or 0.0, reverse=True):
            if sum(call.share_pct or 0.0 for call in chosen) > MOST_OF_IT_PCT:
                break
            chosen.append(item)
        return chosen

    def is_different(self, item: CallLatency | OperationLatency) -> bool:
        """Whether it differs from the reference beyond the spread of iterations, and by more than the idle call does.

        What is as large as the factor of a call that asks no file system is not the file system's.
        """
        against = item.against
        if against is None or not against.beyond_spread:
            return False
        idle = [call for call in self.calls if call.call == IDLE_CALL and _is_same_series(call, item)]
        return _distance(against) > max((_distance(call.against) for call in idle), default=0.0)

    def most_different_call(self, operation: OperationLatency) -> CallLatency | None:
        """The call whose factor is farthest from 1, of those that are different."""
        different = [item for item in self.calls_of(operation) if self.is_different(item)]
        return max(different, key=lambda item: _distance(item.against), default=None)


def _is_same_series(call: CallLatency, item: CallLatency | OperationLatency) -> bool:
    return (call.direction, call.place, call.tool) == (item.direction, item.place, item.tool)


def _distance(against: PlaceFactor | None) -> float:
    """How far a factor is from 1: three times as long as far as a third."""
    return abs(math.log(against.factor)) if against is not None and against.factor > 0.0 else 0.0


def bench_latency(rows: Iterable[Row], places: Sequence[str] = ()) -> BenchLatency:
    """`places` gives their order, the reference first; without it, the place that was measured first comes first."""
    known = [row for row in rows if row.get("study") in (STUDY, None) and row.get("call") is not None]
    usable = [row for row in known if _is_usable(row)]
    left_out, order = len(known) - len(usable), _ordered_places(usable, places)
    calls: list[CallLatency] = []
    operations: list[OperationLatency] = []
    for rows_of in _series(usable, order):
        calls += (measured := _calls_of(rows_of))
        operations += _operation_of(rows_of, measured)
    reference = order[0] if order else None
    return BenchLatency(
        _one_size(usable),
        reference,
        order,
        sorted({item.tool for item in calls}),
        _operations_against(operations, reference),
        _calls_against(calls, reference),
        left_out,
        _notes(usable, left_out, operations),
    )


def _is_usable(row: Row) -> bool:
    seconds, calls = row.get("duration_s"), row.get("operations")
    return (
        row.get("direction") in DIRECTIONS
        and isinstance(row.get("tool"), str)
        and isinstance(seconds, int | float)
        and math.isfinite(seconds)
        and seconds >= 0
        and isinstance(calls, int)
        and calls > 0
    )


def _place(row: Row) -> str:
    return str(row.get("place") or row.get("filesystem") or row.get("host") or NO_PLACE)


def _ordered_places(rows: Sequence[Row], asked: Sequence[str]) -> list[str]:
    first: dict[str, Any] = {}
    for row in sorted(rows, key=lambda row: (row.get("time") is None, row.get("time") or 0)):
        first.setdefault(_place(row), row.get("time"))
    measured = [place for place in asked if place in first]
    return measured + [place for place in first if place not in measured]


def _series(rows: Sequence[Row], places: Sequence[str]) -> list[list[Row]]:
    """Rows of one direction, place and tool together, in this order."""
    series: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        key = (DIRECTIONS.index(row["direction"]), places.index(_place(row)), row["tool"])
        series.setdefault(key, []).append(row)
    return [series[key] for key in sorted(series)]


def _one_size(rows: Sequence[Row]) -> int | None:
    sizes = sorted({row["transfer_bytes"] for row in rows if row.get("transfer_bytes") is not None})
    if len(sizes) > 1:
        listed = " and ".join(str(size) for size in sizes)
        raise UsageError(f"results of transfers of {listed} bytes are not of one study: choose one")
    return sizes[0] if sizes else None


def _iterations(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of each pass over the files."""
    passes: dict[object, list[Row]] = {}
    for row in rows:
        passes.setdefault((row.get("sweep"), row.get("host"), row.get("iteration")), []).append(row)
    return list(passes.values())


def _calls_of(rows: Sequence[Row]) -> list[CallLatency]:
    """The calls of one direction, place and tool, in the order of an operation, the idle one last."""
    names = sorted({str(row["call"]) for row in rows}, key=_place_in_order)
    calls = [_call([row for row in rows if row["call"] == name]) for name in names]
    all_s = math.fsum(item.mean_s * item.calls for item in calls if item.call != IDLE_CALL)
    idle_s = _idle_s(calls)
    return [
        item
        if item.call == IDLE_CALL
        else replace(
            item,
            share_pct=100.0 * item.mean_s * item.calls / all_s if all_s else None,
            above_idle_s=None if idle_s is None or item.median_s is None else item.median_s - idle_s,
        )
        for item in calls
    ]


def _place_in_order(call: str) -> tuple[bool, int, str]:
    return call == IDLE_CALL, CALL_ORDER.index(call) if call in CALL_ORDER else len(CALL_ORDER), call


def _call(rows: Sequence[Row]) -> CallLatency:
    means = [_mean_s(rows_of) for rows_of in _iterations(rows)]
    moved = [row["bytes"] for row in rows if row.get("bytes") is not None]
    first = rows[0]
    return CallLatency(
        place=_place(first),
        tool=first["tool"],
        direction=first["direction"],
        call=first["call"],
        calls=sum(row["operations"] for row in rows),
        bytes=sum(moved) if moved else None,
        iterations=len(means),
        mean_s=_mean_s(rows),
        median_s=_median_of(rows, "latency_median_s"),
        p99_s=_median_of(rows, "latency_p99_s"),
        lowest_mean_s=min(means),
        highest_mean_s=max(means),
    )


def _mean_s(rows: Sequence[Row]) -> float:
    """Of all calls: each iteration weighs as many as it made."""
    return _seconds(rows) / sum(int(row["operations"]) for row in rows)


def _seconds(rows: Sequence[Row]) -> float:
    return math.fsum(row["duration_s"] for row in rows)


def _median_of(rows: Sequence[Row], column: str) -> float | None:
    values = [row[column] for row in rows if row.get(column) is not None]
    return statistics.median(values) if values else None


def _operation_of(rows: Sequence[Row], calls: Sequence[CallLatency]) -> list[OperationLatency]:
    """The sum over the calls; none where only the idle one was measured."""
    own = [item for item in calls if item.call != IDLE_CALL]
    if not own:
        return []
    working = [row for row in rows if row["call"] != IDLE_CALL]
    each = [_operation_s(rows_of) for rows_of in _iterations(working)]
    operations = sum(_operations(rows_of) for rows_of in _iterations(working))
    made, seconds = sum(item.calls for item in own), _seconds(working)
    idle_s = _idle_s(calls)
    return [
        OperationLatency(
            place=own[0].place,
            tool=own[0].tool,
            direction=own[0].direction,
            operations=operations,
            calls_per_operation=made / operations,
            iterations=len(each),
            mean_s=seconds / operations,
            lowest_mean_s=min(each),
            highest_mean_s=max(each),
            idle_s=idle_s,
            idle_pct=100.0 * idle_s * made / seconds if idle_s is not None and seconds else None,
        )
    ]


def _idle_s(calls: Sequence[CallLatency]) -> float | None:
    return next((item.median_s for item in calls if item.call == IDLE_CALL), None)


def _operations(rows: Sequence[Row]) -> int:
    """Files of a pass: as often as most calls were made; one that a signal interrupted is made again."""
    return statistics.mode(int(row["operations"]) for row in rows)


def _operation_s(rows: Sequence[Row]) -> float:
    return _seconds(rows) / _operations(rows)


def _calls_against(items: Sequence[CallLatency], reference: str | None) -> list[CallLatency]:
    of_reference = {(item.direction, item.tool, item.call): item for item in items if item.place == reference}
    return [
        replace(item, against=_factor(item, of_reference.get((item.direction, item.tool, item.call)))) for item in items
    ]


def _operations_against(items: Sequence[OperationLatency], reference: str | None) -> list[OperationLatency]:
    of_reference = {(item.direction, item.tool): item for item in items if item.place == reference}
    return [replace(item, against=_factor(item, of_reference.get((item.direction, item.tool)))) for item in items]


def _factor(
    item: CallLatency | OperationLatency, reference: CallLatency | OperationLatency | None
) -> PlaceFactor | None:
    if reference is None or reference is item or not reference.lowest_mean_s:
        return None
    low, high = item.lowest_mean_s / reference.highest_mean_s, item.highest_mean_s / reference.lowest_mean_s
    enough = min(item.iterations, reference.iterations) >= LEAST_ITERATIONS
    return PlaceFactor(item.mean_s / reference.mean_s, low, high, (low > 1.0 or high < 1.0) if enough else None)


def _notes(rows: Sequence[Row], left_out: int, operations: Sequence[OperationLatency]) -> list[str]:
    notes = [f"{counted(left_out, 'row')} without seconds or number of calls left out"] if left_out else []
    if len({item.tool for item in operations}) > 1:
        notes.append("times of strace and of our own loop are not comparable: there is no factor between them")
    if len({item.place for item in operations}) > 1 and min(item.iterations for item in operations) < LEAST_ITERATIONS:
        notes.append(f"whether places differ is said from {LEAST_ITERATIONS} iterations on (--repeats)")
    return notes + [_CACHE_NOTES[state] for state in sorted(_page_cache(rows))]


def _page_cache(rows: Sequence[Row]) -> set[str]:
    return {row["page_cache"] for row in rows if row.get("page_cache") in _CACHE_NOTES}
