"""What the disks of a simulated file system do, tick by tick, and which jobs do it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.schema import DIRECTIONS
from iolens.simulator.workload import HOLD_S, OPERATIONS, PHASES, SIZES, Bursts, PlantedJob, SimulatedWorkload, Tail

# Who did it -----------------------------------------------------------------------------------------------------------
# The jobs that run at one time, and the share of the disk I/Os that is each one's.

GOLDEN = 0.6180339887498949


class Job(NamedTuple):
    """One job of a user's stream, where the next follows when it ends, or a planted one, which has a name and nodes."""

    job_id: str
    user: str
    project: str
    start_s: int
    end_s: int
    name: str | None = None
    nodes: int | None = None


def running_jobs(workload: SimulatedWorkload, second: int) -> list[Job]:
    """The job of each stream at that time, in the order of the workload."""
    return [job_of_stream(workload, number, second) for number in range(len(workload.jobs))]


def jobs_between(workload: SimulatedWorkload, start_s: int, end_s: int) -> Iterator[Job]:
    """Every job that ends in (start, end], planted ones last."""
    for number in range(len(workload.jobs)):
        job = job_of_stream(workload, number, start_s)
        while job.end_s <= end_s:
            yield job
            job = job_of_stream(workload, number, job.end_s)
    yield from (job_of_planted(job) for job in workload.planted if start_s < job.end_s <= end_s)


def job_of_stream(workload: SimulatedWorkload, number: int, second: int) -> Job:
    """The job that a stream runs at that time."""
    stream = workload.jobs[number]
    length = int(stream.length_s)
    turn = second // length
    return Job(str(turn * len(workload.jobs) + number), stream.user, stream.project, turn * length, (turn + 1) * length)


def job_of_planted(job: PlantedJob) -> Job:
    """A planted job as the scheduler knows it."""
    return Job(job.job_id, job.user, job.project, job.start_s, job.end_s, job.executable, job.nodes)


def planted_at(workload: SimulatedWorkload, second: int) -> list[tuple[int, Job]]:
    """The planted jobs that run at that time, with their numbers, which follow those of the streams."""
    first = len(workload.jobs)
    running = ((first + place, job) for place, job in enumerate(workload.planted) if job.start_s <= second < job.end_s)
    return [(number, job_of_planted(job)) for number, job in running]


