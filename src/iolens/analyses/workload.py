"""The workload of a centre: bandwidth, mix, sizes, arrivals, silences, rhythm and throughput (SPEC S2–S8, S10, D7).

Every row of `target_io` is read once (`tick_matrix`); each section takes the same matrices. Sections can be asked for
alone, and then only what they need is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import numpy as np

from iolens.analyses import Analysis
from iolens.analyses.arrivals import Arrivals
from iolens.analyses.bandwidth import EVERYTHING, Bandwidths, PeakAgainstSum
from iolens.analyses.request_sizes import RequestSize, SizesAgainstBandwidth, WindowPeaks, holds_requests, request_sizes
from iolens.analyses.results import not_in_json
from iolens.analyses.rhythm import QuarterHours, Rhythm
from iolens.analyses.silences import Booleans, Runs, run_sample
from iolens.analyses.throughput import Maintenance, Minutes, Throughput, outside
from iolens.analyses.tick_matrix import TABLE, Floats, TickMatrix, Ticks, ticks_of
from iolens.errors import NotKnownError, UsageError
from iolens.models.heavy_tail import HeavyTail, heavy_tail
from iolens.models.log_sketch import LogSketch
from iolens.schema import DIRECTIONS
from iolens.store.selection import Selection
from iolens.units import from_epoch_us

SECTIONS: Final = ("bandwidth", "mix", "sizes", "arrivals", "idle", "rhythm", "throughput")
MODELS: Final = {"bandwidth": "bytes/s", "interarrival": "s", "idle": "s"}  # what is modelled, and its unit


@dataclass(frozen=True, slots=True)
class TargetWorkload:
    """One target, or all together: percentiles of its samples' bandwidth, share of writes, share of idle samples."""

    target: str
    samples: int
    read_p95_bytes_per_s: float | None
    read_p99_bytes_per_s: float | None
    read_max_bytes_per_s: float | None
    write_p95_bytes_per_s: float | None
    write_p99_bytes_per_s: float | None
    write_max_bytes_per_s: float | None
    read_bytes: int | None
    write_bytes: int | None
    write_requests_pct: float | None
    write_bytes_pct: float | None
    idle_pct: float | None


