"""How long disk I/Os take, per target over time (SPEC B8): percentiles from the I/O-time histogram of brw_stats.

A percentile is the upper edge of the first bin whose cumulative share reaches it. Where a target has no histogram, its
mean wait stands beside: a mean, never called a percentile. Reads and writes apart. Lustre 2.17 times bulk I/Os by their
size: the same percentiles for each size, of all data targets together.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import gcd
from typing import Any, Final

import numpy as np

from iolens.analyses import Analysis
from iolens.analyses.intervals.buckets import PART_S, checked_width, common_width, joined, usual_width
from iolens.analyses.intervals.coverage import notes_on_sources, sources_of, window_us
from iolens.analyses.latency.part import (
    FEWEST_PEERS,
    HISTOGRAM,
    IO_TIMES_FORM,
    MEASURES,
    SIZES_FORM,
    WAITS_FORM,
    Finding,
    Key,
    LatencyPart,
    LatencyTotals,
    SizesPart,
    Slowness,
    SlownessEvidence,
    io_times_part,
    of_bins,
    percentile_interval,
    sizes_part,
    slower_pct,
    waits_part,
)
from iolens.analyses.results import OverIntervals, of_servers, pct
from iolens.arrays import Floats
from iolens.histogram_names import LATENCY_HISTOGRAMS, latency_size
from iolens.schema import DIRECTIONS
from iolens.store.parts import EngineParts
from iolens.store.selection import Selection
from iolens.target_names import of_like_kind
from iolens.target_servers import TargetServers
from iolens.units import DAY_S, SECOND_US, from_epoch_us

TABLES: Final = ("target_histograms", "target_io")
PARTS: Final = dict(zip(TABLES, ((io_times_part, IO_TIMES_FORM), (waits_part, WAITS_FORM)), strict=True))
WAITS: Final = ("read_wait_us", "write_wait_us")
MOST_BUCKETS: Final = 96
NS_PER_MS: Final = 1e6
MOST_PERIODS: Final = 48  # parts of the window in which targets are compared with their peers


@dataclass(frozen=True, slots=True)
class DirectionLatency:
    """Reads or writes of all data targets together."""

    direction: str
    ios: int | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    mean_wait_ms: float | None


@dataclass(frozen=True, slots=True)
class SizeLatency:
    """Reads or writes of one size, of all data targets together: elapsed time of a bulk I/O, waiting included."""

    direction: str
    from_bytes: int
    below_bytes: int
    ios: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class TargetLatency:
    """Reads or writes of one target, beside the median of its peers: the targets of its kind."""

    target: str
    direction: str
    ios: int | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    mean_wait_ms: float | None
    p99_low_ms: float | None
    p99_high_ms: float | None
    peers_p99_ms: float | None
    p99_ratio: float | None
    slow_pct: float | None
    peers_mean_wait_ms: float | None
    mean_wait_ratio: float | None
    finding: Finding
    not_judged: str | None
    evidence: SlownessEvidence | None


@dataclass(frozen=True, slots=True)
class LatencySeries:
    """One target's reads or writes bucket by bucket (`bucket_starts`), null where there were none.

    Without a target: all data targets together.
    """

    target: str | None
    direction: str
    ios: Floats
    p50_ms: Floats
    p95_ms: Floats
    p99_ms: Floats
    max_ms: Floats
    mean_wait_ms: Floats


@dataclass(frozen=True, slots=True)
class LatencyCoverage:
    """What the answer rests on, and what was missing (B7)."""

    targets_known: int
    targets_with_histogram: int
    targets_with_waits: int
    targets_with_sizes: int
    targets_without: list[str]
    sources: list[str]
    overlapping_rows: int
    first_sample: datetime | None
    last_sample: datetime | None
    complete_pct: float | None  # of the window, from the first sample to the last
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Latency(OverIntervals):
    """Latency of one file system's targets over a window."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    bucket_s: float
    period_s: float
    targets: int
    samples: int
    ios: int | None
    whole: list[DirectionLatency]
    by_size: list[SizeLatency]
    per_target: list[TargetLatency]
    bucket_starts: list[datetime]
    over_time: list[LatencySeries]
    coverage: LatencyCoverage
    servers: TargetServers | None = of_servers()

    @property
    def has_times(self) -> bool:
        """Whether anything was timed in the window."""
        return bool(self.samples or self.by_size)


def latency(
    selection: Selection,
    *,
    every_s: float | None = None,
    notes: tuple[str, ...] = (),
    progress: Callable[[date], None] | None = None,
) -> Latency:
    """Percentiles of I/O time, and mean waits, in buckets of `every_s` seconds (chosen by the window's length)."""
    has_histogram = selection.holds("target_histograms", "histogram", (HISTOGRAM,))
    has_waits = bool(selection.live_columns("target_io", WAITS))
    tables = [table for table, is_there in zip(TABLES, (has_histogram, has_waits), strict=True) if is_there]
    extent = selection.extent_us(*tables)
    given_s = None if every_s is None else checked_width(every_s, extent)
    span_us = extent[1] - extent[0] if extent else 0
    common_s = gcd(common_width(span_us, MOST_BUCKETS), given_s or 0)
    sizes = _by_size(selection, progress)
    gathered = {table: _gathered(selection, table, common_s, progress) for table in tables}
    totals = _totals({table: part for table, part in gathered.items() if part is not None}, given_s, span_us)
    totals.extent_us = joined(totals.extent_us, sizes.extent_us)
    used = [table for table in TABLES if table in tables or (table == TABLES[0] and sizes.ios)]
    return _result(selection, totals, sizes, used, notes)


