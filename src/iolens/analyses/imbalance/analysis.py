"""Load imbalance: how unevenly targets are used, how often, how long, and which of them (SPEC S11, B2).

Every row of `target_io` is read once. A tick is unbalanced where the standard deviation of the targets' loads reaches
a threshold: a percentile of that standard deviation over the window, or a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final

import numpy as np

from iolens.analyses import Analysis, Options, StoreKnowledge
from iolens.analyses.imbalance.part import LOADS, ImbalancePart, ImbalanceParts, LoadSnapshot, PeerTarget, apart_us
from iolens.analyses.imbalance.server_loads import ServerImbalance, ServerParts, server_parts
from iolens.analyses.imbalance.spreads import (
    EXTREMES,
    FEWEST,
    AskedThreshold,
    Durations,
    HotTarget,
    HotTargets,
    ImbalanceThreshold,
    Periods,
    SpreadSeries,
    hot_targets,
    periods,
    thresholds_of,
    unbalanced_time,
)
from iolens.analyses.intervals.coverage import notes_on_sources, window_us
from iolens.analyses.intervals.tick_matrix import SURVEY_PARTS, TABLE, Ticks, ticks_of
from iolens.analyses.results import OverIntervals, not_in_json, of_servers, only_if_present, pct
from iolens.arrays import Booleans, Floats
from iolens.errors import NotKnownError, UsageError
from iolens.part_form import answer_form
from iolens.schema import DIRECTIONS
from iolens.store.parts import PartMaker
from iolens.store.selection import Selection
from iolens.target_names import of_like_kind
from iolens.target_servers import TargetServers
from iolens.units import DAY_US, epoch_us, from_epoch_us, iso

PERCENTILES: Final = (80.0, 95.0)
REPORTED: Final = (0.5, 0.8, 0.95, 0.99, 1.0)  # of the least, mean and most loaded target
BINS_PER_DECADE: Final = 4
MOST_BUCKETS: Final = 240  # of the map of hot targets


@dataclass(frozen=True, slots=True)
class RatePercentiles:
    """Over ticks, in bytes per second."""

    p50_bytes_per_s: float
    p80_bytes_per_s: float
    p95_bytes_per_s: float
    p99_bytes_per_s: float
    max_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Background:
    """Scrub, rebuild and the like; the percentiles are of the standard deviation with and without it."""

    included: bool
    targets: int
    bytes: int
    share_pct: float | None
    with_std_p80_bytes_per_s: float
    with_std_p95_bytes_per_s: float
    without_std_p80_bytes_per_s: float
    without_std_p95_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Dispersion:
    """Ticks by the mean load of a target, and how it spread over targets in them; the first bin holds silence."""

    mean_from_bytes_per_s: float
    mean_to_bytes_per_s: float
    ticks: int
    ticks_pct: float
    std_p50_bytes_per_s: float
    std_p95_bytes_per_s: float
    std_over_mean: float | None


@dataclass(frozen=True, slots=True)
class ImbalanceCoverage:
    """What the answer rests on."""

    targets_known: int
    targets_reporting: int
    missing_targets: list[str]
    target_kinds: list[str]
    targets_of_other_kinds: list[str]
    sources: list[str]
    overlapping_rows: int
    ticks_left_out: int
    ticks_incomplete: int
    gaps: int
    percentile_error_pct: float
    complete_pct: float | None  # of the window
    notes: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class HotMap:
    """Seconds in which each target was hot, by time bucket: targets × buckets."""

    targets: tuple[str, ...]
    start_us: int
    bucket_us: int
    seconds: Floats


@dataclass(frozen=True, slots=True)
class Imbalance(OverIntervals):
    """The whole answer; what belongs to a threshold is found by its name."""

    filesystem: str
    window_start: datetime
    window_end: datetime
    tick_s: float
    samples: int
    targets: int
    std_p80_bytes_per_s: float
    std_p95_bytes_per_s: float
    thresholds: list[ImbalanceThreshold]
    lifetimes: dict[str, Durations]
    distances: dict[str, Durations]
    hot_targets: list[HotTarget]
    extremes: dict[str, RatePercentiles]
    background: Background | None
    dispersion: list[Dispersion]
    snapshots: list[LoadSnapshot]
    peers: list[PeerTarget]
    coverage: ImbalanceCoverage
    servers: TargetServers | None = of_servers()
    between_servers: ServerImbalance | None = only_if_present()
    slow_targets: list[str] | None = (
        only_if_present()
    )  # sentences, where a store was asked who is slower than its class
    series: SpreadSeries = not_in_json()
    periods: dict[str, Periods] = not_in_json()
    hot_map: HotMap | None = not_in_json()


def imbalance(
    selection: Selection,
    *,
    percentiles: Sequence[float] = PERCENTILES,
    thresholds: Sequence[float] = (),
    with_background: bool = True,
    at: Sequence[datetime] = (),
    progress: Callable[[date], None] | None = None,
) -> Imbalance:
    """Measure the window. `thresholds` are in bytes per second; `at` are the times to show, else the worst two."""
    _check(percentiles, thresholds)
    ticks = ticks_of(selection)
    if ticks is None or not ticks.known & set(LOADS[:-1]):
        raise NotKnownError(f"{selection.filesystem}: no target's bytes are known in this window")
    if len(ticks.targets) < FEWEST:
        raise NotKnownError(f"{selection.filesystem}: only {ticks.targets[0]} reports; imbalance is among several")
    maker = _maker(selection, ticks, with_background, at)
    whole = selection.whole(maker, progress)
    if not whole.series.std.size:
        raise NotKnownError(
            f"{selection.filesystem}: no two targets report at the same time; imbalance is among several"
        )
    _check_times(whole)
    result = _result(selection, whole, thresholds_of(whole.series, percentiles, thresholds))
    of_servers = server_parts(selection, maker)
    if of_servers is None:
        return result
    sums = selection.whole(of_servers, progress)
    return replace(result, between_servers=ServerImbalance.of(of_servers, sums, percentiles, thresholds))


def _maker(selection: Selection, ticks: Ticks, with_background: bool, at: Sequence[datetime]) -> ImbalanceParts:
    extent_us = selection.extent_us(TABLE) or (0, 1)
    return ImbalanceParts(ticks, with_background, apart_us(extent_us), tuple(epoch_us(time) for time in at))


def _check(percentiles: Sequence[float], thresholds: Sequence[float]) -> None:
    if not percentiles and not thresholds:
        raise UsageError("imbalance needs a threshold: a percentile or a value")
    wrong = [percentile for percentile in percentiles if not 0 < percentile < 100]
    if wrong:
        raise UsageError(f"a percentile is above 0 and below 100, not {wrong[0]:g}")
    low = [threshold for threshold in thresholds if not 0 < threshold < np.inf]
    if low:
        raise UsageError(f"a threshold is above zero, not {low[0]:g} bytes per second")


def _check_times(part: ImbalancePart) -> None:
    wanted = [value for value in part.snapshots.at_us if value not in part.snapshots.asked]
    if not wanted:
        return
    ends = part.series.numbers * part.ticks.tick_us
    near = int(ends[np.abs(ends - part.ticks.tick_us // 2 - wanted[0]).argmin()]) - part.ticks.tick_us
    raise UsageError(
        f"no two targets report at {iso(from_epoch_us(wanted[0]))}; they do from {iso(from_epoch_us(near))} on"
    )


def _extent_us(part: ImbalancePart) -> tuple[int, int]:
    numbers, tick_us = part.series.numbers, part.ticks.tick_us
    return (int(numbers[0]) - 1) * tick_us, int(numbers[-1]) * tick_us


def _result(selection: Selection, part: ImbalancePart, thresholds: Sequence[AskedThreshold]) -> Imbalance:
    series, ticks = part.series, part.ticks
    std, tick_s = series.std, ticks.tick_us / 1e6
    _numbers, follows = series.numbers, series.follows
    extent = _extent_us(part)
    start, end = selection.window
    chosen = {name: series.unbalanced(limit) for name, _, limit in thresholds}
    lasted = {name: periods(values, follows) for name, values in chosen.items()}
    p80, p95 = np.quantile(std, [0.8, 0.95]).tolist()
    hot = [hot_target for name in chosen for hot_target in hot_targets(name, series, chosen[name], ticks)]
    return Imbalance(
        filesystem=selection.filesystem,
        window_start=start or from_epoch_us(extent[0]),
        window_end=end or from_epoch_us(extent[1]),
        tick_s=tick_s,
        samples=int(std.size),
        targets=len(ticks.targets),
        std_p80_bytes_per_s=p80,
        std_p95_bytes_per_s=p95,
        thresholds=[
            unbalanced_time(threshold, chosen[threshold[0]], lasted[threshold[0]], tick_s) for threshold in thresholds
        ],
        lifetimes={name: Durations.of(item.lifetimes, tick_s) for name, item in lasted.items()},
        distances={name: Durations.of(item.distances, tick_s) for name, item in lasted.items()},
        hot_targets=hot,
        extremes=_extremes(series),
        background=_background(part, (p80, p95)),
        dispersion=list(_dispersion(series)),
        snapshots=part.snapshots.result(),
        peers=part.peers.result(),
        coverage=_coverage(selection, part, thresholds),
        series=series,
        periods=lasted,
        hot_map=_hot_map(series, chosen[thresholds[0][0]], ticks),
    )


def _hot_map(series: SpreadSeries, chosen: Booleans, ticks: Ticks) -> HotMap:
    numbers = series.numbers
    first, count = int(numbers[0]), int(numbers[-1] - numbers[0]) + 1
    width = -(-count // MOST_BUCKETS)
    buckets = -(-count // width)
    seconds = np.zeros((len(ticks.targets), buckets))
    observed = np.bincount((numbers - first) // width, minlength=buckets) > 0
    hot = HotTargets(len(ticks.targets))
    for part in series.hot(chosen):
        row, target = np.nonzero(hot.add(*part))
        cell = target * buckets + (part[0][row] - first) // width
        seconds += np.bincount(cell, minlength=seconds.size).reshape(seconds.shape) * (ticks.tick_us / 1e6)
    seconds[:, ~observed] = np.nan
    return HotMap(ticks.targets, (first - 1) * ticks.tick_us, width * ticks.tick_us, seconds)


def _extremes(series: SpreadSeries) -> dict[str, RatePercentiles]:
    percentiles = {
        name: RatePercentiles(*(quantile or 0.0 for quantile in series.extremes[name].quantiles(list(REPORTED))))
        for name in EXTREMES
    }
    return percentiles | {"std": RatePercentiles(*np.quantile(series.std, REPORTED).tolist())}


def _background(part: ImbalancePart, mine: tuple[float, float]) -> Background | None:
    if not part.knows_background:
        return None
    other = [quantile or 0.0 for quantile in part.other.quantiles([0.8, 0.95])]
    with_, without = (mine, other) if part.included else (other, mine)
    peers = part.peers
    bytes_, rest = float(peers.background_bytes.sum()), float(peers.moved_bytes.sum())
    share = 100.0 * bytes_ / (bytes_ + rest) if bytes_ + rest else None
    return Background(part.included, int(peers.tells_background.sum()), round(bytes_), share, *with_, *without)


def _dispersion(series: SpreadSeries) -> Iterator[Dispersion]:
    std, mean = series.std, series.mean.astype(np.float64)
    with np.errstate(divide="ignore"):
        logs = np.where(mean > 0, np.floor(np.log10(mean) * BINS_PER_DECADE), -np.inf)
    for bin_ in np.unique(logs).tolist():
        mine = np.flatnonzero(logs == bin_)
        low, high = (10.0 ** ((bin_ + end) / BINS_PER_DECADE) if np.isfinite(bin_) else 0.0 for end in (0, 1))
        p50, p95 = np.quantile(std[mine], [0.5, 0.95]).tolist()
        relative = float(np.median(std[mine] / mean[mine])) if high else None
        yield Dispersion(low, high, mine.size, 100.0 * mine.size / std.size, p50, p95, relative)


def _coverage(selection: Selection, part: ImbalancePart, thresholds: Sequence[AskedThreshold]) -> ImbalanceCoverage:
    ticks = part.ticks
    known = of_like_kind(selection.known_targets(), ticks.targets) - ticks.left_out
    sketches = [
        *part.series.extremes.values(),
        *([part.other] if part.knows_background else []),
    ]
    return ImbalanceCoverage(
        targets_known=len(known | set(ticks.targets)),
        targets_reporting=len(ticks.targets),
        missing_targets=sorted(known - set(ticks.targets)),
        target_kinds=list(ticks.kinds),
        targets_of_other_kinds=sorted(ticks.left_out),
        sources=selection.sources(TABLE),
        overlapping_rows=selection.overlapping_rows,
        ticks_left_out=part.left_out,
        ticks_incomplete=part.incomplete,
        gaps=int((~part.series.follows).sum()) - 1,
        percentile_error_pct=max(sketch.error_pct for sketch in sketches),
        complete_pct=pct(len(part.series.numbers) * ticks.tick_us, window_us(selection, _extent_us(part))),
        notes=[*_notes(part, thresholds), *notes_on_sources(selection, [TABLE])],
    )


def _notes(part: ImbalancePart, thresholds: Sequence[AskedThreshold]) -> Iterator[str]:
    ticks, peers = part.ticks, part.peers
    for direction in DIRECTIONS:
        if f"{direction}_bytes" not in ticks.known:
            yield f"no target tells the bytes of its {direction}s: loads are of the other direction alone"
    never = [ticks.targets[place] for place in np.flatnonzero(peers.reported == 0).tolist()]
    if never:
        yield f"{', '.join(never)}: never in a tick with others, or a direction is not reported: not compared"
    if part.included and not peers.tells_background.all():
        without = len(ticks.targets) - int(peers.tells_background.sum())
        yield f"{without} of {len(ticks.targets)} targets do not tell background I/O: they are taken without it"
    for name, _, limit in thresholds:
        if limit == 0:
            yield f"{name} of the standard deviation is zero: every tick with unequal loads counts as unbalanced"


def kept_of(known: StoreKnowledge, selection: Selection) -> Iterator[PartMaker[Any]]:
    """All but the ticks of single times."""
    ticks = ticks_of(selection)
    if ticks is not None and ticks.known & set(LOADS[:-1]):
        yield from (ImbalanceParts(ticks, with_background, DAY_US) for with_background in (True, False))
        yield SURVEY_PARTS


def makers(selection: Selection, options: Options) -> Iterator[ImbalanceParts | ServerParts]:
    """Those that these options need: of targets, and of their servers where they are known."""
    ticks = ticks_of(selection)
    if ticks is not None and ticks.known & set(LOADS[:-1]):
        yield (maker := _maker(selection, ticks, options.get("with_background", True), options.get("at", ())))
        if (of_servers := server_parts(selection, maker)) is not None:
            yield of_servers


ANALYSIS = Analysis(
    "imbalance",
    "How unevenly targets are loaded, how long it lasts, and which stand out",
    imbalance,
    kept_of=kept_of,
    makers=makers,
    answer=lambda: answer_form(Imbalance, 2),
)
