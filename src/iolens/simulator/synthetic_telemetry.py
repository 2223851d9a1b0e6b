"""A workload model's activity written into a store as a controller's telemetry, with the model kept beside it.

`target_io` has every sample; `target_histograms` counts requests by size every 60 s, and those add up to the requests.
Asking for the same again adds nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from iolens.arrays import Integers
from iolens.errors import UsageError
from iolens.models.workload_model import WorkloadModel
from iolens.schema import DIRECTIONS
from iolens.simulator.synthetic import ROWS_AT_ONCE, SyntheticActivity, SyntheticBlock, dealt_out
from iolens.simulator.truth import refuse_overlap
from iolens.store.store import Store
from iolens.units import DAY_US, epoch_us, from_epoch_us, iso

SOURCE: Final = "synthetic"
TARGET_KIND: Final = "controller"
HISTOGRAM: Final = "request_size"
SIZES: Final = 2  # stream of random numbers, beside those of reads and writes


@dataclass(frozen=True, slots=True)
class SyntheticOrder:
    """What to make: `ticks` ticks from `first_tick` on, counted from 1970."""

    store: str
    model: WorkloadModel
    targets: int
    seed: int
    first_tick: int
    ticks: int

    @property
    def tick_us(self) -> int:
        """The sampling interval."""
        return round(self.model.tick_s * 1e6)

    @property
    def window_us(self) -> tuple[int, int]:
        """From the start of the first tick to the end of the last."""
        return self.first_tick * self.tick_us, (self.first_tick + self.ticks) * self.tick_us

    @property
    def blocks(self) -> int:
        """In how many pieces it is made, about."""
        return -(-self.ticks * self.targets // ROWS_AT_ONCE)

    @property
    def identity(self) -> str:
        """The same for the same numbers, whenever they are asked for."""
        model = hashlib.sha256(repr(self.model).encode()).hexdigest()[:16]
        window = f"{self.first_tick}-{self.ticks}"
        return f"synthesize/{self.model.filesystem}/{model}/{self.seed}/{self.targets}/{window}"

    @property
    def target_names(self) -> list[str]:
        """Controllers in the order of their numbers."""
        digits = max(2, len(str(self.targets)))
        return [f"controller{number:0{digits}d}" for number in range(1, self.targets + 1)]


@dataclass(slots=True)
class Synthesized:
    """What became of an order: rows by table, bytes and requests by direction."""

    rows: dict[str, int]
    bytes_: dict[str, int]
    requests: dict[str, int]

    def add(self, block: SyntheticBlock, tables: dict[str, pa.Table]) -> None:
        """Take a block in."""
        for name, rows in tables.items():
            self.rows[name] = self.rows.get(name, 0) + len(rows)
        for direction in DIRECTIONS:
            self.bytes_[direction] += int(block.bytes_[direction].sum())
            self.requests[direction] += int(block.requests[direction].sum())


def order_of(
    store: str, model: WorkloadModel, *, start: datetime, days: float, targets: int | None = None, seed: int = 0
) -> SyntheticOrder:
    """An order for `days` from `start`, checked."""
    tick_us = round(model.tick_s * 1e6)
    start_us = epoch_us(start)
    ticks = round(days * DAY_US / tick_us)
    if start_us % tick_us or start_us < 0:
        raise UsageError(f"synthetic telemetry starts on a whole tick of {model.tick_s:g} s, after 1970")
    if ticks < 1:
        raise UsageError(f"{days:g} days are less than one tick of {model.tick_s:g} s")
    if targets is not None and targets < 1:
        raise UsageError("a file system has at least one target")
    return SyntheticOrder(store, model, model.targets if targets is None else targets, seed, start_us // tick_us, ticks)


def synthesize_telemetry(order: SyntheticOrder, progress: Callable[[str], None] | None = None) -> Synthesized:
    """Write all of it, block by block."""
    store = Store(order.store)
    truth = Path(order.store) / f"truth-{order.model.filesystem.replace('/', '_')}.json"
    start_us, end_us = order.window_us
    if store.tables.is_local:
        refuse_overlap(truth, order.identity, start_us, end_us)
    _refuse_others(store, order)
    done = Synthesized({}, dict.fromkeys(DIRECTIONS, 0), dict.fromkeys(DIRECTIONS, 0))
    with ThreadPoolExecutor(1) as writer:  # the next block is drawn while one is written
        writing: Future[None] | None = None
        for block, tables in _drawn(order):
            if writing is not None:
                writing.result()
            writing = writer.submit(_append, store, order, block.first_tick, tables)
            done.add(block, tables)
            if progress is not None:
                progress(iso(from_epoch_us((block.first_tick + block.ticks) * order.tick_us)))
        if writing is not None:
            writing.result()
    if store.tables.is_local:
        truth.write_text(json.dumps(truth_of(order, done), indent=2) + "\n")
    return done


def _refuse_others(store: Store, order: SyntheticOrder) -> None:
    """What was measured is never mixed with what is made up."""
    others = store.targets_by_filesystem().get(order.model.filesystem, set()) - set(order.target_names)
    if others and not any(name.startswith("controller") for name in others):
        raise UsageError(
            f"{order.store} has telemetry of {order.model.filesystem} ({min(others)} and {len(others) - 1} more):"
            " take another store or another name for the synthetic file system"
        )


def truth_of(order: SyntheticOrder, done: Synthesized) -> dict[str, Any]:
    """What was made, and the model it was made of."""
    start_us, end_us = order.window_us
    return {
        "filesystem": order.model.filesystem,
        "identity": order.identity,
        "from": iso(from_epoch_us(start_us)),
        "to": iso(from_epoch_us(end_us)),
        "seed": order.seed,
        "targets": order.targets,
        "tick_s": order.model.tick_s,
        "rows": done.rows,
        **{f"{direction}_bytes": done.bytes_[direction] for direction in DIRECTIONS},
        **{f"{direction}_requests": done.requests[direction] for direction in DIRECTIONS},
        "model": _finite(asdict(order.model)),
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity: a maximum that is none is null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _drawn(order: SyntheticOrder) -> Iterator[tuple[SyntheticBlock, dict[str, pa.Table]]]:
    try:
        activity = SyntheticActivity(order.model, order.targets, order.seed, order.first_tick, order.ticks)
    except ValueError as error:
        raise UsageError(f"{order.model.filesystem}: {error}") from error
    names = pa.array(order.target_names)
    for block in activity.blocks():
        sizes = _request_sizes(order, names, activity.group_ticks, block)
        yield block, {"target_io": _target_io(order, names, block), "target_histograms": sizes}


def _append(store: Store, order: SyntheticOrder, first_tick: int, tables: dict[str, pa.Table]) -> None:
    for name, rows in tables.items():
        store.append(name, rows, f"{order.identity}/{name}/{first_tick}")


def _target_io(order: SyntheticOrder, names: pa.Array, block: SyntheticBlock) -> pa.Table:
    ends = (np.arange(block.first_tick, block.first_tick + block.ticks, dtype=np.int64) + 1) * order.tick_us
    target = np.tile(np.arange(order.targets, dtype=np.int32), block.ticks)
    moved = {}
    for direction in DIRECTIONS:
        moved[f"{direction}_bytes"] = pa.array(block.bytes_[direction].reshape(-1))
        moved[f"{direction}_ops"] = pa.array(block.requests[direction].reshape(-1))
    each = np.repeat(ends, order.targets)
    return pa.table({**_interval(order, each, each - order.tick_us), "target": _named(names, target), **moved})


def _request_sizes(order: SyntheticOrder, names: pa.Array, group_ticks: int, block: SyntheticBlock) -> pa.Table:
    """Every non-empty bin of every target, each time the sizes are counted."""
    numbers = np.arange(block.first_tick, block.first_tick + block.ticks, dtype=np.int64)
    begins = np.flatnonzero(np.diff(numbers // group_ticks, prepend=-1))
    last = np.append(begins[1:], block.ticks) - 1
    start_us, end_us = numbers[begins] * order.tick_us, (numbers[last] + 1) * order.tick_us
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence((order.seed, SIZES, block.first_tick))))
    parts: list[tuple[Integers, ...]] = []
    for number, side in enumerate(DIRECTIONS):
        sizes, shares = (np.array(column) for column in zip(*order.model.of(side).sizes, strict=True))
        counts = dealt_out(random, np.add.reduceat(block.requests[side], begins, axis=0), shares)
        group, target, place = np.nonzero(counts)
        parts.append((group, target, np.full(group.size, number), sizes[place], counts[group, target, place]))
    group, target, direction, size, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    rows = len(group)
    return pa.table({
        **_interval(order, end_us[group], start_us[group]),
        "target": _named(names, target.astype(np.int32)),
        "histogram": pa.repeat(HISTOGRAM, rows),
        "direction": _named(pa.array(DIRECTIONS), direction.astype(np.int32)),
        "bin": size,
        "count": count,
    })  # fmt: skip


def _interval(order: SyntheticOrder, end_us: Integers, start_us: Integers) -> dict[str, Any]:
    """The columns every row has."""
    rows = len(end_us)
    return {
        "time": _times(end_us),
        "start": _times(start_us),
        "duration_s": (end_us - start_us) / 1e6,
        "date": pa.array((start_us // DAY_US).astype(np.int32)).cast(pa.date32()),
        "filesystem": pa.repeat(order.model.filesystem, rows),
        "source": pa.repeat(SOURCE, rows),
        "after_reset": pa.repeat(False, rows),
        "target_kind": pa.repeat(TARGET_KIND, rows),
    }


def _times(microseconds: Integers) -> Any:
    return pa.array(microseconds).cast(pa.timestamp("us", "UTC"))


def _named(names: pa.Array, which: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(which), names).cast(pa.string())
