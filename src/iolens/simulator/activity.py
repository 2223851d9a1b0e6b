"""What the disks of a simulated file system do: integer I/O counts by tick, target, direction and size.

Every hour is a pure function of workload, number of targets, seed and hour, so that any window can be made in any
order, in blocks of any length, with the same numbers. The truth about utilization comes with it (paper U, Eq. 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.schema import DIRECTIONS
from iolens.simulator.planted_counts import Counts, PlantedCounts, joined, planted_ios, planted_operations, within
from iolens.simulator.workload import HOLD_S, OPERATIONS, PHASES, SIZES, Bursts, SimulatedWorkload, Tail

HOUR_S: Final = 3600
MOST_PCT: Final = 130.0  # no disk does more than this
EARLIEST_S: Final = 2 * 86400  # bursts may have begun a day before
LONGEST: Final = 4.0  # a burst lasts at most this many times the mean
BACKGROUND, BURSTS, COUNTS, SKEW, METADATA = range(5)  # streams of random numbers


@dataclass(frozen=True, slots=True)
class TickBlock:
    """Consecutive ticks: `counts` is direction × size × tick × target, `fsu_pct` the truth by tick × target.

    `planted` are those of the counts that are of planted jobs.
    """

    first_tick: int
    counts: Counts
    fsu_pct: Floats
    planted: tuple[PlantedCounts, ...] = ()

    @property
    def ticks(self) -> int:
        """How many ticks it spans."""
        return int(self.fsu_pct.shape[0])

    def part(self, first_tick: int, ticks: int) -> TickBlock:
        """Some of its ticks."""
        cut = slice(first_tick - self.first_tick, first_tick - self.first_tick + ticks)
        planted = within(self.planted, first_tick, first_tick + ticks)
        return TickBlock(first_tick, self.counts[:, :, cut], self.fsu_pct[cut], planted)

    @property
    def background(self) -> Counts:
        """Counts without those of planted jobs."""
        return without(self.counts, self.first_tick, self.planted)


def without(counts: Counts, first_tick: int, planted: Iterable[PlantedCounts]) -> Counts:
    """Counts from `first_tick` on, less those of planted jobs."""
    rest = counts
    for part in planted:
        rest = counts.copy() if rest is counts else rest
        rest[..., part.first_tick - first_tick : part.end_tick - first_tick, :] -= part.counts
    return rest


class _Burst(NamedTuple):
    start_s: float
    end_s: float
    level_pct: Floats  # by target


class Activity:
    """All disk I/O of one file system. Ticks are numbered from 1970: tick n covers [n, n + 1) × `tick_s`."""

    def __init__(self, workload: SimulatedWorkload, targets: int | None = None, seed: int = 0) -> None:
        self.workload, self.seed = workload, seed
        self.targets = workload.osts if targets is None else targets
        self.tick_s = workload.tick_s
        self.ticks_per_hour = HOUR_S // workload.tick_s
        self.seconds = np.array(
            [[workload.disks.of(direction).seconds(size) for size in SIZES] for direction in DIRECTIONS]
        )
        shares = np.array([[workload.sizes[phase, direction] for direction in DIRECTIONS] for phase in PHASES])
        self._cumulative = np.cumsum(shares, axis=2)
        self._mean_s = (shares * self.seconds).sum(axis=2)  # time of one I/O by phase and direction
        self._skew = _skew(self._random(SKEW, 0), self.targets, workload.skew)
        self._bursts_of = lru_cache(maxsize=64)(self._draw_bursts)
        self._metadata_of_hour = lru_cache(maxsize=2)(self._make_metadata)
        self._hour_of = lru_cache(maxsize=1)(self._make_hour)

    def blocks(self, first_tick: int, ticks: int, block_ticks: int) -> Iterator[TickBlock]:
        """A window in blocks of `block_ticks`; the numbers do not depend on the blocks."""
        for start in range(first_tick, first_tick + ticks, block_ticks):
            yield self.block(start, min(block_ticks, first_tick + ticks - start))

    def block(self, first_tick: int, ticks: int) -> TickBlock:
        """A window at once."""
        if first_tick * self.tick_s < EARLIEST_S:
            raise UsageError("simulated time begins on 1970-01-03")
        counts = np.empty((2, len(SIZES), ticks, self.targets), np.int64)
        fsu = np.empty((ticks, self.targets))
        planted: list[PlantedCounts] = []
        at = first_tick
        while at < first_tick + ticks:
            hour = self._hour_of(at // self.ticks_per_hour)
            part = hour.part(at, min(hour.first_tick + hour.ticks, first_tick + ticks) - at)
            to = slice(at - first_tick, at - first_tick + part.ticks)
            counts[:, :, to], fsu[to] = part.counts, part.fsu_pct
            planted += part.planted
            at += part.ticks
        return TickBlock(first_tick, counts, fsu, joined(planted))

    def metadata(self, hour: int, mdts: int) -> Counts:
        """Metadata operations of one hour, of planted jobs too: operation × tick × MDT. Read only."""
        return self._metadata_of_hour(hour, mdts)

    def _make_metadata(self, hour: int, mdts: int) -> Counts:
        first_tick = hour * self.ticks_per_hour
        done = self._background_metadata(hour, mdts)
        for part in self.planted_metadata(first_tick, self.ticks_per_hour, mdts):
            done[:, part.first_tick - first_tick : part.end_tick - first_tick] += part.counts
        done.flags.writeable = False
        return done

    def metadata_of(self, first_tick: int, ticks: int, mdts: int) -> Counts:
        """The same of any window."""
        hours = range(first_tick // self.ticks_per_hour, -(-(first_tick + ticks) // self.ticks_per_hour))
        skip = first_tick - hours.start * self.ticks_per_hour
        whole = [self.metadata(hour, mdts) for hour in hours]
        done = whole[0] if len(whole) == 1 else np.concatenate(whole, axis=1)
        return done[:, skip : skip + ticks]

    def planted_metadata(self, first_tick: int, ticks: int, mdts: int) -> tuple[PlantedCounts, ...]:
        """Those of the metadata operations that are of planted jobs."""
        asked = range(first_tick, first_tick + ticks)
        parts = (planted_operations(job, self.seed, mdts, asked, self.tick_s) for job in self.workload.planted)
        return tuple(part for part in parts if part is not None)

    def _background_metadata(self, hour: int, mdts: int) -> Counts:
        rates = np.array([self.workload.metadata[name] for name in OPERATIONS])
        random = self._random(METADATA, hour)
        swing = random.gamma(2.0, 0.5, (HOUR_S // HOLD_S, mdts)).repeat(HOLD_S // self.tick_s, axis=0)
        expected = rates[:, None, None] * swing * self.tick_s * self.workload.rhythm(hour * HOUR_S)
        return random.poisson(expected / max(1, mdts)).astype(np.int64)

    def _random(self, stream: int, hour: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence((self.seed, stream, hour))))

    def _make_hour(self, hour: int) -> TickBlock:
        quiet, usual = self._background(hour)
        burst = self._burst_levels(hour)
        total = (quiet + usual + burst).sum(axis=0)
        scale = np.minimum(1.0, self.workload.full_pct / np.maximum(total, 1e-9)) * (self.tick_s / 100.0)
        random = self._random(COUNTS, hour)
        counts = np.empty((2, len(SIZES), self.ticks_per_hour, self.targets), np.int64)
        busy_s = np.zeros((self.ticks_per_hour, self.targets))
        for value in range(2):
            expected = [
                level[value] * scale / self._mean_s[phase, value] for phase, level in enumerate((quiet, usual, burst))
            ]
            self._draw_counts(random, value, expected, counts[value], busy_s)
        first_tick = hour * self.ticks_per_hour
        planted = self._planted(range(first_tick, first_tick + self.ticks_per_hour))
        for part in planted:
            busy_s[part.first_tick - first_tick : part.end_tick - first_tick] += self.disk_s(part.counts)
        self._hold_back(first_tick, counts, planted, busy_s)
        for part in planted:
            counts[:, :, part.first_tick - first_tick : part.end_tick - first_tick] += part.counts
        return TickBlock(first_tick, counts, busy_s * (100.0 / self.tick_s), planted)

    def disk_s(self, counts: Counts) -> Floats:
        """Disk time of I/Os by direction and size: seconds by the other dimensions."""
        seconds: Floats = np.einsum("ds...,ds->...", counts, self.seconds)
        return seconds

    def _planted(self, ticks: range) -> tuple[PlantedCounts, ...]:
        parts = (
            planted_ios(job, self.seed, self.seconds, self.targets, ticks, self.tick_s) for job in self.workload.planted
        )
        return tuple(part for part in parts if part is not None)

    def _draw_counts(
        self, random: np.random.Generator, value: int, expected: list[Floats], counts: Counts, busy_s: Floats
    ) -> None:
        """A Poisson number of I/Os, dealt out to the sizes by systematic sampling: cheap, and adds up exactly."""
        total = expected[0] + expected[1] + expected[2]
        number = random.poisson(total).astype(np.float64)
        offset = random.random(total.shape)
        per_expected = number / np.maximum(total, 1e-300)
        cumulative = self._cumulative[:, value]
        top = int(np.flatnonzero(cumulative.min(axis=0) >= 1.0 - 1e-12)[0])
        before = np.zeros_like(total)
        for size in range(len(SIZES)):
            if size < top:
                upto = expected[0] * cumulative[0, size]
                upto += expected[1] * cumulative[1, size]
                upto += expected[2] * cumulative[2, size]
                upto *= per_expected
                upto += offset
                np.floor(upto, out=upto)
                np.minimum(upto, number, out=upto)
            else:
                upto = number
            drawn = upto - before
            counts[size] = drawn
            busy_s += drawn * self.seconds[value, size]
            before = upto

    def _hold_back(self, first_tick: int, counts: Counts, planted: Iterable[PlantedCounts], busy_s: Floats) -> None:
        """Where more was asked for than a disk can do, take I/Os away, from the background and planted jobs alike."""
        limit_s = MOST_PCT / 100.0 * self.tick_s
        tick, target = np.nonzero(busy_s > limit_s)
        if not tick.size:
            return
        share = limit_s / busy_s[tick, target]
        done_s = np.zeros(tick.size)
        for first, asked in ((first_tick, counts), *((part.first_tick, part.counts) for part in planted)):
            row = tick + first_tick - first
            here = (row >= 0) & (row < asked.shape[2])
            kept = np.floor(asked[:, :, row[here], target[here]] * share[here])
            asked[:, :, row[here], target[here]] = kept.astype(np.int64)
            done_s[here] += np.einsum("dst,ds->t", kept, self.seconds)
        busy_s[tick, target] = done_s

    def _background(self, hour: int) -> tuple[Floats, Floats]:
        """Levels in per cent, direction × tick × target, of quiet and of usual background."""
        holds = HOUR_S // HOLD_S
        random = self._random(BACKGROUND, hour)
        levels = np.empty((2, holds, self.targets))
        for value, name in enumerate(DIRECTIONS):
            common, own = random.normal(size=(holds, 1)), random.normal(size=(holds, self.targets))
            levels[value] = self._levels(common, own, self.workload.background[name])
        levels *= self.workload.rhythm(hour * HOUR_S) * self._skew
        is_quiet = levels.sum(axis=0) < self.workload.quiet_below_pct
        ticks = HOLD_S // self.tick_s
        return np.where(is_quiet, levels, 0.0).repeat(ticks, axis=1), np.where(is_quiet, 0.0, levels).repeat(
            ticks, axis=1
        )

    def _burst_levels(self, hour: int) -> Floats:
        levels = np.zeros((2, self.ticks_per_hour, self.targets))
        first_s = hour * HOUR_S
        for value, name in enumerate(DIRECTIONS):
            longest = LONGEST * self.workload.bursts[name].length_s
            for earlier in range(hour - int(longest // HOUR_S) - 1, hour + 1):
                for burst in self._bursts_of(value, earlier):
                    low = max(0, round((burst.start_s - first_s) / self.tick_s))
                    high = min(self.ticks_per_hour, round((burst.end_s - first_s) / self.tick_s))
                    if low < high:
                        levels[value, low:high] += burst.level_pct
        return levels

    def _draw_bursts(self, value: int, hour: int) -> list[_Burst]:
        bursts: Bursts = self.workload.bursts[DIRECTIONS[value]]
        random = self._random(BURSTS, 2 * hour + value)
        result = []
        for _ in range(random.poisson(HOUR_S / bursts.every_s * self.workload.rhythm(hour * HOUR_S))):
            start = hour * HOUR_S + random.random() * HOUR_S
            length = min(random.exponential(bursts.length_s), LONGEST * bursts.length_s)
            common, own = random.normal(size=1), random.normal(size=self.targets)
            level = self._levels(common, own, bursts.level) * self._skew
            result.append(_Burst(start, start + max(length, self.tick_s), level))
        return result

    def _levels(self, common: Floats, own: Floats, tail: Tail) -> Floats:
        """Levels whose distribution is the tail's and whose ranks are correlated between targets."""
        share = self.workload.correlation
        return truncated_pareto(normal_cdf(np.sqrt(share) * common + np.sqrt(1.0 - share) * own), tail)


def truncated_pareto(probability: Floats, tail: Tail) -> Floats:
    """The level below which that share of a tail's levels lies."""
    below = 1.0 - (tail.scale_pct / tail.maximum_pct) ** tail.alpha
    level: Floats = tail.scale_pct * (1.0 - probability * below) ** (-1.0 / tail.alpha)
    return np.minimum(level, tail.maximum_pct)


def normal_cdf(value: Floats) -> Floats:
    """The normal distribution function to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(value))
    powers = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    above = np.exp(-0.5 * value * value) / np.sqrt(2.0 * np.pi) * powers
    result: Floats = np.clip(np.where(value >= 0, 1.0 - above, above), 0.0, 1.0)
    return result


def _skew(random: np.random.Generator, targets: int, skew: float) -> Floats:
    """A fixed factor per target with mean one: some are hotter."""
    factors = np.exp(skew * random.normal(size=targets))
    result: Floats = factors / factors.mean()
    return result