def dealt_out(
    counts: NDArray[np.int64], workload: SimulatedWorkload, turn: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """Counts divided between the jobs by weight, jobs first; they add up. `turn` varies who gets the odd one."""
    return divided(counts, [job.weight for job in workload.jobs], turn)


def divided(counts: NDArray[np.int64], weights: Sequence[float], turn: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Counts divided by weight, parts first; they add up. `turn` varies which part gets the odd one."""
    offset = (np.asarray(turn) * GOLDEN) % 1.0
    shares = _cumulative(tuple(weights)).reshape(-1, *(1 for _ in counts.shape))
    upto = np.floor(counts * shares + offset)
    parts = np.minimum(upto, counts, out=upto).astype(np.int64)
    parts[1:] -= parts[:-1].copy()
    return parts


@cache
def _cumulative(weights: tuple[float, ...]) -> NDArray[np.float64]:
    """Shares of the first part, of the first two and so on; of all parts exactly 1."""
    cumulative: NDArray[np.float64] = np.cumsum(weights) / np.sum(weights)
    cumulative[-1] = 1.0
    return cumulative


# What planted jobs do in each tick ------------------------------------------------------------------------------------
# Whole I/Os and operations, the same in blocks of any length.
#
# Up to any time a job has done its rate times its active seconds, rounded at a place that is drawn once for each job,
# target and kind; so its disk-seconds are those of its level, but for one I/O of each kind and OST.

_IOS, _OPERATIONS = 5, 6  # streams of random numbers beside those of the activity

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlantedCounts:
    """What a planted job does from `first_tick` on; the last two dimensions of `counts` are ticks and targets."""

    job: PlantedJob
    first_tick: int
    counts: Counts

    @property
    def end_tick(self) -> int:
        """The tick after its last."""
        return self.first_tick + int(self.counts.shape[-2])

    def part(self, first_tick: int, end_tick: int) -> PlantedCounts | None:
        """What of it lies in these ticks."""
        low, high = max(first_tick, self.first_tick), min(end_tick, self.end_tick)
        cut = slice(low - self.first_tick, high - self.first_tick)
        return PlantedCounts(self.job, low, self.counts[..., cut, :]) if low < high else None


def planted_ios(
    job: PlantedJob, seed: int, seconds: Floats, targets: int, ticks: range, tick_s: int
) -> PlantedCounts | None:
    """Disk I/Os of some ticks, direction × size × tick × OST; None: it does none then. `seconds` is what each takes."""
    if not job.level_pct or not _runs_in(job, ticks, tick_s):
        return None
    shares = np.array([[job.ios.get((direction, size), 0.0) for size in SIZES] for direction in DIRECTIONS])
    if job.osts is not None and max(job.osts) >= targets:
        raise UsageError(f"planted job {job.job_id!r}: there is no OST {max(job.osts)} among {targets}")
    per_s = job.level_pct / 100.0 * shares / (shares * seconds).sum()
    chosen = np.zeros(targets)
    chosen[list(range(targets) if job.osts is None else job.osts)] = 1.0
    return _counted(job, (seed, _IOS), per_s[..., None] * chosen, ticks, tick_s)


def planted_operations(job: PlantedJob, seed: int, mdts: int, ticks: range, tick_s: int) -> PlantedCounts | None:
    """Metadata operations of some ticks, operation × tick × MDT; all MDTs have as many."""
    if not job.metadata or not mdts or not _runs_in(job, ticks, tick_s):
        return None
    rates = np.array([job.metadata.get(name, 0.0) for name in OPERATIONS])
    return _counted(job, (seed, _OPERATIONS), np.repeat(rates[:, None] / mdts, mdts, axis=1), ticks, tick_s)


def _runs_in(job: PlantedJob, ticks: range, tick_s: int) -> bool:
    return job.start_s < ticks.stop * tick_s and ticks.start * tick_s < job.end_s


def _counted(job: PlantedJob, stream: tuple[int, int], per_s: Floats, ticks: range, tick_s: int) -> PlantedCounts:
    """Whole counts of rates by kind and target, in those of the ticks in which the job runs."""
    low, high = max(ticks.start, job.start_s // tick_s), min(ticks.stop, job.end_s // tick_s)
    active_s = job.active_s(np.arange(low, high + 1, dtype=np.float64) * tick_s)
    counts = np.zeros((*per_s.shape[:-1], high - low, per_s.shape[-1]), np.int64)
    random = np.random.Generator(np.random.SFC64((*stream, zlib.crc32(job.job_id.encode()))))
    offsets = random.random(per_s.shape)
    for kind in zip(*np.nonzero(per_s.any(axis=-1)), strict=True):
        upto = np.floor(active_s[:, None] * per_s[kind] + np.where(per_s[kind] > 0, offsets[kind], 0.0))
        counts[kind] = np.diff(upto, axis=0)
    return PlantedCounts(job, low, counts)


def within(planted: Iterable[PlantedCounts], first_tick: int, end_tick: int) -> tuple[PlantedCounts, ...]:
    """What of them lies in these ticks."""
    parts = (counts.part(first_tick, end_tick) for counts in planted)
    return tuple(part for part in parts if part is not None)


def joined(pieces: Iterable[PlantedCounts]) -> tuple[PlantedCounts, ...]:
    """Pieces of the same job that follow one another as one."""
    whole: dict[str, PlantedCounts] = {}
    for piece in pieces:
        known = whole.get(piece.job.job_id)
        counts = piece.counts if known is None else np.concatenate([known.counts, piece.counts], axis=-2)
        whole[piece.job.job_id] = piece if known is None else replace(known, counts=counts)
    return tuple(whole.values())


# What the disks of a simulated file system do -------------------------------------------------------------------------
# Integer I/O counts by tick, target, direction and size.
#
# Every hour is a pure function of workload, number of targets, seed and hour, so that any window can be made in any
# order, in blocks of any length, with the same numbers. The truth about utilization comes with it (paper U, Eq. 7).

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
