"""Made-up raw samples for the store's tests."""

from __future__ import annotations

from collections.abc import Iterable

from iolens.records import Capture, CounterSet, Item, Sample
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column

T0 = 1_600_000_000


def io_sample(second: float, read: int, write: int, *, target: str = "OST0000", start: int | None = None) -> Sample:
    """`stats` of one OST: bytes as given, one operation per 4096 bytes."""
    counters = {"read_bytes": read, "write_bytes": write, "read_ops": read // 4096, "write_ops": write // 4096}
    return sample("target_io", second, {"": CounterSet(counters, start)}, target)


def size_sample(second: float, ios: dict[tuple[str, int], int], *, target: str = "OST0000") -> Sample:
    """`brw_stats` of one OST: I/Os by direction and size, all other bins zero."""
    counters = {
        size_column(direction, size): ios.get((direction, size), 0) for direction in DIRECTIONS for size in SIZE_BINS
    }
    return sample("target_sizes", second, {"": CounterSet(counters)}, target)


def sample(table: str, second: float, sets: dict[str, CounterSet], target: str = "OST0000") -> Sample:
    """Any table's raw counters at `second` after T0."""
    time_us = round((T0 + second) * 1e6)
    name = target if "-" in target else f"scratch-{target}"
    return Sample(table, name.partition("-")[0], name, time_us, time_us, sets, {"target_kind": "ost"})


def capture(items: Iterable[Item], identity: str) -> Capture:
    """Items under an identity of their own."""
    kept = list(items)
    return Capture(identity, f"file/{identity}", lambda: iter(kept))
