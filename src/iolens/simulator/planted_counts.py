"""What planted jobs do in each tick: whole I/Os and operations, the same in blocks of any length.

Up to any time a job has done its rate times its active seconds, rounded at a place that is drawn once for each job,
target and kind; so its disk-seconds are those of its level, but for one I/O of each kind and OST.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.schema import DIRECTIONS
from iolens.simulator.planted_jobs import PlantedJob
from iolens.simulator.workload import OPERATIONS, SIZES

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
