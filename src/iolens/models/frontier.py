"""Coefficients from the limit that targets reach (DEFINITIONS, "Calibration from telemetry": frontier).

Ticks of one direction are grouped by mean I/O size in powers of two. In a group whose ticks are queued the median of
N/T is the limit R(b); in others its 99.9th percentile only bounds it. Each group says R(b)·(a0 + a1·b) ≤ 1, and the
estimate is the feasible pair with the smallest sum of 1 − R(b)·(a0 + a1·b).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from iolens.arrays import Booleans, Floats, Integers
from iolens.models.cost_estimate import (
    COEFFICIENTS,
    FRONTIER,
    SIZES_APART,
    CostEstimate,
    TelemetryTicks,
    draws,
    interval,
    is_narrow,
    numbered,
    resampled_words,
    size_group,
    size_words,
    weighted_quantile,
)
from iolens.models.transaction_time import Coefficients, added, time_terms
from iolens.units import format_bytes

FEWEST_QUEUED: Final = 10  # ticks whose median is a limit
DEEP: Final = 4.0  # disk I/Os in flight
DEEPER: Final = 2.0  # than ticks of the group far from its limit
HIGH: Final = 0.999  # of the ticks: the bound of a group that is not queued
TIGHT: Final = 0.95  # R(b)·(a0 + a1·b) of a group that holds the estimate
PLATEAU: Final = 1.10  # at a limit deeper queues are no faster than this
VARIED: Final = 1.5  # 90th over 10th percentile of in flight at a limit: a job that limits itself keeps its own number
COUNTED: Final = 30.0  # servers count up to 31 in flight: more look alike
SPREAD: Final = (0.80, 1.25)  # quartile and 95th percentile of queued ticks at one limit, relative to their median
CACHED: Final = 0.5  # of a group's usual time in flight per I/O: less is an answer without the disk
LOADED: Final = 0.1  # of a fast rate: what is slower meets nobody, whoever answers
BEYOND: Final = 1.10  # a rate so far above what the queued groups allow was not the disk's
REFUTED: Final = 1.25
FASTEST: Final = 0.99  # of the ticks of a group
OFTEN: Final = 0.15  # of the deep ticks are at a limit; fewer are one job at its own
FEWEST_BLOCKS: Final = 3  # with queued ticks, where there are as many
ALIKE: Final = (0.80, 0.75)  # R(b)·(a0 + a1·b) of a queued group that agrees with the estimate, and how many have to
_APART: Final = SIZES_APART * (1 - 1e-6)  # mean sizes are rounded
_BINS: Final = 128  # per power of two of a rate


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What a group of ticks says of its limit: R(b) in I/Os per second at b = `size_bytes`."""

    size_bytes: float
    ios_per_s: float
    is_queued: bool
    ticks: int
    in_flight: float
    resampled: Floats  # R(b) of each resample of blocks, NaN where it has no tick of the group

    @property
    def seconds(self) -> float:
        """Time of one I/O at the limit; the most it can be where the group is not queued."""
        return 1.0 / self.ios_per_s


def frontier(ticks: TelemetryTicks, blocks_are_days: bool = True) -> CostEstimate | None:
    """The frontier of one class and direction; None without ticks."""
    moved = ticks.where((ticks.ios_per_s > 0) & (ticks.count > 0))
    if not moved.ticks:
        return None
    places, blocks = numbered(moved.block)
    resamples = draws(blocks) if blocks > 1 else np.empty((0, blocks))
    members, usual_s = _by_size(moved)
    limits = [_limit(moved, same, float(time), places, resamples) for same, time in zip(members, usual_s, strict=True)]
    queued = [limit for limit in limits if limit.is_queued]
    bounds = [limit for limit in limits if not limit.is_queued]
    possible, beyond = _possible(bounds, queued)
    basis = _Basis(moved, blocks, blocks_are_days, limits, queued)
    refuted = [limit for limit in beyond if _excess(limit, queued) > REFUTED and limit.ticks >= FEWEST_QUEUED]
    if _sizes_apart(queued) and _levels_agree(queued) and not refuted:
        return basis.identified(beyond)
    return basis.bound([*queued, *possible], refuted)


