"""What the sections of `workload` take from some ticks; parts of days are made apart, and taken in time order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np

from iolens.analyses.intervals.tick_matrix import GAP, Edges, TickMatrix, TickParts, Ticks
from iolens.analyses.workload.arrivals import Arrivals, EdgeRuns, Runs, Spacings
from iolens.analyses.workload.bandwidth import Bandwidths, Maintenance, Minutes, QuarterHours, TickSums, outside
from iolens.analyses.workload.request_sizes import WindowPeaks
from iolens.arrays import Booleans, Floats, Integers, known_counts, known_sums, rearranged
from iolens.models.log_sketch import EXACT_AT_MOST, LogSketch
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Ends
from iolens.units import epoch_us


@dataclass(slots=True)
class WorkloadPart:
    """Sums over targets and ticks, and what each section keeps."""

    ticks: Ticks
    windows: WindowPeaks | None = None  # of 60 s, where a controller counts requests by size
    exact_at_most: int = EXACT_AT_MOST  # values of single targets
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
    ticks_seen: int = 0  # in parts that are kept

    def __post_init__(self) -> None:
        count = len(self.ticks.targets)
        self.bandwidths = Bandwidths(count, self.ticks.tick_us, self.exact_at_most)
        self.arrivals = Arrivals(self.ticks.tick_us / 1e6)
        self.idle = {direction: Runs(count) for direction in DIRECTIONS}
        self.minutes = Minutes(self.ticks.tick_us)
        self.sums = {name: np.zeros(count) for name in self.ticks.known}
        self.reported = {name: np.zeros(count, np.int64) for name in self.ticks.known}
        self.samples, self.silent, self.certain = (np.zeros(count, np.int64) for _ in range(3))

    @property
    def extent_us(self) -> tuple[int, int] | None:
        """Start of the first and end of the last tick; None without any."""
        edges = self.minutes.edges
        return None if edges is None else (edges.first_us - self.ticks.tick_us, edges.last_us)

    def add(self, matrix: TickMatrix) -> None:
        """The next ticks."""
        if not matrix.end_us.size:
            return
        quiet = {direction: _quiet(matrix, direction) for direction in DIRECTIONS}
        self._count(matrix, quiet)
        self._add_silences(matrix, quiet)
        self.bandwidths.add(matrix)
        self.arrivals.add(matrix)
        self.quarters.add(matrix)
        if self.windows is not None:
            self.windows.add(matrix)
        self.minutes.add(matrix)  # last: its edges are those of the ticks so far

    def take(self, later: WorkloadPart) -> None:
        """A part of later ticks of the same question, with some of the same targets."""
        later = later.of_targets(self.ticks)
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
        self.ticks_seen += later.ticks_seen
        self.minutes.take(later.minutes)

    def of_targets(self, ticks: Ticks) -> WorkloadPart:
        """The same with the targets of other ticks; one that is not in this part did not report."""
        if ticks.targets == self.ticks.targets:
            return self
        columns = ticks.columns_in(self.ticks)
        windows = None if self.windows is None else self.windows.rearranged(columns)
        result = WorkloadPart(ticks, windows, self.exact_at_most)
        result.bandwidths = self.bandwidths.rearranged(columns)
        result.arrivals, result.quarters, result.minutes = self.arrivals, self.quarters, self.minutes
        result.idle = {direction: runs.rearranged(columns) for direction, runs in self.idle.items()}
        result.sums = {name: rearranged(values, columns) for name, values in self.sums.items()}
        result.reported = {name: rearranged(values, columns) for name, values in self.reported.items()}
        result.samples, result.silent, result.certain = (
            rearranged(values, columns) for values in (self.samples, self.silent, self.certain)
        )
        result.ticks_seen = self.ticks_seen
        return result

    def _is_followed_by(self, later: WorkloadPart) -> bool:
        mine, theirs = self.minutes.edges, later.minutes.edges
        return mine is not None and theirs is not None and _is_near(mine.last_us, theirs.first_us, self.ticks.tick_us)

    def _count(self, matrix: TickMatrix, quiet: dict[str, tuple[Booleans, Booleans]]) -> None:
        self.samples += known_counts(matrix.duration_s, axis=0)
        self.ticks_seen += matrix.end_us.size
        for name, sums in self.sums.items():
            sums += known_sums(matrix.measures[name], axis=0)
            self.reported[name] += known_counts(matrix.measures[name], axis=0)
        (silent, unknown), (other_silent, other_unknown) = quiet.values()
        self.silent += np.count_nonzero(silent & other_silent, axis=0)
        self.certain += matrix.end_us.size - np.count_nonzero(unknown | other_unknown, axis=0)

    def _add_silences(self, matrix: TickMatrix, quiet: dict[str, tuple[Booleans, Booleans]]) -> None:
        follows = matrix.follows
        if self.minutes.edges is not None:
            follows[0] = _is_near(self.minutes.edges.last_us, int(matrix.end_us[0]), matrix.tick_us)
        lengths = _lengths(matrix)
        for direction, runs in self.idle.items():
            runs.add(*quiet[direction], follows, lengths)


FORM: Final = PartForm(
    "workload",
    2,
    (
        WorkloadPart, Ticks, WindowPeaks, Bandwidths, TickSums, LogSketch, Arrivals, Spacings, Runs, EdgeRuns,
        QuarterHours, Minutes, Edges,
    ),
    revision=2,  # the fastest windows are kept
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkloadParts(TickParts):
    """How parts are made: of which targets and ticks, and without what."""

    with_windows: bool = False  # of 60 s
    exact_at_most: int = EXACT_AT_MOST
    excluded: tuple[Maintenance, ...] = ()
    form: ClassVar = FORM

    def depends_on(self, ends: Ends) -> object:
        """Not on the window: a part has the targets that report in its days."""
        windows = [
            (epoch_us(window.start), epoch_us(window.end))
            for window in self.excluded
            if epoch_us(window.start) < ends.until_us and epoch_us(window.end) > ends.after_us - self.tick_us
        ]
        return [*self.ticks.rules, self.with_windows, self.exact_at_most, windows]

    def for_good(self) -> WorkloadParts:
        """In bins, and with windows of 60 s."""
        return replace(self, with_windows=True, exact_at_most=0)

    def empty(self) -> WorkloadPart:
        """No ticks yet."""
        return WorkloadPart(self.ticks, WindowPeaks() if self.with_windows else None, self.exact_at_most)

    def taken(self, matrix: TickMatrix) -> TickMatrix:
        """Without what is excluded."""
        return outside(matrix, self.excluded)

    def finished(self, part: WorkloadPart) -> WorkloadPart:
        """With the targets that report."""
        return part.of_targets(self.ticks.only(part.samples > 0))


MINUTES_FORM: Final = PartForm("minutes", 2, (Minutes, Edges))


@dataclass(frozen=True, slots=True)
class MinuteParts(TickParts):
    """How minutes alone are made."""

    form: ClassVar = MINUTES_FORM
    measures: ClassVar = tuple(f"{direction}_bytes" for direction in DIRECTIONS)

    def depends_on(self, ends: Ends) -> object:
        """Not on the window."""
        return self.ticks.rules

    def empty(self) -> Minutes:
        """None yet."""
        return Minutes(self.tick_us)


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
