"""What the sections of `workload` take from some ticks; parts of days are made apart, and taken in time order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.analyses.intervals.tick_matrix import GAP, Edges, TickMatrix, Ticks
from iolens.analyses.workload.arrivals import Arrivals, Spacings
from iolens.analyses.workload.bandwidth import Bandwidths
from iolens.analyses.workload.request_sizes import WindowPeaks
from iolens.analyses.workload.rhythm import QuarterHours
from iolens.analyses.workload.silences import EdgeRuns, Runs
from iolens.analyses.workload.throughput import Maintenance, Minutes, outside
from iolens.arrays import Booleans, Floats, Integers
from iolens.models.log_sketch import LogSketch
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.selection import Days


@dataclass(slots=True)
class WorkloadPart:
    """Sums over targets and ticks, and what each section keeps; those that were not asked for stay empty."""

    ticks: Ticks
    sections: Sequence[str]
    windows: WindowPeaks | None = None  # of 60 s, where a controller counts requests by size
    bandwidths: Bandwidths = field(init=False)
    arrivals: Arrivals = field(init=False)
    idle: dict[str, Runs] = field(init=False)
    quarters: QuarterHours = field(default_factory=QuarterHours)
    minutes: Minutes = field(init=False)
    sums: dict[str, Floats] = field(init=False)
    reported: dict[str, Integers] = field(init=False)  # samples that have a measure
    samples: Integers = field(init=False)
    silent: Integers = field(init=False)
    certain: Integers = field(init=False)
    missing: int = 0

    def __post_init__(self) -> None:
        count = len(self.ticks.targets)
        self.bandwidths = Bandwidths(count)
        self.arrivals = Arrivals(self.ticks.tick_us / 1e6)
        self.idle = {direction: Runs(count) for direction in DIRECTIONS}
        self.minutes = Minutes(self.ticks.tick_us)
        self.sums = {name: np.zeros(count) for name in self.ticks.known}
        self.reported = {name: np.zeros(count, np.int64) for name in self.ticks.known}
        self.samples, self.silent, self.certain = (np.zeros(count, np.int64) for _ in range(3))

    @classmethod
    def empty(cls, ticks: Ticks, sections: Sequence[str], every: int | None) -> WorkloadPart:
        """No ticks yet; `every` thins the windows of 60 s, None: there are none."""
        return cls(ticks, sections, None if every is None else WindowPeaks(every))

    @property
    def extent_us(self) -> tuple[int, int] | None:
        """Start of the first and end of the last tick; None without any."""
        edges = self.minutes.edges
        return None if edges is None else (edges.first_us - self.ticks.tick_us, edges.last_us)

    def wants(self, *names: str) -> bool:
        """Whether any of these sections was asked for."""
        return bool(set(names) & set(self.sections))

    def add(self, matrix: TickMatrix) -> None:
        """The next ticks."""
        if not matrix.end_us.size:
            return
        quiet = {direction: _quiet(matrix, direction) for direction in DIRECTIONS}
        self._count(matrix, quiet)
        if self.wants("idle"):
            self._add_silences(matrix, quiet)
        if self.wants("bandwidth"):
            self.bandwidths.add(matrix, self.ticks.expected(matrix.end_us))
        if self.wants("arrivals"):
            self.arrivals.add(matrix)
        if self.wants("rhythm"):
            self.quarters.add(matrix)
        if self.windows is not None:
            self.windows.add(matrix)
        self.minutes.add(matrix)  # last: its edges are those of the ticks so far

    def take(self, later: WorkloadPart) -> None:
        """A part of later ticks of the same question."""
        follows = self._is_followed_by(later)
        for direction, runs in self.idle.items():
            runs.take(later.idle[direction], follows)
        self.bandwidths.take(later.bandwidths)
        self.arrivals.take(later.arrivals)
        self.quarters.take(later.quarters)
        if self.windows is not None and later.windows is not None:
            self.windows.take(later.windows)
        for name in self.sums:
            self.sums[name] += later.sums[name]
            self.reported[name] += later.reported[name]
        self.samples += later.samples
        self.silent += later.silent
        self.certain += later.certain
        self.missing += later.missing
        self.minutes.take(later.minutes)

    def _is_followed_by(self, later: WorkloadPart) -> bool:
        mine, theirs = self.minutes.edges, later.minutes.edges
        return mine is not None and theirs is not None and _is_near(mine.last_us, theirs.first_us, self.ticks.tick_us)

    def _count(self, matrix: TickMatrix, quiet: dict[str, tuple[Booleans, Booleans]]) -> None:
        reported = ~np.isnan(matrix.duration_s)
        self.samples += reported.sum(axis=0)
        self.missing += int((~reported).sum())
        for name, sums in self.sums.items():
            known = ~np.isnan(matrix.measures[name])
            sums += matrix.measures[name].sum(axis=0, where=True if known.all() else known)
            self.reported[name] += known.sum(axis=0)
        self.silent += np.all([silent for silent, _ in quiet.values()], axis=0).sum(axis=0)
        self.certain += (~np.any([unknown for _, unknown in quiet.values()], axis=0)).sum(axis=0)

    def _add_silences(self, matrix: TickMatrix, quiet: dict[str, tuple[Booleans, Booleans]]) -> None:
        follows = matrix.follows
        if self.minutes.edges is not None:
            follows[0] = _is_near(self.minutes.edges.last_us, int(matrix.end_us[0]), matrix.tick_us)
        lengths = _lengths(matrix)
        for direction, runs in self.idle.items():
            runs.add(*quiet[direction], follows, lengths)


FORM: Final = PartForm(
    "workload",
    1,
    (
        WorkloadPart, Ticks, WindowPeaks, Bandwidths, LogSketch, Arrivals, Spacings, Runs, EdgeRuns, QuarterHours,
        Minutes, Edges,
    ),
)  # fmt: skip


def workload_part(
    days: Days, ticks: Ticks, sections: Sequence[str], every: int | None, excluded: Sequence[Maintenance]
) -> WorkloadPart:
    """Of some days, without what is excluded."""
    part = WorkloadPart.empty(ticks, sections, every)
    for slice_ in days.slices(ticks.tick_us):
        matrix = ticks.matrix(slice_)
        if matrix is not None:
            part.add(outside(matrix, excluded))
    return part


def minutes_part(days: Days, ticks: Ticks) -> Minutes:
    """Minutes alone."""
    minutes = Minutes(ticks.tick_us)
    for slice_ in days.slices(ticks.tick_us):
        matrix = ticks.matrix(slice_, [f"{direction}_bytes" for direction in DIRECTIONS])
        if matrix is not None:
            minutes.add(matrix)
    return minutes


def _is_near(last_us: int, next_us: int, tick_us: int) -> bool:
    return next_us - last_us <= GAP * tick_us


def _lengths(matrix: TickMatrix) -> Integers | None:
    """Of every sample, in whole ticks; None where all are one tick long."""
    lengths = matrix.duration_s * (1e6 / matrix.tick_us)
    if lengths.min() > 0.5 and lengths.max() < 1.5:
        return None
    return np.rint(np.nan_to_num(lengths)).astype(np.int64)


def _quiet(matrix: TickMatrix, direction: str) -> tuple[Booleans, Booleans]:
    """Whether each sample had no request (no byte, where requests are not counted), and whether that is unknown."""
    requests, moved = (matrix.measures.get(f"{direction}_{what}") for what in ("ops", "bytes"))
    values = moved if requests is None else requests
    if values is None:
        nothing = np.zeros(matrix.duration_s.shape, np.bool_)
        return nothing, ~nothing
    unknown = np.isnan(values)
    if requests is not None and moved is not None and unknown.any():
        values = np.where(unknown, moved, requests)
        unknown = np.isnan(values)
    return values == 0, unknown
