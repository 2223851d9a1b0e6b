"""The workload of a centre: bandwidth, mix, sizes, arrivals, silences, rhythm and throughput (SPEC S2–S8, S10, D7).

Every row of `target_io` is read once (`tick_matrix`); each section takes the same matrices. Sections can be asked for
alone, and then only what they need is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

from iolens.analyses import Analysis, Options, StoreKnowledge
from iolens.analyses.intervals.buckets import BucketQuantiles, BucketSpread, envelope_bucket_us
from iolens.analyses.intervals.coverage import notes_on_sources, window_ends, window_us
from iolens.analyses.intervals.tick_matrix import SURVEY_PARTS, TABLE, Ticks, ticks_of
from iolens.analyses.intervals.tick_totals import peak_options
from iolens.analyses.results import OverIntervals, not_in_json, of_servers, pct
from iolens.analyses.workload.arrivals import Arrivals, run_sample
from iolens.analyses.workload.bandwidth import (
    EVERYTHING,
    Bandwidths,
    Maintenance,
    Minutes,
    PeakAgainstSum,
    Rhythm,
    Throughput,
    zone_called,
)
from iolens.analyses.workload.part import MinuteParts, WorkloadPart, WorkloadParts
from iolens.analyses.workload.request_sizes import (
    LONG,
    LONG_PARTS,
    WIDE,
    WIDE_PARTS,
    RequestSize,
    SizeBandwidth,
    SizePeak,
    SizesAgainstBandwidth,
    holds_requests,
    request_sizes,
    sampled_sizes,
    size_peaks,
)
from iolens.arrays import Floats, Integers
from iolens.errors import NotKnownError, UsageError
from iolens.models.heavy_tail import FittedFamily, HeavyTail, PaperFit, TailFit, heavy_tail
from iolens.models.log_sketch import EXACT_AT_MOST, LogSketch
from iolens.models.tails import TailSample
from iolens.part_form import PartForm, answer_form
from iolens.schema import DIRECTIONS
from iolens.store.parts import PartMaker
from iolens.store.selection import FEWEST_REMEMBERED, Selection
from iolens.target_servers import TargetServers
from iolens.units import epoch_us, from_epoch_us

SECTIONS: Final = ("bandwidth", "mix", "sizes", "arrivals", "idle", "rhythm", "throughput")
MODELS: Final = {"bandwidth": "bytes/s", "interarrival": "s", "idle": "s"}  # what is modelled, and its unit
MODELS_FORM: Final = PartForm("tails", 2, (HeavyTail, FittedFamily, PaperFit, TailFit, TailSample))
TOP: Final = 24  # targets in a table


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
    """Idle runs that may have been longer, and are in no model.

    `runs` touch an end of the window; `runs_at_gaps` touch a missing sample, or one that is not one tick long.
    """

    direction: str
    runs: int
    longest_s: float
    runs_at_gaps: int
    longest_at_gaps_s: float


@dataclass(frozen=True, slots=True)
class WorkloadCoverage:
    """What the answer rests on."""

    targets_known: int
    targets_reporting: int
    missing_targets: list[str]
    target_kinds: list[str]
    sources: list[str]
    overlapping_rows: int
    missing_samples: int
    ticks_left_out: int
    percentile_error_pct: float
    complete_pct: float | None  # of the window
    notes: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class BandwidthSeries:
    """All targets together, minute by minute (or tick by tick, where ticks are longer), where observed; for figures."""

    width_s: float
    end_us: Integers
    bytes_per_s: dict[str, Floats]  # by direction, as far as it is known
    envelope: BandwidthEnvelope | None = None  # of windows in which single minutes cannot be seen


@dataclass(frozen=True, slots=True)
class BandwidthEnvelope:
    """How the minutes spread within buckets of time, by direction; for figures."""

    bucket_s: float
    start_us: Integers
    bytes_per_s: dict[str, BucketSpread]


@dataclass(frozen=True, slots=True)
class Workload(OverIntervals):
    """All sections; one that was not asked for, or that nothing is known of, is empty or None."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    tick_s: float
    samples: int
    sections: list[str]
    targets: list[TargetWorkload]
    aggregate: TargetWorkload | None
    peak_vs_sum: list[PeakAgainstSum]
    models: dict[str, HeavyTail]
    sizes: list[RequestSize]
    size_peaks: list[SizePeak]
    size_bandwidth: list[SizeBandwidth]
    rhythm: Rhythm | None
    throughput: Throughput | None
    censored_idle: list[Censored]
    maintenance: list[Maintenance]
    maintenance_left_out: bool
    coverage: WorkloadCoverage
    servers: TargetServers | None = of_servers()
    bandwidths: Bandwidths | None = not_in_json()
    silences: dict[str, Counter[int]] | None = not_in_json()  # idle runs by length in samples
    spacings: Arrivals | None = not_in_json()
    size_pairs: list[SizesAgainstBandwidth] | None = not_in_json()
    distributions: dict[str, TailSample] | None = not_in_json()  # what the models were fitted to, by their names
    series: BandwidthSeries | None = not_in_json()
    top: int = field(default=TOP, metadata={"json": False}, compare=False)  # targets in a table


