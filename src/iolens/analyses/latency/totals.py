"""I/O times and waits of the whole window, from their sums by target, direction and time bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.analyses.intervals.bucket_sums import BucketSums
from iolens.analyses.latency.slow_targets import TimedPeers, WaitingPeers
from iolens.arrays import Columns, Floats, Integers
from iolens.histogram_names import IO_TIME
from iolens.schema import DIRECTIONS

HISTOGRAM: Final = IO_TIME
PERCENTS: Final = (50, 95, 99)
MEASURES: Final = ("ios", "p50_ms", "p95_ms", "p99_ms", "max_ms")
WAITED: Final = ("wait_us", "ops")
PLACED: Final = ("target", "bucket", "period")

Key = tuple[str | None, str]  # target (None: all data targets) and direction
Bins = dict[int, float]


@dataclass(slots=True)
class LatencyTotals:
    """In buckets that are shown, and in periods in which targets are compared; every target's kind is known."""

    bucket_s: int
    period_s: int
    kinds: dict[str, str | None] = field(default_factory=dict)
    extent_us: tuple[int, int] | None = None
    bins: dict[Key, Bins] = field(default_factory=dict)
    waits: dict[Key, tuple[float, float]] = field(default_factory=dict)  # summed microseconds, operations
    _io_times: list[Columns] = field(default_factory=list)
    _waits: list[Columns] = field(default_factory=list)
    _timed: list[Columns] = field(default_factory=list)

    def add_io_times(self, sums: BucketSums) -> None:
        """Those of `io_times_part`."""
        rows = self._placed(sums)
        self._timed.append({name: rows[name] for name in ("target", "direction", "period", "bin", "ios")})
        self._io_times += [self._settled(part) for part in (rows, self._together(rows)) if len(part["bin"])]

    def add_waits(self, sums: BucketSums) -> None:
        """Those of `waits_part`."""
        rows = self._placed(sums)
        for direction in DIRECTIONS:
            known = rows[f"{direction}_rows"] > 0
            part: Columns = {name: rows[name][known] for name in PLACED}
            part |= {name: rows[f"{direction}_{name}"][known] for name in WAITED}
            part["direction"] = np.full(int(known.sum()), direction, dtype=object)
            parts = [some for some in (part, self._together(part)) if len(some["bucket"])]
            self._waits += parts
            for arrays in parts:
                for target, wait_us, ops in zip(arrays["target"], arrays["wait_us"], arrays["ops"], strict=True):
                    old = self.waits.get((target, direction), (0.0, 0.0))
                    self.waits[target, direction] = old[0] + float(wait_us), old[1] + float(ops)

    def over_time(self) -> tuple[Integers, dict[Key, dict[str, Floats]]]:
        """Numbers of the buckets without holes, and by target and direction every measure in them, NaN where none."""
        parts = [*self._io_times, *self._waits]
        if not parts:
            return np.zeros(0, np.int64), {}
        first = min(int(part["bucket"].min()) for part in parts)
        width = max(int(part["bucket"].max()) for part in parts) - first + 1
        values: dict[Key, dict[str, Floats]] = {}
        for part in parts:
            for key, mine in _by_key(part):
                measures = values.setdefault(key, {name: np.full(width, np.nan) for name in (*MEASURES, *WAITED)})
                where = part["bucket"][mine] - first
                for name in (name for name in MEASURES if name in part):  # one row per bucket
                    measures[name][where] = part[name][mine]
                for waited in (name for name in WAITED if name in part):  # for all targets together, one row of each
                    measures[waited][where] = np.nan_to_num(measures[waited][where])
                    np.add.at(measures[waited], where, part[waited][mine])
        return np.arange(first, first + width), values

    def timed_peers(self, targets: Sequence[str], direction: str) -> TimedPeers:
        """I/Os of these targets by period and bin."""
        rows = self._by_period(self._timed, targets, direction)
        edges, column = np.unique(rows["bin"], return_inverse=True)
        counts = np.zeros((len(targets), int(rows["period"].max(initial=-1)) + 1, edges.size))
        np.add.at(counts, (rows["place"], rows["period"], column), rows["ios"])
        return TimedPeers(counts, edges)

    def waiting_peers(self, targets: Sequence[str], direction: str) -> WaitingPeers:
        """Waits and operations of these targets by period."""
        rows = self._by_period(self._waits, targets, direction)
        sums = []
        for name in WAITED:
            sums.append(np.zeros((len(targets), int(rows["period"].max(initial=-1)) + 1)))
            np.add.at(sums[-1], (rows["place"], rows["period"]), rows[name])
        return WaitingPeers(*sums)

    def _by_period(self, parts: Sequence[Columns], targets: Sequence[str], direction: str) -> Columns:
        """Rows of these targets, with their place among them and the number of their period."""
        rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        places = {target: number for number, target in enumerate(targets)}
        place = np.fromiter((places.get(target, -1) for target in rows["target"]), np.int64, len(rows["target"]))
        mine = (place >= 0) & (rows["direction"] == direction)
        period = rows["period"][mine]
        chosen = {name: values[mine] for name, values in rows.items()}
        return chosen | {"place": place[mine], "period": period - period.min() if period.size else period}

    def _placed(self, sums: BucketSums) -> Columns:
        """With the bucket that is shown and the period."""
        rows = sums.rows()
        start_s = rows["bucket"] * sums.bucket_s
        return {**rows, "bucket": start_s // self.bucket_s, "period": start_s // self.period_s}

    def _together(self, rows: Columns) -> Columns:
        """Data targets, without their names."""
        data = np.fromiter((self.kinds[name] != "mdt" for name in rows["target"]), np.bool_, len(rows["target"]))
        return {name: values[data] for name, values in rows.items()} | {"target": np.full(int(data.sum()), None)}

    def _settled(self, rows: Columns) -> Columns:
        """Measures by target, direction and bucket; the bins of each target and direction are added up."""
        keys, buckets = _codes(zip(rows["target"], rows["direction"], strict=True)), np.unique(rows["bucket"])
        edges, column = np.unique(rows["bin"], return_inverse=True)
        cell = keys.where * len(buckets) + np.searchsorted(buckets, rows["bucket"])
        cells, row = np.unique(cell, return_inverse=True)
        flat = np.bincount(row * len(edges) + column, weights=rows["ios"], minlength=len(cells) * len(edges))
        counts = flat.astype(np.float64).reshape(len(cells), len(edges))
        of_key = cells // len(buckets)
        for place, key in enumerate(keys.names):
            sums = counts[of_key == place].sum(axis=0)
            mine = self.bins.setdefault(key, {})
            for edge, ios in zip(edges.tolist(), sums.tolist(), strict=True):
                mine[edge] = mine.get(edge, 0.0) + ios
        names = [keys.names[place] for place in of_key]
        return {
            "target": np.array([target for target, _ in names], dtype=object),
            "direction": np.array([direction for _, direction in names], dtype=object),
            "bucket": buckets[cells % len(buckets)],
            **percentiles(counts, edges),
        }


def percentiles(counts: Floats, edges: Integers) -> dict[str, Floats]:
    """Of histograms (rows) with these upper edges (columns): I/Os, percentiles and the largest bin used, else NaN."""
    ios = counts.sum(axis=1)
    cumulative = counts.cumsum(axis=1)
    some = ios > 0
    by_name = {"ios": ios}
    for percent in PERCENTS:
        reached = (cumulative * 100.0 >= percent * ios[:, np.newaxis]).argmax(axis=1)
        by_name[f"p{percent}_ms"] = np.where(some, edges[reached], np.nan)
    last = len(edges) - 1 - (counts[:, ::-1] > 0).argmax(axis=1)
    return {**by_name, "max_ms": np.where(some, edges[last], np.nan)}


def of_bins(bins: Bins) -> dict[str, float]:
    """The same of one histogram."""
    edges = np.array(sorted(bins), dtype=np.int64)
    counts = np.array([[bins[edge] for edge in edges.tolist()]])
    return {name: float(values[0]) for name, values in percentiles(counts, edges).items()}


def slower_pct(bins: Bins, limit_ms: float) -> float | None:
    """Share of I/Os in bins above the limit."""
    ios = sum(bins.values())
    return 100.0 * sum(count for edge, count in bins.items() if edge > limit_ms) / ios if ios else None


@dataclass(frozen=True, slots=True)
class _Codes:
    names: list[Key]
    where: Integers


def _codes(values: Iterable[Key]) -> _Codes:
    place: dict[Key, int] = {}
    where = [place.setdefault(value, len(place)) for value in values]
    return _Codes(list(place), np.array(where, dtype=np.int64))


def _by_key(part: Columns) -> Iterator[tuple[Key, Integers]]:
    keys = _codes(zip(part["target"], part["direction"], strict=True))
    order = np.argsort(keys.where, kind="stable")
    bounds = np.searchsorted(keys.where[order], np.arange(len(keys.names) + 1))
    for place, key in enumerate(keys.names):
        yield key, order[bounds[place] : bounds[place + 1]]
