"""What `latency` keeps of some days, I/O times of the whole window, and targets far slower than their peers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.analyses.intervals.buckets import joined, rows_by_width
from iolens.analyses.intervals.fsu_sums import collect, data_targets
from iolens.analyses.intervals.target_rows import BucketSums
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.histogram_names import IO_TIME, LATENCY_HISTOGRAMS
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days
from iolens.units import SECOND_US

# Which targets are far slower than their peers (SPEC B2, B8), with the evidence for it --------------------------------
# A target is far slower where more of its I/Os take longer than twice some time than of its peers' take longer than
# that time itself, beyond chance, and in most parts of the window. Counts in bins that double are compared at edges of
# bins, twice one edge is the next: no percentile is rounded to a bin on the way.

FEWEST_PEERS: Final = 3  # itself included: among fewer there is no middle
FEWEST_IOS: Final = 1_000  # of a target in the window: ten of them are beyond its 99th percentile
FEWEST_IN_PERIOD: Final = 100  # of a target in a period
TAILS_PCT: Final = (95, 99)  # percentiles of the peers beyond which I/Os are counted
FAMILY_ERROR: Final = 0.01  # chance that any of equal targets is called slower
FAR: Final = 2.0  # times the peers'

Finding = Literal["slower", "usual", "unknown"]


@dataclass(frozen=True, slots=True)
class SlownessEvidence:
    """Why a target is called slower or not; times in milliseconds, shares in per cent of I/Os.

    By mean wait there are no shares, and `tail_ms` is the peers' mean.
    """

    peers: int
    tail_pct: int | None
    tail_ms: float | None
    beyond_twice_pct: float | None
    beyond_twice_low_pct: float | None
    peers_beyond_pct: float | None
    periods: int
    periods_slower: int
    periods_needed: int | None


@dataclass(frozen=True, slots=True)
class Slowness:
    """What is said of one target; `reason` is why nothing can be said."""

    finding: Finding
    reason: str | None = None
    evidence: SlownessEvidence | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TimedPeers:
    """I/Os of targets that are peers: targets × periods × bins, and the upper edges of the bins in milliseconds."""

    counts: Floats
    edges: Integers

    def judge(self, place: int, comparisons: int) -> Slowness:
        """One of them; `comparisons` is how many targets and directions are judged in all."""
        others = _others(place, self.counts.sum(axis=(1, 2)))
        if isinstance(others, Slowness):
            return others
        chance = FAMILY_ERROR / (comparisons * len(TAILS_PCT))
        judged = [self._beyond(place, others, tail_pct, chance) for tail_pct in TAILS_PCT]
        return next((slowness for slowness in judged if slowness.finding == "slower"), judged[-1])

    def _beyond(self, place: int, others: Integers, tail_pct: int, chance: float) -> Slowness:
        """The I/Os beyond a percentile of the peers, and those of the target beyond twice that."""
        whole = self.counts.sum(axis=1)
        tail_ms = statistics.median_high(self._edge(whole[other], tail_pct) for other in others)
        beyond, beyond_twice = self.edges > tail_ms, self.edges > FAR * tail_ms
        mine, ios = float(whole[place, beyond_twice].sum()), float(whole[place].sum())
        low = _lower_bound(mine / ios, ios, chance)
        peers_share = statistics.median_high(float(whole[other, beyond].sum() / whole[other].sum()) for other in others)
        by_period = self.counts.sum(axis=2)
        shares = _ratio(self.counts[:, :, beyond].sum(axis=2), by_period)
        agreed = _agreement(shares, by_period >= FEWEST_IN_PERIOD, place, others, chance)
        evidence = SlownessEvidence(
            int(others.size), tail_pct, tail_ms, 100.0 * mine / ios, 100.0 * low, 100.0 * peers_share, *agreed
        )
        return _slowness(evidence, low > peers_share)

    def _edge(self, counts: Floats, percent: int) -> float:
        cumulative = counts.cumsum()
        return float(self.edges[int((cumulative * 100.0 >= percent * cumulative[-1]).argmax())])


@dataclass(frozen=True, slots=True, eq=False)
class WaitingPeers:
    """Summed waits of targets that are peers, in microseconds, and their operations: both targets × periods."""

    wait_us: Floats
    ops: Floats

    def judge(self, place: int, comparisons: int) -> Slowness:
        """One of them, by its mean wait."""
        ops = self.ops.sum(axis=1)
        others = _others(place, ops)
        if isinstance(others, Slowness):
            return others
        means = _ratio(self.wait_us.sum(axis=1), ops) / 1000.0
        usual = statistics.median_high(means[others].tolist())
        waits = _ratio(self.wait_us, self.ops)
        agreed = _agreement(waits, self.ops >= FEWEST_IN_PERIOD, place, others, FAMILY_ERROR / comparisons)
        evidence = SlownessEvidence(int(others.size), None, usual, None, None, None, *agreed)
        return _slowness(evidence, float(means[place]) > FAR * usual)


def _others(place: int, ios: Floats) -> Integers | Slowness:
    """The peers of a target that have enough I/Os, or why it cannot be judged."""
    if ios[place] < FEWEST_IOS:
        return Slowness("unknown", f"{ios[place]:,.0f} I/Os; {FEWEST_IOS:,} are needed")
    others = np.flatnonzero((ios >= FEWEST_IOS) & (np.arange(ios.size) != place))
    if others.size < FEWEST_PEERS - 1:
        return Slowness("unknown", f"{others.size} peers with {FEWEST_IOS:,} I/Os; {FEWEST_PEERS - 1} are needed")
    return others


def _slowness(evidence: SlownessEvidence, is_beyond_chance: bool) -> Slowness:
    if evidence.periods_needed is None:
        return Slowness("unknown", f"{evidence.periods} periods with enough I/Os are too few to agree", evidence)
    slower = is_beyond_chance and evidence.periods_slower >= evidence.periods_needed
    return Slowness("slower" if slower else "usual", None, evidence)


def _agreement(
    values: Floats, enough: Booleans, place: int, others: Integers, chance: float
) -> tuple[int, int, int | None]:
    """Periods in which it is compared, those in which it is above more of the others than below, and those needed.

    Periods in which it is as they are count for neither side, as in any sign test.
    """
    enough_peers = enough[others].sum(axis=0) >= FEWEST_PEERS - 1
    compared = np.flatnonzero(enough[place] & enough_peers)
    mine, peers, known = values[place, compared], values[np.ix_(others, compared)], enough[np.ix_(others, compared)]
    signs = ((peers < mine) & known).sum(axis=0) - ((peers > mine) & known).sum(axis=0)
    needed = _needed(int((signs != 0).sum()), chance) or _needed(int(compared.size), chance)
    return int(compared.size), int((signs > 0).sum()), needed


@cache
def _needed(periods: int, chance: float) -> int | None:
    """The least number of periods that fair coins reach with at most that chance; None where not even all would do."""
    total, needed = 0.0, periods + 1
    while (total := total + math.comb(periods, needed - 1) * 0.5**periods) <= chance:
        needed -= 1
    return needed if needed <= periods else None


def _lower_bound(share: float, count: float, chance: float) -> float:
    """Wilson's one-sided bound of a share."""
    z = statistics.NormalDist().inv_cdf(1.0 - chance)
    middle = share + z * z / (2 * count)
    width = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max((middle - width) / (1 + z * z / count), 0.0)