def workload(
    selection: Selection,
    *,
    sections: Sequence[str] = SECTIONS,
    timezone: str = "UTC",
    peak_bytes_per_s: float | None = None,
    peak_origin: str = "given",
    maintenance: Sequence[Maintenance] = (),
    without_maintenance: bool = False,
    weight_by_requests: bool = False,
    resamples: int = 0,
    top: int = TOP,
    progress: Callable[[date], None] | None = None,
) -> Workload:
    """Characterise the window; `resamples` of the bootstrap behind the p-values of the tail models, 0: none."""
    unknown = sorted(set(sections) - set(SECTIONS))
    if unknown:
        raise UsageError(f"no section is called {unknown[0]!r}; there are: {', '.join(SECTIONS)}")
    if peak_bytes_per_s is not None and not peak_bytes_per_s > 0:
        raise UsageError("a peak is above zero")
    zone_called(timezone)  # refused before anything is read
    ticks = ticks_of(selection)
    if ticks is None or not ticks.known & {f"{direction}_bytes" for direction in DIRECTIONS}:
        if tuple(sections) == ("sizes",) and (sizes := request_sizes(selection)):
            return _sizes_alone(selection, sizes, top)
        raise NotKnownError(f"{selection.filesystem}: no target's bytes are known in this window")
    gathered = _gather(selection, ticks, sections, tuple(maintenance), without_maintenance, progress)
    how = _How(timezone, peak_bytes_per_s, peak_origin, weight_by_requests, resamples, top)
    return _result(selection, ticks, gathered, how)