@dataclass(frozen=True, slots=True)
class Censored:
    """Idle runs that touch an end of the window: they may have been longer, and are in no model."""

    direction: str
    runs: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class WorkloadCoverage:
    """What the answer rests on."""

    targets_known: int
    targets_reporting: int
    missing_targets: list[str]
    target_kinds: list[str]
    sources: list[str]
    overlapping_rows: int
    samples: int
    missing_samples: int
    ticks_left_out: int
    percentile_error_pct: float
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Workload:
    """All sections; one that was not asked for, or that nothing is known of, is empty or None."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    tick_s: float
    sections: list[str]
    targets: list[TargetWorkload]
    aggregate: TargetWorkload | None
    peak_vs_sum: list[PeakAgainstSum]
    models: dict[str, HeavyTail]
    sizes: list[RequestSize]
    rhythm: Rhythm | None
    throughput: Throughput | None
    censored_idle: list[Censored]
    maintenance: list[Maintenance]
    maintenance_left_out: bool
    coverage: WorkloadCoverage
    bandwidths: Bandwidths | None = not_in_json()
    silences: dict[str, Counter[int]] | None = not_in_json()  # idle runs by length in samples
    spacings: Arrivals | None = not_in_json()
    size_bandwidth: list[SizesAgainstBandwidth] | None = not_in_json()


def workload(
    selection: Selection,
    *,
    sections: Sequence[str] = SECTIONS,
    timezone: str = "UTC",
    peak_bytes_per_s: float | None = None,
    maintenance: Sequence[Maintenance] = (),
    without_maintenance: bool = False,
    weight_by_requests: bool = False,
    resamples: int = 0,
    progress: Callable[[date], None] | None = None,
) -> Workload:
    """Characterise the window; `resamples` of the bootstrap behind the p-values of the tail models, 0: none."""
    unknown = sorted(set(sections) - set(SECTIONS))
    if unknown:
        raise UsageError(f"no section is called {unknown[0]!r}; there are: {', '.join(SECTIONS)}")
    ticks = ticks_of(selection)
    if ticks is None or not ticks.known & {f"{way}_bytes" for way in DIRECTIONS}:
        raise NotKnownError(f"{selection.filesystem}: no target's bytes are known in this window")
    gathered = _gather(selection, ticks, sections, tuple(maintenance), without_maintenance, progress)
    return _result(selection, ticks, gathered, timezone, peak_bytes_per_s, weight_by_requests, resamples)


class _Gathered:
    """What the sections take from one pass."""

    def __init__(self, ticks: Ticks, sections: Sequence[str]) -> None:
        count = len(ticks.targets)
        self.ticks, self.sections = ticks, sections
        self.maintenance: tuple[Maintenance, ...] = ()
        self.left_out = False
        self.bandwidths = Bandwidths(count)
        self.arrivals = Arrivals(ticks.tick_us / 1e6)
        self.idle = {way: Runs(count) for way in DIRECTIONS}
        self.windows: WindowPeaks | None = None
        self.quarters, self.minutes = QuarterHours(), Minutes(ticks.tick_us)
        self.sums = {name: np.zeros(count) for name in ticks.known}
        self.samples, self.silent = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.missing = 0
        self.last_us: int | None = None
        self.extent_us: tuple[int, int] | None = None

    def wants(self, *names: str) -> bool:
        return bool(set(names) & set(self.sections))

    def add(self, matrix: TickMatrix) -> None:
        if not matrix.end_us.size:
            return
        self._count(matrix)
        if self.wants("bandwidth"):
            self.bandwidths.add(matrix)
        if self.wants("arrivals"):
            self.arrivals.add(matrix)
        if self.wants("idle"):
            self._add_silences(matrix)
        if self.wants("rhythm"):
            self.quarters.add(matrix)
        if self.windows is not None:
            self.windows.add(matrix)
        self.minutes.add(matrix)
        self.last_us = int(matrix.end_us[-1])

    def _count(self, matrix: TickMatrix) -> None:
        reported = ~np.isnan(matrix.duration_s)
        self.samples += reported.sum(axis=0)
        self.missing += int((~reported).sum())
        for name, sums in self.sums.items():
            sums += np.nansum(matrix.measures[name], axis=0)
        first = int(matrix.end_us[0]) - matrix.tick_us
        self.extent_us = (self.extent_us[0] if self.extent_us else first, int(matrix.end_us[-1]))
        quiet = [_quiet(matrix, way) for way in DIRECTIONS]
        self.silent += np.all([one[0] for one in quiet], axis=0).sum(axis=0)

    def _add_silences(self, matrix: TickMatrix) -> None:
        follows = matrix.follows
        if self.last_us is not None:
            follows[0] = matrix.end_us[0] - self.last_us <= 1.5 * matrix.tick_us
        for way, runs in self.idle.items():
            runs.add(*_quiet(matrix, way), follows)


def _quiet(matrix: TickMatrix, way: str) -> tuple[Booleans, Booleans]:
    """Whether each sample had no request (no byte, where requests are not counted), and whether that is unknown."""
    name = f"{way}_ops" if f"{way}_ops" in matrix.measures else f"{way}_bytes"
    if name not in matrix.measures:
        nothing = np.zeros(matrix.duration_s.shape, np.bool_)
        return nothing, ~nothing
    values = matrix.measures[name]
    return values == 0, np.isnan(values)


def _gather(
    selection: Selection,
    ticks: Ticks,
    sections: Sequence[str],
    maintenance: tuple[Maintenance, ...],
    without: bool,
    progress: Callable[[date], None] | None,
) -> _Gathered:
    windows = maintenance
    if without and not maintenance:  # what is to be left out has to be found first
        minutes = Minutes(ticks.tick_us)
        for matrix in ticks.matrices(selection, [f"{way}_bytes" for way in DIRECTIONS], progress):
            minutes.add(matrix)
        windows = tuple(minutes.maintenance())
    found = _Gathered(ticks, sections)
    if found.wants("sizes") and holds_requests(selection):
        found.windows = WindowPeaks.over(selection.extent_us(TABLE), len(ticks.targets))
    for matrix in ticks.matrices(selection, progress=progress):
        found.add(outside(matrix, windows) if without else matrix)
    for runs in found.idle.values():
        runs.finish()
    found.maintenance = windows or tuple(found.minutes.maintenance())
    found.left_out = without and bool(windows)
    if found.extent_us is None:
        raise UsageError(f"{selection.filesystem}: nothing is left of this window without its maintenance")
    return found


def _result(
    selection: Selection,
    ticks: Ticks,
    found: _Gathered,
    timezone: str,
    peak: float | None,
    by_requests: bool,
    resamples: int,
) -> Workload:
    start, end = selection.window
    extent = found.extent_us or (0, 0)
    sizes = request_sizes(selection) if found.wants("sizes") else []
    with_bandwidth = found.wants("bandwidth")
    directions = [way for way in DIRECTIONS if f"{way}_bytes" in ticks.known]
    return Workload(
        filesystem=selection.filesystem,
        window_start=start or from_epoch_us(extent[0]),
        window_end=end or from_epoch_us(extent[1]),
        tick_s=ticks.tick_us / 1e6,
        sections=[name for name in SECTIONS if name in found.sections],
        targets=[_target(found, number) for number in range(len(ticks.targets))],
        aggregate=_target(found, None),
        peak_vs_sum=found.bandwidths.peaks() if with_bandwidth else [],
        models=_models(found, by_requests, resamples),
        sizes=sizes,
        rhythm=found.quarters.result(timezone, dict.fromkeys(directions, True)) if found.wants("rhythm") else None,
        throughput=found.minutes.result(directions, peak) if found.wants("throughput") else None,
        censored_idle=_censored(found),
        maintenance=list(found.maintenance),
        maintenance_left_out=found.left_out,
        coverage=_coverage(selection, ticks, found),
        bandwidths=found.bandwidths if with_bandwidth else None,
        silences={way: runs.pooled() for way, runs in found.idle.items()} if found.wants("idle") else None,
        spacings=found.arrivals if found.wants("arrivals") else None,
        size_bandwidth=found.windows.against(selection, ticks.targets) if found.windows is not None else None,
    )


def _target(found: _Gathered, number: int | None) -> TargetWorkload:
    """One target by its place; None: all together."""
    chosen = slice(None) if number is None else slice(number, number + 1)
    sketches = found.bandwidths.together if number is None else found.bandwidths.by_target
    sums = {name: float(one[chosen].sum()) for name, one in found.sums.items()}
    samples = int(found.samples[chosen].sum())
    percentiles = {way: _percentiles(sketches[way], number) for way in DIRECTIONS}
    return TargetWorkload(
        target=EVERYTHING if number is None else found.ticks.targets[number],
        samples=samples,
        **{
            f"{way}_{name}_bytes_per_s": value
            for way in DIRECTIONS
            for name, value in zip(("p95", "p99", "max"), percentiles[way], strict=True)
        },
        read_bytes=_whole(sums.get("read_bytes")),
        write_bytes=_whole(sums.get("write_bytes")),
        write_requests_pct=_share(sums.get("write_ops"), sums.get("read_ops")),
        write_bytes_pct=_share(sums.get("write_bytes"), sums.get("read_bytes")),
        idle_pct=100.0 * float(found.silent[chosen].sum()) / samples if samples else None,
    )


def _percentiles(sketch: LogSketch, number: int | None) -> list[float | None]:
    return sketch.quantiles([0.95, 0.99, 1.0], None if number is None else number)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _share(part: float | None, rest: float | None) -> float | None:
    return None if part is None or rest is None or not part + rest else 100.0 * part / (part + rest)


def _models(found: _Gathered, by_requests: bool, resamples: int) -> dict[str, HeavyTail]:
    tick_s = found.ticks.tick_us / 1e6
    samples = {}
    for way in DIRECTIONS:
        if found.wants("bandwidth") and f"{way}_bytes" in found.ticks.known:
            samples[f"{way}_bandwidth"] = found.bandwidths.by_target[way].sample()
    for way in DIRECTIONS:
        if found.wants("arrivals") and f"{way}_ops" in found.ticks.known:
            samples[f"{way}_interarrival"] = found.arrivals.of[way].sample(by_requests)
    for way in DIRECTIONS:
        if found.wants("idle"):
            samples[f"{way}_idle"] = run_sample(found.idle[way].pooled(), tick_s)
    return {name: heavy_tail(one, MODELS[name.partition("_")[2]], resamples) for name, one in samples.items()}


def _censored(found: _Gathered) -> list[Censored]:
    tick_s = found.ticks.tick_us / 1e6
    return [
        Censored(way, sum(runs.censored.values()), max(runs.censored, default=0) * tick_s)
        for way, runs in found.idle.items()
        if found.wants("idle")
    ]


def _coverage(selection: Selection, ticks: Ticks, found: _Gathered) -> WorkloadCoverage:
    known = selection.known_targets()
    notes = []
    for way in DIRECTIONS:
        if f"{way}_bytes" not in ticks.known:
            notes.append(f"no target tells the bytes of its {way}s")
        if f"{way}_ops" not in ticks.known:
            notes.append(f"{way} requests are not counted: {way} idle times are those without a byte")
    sketches = [*found.bandwidths.by_target.values(), *found.bandwidths.together.values()]
    return WorkloadCoverage(
        targets_known=len(known | set(ticks.targets)),
        targets_reporting=len(ticks.targets),
        missing_targets=sorted(known - set(ticks.targets)),
        target_kinds=list(ticks.kinds),
        sources=selection.sources(TABLE),
        overlapping_rows=selection.overlapping_rows,
        samples=int(found.samples.sum()),
        missing_samples=found.missing,
        ticks_left_out=found.bandwidths.ticks_left_out,
        percentile_error_pct=max(one.error_pct for one in sketches),
        notes=notes,
    )


def bandwidth_curve(found: Workload, direction: str, target: int | None = None) -> tuple[Floats, Floats] | None:
    """Bandwidth and the share of samples at or below it, for a figure."""
    if found.bandwidths is None:
        return None
    return found.bandwidths.by_target[direction].cumulative(target)


ANALYSIS = Analysis("workload", "Bandwidth, mix, sizes, arrivals, idle times, rhythm and throughput", workload)