def _by_size(selection: Selection, progress: Callable[[date], None] | None) -> SizesPart:
    """Of the whole window."""
    whole = SizesPart({}, set(), None)
    if selection.holds(TABLES[0], "histogram", list(LATENCY_HISTOGRAMS.values())):
        for later in selection.parts(EngineParts(sizes_part, SIZES_FORM, (TABLES[0],)), progress):
            whole.take(later)
    return whole


def _size_lines(sizes: SizesPart) -> list[SizeLatency]:
    """Reads first, from the smallest size on."""
    bins: dict[tuple[str, int], dict[int, float]] = {}
    for (histogram, direction, edge_ns), ios in sizes.ios.items():
        if ios and (size := latency_size(histogram)) is not None:
            bins.setdefault((direction, size), {})[edge_ns] = ios
    lines = []
    for direction, size in sorted(bins):
        measures = of_bins(bins[direction, size])
        times = {name: measures[name] / NS_PER_MS for name in MEASURES if name != "ios"}
        lines.append(SizeLatency(direction, size, 2 * size, round(measures["ios"]), **times))
    return lines


def _gathered(
    selection: Selection, table: str, bucket_s: int, progress: Callable[[date], None] | None
) -> LatencyPart | None:
    """The whole window in buckets of that width."""
    part, form = PARTS[table]
    whole: LatencyPart | None = None
    for later in selection.parts(EngineParts(part, form, (table,), (gcd(bucket_s, PART_S),)), progress):
        later.sums = later.sums.wider(bucket_s)
        if whole is None:
            whole = later
        else:
            whole.take(later)
    return whole


def _totals(parts: Mapping[str, LatencyPart], given_s: int | None, span_us: int) -> LatencyTotals:
    """In buckets and periods by the intervals of the first table there is."""
    if not parts:
        return LatencyTotals(given_s or DAY_S, given_s or DAY_S)
    usual_s = usual_width(next(iter(parts.values())).lengths, span_us, MOST_BUCKETS)
    width_s = given_s or usual_s
    totals = LatencyTotals(width_s, _period_s(span_us, gcd(width_s, usual_s)))
    for part in parts.values():
        totals.kinds |= part.kinds
        totals.extent_us = joined(totals.extent_us, part.extent_us)
    for table, add in zip(TABLES, (totals.add_io_times, totals.add_waits), strict=True):
        if table in parts:
            add(parts[table].sums)
    return totals