def _sizes_alone(selection: Selection, sizes: list[RequestSize], top: int) -> Workload:
    """Of a store in which no target tells its bytes."""
    linear = holds_requests(selection)
    notes = ["no target tells its bytes: sizes alone are known"]
    if linear:
        notes.append("intervals without a request are not stored: they count as missing samples")
    sampled = sampled_sizes(selection)
    known = {name for name in selection.known_targets() if "-MDT" not in name} | set(sampled.targets)
    begin_us, end_us = window_ends(selection, sampled.extent_us)
    expected = round((end_us - begin_us) / sampled.tick_us) * len(sampled.targets)
    return Workload(
        filesystem=selection.filesystem, window_start=from_epoch_us(begin_us), window_end=from_epoch_us(end_us),
        tick_s=sampled.tick_us / 1e6, samples=sampled.samples, sections=["sizes"], targets=[], aggregate=None,
        peak_vs_sum=[], models={}, sizes=sizes, size_peaks=size_peaks(sizes, linear=linear), size_bandwidth=[],
        rhythm=None, throughput=None, censored_idle=[], maintenance=[], maintenance_left_out=False,
        coverage=WorkloadCoverage(
            targets_known=len(known), targets_reporting=len(sampled.targets),
            missing_targets=sorted(known - set(sampled.targets)), target_kinds=[],
            sources=selection.sources(LONG if linear else WIDE), overlapping_rows=selection.overlapping_rows,
            missing_samples=max(expected - sampled.samples, 0), ticks_left_out=0, percentile_error_pct=0.0,
            complete_pct=pct(sampled.samples * sampled.tick_us, len(known) * (end_us - begin_us)),
            notes=[*notes, *notes_on_sources(selection, [LONG if linear else WIDE])],
        ),
        top=top,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _How:
    """What is made of the numbers that were gathered."""

    timezone: str
    peak_bytes_per_s: float | None
    peak_origin: str
    by_requests: bool
    resamples: int
    top: int


@dataclass(frozen=True, slots=True)
class _Gathered:
    """The whole window."""

    part: WorkloadPart
    sections: Sequence[str]
    maintenance: tuple[Maintenance, ...]
    left_out: bool

    def wants(self, *names: str) -> bool:
        """Whether any of these sections was asked for."""
        return bool(set(names) & set(self.sections))


def _gather(
    selection: Selection,
    ticks: Ticks,
    sections: Sequence[str],
    maintenance: tuple[Maintenance, ...],
    without: bool,
    progress: Callable[[date], None] | None,
) -> _Gathered:
    windows = _within(selection, maintenance)
    if without:  # what is to be left out has to be found first
        minutes = selection.whole(MinuteParts(ticks), progress)
        windows = _both(windows, minutes.maintenance())
    whole = selection.whole(_maker(selection, ticks, windows if without else ()), progress)
    if whole.extent_us is None:
        raise UsageError(f"{selection.filesystem}: nothing is left of this window without its maintenance")
    for runs in whole.idle.values():
        runs.finish()
    if "bandwidth" in sections:
        whole.bandwidths.settle(ticks.expected)
    if without:
        return _Gathered(whole, sections, windows, left_out=bool(windows))
    return _Gathered(whole, sections, _both(windows, whole.minutes.maintenance()), left_out=False)


def _maker(selection: Selection, ticks: Ticks, excluded: tuple[Maintenance, ...] = ()) -> WorkloadParts:
    exact = EXACT_AT_MOST if ticks.rows <= EXACT_AT_MOST else 0
    return WorkloadParts(ticks, holds_requests(selection), exact, excluded)


def _within(selection: Selection, windows: Iterable[Maintenance]) -> tuple[Maintenance, ...]:
    """Those that have something to do with the data."""
    extent = selection.extent_us(TABLE)
    if extent is None:
        return ()
    return tuple(
        window for window in windows if epoch_us(window.start) < extent[1] and epoch_us(window.end) > extent[0]
    )


def _both(configured: tuple[Maintenance, ...], maintenances: Iterable[Maintenance]) -> tuple[Maintenance, ...]:
    """In time order; what was found inside a configured window is that window."""
    more = [
        maintenance
        for maintenance in maintenances
        if not any(two.start <= maintenance.start and maintenance.end <= two.end for two in configured)
    ]
    return tuple(sorted((*configured, *more), key=lambda item: item.start))


def _result(selection: Selection, ticks: Ticks, gathered: _Gathered, how: _How) -> Workload:
    part = gathered.part
    start, end = selection.window
    extent = part.extent_us or (0, 0)
    sizes = request_sizes(selection) if gathered.wants("sizes") else []
    with_bandwidth = gathered.wants("bandwidth")
    directions = [direction for direction in DIRECTIONS if f"{direction}_bytes" in ticks.known]
    distributions = _distributions(gathered, how.by_requests)
    peak = how.peak_bytes_per_s, how.peak_origin
    windows = part.windows if gathered.wants("sizes") else None
    pairs = [] if windows is None else windows.against(selection, ticks.targets)
    return Workload(
        filesystem=selection.filesystem,
        window_start=start or from_epoch_us(extent[0]),
        window_end=end or from_epoch_us(extent[1]),
        tick_s=ticks.tick_us / 1e6,
        samples=int(part.samples.sum()),
        sections=[name for name in SECTIONS if name in gathered.sections],
        targets=[_target(part, number, with_bandwidth) for number in range(len(ticks.targets))],
        aggregate=_target(part, None, with_bandwidth),
        peak_vs_sum=part.bandwidths.peaks() if with_bandwidth else [],
        models=selection.remembered(
            MODELS_FORM,
            [MODELS_FORM.digest(distributions), how.resamples, {name: _left_out(part, name) for name in distributions}],
            lambda: _models(part, distributions, how.resamples),
        )
        if ticks.rows >= FEWEST_REMEMBERED or how.resamples
        else _models(part, distributions, how.resamples),
        sizes=sizes,
        size_peaks=size_peaks(sizes, linear=part.windows is not None),
        size_bandwidth=[line for pair in pairs for line in pair.lines()],
        rhythm=part.quarters.result(how.timezone, dict.fromkeys(directions, True))
        if gathered.wants("rhythm")
        else None,
        throughput=part.minutes.result(directions, *peak) if gathered.wants("throughput") else None,
        censored_idle=_censored(part) if gathered.wants("idle") else [],
        maintenance=list(gathered.maintenance),
        maintenance_left_out=gathered.left_out,
        coverage=_coverage(selection, ticks, gathered),
        bandwidths=part.bandwidths if with_bandwidth else None,
        silences={direction: runs.lengths for direction, runs in part.idle.items()} if gathered.wants("idle") else None,
        spacings=part.arrivals if gathered.wants("arrivals") else None,
        size_pairs=[pair.thinned() for pair in pairs],
        distributions=distributions,
        series=_series(part.minutes, directions),
        top=how.top,
    )


def _series(minutes: Minutes, directions: Sequence[str]) -> BandwidthSeries:
    numbers, read, write = minutes.series()
    known = {direction: values for direction, values in (("read", read), ("write", write)) if direction in directions}
    ends_us = (numbers + 1) * minutes.width_us
    return BandwidthSeries(minutes.width_us / 1e6, ends_us, known, _envelope(ends_us, minutes.width_us, known))


def _envelope(ends_us: Integers, width_us: int, known: dict[str, Floats]) -> BandwidthEnvelope | None:
    if not ends_us.size or not known:
        return None
    extent = int(ends_us[0]) - width_us, int(ends_us[-1])
    bucket_us = envelope_bucket_us(extent, width_us)
    if bucket_us is None:
        return None
    buckets = {direction: BucketQuantiles.over(extent, bucket_us) for direction in known}
    for direction, values in known.items():
        buckets[direction].add(ends_us, values)
    finished = {direction: bucket.finish() for direction, bucket in buckets.items()}
    spreads = {direction: spread for direction, spread in finished.items() if spread is not None}
    return BandwidthEnvelope(bucket_us / 1e6, next(iter(buckets.values())).starts_us, spreads)


def _target(part: WorkloadPart, number: int | None, with_bandwidth: bool) -> TargetWorkload:
    """One target by its place; None: all together."""
    chosen = slice(None) if number is None else slice(number, number + 1)
    sketches = part.bandwidths.together if number is None else part.bandwidths.by_target
    known = [name for name in part.sums if part.reported[name][chosen].any()]
    sums = {name: float(part.sums[name][chosen].sum()) for name in known}
    samples, certain = (int(sample[chosen].sum()) for sample in (part.samples, part.certain))
    percentiles = {
        direction: _percentiles(sketches[direction], number) if with_bandwidth else [None] * 3
        for direction in DIRECTIONS
    }
    return TargetWorkload(
        target=EVERYTHING if number is None else part.ticks.targets[number],
        samples=samples,
        **{
            f"{direction}_{name}_bytes_per_s": value
            for direction in DIRECTIONS
            for name, value in zip(("p95", "p99", "max"), percentiles[direction], strict=True)
        },
        read_bytes=_whole(sums.get("read_bytes")),
        write_bytes=_whole(sums.get("write_bytes")),
        write_requests_pct=_share(sums.get("write_ops"), sums.get("read_ops")),
        write_bytes_pct=_share(sums.get("write_bytes"), sums.get("read_bytes")),
        idle_pct=100.0 * float(part.silent[chosen].sum()) / certain if certain else None,
    )


def _percentiles(sketch: LogSketch, number: int | None) -> list[float | None]:
    return sketch.quantiles([0.95, 0.99, 1.0], None if number is None else number)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _share(part: float | None, rest: float | None) -> float | None:
    return None if part is None or rest is None or not part + rest else 100.0 * part / (part + rest)


def _distributions(gathered: _Gathered, by_requests: bool) -> dict[str, TailSample]:
    part = gathered.part
    tick_s, known = part.ticks.tick_us / 1e6, part.ticks.known
    samples = {}
    for direction in DIRECTIONS:
        if gathered.wants("bandwidth") and f"{direction}_bytes" in known:
            samples[f"{direction}_bandwidth"] = part.bandwidths.by_target[direction].sample()
    for direction in DIRECTIONS:
        if gathered.wants("arrivals") and f"{direction}_ops" in known:
            samples[f"{direction}_interarrival"] = part.arrivals.of[direction].sample(by_requests)
    for direction in DIRECTIONS:
        if gathered.wants("idle") and known & {f"{direction}_ops", f"{direction}_bytes"}:
            samples[f"{direction}_idle"] = run_sample(part.idle[direction].lengths, tick_s)
    return samples


def _models(part: WorkloadPart, distributions: dict[str, TailSample], resamples: int) -> dict[str, HeavyTail]:
    return {
        name: heavy_tail(sample, MODELS[name.partition("_")[2]], resamples, off_tick_samples=_left_out(part, name))
        for name, sample in distributions.items()
    }


def _left_out(part: WorkloadPart, name: str) -> int:
    """Samples that are not in a distribution."""
    direction, _, what = name.partition("_")
    return part.arrivals.of[direction].left_out if what == "interarrival" else 0


def _censored(part: WorkloadPart) -> list[Censored]:
    tick_s = part.ticks.tick_us / 1e6

    def number_and_longest(lengths: Counter[int]) -> tuple[int, float]:
        return sum(lengths.values()), max(lengths, default=0) * tick_s

    return [
        Censored(direction, *number_and_longest(runs.at_ends), *number_and_longest(runs.at_gaps))
        for direction, runs in part.idle.items()
        if part.ticks.known & {f"{direction}_ops", f"{direction}_bytes"}
    ]


def _data_targets(selection: Selection, ticks: Ticks) -> set[str]:
    """Those the file system is known to have: without metadata targets, and those that were left out."""
    data = {name for name in selection.known_targets() if "-MDT" not in name}
    return (data | set(ticks.targets)) - ticks.left_out


def _coverage(selection: Selection, ticks: Ticks, gathered: _Gathered) -> WorkloadCoverage:
    part, with_bandwidth = gathered.part, gathered.wants("bandwidth")
    known = _data_targets(selection, ticks)
    notes = []
    if ticks.left_out:
        notes.append(
            f"{len(ticks.left_out)} targets of other kinds tell of the same bytes and are left out:"
            f" {', '.join(sorted(ticks.left_out)[:4])}{' …' if len(ticks.left_out) > 4 else ''}"
        )
    for direction in DIRECTIONS:
        if f"{direction}_bytes" not in ticks.known:
            notes.append(f"no target tells the bytes of its {direction}s")
        elif f"{direction}_ops" not in ticks.known:
            notes.append(f"{direction} requests are not counted: {direction} idle times are those without a byte")
    sketches = [*part.bandwidths.by_target.values(), *part.bandwidths.together.values()]
    return WorkloadCoverage(
        targets_known=len(known),
        targets_reporting=len(ticks.targets),
        missing_targets=sorted(known - set(ticks.targets)),
        target_kinds=list(ticks.kinds),
        sources=selection.sources(TABLE),
        overlapping_rows=selection.overlapping_rows,
        missing_samples=_missing(selection, ticks, gathered),
        ticks_left_out=part.bandwidths.ticks_left_out,
        percentile_error_pct=max(sketch.error_pct for sketch in sketches) if with_bandwidth else 0.0,
        complete_pct=pct(int(part.samples.sum()) * ticks.tick_us, len(known) * window_us(selection, part.extent_us)),
        notes=[*notes, *notes_on_sources(selection, [TABLE])],
    )


def _missing(selection: Selection, ticks: Ticks, gathered: _Gathered) -> int:
    """Samples that targets did not report in the window, but for maintenance that is left out."""
    part = gathered.part
    reached_us, end_us = window_ends(selection, part.extent_us)
    observable_us = end_us - reached_us
    for window in gathered.maintenance if gathered.left_out else ():  # in order of their starts
        first_us, last_us = max(epoch_us(window.start), reached_us), min(epoch_us(window.end), end_us)
        observable_us -= max(last_us - first_us, 0)
        reached_us = max(reached_us, last_us)
    return max(round(observable_us / ticks.tick_us) * len(ticks.targets) - int(part.samples.sum()), 0)


def defaults(known: StoreKnowledge, selection: Selection, options: Options) -> Options:
    """The centre's time zone, its maintenance and its peak."""
    configured = known.config.filesystem(selection.filesystem)
    if options.get("timezone") is None:
        options["timezone"] = configured.timezone or "UTC"
    windows = [
        Maintenance(maintenance_config.start, maintenance_config.end, maintenance_config.name, "configured")
        for maintenance_config in configured.maintenance
    ]
    return {"maintenance": windows, **peak_options(known, selection, options), **options}


def kept_of(known: StoreKnowledge, selection: Selection) -> Iterator[PartMaker[Any]]:
    """All sections but what needs single windows of 60 s or leaves out maintenance."""
    ticks = ticks_of(selection)
    if ticks is not None:
        yield from (WorkloadParts(ticks), SURVEY_PARTS, LONG_PARTS, WIDE_PARTS)


def makers(selection: Selection, options: Options) -> Iterator[WorkloadParts]:
    """The one that these options need; what has to be found before, is."""
    ticks = ticks_of(selection)
    if ticks is not None and not options.get("without_maintenance"):
        yield _maker(selection, ticks)


ANALYSIS = Analysis(
    "workload",
    "Bandwidth, mix, sizes, arrivals, idle times, rhythm and throughput",
    workload,
    defaults,
    kept_of,
    makers,
    lambda: answer_form(Workload, 3),
)