def queued_ticks(ticks: TelemetryTicks) -> Booleans:
    """Which ticks are at a limit, of any number of days."""
    is_queued = np.zeros(ticks.count.size, bool)
    for same, usual_s in zip(*_by_size(ticks), strict=True):
        alike = ticks.where(same)
        is_queued[same] = _queued(alike, ~_is_cached(alike, float(usual_s)))
    return is_queued


def _by_size(ticks: TelemetryTicks) -> tuple[list[Integers], Floats]:
    """Places of the ticks of each power of two of the size, and the usual time of others in front of an I/O."""
    groups = size_group(ticks.size_bytes)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    sizes = np.exp2(np.unique(groups).astype(float))
    return members, _at_least_s(np.array([_usual_s(ticks.where(same)) for same in members]), sizes)


def best_pair(sizes: Floats, ios_per_s: Floats) -> tuple[Floats, Floats]:
    """The feasible (a0, a1) with the smallest Σ(1 − R·(a0 + a1·b)), for each row of rates; NaN: a group is absent.

    The sum is linear, so that the best pair is a corner of the feasible area: where two groups meet, or on an axis.
    """
    rates = np.atleast_2d(ios_per_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(rates > 0, 1.0 / rates, np.nan)
        corners = [(_smallest(seconds), np.zeros(len(rates))), (np.zeros(len(rates)), _smallest(seconds / sizes))]
        for first, second in combinations(range(len(sizes)), 2):
            slope = (seconds[:, second] - seconds[:, first]) / (sizes[second] - sizes[first])
            corners.append((seconds[:, first] - slope * sizes[first], slope))
    a0, a1 = (np.stack(values, axis=1) for values in zip(*corners, strict=True))
    used = rates[:, None, :] * (a0[:, :, None] + a1[:, :, None] * sizes)
    is_feasible = (a0 >= 0) & (a1 >= 0) & ~(used > 1 + 1e-9).any(axis=2)
    gain = np.where(is_feasible, np.nansum(used, axis=2), -1.0)
    best = gain.argmax(axis=1)
    row = np.arange(len(rates))
    return a0[row, best], a1[row, best]


def _smallest(values: Floats) -> Floats:
    """Of each row, NaN where nothing is known."""
    smallest: Floats = np.where(np.isnan(values), np.inf, values).min(axis=1)
    return np.where(np.isfinite(smallest), smallest, np.nan)


def _limit(ticks: TelemetryTicks, group: Integers, usual_s: float, places: Integers, resamples: Floats) -> RateLimit:
    """Of one group; `usual_s` as `_usual_s` gives it."""
    same = ticks.where(group)
    by_disk = ~_is_cached(same, usual_s)
    queued = _queued(same, by_disk)
    if np.unique(places[group][queued]).size < min(FEWEST_BLOCKS, resamples.shape[1]):
        queued[:] = False
    if queued.any():
        chosen, share, where = same.where(queued), 0.5, group[queued]
        rates, size = at_one_size(chosen)
        rate = weighted_quantile(rates, chosen.count, share)
    else:
        by_disk = by_disk if by_disk.any() else ~by_disk
        chosen, share, where = same.where(by_disk), HIGH, group[by_disk]
        rates = chosen.ios_per_s
        rate = weighted_quantile(rates, chosen.count, share)
        near = rates >= rate * 2 ** (-1 / _BINS)
        size = float(np.average(chosen.size_bytes[near], weights=chosen.count[near]))
    again = _resampled_quantile(rates, chosen.count, places[where], resamples, share)
    return RateLimit(size, rate, bool(queued.any()), chosen.ticks, _mean_depth(chosen), again)


def _queued(same: TelemetryTicks, by_disk: Booleans) -> Booleans:
    """Ticks at the limit: a deep queue, deeper than that of slow ticks, or a device that is always busy.

    One I/O after the other keeps a device busy that could serve many at once: where its queue is known to be short,
    that it is always busy says nothing. At a limit the rates of ticks agree, however deep they are, and no other tick
    that the disk answered is faster.
    """
    deep = np.nan_to_num(same.in_flight) >= DEEP
    full = same.is_full & ~(same.in_flight < DEEP)
    if deep.any():
        largest = weighted_quantile(same.ios_per_s[deep], same.count[deep], HIGH)
        slow = (same.ios_per_s < largest / 2) & np.isfinite(same.in_flight)
        usual = weighted_quantile(same.in_flight[slow], same.count[slow], 0.5) if slow.any() else np.inf
        deep &= same.in_flight >= DEEPER * usual
    chosen = _plateau(same, np.flatnonzero(deep | full))
    if chosen.any() and not _is_varied(same.where(chosen)):
        chosen[:] = False
    if chosen.any():
        level = weighted_quantile(at_one_size(same.where(chosen))[0], same.count[chosen], 0.5)
        everything = at_one_size(same.where(chosen), same.where(by_disk))[0]
        if by_disk.any() and weighted_quantile(everything, same.count[by_disk], FASTEST) > SPREAD[1] * level:
            chosen[:] = False
    return chosen


def _is_varied(ticks: TelemetryTicks) -> bool:
    """Whether the level was seen at different depths, beyond what is counted, or by a device that was always busy."""
    if ticks.is_full.all():
        return True
    depth = np.where(np.isfinite(ticks.in_flight), ticks.in_flight, np.inf)
    low, high = (weighted_quantile(depth, ticks.count, share) for share in (0.1, 0.9))
    return high >= min(VARIED * low, COUNTED)


def _plateau(same: TelemetryTicks, chosen: Integers) -> Booleans:
    """Those of the chosen ticks that are deep enough for their rates to agree; none where there is no such level.

    A target that serves many at once is deep before it is full: the shallower ones do not wait for anything yet.
    """
    is_chosen = np.zeros(same.count.size, bool)
    if not chosen.size:
        return is_chosen
    depth = np.where(np.isfinite(same.in_flight), same.in_flight, np.inf)
    ends = [weighted_quantile(depth[chosen], same.count[chosen], share) for share in np.arange(0.0, 0.96, 0.05)]
    for least in sorted({0.0, *ends}):
        deeper = chosen[depth[chosen] >= least]
        if same.count[deeper].sum() < max(FEWEST_QUEUED, OFTEN * same.count[chosen].sum()):
            break
        if _agree(same.where(deeper)):
            is_chosen[deeper] = True
            break
    return is_chosen


def _agree(ticks: TelemetryTicks) -> bool:
    """Whether rates are at one level, which deeper queues do not raise."""
    rates, _ = at_one_size(ticks)
    low, middle, high = (weighted_quantile(rates, ticks.count, share) for share in (0.25, 0.5, 0.95))
    if low < SPREAD[0] * middle or high > SPREAD[1] * middle:
        return False
    depth = np.where(np.isfinite(ticks.in_flight), ticks.in_flight, np.inf)
    deeper = depth > weighted_quantile(depth, ticks.count, 0.5)
    if not deeper.any():
        return True
    shallow = weighted_quantile(rates[~deeper], ticks.count[~deeper], 0.5)
    return weighted_quantile(rates[deeper], ticks.count[deeper], 0.5) <= PLATEAU * shallow


def at_one_size(ticks: TelemetryTicks, others: TelemetryTicks | None = None) -> tuple[Floats, float]:
    """Rates as they would be at the mean size, by how they fall with size in these ticks, and that size.

    The time of an I/O grows with its size, less than in proportion: the slope of the logarithms is in [−1, 0].
    `others`: their rates instead, at the same size.
    """
    logs, weights = np.log(ticks.size_bytes), ticks.count
    middle = np.average(logs, weights=weights)
    rates = np.log(ticks.ios_per_s)
    across = logs - middle
    variance = np.average(across**2, weights=weights)
    slope = 0.0
    if variance > 1e-8:
        covariance = np.average(across * (rates - np.average(rates, weights=weights)), weights=weights)
        slope = float(np.clip(covariance / variance, -1.0, 0.0))
    shown = ticks if others is None else others
    return shown.ios_per_s * np.exp(-slope * (np.log(shown.size_bytes) - middle)), float(np.exp(middle))


def _usual_s(same: TelemetryTicks) -> float:
    """Usual time that others take in front of an I/O, (in flight − 1)/rate by Little's law; zero: not known.

    Of ticks that are not the fastest, and not so slow that nobody meets anybody.
    """
    fast = weighted_quantile(same.ios_per_s, same.count, 0.9)
    loaded = np.isfinite(same.in_flight) & (same.ios_per_s <= fast) & (same.ios_per_s >= LOADED * fast)
    if not loaded.any():
        return 0.0
    return weighted_quantile(_ahead_s(same)[loaded], same.count[loaded], 0.5)


def _ahead_s(same: TelemetryTicks) -> Floats:
    return np.asarray((same.in_flight - 1.0) / same.ios_per_s)


def _at_least_s(usual_s: Floats, sizes: Floats) -> Floats:
    """Usual times, no less than half of what other sizes say: time grows with size, less than in proportion."""
    least = usual_s * np.minimum(1.0, sizes[:, None] / sizes)
    return np.asarray(np.maximum(usual_s, 0.5 * least.max(axis=1)))


def _is_cached(same: TelemetryTicks, usual_s: float) -> Booleans:
    """Fast ticks that had far less in flight than a disk needs at any load: what a cache answers says nothing of it."""
    fast = weighted_quantile(same.ios_per_s, same.count, 0.9)
    ahead_s = _ahead_s(same)
    return np.isfinite(ahead_s) & (same.ios_per_s >= LOADED * fast) & (ahead_s < CACHED * usual_s)


def _mean_depth(ticks: TelemetryTicks) -> float:
    known = np.isfinite(ticks.in_flight)
    if not known.any():
        return float("nan")
    return float(np.average(ticks.in_flight[known], weights=ticks.count[known]))


def _resampled_quantile(rates: Floats, counts: Floats, blocks: Integers, resamples: Floats, share: float) -> Floats:
    """The quantile of each resample, from counts by block and narrow bin of the rate."""
    bins = np.floor(np.log2(rates) * _BINS).astype(np.int64)
    first = int(bins.min())
    width = int(bins.max()) - first + 1
    table = np.bincount(blocks * width + bins - first, counts, resamples.shape[1] * width)
    drawn = np.cumsum(resamples @ table.reshape(resamples.shape[1], width), axis=1)
    wanted = share * drawn[:, -1:]
    place = np.minimum((drawn < wanted * (1 - 1e-12)).sum(axis=1), width - 1)
    row = np.arange(len(drawn))
    before = np.where(place > 0, drawn[row, place - 1], 0.0)
    inside = drawn[row, place] - before
    share_of_bin = np.where(inside > 0, (wanted[:, 0] - before) / np.where(inside > 0, inside, 1.0), 0.5)
    values: Floats = 2.0 ** ((first + place + share_of_bin) / _BINS)
    return np.where(drawn[:, -1] > 0, values, np.nan)


def _excess(bound: RateLimit, queued: Sequence[RateLimit]) -> float:
    """How far a bound is above the rate that queued groups allow: time grows with size, less than in proportion."""
    least = max((limit.seconds * min(1.0, bound.size_bytes / limit.size_bytes) for limit in queued), default=0.0)
    return bound.ios_per_s * least


def _possible(bounds: Sequence[RateLimit], queued: Sequence[RateLimit]) -> tuple[list[RateLimit], list[RateLimit]]:
    """Bounds that the queued groups allow, and those beyond."""
    allowed = [limit for limit in bounds if _excess(limit, queued) <= BEYOND]
    return allowed, [limit for limit in bounds if _excess(limit, queued) > BEYOND]


def _sizes_apart(limits: Sequence[RateLimit]) -> bool:
    """Whether tight groups differ enough in size: 4 KiB and 64 KiB do."""
    tight = _tight(limits)
    sizes = [limit.size_bytes for limit in tight]
    return len(sizes) > 1 and max(sizes) >= _APART * min(sizes)


def _levels_agree(queued: Sequence[RateLimit]) -> bool:
    """Whether queued groups are of one law: jobs that limit themselves do so at levels of their own."""
    a0, a1 = _pair(queued)
    alike = [limit.ios_per_s * (a0 + a1 * limit.size_bytes) >= ALIKE[0] for limit in queued]
    return sum(alike) >= ALIKE[1] * len(alike)


def _pair(limits: Sequence[RateLimit]) -> tuple[float, float]:
    sizes = np.array([limit.size_bytes for limit in limits])
    a0, a1 = best_pair(sizes, np.array([limit.ios_per_s for limit in limits]))
    return float(a0[0]), float(a1[0])


def _tight(limits: Sequence[RateLimit]) -> list[RateLimit]:
    if not limits:
        return []
    a0, a1 = _pair(limits)
    return [limit for limit in limits if limit.ios_per_s * (a0 + a1 * limit.size_bytes) >= TIGHT]


@dataclass(frozen=True, slots=True)
class _Basis:
    """What an estimate rests on."""

    ticks: TelemetryTicks
    blocks: int
    blocks_are_days: bool
    limits: Sequence[RateLimit]
    queued: Sequence[RateLimit]

    def identified(self, beyond: Sequence[RateLimit]) -> CostEstimate:
        """By the queued groups: others only bound what these say."""
        a0, a1 = _pair(self.queued)
        sizes = np.array([limit.size_bytes for limit in self.queued])
        again = best_pair(sizes, np.stack([limit.resampled for limit in self.queued], axis=1))
        enough = _sizes_left(self.queued, sizes)
        ends = [interval(np.where(enough, values, np.nan), a) for values, a in zip(again, (a0, a1), strict=True)]
        sure = tuple(name for name, a, end in zip(COEFFICIENTS, (a0, a1), ends, strict=True) if is_narrow(a, end))
        tight = _tight(self.queued)
        words = [f"limit reached at {size_words(tuple(limit.size_bytes for limit in tight))}"]
        if beyond:
            words.append(f"rates beyond the limit in {sum(limit.ticks for limit in beyond)} ticks: not from the disk")
        return self._estimate((a0, a1), (ends[0], ends[1]), sure, tight, words, is_bound=False)

    def bound(self, limits: Sequence[RateLimit], refuted: Sequence[RateLimit]) -> CostEstimate:
        """Coefficients that give at least the true FSU, for sizes up to the largest seen.

        The time of an I/O of b bytes is at most the largest that any feasible pair gives it. That is convex in b, so
        that the line between its ends, at no bytes and at the largest size, is nowhere below it.
        """
        seconds = np.array([limit.seconds for limit in limits])
        sizes = np.array([limit.size_bytes for limit in limits])
        most_a0, most_a1 = float(seconds.min()), float((seconds / sizes).min())
        largest = float(self.ticks.size_bytes.max())
        at_largest = longest_s(largest, sizes, seconds)
        a1 = max((at_largest - most_a0) / largest, 0.0)
        tight = [limit for limit in _tight(limits) if limit.is_queued]
        words, known = self._why_bound(tight, refuted)
        ends = ((0.0, most_a0), (0.0, most_a1))
        return self._estimate((most_a0, a1), ends, (), tight or limits, words, is_bound=True, known=known)

    def _why_bound(
        self, tight: Sequence[RateLimit], refuted: Sequence[RateLimit]
    ) -> tuple[list[str], tuple[float, float] | None]:
        if _sizes_apart(self.queued) and not refuted:
            return ["the levels of queued ticks differ between sizes: jobs that limit themselves; an upper bound"], None
        if refuted:
            ticks = sum(limit.ticks for limit in refuted)
            return [f"queued ticks are refuted by faster ones of other sizes ({ticks} ticks): an upper bound"], None
        if not tight:
            return ["the targets never reached their limit: an upper bound of FSU"], None
        best = max(tight, key=lambda limit: limit.ticks)
        words = f"limit reached at {format_bytes(best.size_bytes)} only: {best.seconds:.3g} s; else an upper bound"
        return [words], (best.seconds, best.size_bytes)

    def _estimate(
        self,
        pair: tuple[float, float],
        ends: tuple[tuple[float, float] | None, tuple[float, float] | None],
        sure: tuple[str, ...],
        tight: Sequence[RateLimit],
        words: list[str],
        *,
        is_bound: bool,
        known: tuple[float, float] | None = None,
    ) -> CostEstimate:
        depths = [limit.in_flight for limit in tight if np.isfinite(limit.in_flight)]
        if not is_bound:
            words.append(resampled_words(self.blocks, self.blocks_are_days))
        return CostEstimate(
            evidence=FRONTIER,
            latency_s=pair[0],
            s_per_byte=pair[1],
            latency_interval_s=ends[0],
            s_per_byte_interval=ends[1],
            identified=sure,
            upper_bound=is_bound,
            one_at_a_time=False,
            blocks=self.blocks,
            ticks=sum(limit.ticks for limit in self.queued) or self.ticks.ticks,
            targets=int(np.unique(self.ticks.target).size),
            sizes_bytes=tuple(sorted(limit.size_bytes for limit in self.limits)),
            in_flight=float(np.mean(depths)) if depths else None,
            note="; ".join(words),
            time_s=known[0] if known else None,
            time_at_bytes=known[1] if known else None,
        )


def longest_s(size_bytes: float, sizes: Floats, seconds: Floats) -> float:
    """The longest time that any pair with a0 + a1·b ≤ `seconds` at each of `sizes` gives an I/O of that size."""
    longest = min(float(seconds.min()), size_bytes * float((seconds / sizes).min()))
    a0 = [float(seconds.min()), 0.0]
    a1 = [0.0, float((seconds / sizes).min())]
    for first, second in combinations(range(sizes.size), 2):
        slope = float((seconds[second] - seconds[first]) / (sizes[second] - sizes[first]))
        a0.append(float(seconds[first] - slope * sizes[first]))
        a1.append(slope)
    for latency, slope in zip(a0, a1, strict=True):
        if latency >= 0 and slope >= 0 and (latency + slope * sizes <= seconds * (1 + 1e-9)).all():
            longest = max(longest, latency + slope * size_bytes)
    return longest


def _sizes_left(queued: Sequence[RateLimit], sizes: Floats) -> Booleans:
    """Which resamples still have groups that differ enough in size."""
    there = np.isfinite(np.stack([limit.resampled for limit in queued], axis=1))
    smallest = np.where(there, sizes, np.inf).min(axis=1)
    largest = np.where(there, sizes, 0.0).max(axis=1)
    return np.asarray(largest >= _APART * smallest)


# The FSU of a full disk by a centre's own telemetry (U10) -------------------------------------------------------------
# Where targets reach their limit, that of queued ticks.


@dataclass(frozen=True, slots=True)
class SeenCeiling:
    """The median FSU of queued ticks in per cent, by some coefficients, with 95 % of resampled days."""

    pct: float | None
    low_pct: float | None
    high_pct: float | None
    ticks: int
    note: str = ""


def seen_ceiling(sides: Sequence[tuple[TelemetryTicks, Coefficients]]) -> SeenCeiling | None:
    """Of ticks of each direction with its coefficients; None where too few are queued.

    Only where the limit of the class is known: queued ticks of jobs that limit themselves look alike. No level where
    sizes or directions have levels of their own: then the coefficients do not fit, and there is no one ceiling.
    """
    levels, counts, blocks, groups = ([part] for part in (np.empty(0), np.empty(0), np.empty(0, int), np.empty(0, int)))
    for place, (ticks, cost) in enumerate(sides):
        queued = ticks.where(queued_ticks(ticks))
        moved = queued.ios_per_s * queued.size_bytes
        levels.append(100.0 * added(time_terms(queued.ios_per_s, moved, cost.latency_s, cost.s_per_byte)))
        counts.append(queued.count)
        blocks.append(queued.block)
        groups.append(size_group(queued.size_bytes) * len(sides) + place)
    level, count, block, group = (np.concatenate(parts) for parts in (levels, counts, blocks, groups))
    places, number = numbered(block)
    if count.sum() < FEWEST_QUEUED or number < FEWEST_BLOCKS:
        return None
    middle = weighted_quantile(level, count, 0.5)
    ticks_queued = round(float(count.sum()))
    of_groups = [
        weighted_quantile(level[group == key], count[group == key], 0.5)
        for key in np.unique(group)
        if count[group == key].sum() >= FEWEST_QUEUED
    ]
    low, high = min(of_groups, default=middle), max(of_groups, default=middle)
    if low < SPREAD[0] * middle or high > SPREAD[1] * middle:
        note = (
            f"FSU at the limit is {low:.0f} to {high:.0f} % by size and direction: the coefficients have no one ceiling"
        )
        return SeenCeiling(None, None, None, ticks_queued, note)
    of_days = [weighted_quantile(level[places == day], count[places == day], 0.5) for day in range(number)]
    ends = interval(_medians(np.array(of_days)), middle)
    return SeenCeiling(middle, ends[0] if ends else None, ends[1] if ends else None, ticks_queued)


def _medians(of_days: Floats) -> Floats:
    """Of resampled days."""
    drawn = draws(of_days.size)
    order = np.argsort(of_days)
    places = (np.cumsum(drawn[:, order], axis=1) < of_days.size / 2).sum(axis=1)
    return np.asarray(of_days[order][places])
