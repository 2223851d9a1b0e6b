"""Random centres of known cost: counts of disk I/Os per tick and target, with what makes their limit hard to see.

Targets serve one or many I/Os at once; I/Os queue, come in mixtures of sizes, sometimes in both directions; caches
answer faster than the disk could; jobs limit themselves, with few or many I/Os in flight; disks idle; days, targets and
jobs differ by some per cent; counters are reset, and samples are missed. One target may be slow, and all may drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from iolens.models.transaction_time import Coefficients
from iolens.schema import DIRECTIONS, size_column

FIRST_US: Final = 1_767_225_600_000_000  # 2026-01-01
LABELS: Final = np.array([2**power for power in range(12, 23)], float)  # 4 KiB to 4 MiB
DAY_US: Final = 86_400_000_000
DAYS_A_YEAR: Final = 365.25
IDLE, MODERATE, SELF_LIMITED, CACHED, SATURATING = range(5)
_RESET, _MISSED = 0.002, 0.005


@dataclass(frozen=True)
class CentreOrder:
    """What to make."""

    seed: int
    reaches_limit: bool = True
    classes: int = 1
    with_busy: bool = False
    days: int = 14
    ticks_a_day: int = 400
    targets: int = 4  # of each class
    slow: float = 1.0  # times as long as its class an I/O of the first target takes
    slow_from: int = 0  # the first day of that
    slow_until: int = 10**6
    per_year: float = 0.0  # share by which an I/O takes longer, of all targets
    per_10_points: float = 0.0  # and for 10 points more of fullness, which then is stored


@dataclass(frozen=True)
class Device:
    """A class of targets: the cost of I/Os when all its servers work, how many they are, how regular an I/O is."""

    costs: tuple[Coefficients, Coefficients]  # as `DIRECTIONS`
    servers: int
    variation: float


@dataclass(frozen=True)
class Centre:
    """Tables of a random centre, and its truth."""

    frames: dict[str, Any]
    devices: Sequence[Device]
    members: Sequence[Sequence[str]]  # names of the targets of each class


def random_centre(order: CentreOrder) -> Centre:
    """The centre of a seed."""
    random = np.random.default_rng([order.seed, order.reaches_limit, order.classes, order.with_busy])
    devices = _devices(random, order)
    most_used = 1.0 if order.reaches_limit else random.uniform(0.15, 0.6)
    tick_s, parts = [(10, 1), (10, 2), (60, 1), (20, 4)][random.integers(4)]
    day_factors = np.exp(random.normal(0, 0.03, order.days))
    fullness_pct = _fullness_pct(order)
    passed = np.arange(order.days) / DAYS_A_YEAR
    day_factors *= (1 + order.per_year) ** passed * (1 + order.per_10_points) ** ((fullness_pct - fullness_pct[0]) / 10)
    members: list[list[str]] = []
    pieces: list[dict[str, pa.Table]] = []
    for number, device in enumerate(devices):
        names = [f"random-OST{number * order.targets + place:04x}" for place in range(order.targets)]
        factors = np.exp(random.normal(0, 0.02, order.targets))
        factors /= np.exp(np.log(factors).mean())
        for name, factor in zip(names, factors, strict=True):
            slow = _slow(order) if not pieces else 1.0
            made = _Target(random, device, order, most_used, factor * slow * day_factors, tick_s)
            pieces.append(made.rows(name, parts))
        members.append(names)
    frames = {table: pa.concat_tables([piece[table] for piece in pieces]) for table in pieces[0]}
    if order.per_10_points:
        frames["target_capacity"] = _capacity([name for names in members for name in names], fullness_pct)
    return Centre(frames, devices, members)


def _slow(order: CentreOrder) -> np.ndarray:
    """Factor of the slow target by day."""
    day = np.arange(order.days)
    return np.where((day >= order.slow_from) & (day < order.slow_until), order.slow, 1.0)


def _fullness_pct(order: CentreOrder) -> np.ndarray:
    """By day: it fills from 40 % within three months, and is purged to 40 % then."""
    return np.asarray(40.0 + 50.0 * (np.arange(order.days) % 90) / 90)


def _capacity(names: Sequence[str], fullness_pct: np.ndarray) -> pa.Table:
    """A reading of each target and day at noon."""
    total = 10**14
    time_us = FIRST_US + np.arange(fullness_pct.size) * DAY_US + DAY_US // 2
    used = np.tile((fullness_pct / 100 * total).astype(np.int64), len(names))
    return pa.table(
        {
            "time": pa.array(np.tile(time_us, len(names)), pa.timestamp("us", "UTC")),
            "target": np.repeat(names, fullness_pct.size),
            "target_kind": ["ost"] * used.size,
            "total_bytes": np.full(used.size, total),
            "used_bytes": used,
        }
    )


def _devices(random: np.random.Generator, order: CentreOrder) -> list[Device]:
    """Of several classes each is at least twice as slow as the one before, in small or in large I/Os."""
    result = [_device(random, order.with_busy)]
    for _ in range(order.classes - 1):
        slower = random.uniform(2, 6, 2)
        slower[random.integers(2)] *= random.choice([1.0, 1.0 / slower.max()])  # in one of them perhaps alike
        slower = np.maximum(slower, 1.0)
        costs = [Coefficients(c.latency_s * slower[0], c.s_per_byte * slower[1]) for c in result[-1].costs]
        result.append(Device((costs[0], costs[1]), result[-1].servers, result[-1].variation))
    return result


def _device(random: np.random.Generator, is_single: bool) -> Device:
    latency = 10 ** random.uniform(-4.5, -2.7)  # 30 us to 2 ms
    whole = latency / 2 ** random.uniform(15, 20)  # latency and transfer are equal between 32 KiB and 1 MiB
    ratios = random.uniform(0.7, 1.6, 2)
    write, read = Coefficients(latency, whole), Coefficients(latency * ratios[0], whole * ratios[1])
    by_name = {"write": write, "read": read}
    servers = 1 if is_single else int(random.choice([1, 4, 16]))
    return Device((by_name[DIRECTIONS[0]], by_name[DIRECTIONS[1]]), servers, random.uniform(0.2, 1.0))


class _Target:
    """One target, tick by tick: I/Os by direction and size, mean in flight, busy seconds."""

    def __init__(
        self,
        random: np.random.Generator,
        device: Device,
        order: CentreOrder,
        most_used: float,
        factors: np.ndarray,
        tick_s: int,
    ) -> None:
        self.random, self.device, self.order, self.tick_s = random, device, order, tick_s
        self.ticks = order.days * order.ticks_a_day
        self.slowness = np.repeat(factors, order.ticks_a_day)
        self.used = np.zeros(self.ticks)  # share of the time that disk I/Os take
        self.ios = np.zeros((self.ticks, len(DIRECTIONS), LABELS.size))
        self.depth = np.ones(self.ticks)
        self.depth_ios = np.zeros(self.ticks)
        place = 0
        while place < self.ticks:
            place += self._episode(place, most_used)

    def _episode(self, first: int, most_used: float) -> int:
        """One job, or none, for some ticks."""
        random = self.random
        length = int(min(1 + random.exponential(12), self.ticks - first))
        where = slice(first, first + length)
        shares = [0.35, 0.25, 0.14, 0.02, 0.24] if self.order.reaches_limit else [0.4, 0.35, 0.22, 0.03, 0.0]
        kind = random.choice(5, p=shares)
        shape = self._shape()
        used, depth, extra = getattr(self, f"_{('idle', 'moderate', 'self_limited', 'cached', 'saturating')[kind]}")(
            length, most_used
        )
        seconds = self._seconds(shape) * self.slowness[where] * np.exp(random.normal(0, 0.02))
        served = used * extra * self.tick_s / seconds
        noise = self.device.variation / np.sqrt(np.maximum(served, 1.0))
        served *= np.maximum(1 + noise * random.normal(size=length), 0.1)
        self.ios[where] += random.poisson(served[:, None, None] * shape)
        self.depth[where] = np.maximum(depth * np.exp(random.normal(0, 0.05, length)), 1.0)
        self.used[where] = used if kind != CACHED else used * 0.02
        return length

    def _shape(self) -> np.ndarray:
        """Shares of the I/Os of a job by direction and size."""
        random = self.random
        shape = np.zeros((len(DIRECTIONS), LABELS.size))
        side = random.integers(2)
        small_or_large = random.choice([random.integers(0, 5), random.integers(6, LABELS.size)])
        shape[side, small_or_large] = 1.0
        if random.random() < 0.5:
            others = random.integers(0, LABELS.size, random.integers(1, 3))
            shape[side, others] += random.uniform(0.01, 0.5, others.size)
        if random.random() < 0.3:  # the other direction, up to a half
            share = random.choice([random.uniform(0, 0.08), random.uniform(0.1, 0.9)], p=[0.7, 0.3])
            shape[1 - side, small_or_large] += share
        return shape / shape.sum()

    def _seconds(self, shape: np.ndarray) -> float:
        """Mean time of an I/O of the job."""
        costs = [[cost.seconds(size) for size in LABELS] for cost in self.device.costs]
        return float((shape * np.array(costs)).sum())

    def _idle(self, length: int, most_used: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.random.exponential(0.002, length), np.ones(length), np.ones(length)

    def _moderate(self, length: int, most_used: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        used = np.clip(self.random.uniform(0.03, 0.9 * most_used) * self.random.uniform(0.6, 1.3, length), 0, 0.95)
        return np.minimum(used, most_used), self._queue(used), np.ones(length)

    def _queue(self, used: np.ndarray) -> np.ndarray:
        """What an I/O meets, itself included, at a target with many servers and random arrivals (Sakasegawa)."""
        many = self.device.servers
        waiting = used ** (np.sqrt(2 * (many + 1.0)) - 1) * used / (1 - used) * (1 + self.device.variation**2) / 2
        return np.asarray(1.0 + many * used + waiting)

    def _self_limited(self, length: int, most_used: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A steady level far from the limit."""
        level = self.random.uniform(0.15 * most_used, 0.7 * most_used)
        deepest = max(2.5, 0.6 * self.device.servers)
        used = level * self.random.uniform(0.98, 1.02, length)
        return used, np.full(length, self.random.uniform(1, deepest)), np.ones(length)

    def _cached(self, length: int, most_used: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Faster than the disk, with nothing in flight."""
        return np.ones(length), self.random.uniform(1, 1.2, length), self.random.uniform(1.2, 4.0, length)

    def _saturating(self, length: int, most_used: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At the limit but for the first and the last tick; now and then the job pauses in every tick."""
        random = self.random
        used = np.ones(length)
        used[[0, -1]] = random.uniform(0.05, 1.0, 2)
        if random.random() < 0.1:
            used *= random.uniform(0.2, 0.95, length)
        depth = self.device.servers * random.uniform(1, 2) + random.uniform(8, 64)
        return used, np.full(length, depth), np.ones(length)

    def rows(self, name: str, parts: int) -> dict[str, pa.Table]:
        """Rows of the tables; each tick is in so many intervals."""
        random = self.random
        day, tick = np.divmod(np.arange(self.ticks), self.order.ticks_a_day)
        length_us = self.tick_s * 1_000_000 // parts
        ends = FIRST_US + day * DAY_US + (tick + 1) * self.tick_s * 1_000_000
        counts = np.concatenate([_split(random, self.ios, part, parts) for part in range(parts)])
        end = np.concatenate([ends - (parts - 1 - part) * length_us for part in range(parts)])
        order = np.argsort(end, kind="stable")
        of_tick = np.tile(np.arange(self.ticks), parts)[order]
        return _tables(self, name, counts[order].astype(np.int64), end[order], length_us, of_tick)


def _split(random: np.random.Generator, ios: np.ndarray, part: int, parts: int) -> np.ndarray:
    """A part of the counts, such that all parts add up to them."""
    edges = [np.floor(ios * number / parts) for number in (part, part + 1)]
    return np.asarray(edges[1] - edges[0])


def _tables(
    target: _Target, name: str, counts: np.ndarray, end: np.ndarray, length_us: int, of_tick: np.ndarray
) -> dict[str, pa.Table]:
    """With resets, and with samples that were missed: their counts are in the next interval."""
    random = target.random
    start = end - length_us
    missed = random.random(end.size) < _MISSED
    missed[-1] = False
    for place in np.flatnonzero(missed):
        if end[place] == start[place + 1]:
            counts[place + 1] += counts[place]
            start[place + 1] = start[place]
        else:
            missed[place] = False
    reset = random.random(end.size) < _RESET
    counts[reset] //= 3
    kept = ~missed
    common = {
        "time": pa.array(end[kept], pa.timestamp("us", "UTC")),
        "start": pa.array(start[kept], pa.timestamp("us", "UTC")),
        "duration_s": (end[kept] - start[kept]) / 1e6 * (1 + random.normal(0, 1e-4, int(kept.sum()))),
        "target": pa.array([name] * int(kept.sum())),
        "target_kind": pa.array(["ost"] * int(kept.sum())),
        "after_reset": reset[kept],
    }
    ios = {
        size_column(side, int(size)): counts[kept, number, place]
        for number, side in enumerate(DIRECTIONS)
        for place, size in enumerate(LABELS)
    }
    tables = {"target_sizes": pa.table({**common, **ios})}
    tables["target_histograms"] = _in_flight(common, counts[kept], target.depth[of_tick[kept]])
    if target.order.with_busy:
        seconds = target.used[of_tick] * length_us * (1 + random.normal(0, 0.01, end.size))
        for place in np.flatnonzero(missed):
            seconds[place + 1] += seconds[place]
        busy = np.clip(seconds, 0, end - start).astype(np.int64)
        tables["target_io"] = pa.table({**common, "busy_us": busy[kept]})
    return tables


def _in_flight(common: dict[str, Any], counts: np.ndarray, depth: np.ndarray) -> pa.Table:
    """Two neighbouring rows whose mean is that depth; the last row is 31 or more."""
    ios = counts.sum(axis=2)
    low = np.minimum(np.floor(depth), 31).astype(np.int64)
    share = np.where(low < 31, depth - low, 0.0)
    pieces = []
    for side in range(len(DIRECTIONS)):
        upper = np.round(ios[:, side] * share).astype(np.int64)
        for label, count in ((low, ios[:, side] - upper), (low + 1, upper)):
            some = count > 0
            columns = {key: pa.array(values).filter(pa.array(some)) for key, values in common.items()}
            more = {
                "histogram": pa.array(["disk_ios_in_flight"] * int(some.sum())),
                "direction": pa.array([DIRECTIONS[side]] * int(some.sum())),
                "bin": label[some],
                "count": count[some],
            }
            pieces.append(pa.table({**columns, **more}))
    return pa.concat_tables(pieces)