def _period_s(span_us: int, bucket_s: int) -> int:
    """A multiple of the bucket, so that the window has as many periods as are compared."""
    buckets = -(-span_us // (bucket_s * SECOND_US))
    return max(-(-buckets // MOST_PERIODS), 1) * bucket_s


def _result(
    selection: Selection, totals: LatencyTotals, sizes: SizesPart, tables: Sequence[str], notes: tuple[str, ...]
) -> Latency:
    start, end = selection.window
    extent = totals.extent_us
    numbers, series = totals.over_time()
    everything = [series[None, direction] for direction in DIRECTIONS if (None, direction) in series]
    reported = [np.isfinite(values["ios"]) | np.isfinite(values["ops"]) for values in everything]
    return Latency(
        filesystem=selection.filesystem,
        window_start=start or (from_epoch_us(extent[0]) if extent else None),
        window_end=end or (from_epoch_us(extent[1]) if extent else None),
        bucket_s=float(totals.bucket_s),
        period_s=float(totals.period_s),
        targets=len(totals.kinds.keys() | sizes.targets),
        samples=int(np.any(reported, axis=0).sum()) if reported else 0,
        ios=round(sum(sum(totals.bins.get((None, direction), {}).values()) for direction in DIRECTIONS))
        if totals.bins
        else None,
        whole=[
            DirectionLatency(**_measures(totals, None, direction))
            for direction in DIRECTIONS
            if (None, direction) in series
        ],
        by_size=_size_lines(sizes),
        per_target=_per_target(totals),
        bucket_starts=[from_epoch_us(int(place) * totals.bucket_s * SECOND_US) for place in numbers],
        over_time=[_series(key, series[key]) for key in sorted(series, key=lambda key: (key[0] or "", key[1]))],
        coverage=_coverage(selection, totals, sizes, tables, notes),
    )


def _measures(totals: LatencyTotals, target: str | None, direction: str) -> dict[str, Any]:
    """What the histogram and the waits say over the whole window."""
    bins = totals.bins.get((target, direction), {})
    by_name: dict[str, Any] = of_bins(bins) if bins else dict.fromkeys(MEASURES)
    wait_us, ops = totals.waits.get((target, direction), (0.0, 0.0))
    return {
        "direction": direction,
        **by_name,
        "ios": round(by_name["ios"]) if bins else None,
        "mean_wait_ms": wait_us / ops / 1000.0 if ops > 0 else None,
    }


def _per_target(totals: LatencyTotals) -> list[TargetLatency]:
    keys = sorted({(target, direction) for target, direction in (*totals.bins, *totals.waits) if target is not None})
    lines = {key: _measures(totals, *key) for key in keys}
    peers: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
    for (target, side), line in lines.items():
        peers.setdefault((totals.kinds.get(target), side), []).append(line)
    usual = {
        group: (
            _median([by_name["p99_ms"] for by_name in same], statistics.median_high),  # an edge, never between two
            _median([by_name["mean_wait_ms"] for by_name in same], statistics.median),
        )
        for group, same in peers.items()
    }
    slow = _slowness(totals, lines)
    result = []
    for (target, side), line in lines.items():
        p99, wait = usual[totals.kinds.get(target), side]
        bins = totals.bins.get((target, side), {})
        low, high = percentile_interval(bins, 99) if line["ios"] else (None, None)
        judged = slow[target, side]
        result.append(
            TargetLatency(
                target=target,
                **line,
                p99_low_ms=low,
                p99_high_ms=high,
                peers_p99_ms=p99,
                p99_ratio=_ratio(line["p99_ms"], p99),
                slow_pct=None if p99 is None else slower_pct(bins, p99),
                peers_mean_wait_ms=wait,
                mean_wait_ratio=_ratio(line["mean_wait_ms"], wait),
                finding=judged.finding,
                not_judged=judged.reason,
                evidence=judged.evidence,
            )
        )
    return result


def _slowness(totals: LatencyTotals, lines: Mapping[tuple[str, str], object]) -> dict[tuple[str, str], Slowness]:
    """Every target and direction beside its peers: by the histogram those that have one, by mean waits the others."""
    groups: dict[tuple[str | None, str, bool], list[str]] = {}
    for target, direction in lines:
        groups.setdefault((totals.kinds.get(target), direction, (target, direction) in totals.bins), []).append(target)
    slownesses: dict[tuple[str, str], Slowness] = {}
    for (_, direction, has_histogram), targets in groups.items():
        peers = totals.timed_peers(targets, direction) if has_histogram else totals.waiting_peers(targets, direction)
        slownesses |= {(target, direction): peers.judge(place, len(lines)) for place, target in enumerate(targets)}
    return slownesses


def _median(values: list[float | None], median: Callable[[list[float]], float]) -> float | None:
    """Of those that are known, if they are enough to have a middle."""
    known = [value for value in values if value is not None]
    return median(known) if len(known) >= FEWEST_PEERS else None


def _ratio(value: float | None, usual: float | None) -> float | None:
    return value / usual if value is not None and usual else None


def _series(key: Key, measures: dict[str, Floats]) -> LatencySeries:
    with np.errstate(invalid="ignore", divide="ignore"):
        wait_ms = np.where(measures["ops"] > 0, measures["wait_us"] / measures["ops"] / 1000.0, np.nan)
    target, direction = key
    shown = {**{name: measures[name] for name in MEASURES}, "mean_wait_ms": wait_ms}
    return LatencySeries(target=target, direction=direction, **shown)


def _coverage(
    selection: Selection, totals: LatencyTotals, sizes: SizesPart, tables: Sequence[str], notes: tuple[str, ...]
) -> LatencyCoverage:
    with_histogram, with_waits = (
        {target for target, _ in keys if target is not None} for keys in (totals.bins, totals.waits)
    )
    timed = with_histogram | with_waits | sizes.targets
    known = (of_like_kind(selection.known_targets(), timed) if timed else selection.known_targets()) | timed
    return LatencyCoverage(
        targets_known=len(known),
        targets_with_histogram=len(with_histogram),
        targets_with_waits=len(with_waits),
        targets_with_sizes=len(sizes.targets),
        targets_without=sorted(known - timed),
        sources=sources_of(selection, tables),
        overlapping_rows=selection.overlapping_rows,
        first_sample=from_epoch_us(totals.extent_us[0]) if totals.extent_us else None,
        last_sample=from_epoch_us(totals.extent_us[1]) if totals.extent_us else None,
        complete_pct=_complete_pct(selection, totals.extent_us),
        notes=[*notes, *notes_on_sources(selection, tables)],
    )


def _complete_pct(selection: Selection, extent_us: tuple[int, int] | None) -> float | None:
    """An hour without an I/O has no row: what lies between the first and the last sample counts as covered."""
    return None if extent_us is None else pct(extent_us[1] - extent_us[0], window_us(selection, extent_us))


ANALYSIS = Analysis("latency", "How long disk I/Os take, per target over time", latency)