def _ratio(above: Floats, below: Floats) -> Floats:
    values: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return values


def percentile_interval(bins: Mapping[int, float], percent: float) -> tuple[float, float | None]:
    """Bins between which the percentile is with 99 % confidence, by order statistics (the binomial taken as normal).

    The upper one is None where the I/Os are too few to have one.
    """
    edges = sorted(bins)
    counts = np.array([bins[edge] for edge in edges], np.float64)
    reached, share = counts.cumsum() / counts.sum(), percent / 100.0
    width = statistics.NormalDist().inv_cdf(0.995) * math.sqrt(share * (1 - share) / counts.sum())
    low = float(edges[int((reached >= share - width).argmax())])
    return low, float(edges[int((reached >= share + width).argmax())]) if share + width < 1.0 else None


# I/O times and waits of the whole window, from their sums by target, direction and time bucket ------------------------

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


# What `latency` keeps of some days ------------------------------------------------------------------------------------
# I/O times and waits by target and time bucket, and I/O times by size.

TIMED: Final = ("target", "direction", "bin", "bucket")
WAITS: Final = tuple(f"{direction}_{name}" for direction in DIRECTIONS for name in (*WAITED, "rows"))


@dataclass(slots=True)
class LatencyPart:
    """Sums of one of the tables, with the kinds of its targets."""

    sums: BucketSums
    kinds: dict[str, str | None]
    lengths: Integers  # `rows_by_width`
    extent_us: tuple[int, int] | None  # start of the first and end of the last interval

    def take(self, later: LatencyPart) -> None:
        """A part of later days of the same table."""
        self.sums.take(later.sums)
        self.kinds |= later.kinds
        self.lengths += later.lengths
        self.extent_us = joined(self.extent_us, later.extent_us)


@dataclass(slots=True)
class SizesPart:
    """Bulk I/Os of all data targets by histogram (one for each size), direction and bin (upper edge, nanoseconds)."""

    ios: dict[tuple[str, str, int], float]
    targets: set[str]
    extent_us: tuple[int, int] | None

    def take(self, later: SizesPart) -> None:
        """A part of later days."""
        for key, ios in later.ios.items():
            self.ios[key] = self.ios.get(key, 0.0) + ios
        self.targets |= later.targets
        self.extent_us = joined(self.extent_us, later.extent_us)


IO_TIMES_FORM: Final = PartForm("latency-io-times", 1, (LatencyPart, BucketSums))
WAITS_FORM: Final = PartForm("latency-waits", 1, (LatencyPart, BucketSums))
SIZES_FORM: Final = PartForm("latency-sizes", 1, (SizesPart,))


def io_times_part(days: Days, bucket_s: int) -> LatencyPart:
    """I/Os of some days by target, direction, time bucket and bin (its upper edge in milliseconds)."""
    frame = days.frame("target_histograms").filter(nw.col("histogram") == HISTOGRAM)
    rows = _select(frame, bucket_s, "direction", "bin", nw.col("count").cast(nw.Float64).alias("ios"))
    sums = collect(rows.group_by(*TIMED).agg(nw.col("ios").sum(), *_ends()))
    return _part(frame, sums, BucketSums.of(sums, bucket_s, TIMED, ("ios",)))


def sizes_part(days: Days) -> SizesPart:
    """I/Os of some days that were timed by size (Lustre 2.17)."""
    names = list(LATENCY_HISTOGRAMS.values())
    frame = data_targets(days.frame("target_histograms")).filter(nw.col("histogram").is_in(names))
    rows = frame.select(
        "target",
        nw.col("histogram").alias("kind"),
        "direction",
        "bin",
        "start_us",
        "epoch_us",
        nw.col("count").cast(nw.Float64).alias("ios"),
    )
    first, last = nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max().alias("last_us")
    sums = collect(rows.group_by("target", "kind", "direction", "bin").agg(nw.col("ios").sum(), first, last))
    ios: dict[tuple[str, str, int], float] = {}
    keys = zip(sums["kind"], sums["direction"], sums["bin"].tolist(), strict=True)
    for key, count in zip(keys, sums["ios"].tolist(), strict=True):
        ios[key] = ios.get(key, 0.0) + count
    extent = (int(sums["first_us"].min()), int(sums["last_us"].max())) if ios else None
    return SizesPart(ios, set(sums["target"]), extent)


def waits_part(days: Days, bucket_s: int) -> LatencyPart:
    """Summed waits of some days and the operations they are of, by target and time bucket."""
    known = {
        direction: ~nw.col(f"{direction}_wait_us").is_null() & ~nw.col(f"{direction}_ops").is_null()
        for direction in DIRECTIONS
    }
    frame = days.frame("target_io").filter(known["read"] | known["write"])
    columns = [
        nw.when(is_known).then(nw.col(f"{direction}_{name}").cast(nw.Float64)).alias(f"{direction}_{name}")
        for direction, is_known in known.items()
        for name in WAITED
    ]
    rows = _select(frame, bucket_s, *columns)
    sums = collect(
        rows.group_by("target", "bucket").agg(
            *(nw.col(f"{direction}_{name}").sum() for direction in DIRECTIONS for name in WAITED),
            *(nw.col(f"{direction}_wait_us").count().alias(f"{direction}_rows") for direction in DIRECTIONS),
            *_ends(),
        )
    )
    return _part(frame, sums, BucketSums.of(sums, bucket_s, ("target", "bucket"), WAITS))


def _select(frame: nw.LazyFrame[Any], bucket_s: int, *columns: str | nw.Expr) -> nw.LazyFrame[Any]:
    has_kind = "target_kind" in frame.collect_schema().names()
    kind = (nw.col("target_kind") if has_kind else nw.lit(None, nw.String)).alias("kind")
    bucket = (nw.col("start_us") // (bucket_s * SECOND_US)).alias("bucket")
    return frame.select("target", kind, bucket, "start_us", "epoch_us", *columns)


def _ends() -> tuple[nw.Expr, ...]:
    first, last = nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max().alias("last_us")
    return nw.col("kind").max(), first, last


def _part(frame: nw.LazyFrame[Any], rows: Columns, sums: BucketSums) -> LatencyPart:
    extent = (int(rows["first_us"].min()), int(rows["last_us"].max())) if len(rows["target"]) else None
    length_us = (nw.col("epoch_us") - nw.col("start_us") + 999) // 1000 * 1000  # as good for widths of whole seconds
    lengths = frame.select(length_us.alias("length_us")).group_by("length_us").agg(nw.len().alias("rows"))
    kinds = dict(zip(rows["target"], rows["kind"], strict=True))
    counted = collect(lengths)
    return LatencyPart(sums, kinds, rows_by_width(counted["length_us"], counted["rows"]), extent)
