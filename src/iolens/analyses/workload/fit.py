"""From what `workload` found to a model that can be drawn from (SPEC S12): the other half of a synthesis.

A distribution is Pareto where that describes it best and well, else its own quantiles. The rows are read once more, for
what samples of different targets and hours have to do with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from math import inf
from typing import Final

import numpy as np

from iolens.analyses.intervals.survey import ticks_of
from iolens.analyses.workload.analysis import SECTIONS, Workload
from iolens.analyses.workload.busy_scores import BusyScores, day_and_week
from iolens.analyses.workload.throughput import outside
from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.models.heavy_tail import HeavyTail
from iolens.models.tails import PARETO, TRUNCATED_PARETO, TailSample
from iolens.models.workload_model import SHARES, DirectionModel, Marginal, WorkloadModel, local_hours
from iolens.schema import DIRECTIONS
from iolens.store.selection import Selection
from iolens.units import KIB

NEAR: Final = 0.05  # how far quantiles of a Pareto distribution may be off before the quantiles themselves are taken
LEAST_SHARE: Final = 0.005  # of the values above; beyond, chance decides
CHANCE: Final = 3.0  # standard deviations of a share that are forgiven
FEWEST_SILENCES: Final = 10
LEAST_MIX: Final = 0.01  # per cent
LEAST_QUIET: Final = 0.01  # share of samples
SIZE_STEP: Final = 16 * KIB
UNKNOWN: Final = {"bandwidth": "bytes are not reported", "interarrival": "requests are not counted"}


@dataclass(frozen=True, slots=True)
class FittedWorkload:
    """The model, and what it rests on in words: one note for every choice."""

    model: WorkloadModel
    notes: tuple[str, ...]


def fit_workload(
    selection: Selection, workload: Workload, progress: Callable[[date], None] | None = None
) -> FittedWorkload:
    """The model of a window that `workload` has characterised, all sections of it."""
    _require(workload)
    notes: list[str] = []
    timezone = workload.rhythm.timezone if workload.rhythm is not None else "UTC"
    directions = {direction: _direction(workload, direction, notes) for direction in DIRECTIONS}
    scores = _scores(selection, workload, directions, timezone, progress)
    hours, days = _rhythm(scores, {direction: float(_total(workload, direction)) for direction in DIRECTIONS})
    written_pct = workload.aggregate.write_requests_pct if workload.aggregate else None
    model = WorkloadModel(
        filesystem=workload.filesystem,
        targets=len(workload.targets),
        tick_s=workload.tick_s,
        timezone=timezone,
        read=directions["read"],
        write=directions["write"],
        read_requests_pct=_mix(100.0 - (written_pct if written_pct is not None else 50.0)),
        correlation=_correlation(scores, notes),
        hours=tuple(hours),
        days=tuple(days),
    )
    return FittedWorkload(_within_reach(model, notes), tuple(notes))


def _within_reach(model: WorkloadModel, notes: list[str]) -> WorkloadModel:
    """A mix that few samples do not explain is replaced by the one that comes of the rest."""
    try:
        model.balanced()
    except ValueError as error:
        notes.append(f"{error}: this is taken")
        return replace(model, read_requests_pct=_mix(100.0 * model.read_share()))
    return model


def _mix(read_pct: float) -> float:
    """Both directions have some."""
    return min(max(read_pct, LEAST_MIX), 100.0 - LEAST_MIX)


def _require(workload: Workload) -> None:
    """Both directions have traffic whose requests are counted."""
    if set(workload.sections) != set(SECTIONS):
        raise UsageError(f"a model needs all sections: {', '.join(SECTIONS)}")
    for direction in DIRECTIONS:
        for what in ("bandwidth", "interarrival"):
            tail = workload.models.get(f"{direction}_{what}")
            if tail is None:
                raise UsageError(f"{workload.filesystem}: {direction} {UNKNOWN[what]}, so they cannot be modelled")
            if not tail.samples:
                raise UsageError(
                    f"{workload.filesystem}: no {direction}s in this window, and a model needs both directions"
                )


def _direction(workload: Workload, direction: str, notes: list[str]) -> DirectionModel:
    samples, tick_s = workload.distributions or {}, workload.tick_s
    fast, spaced = samples[f"{direction}_bandwidth"], _bounded(samples[f"{direction}_interarrival"], tick_s)
    bandwidth = _marginal(
        f"{direction} bandwidth", workload.models[f"{direction}_bandwidth"], fast, fast.largest, notes
    )
    interarrival = _marginal(
        f"{direction} interarrival", workload.models[f"{direction}_interarrival"], spaced, inf, notes
    )
    quiet = (workload.models[f"{direction}_interarrival"].zero_share_pct or 0.0) / 100.0
    idle = _idle(workload, direction, quiet, notes)
    model = DirectionModel(bandwidth, interarrival, idle, tick_s, ())
    model = replace(model, busy_run_s=_busy_run_s(model, 1.0 - quiet, tick_s))
    return replace(model, sizes=_sizes(workload, direction, model, notes))


def _busy_run_s(model: DirectionModel, busy_share: float, tick_s: float) -> float:
    """As long as the share of samples with traffic asks for, given the silences."""
    if model.idle is None:
        return tick_s
    lengths, likely = model.idle_lengths(tick_s)
    return max(float(lengths @ likely) * tick_s * busy_share / max(1.0 - busy_share, 1e-12), tick_s)


def _idle(workload: Workload, direction: str, quiet: float, notes: list[str]) -> Marginal | None:
    """None where silences hardly matter; where none of them both begins and ends, all are as long as the longest."""
    lengths, tick_s = (workload.silences or {}).get(direction, Counter()), workload.tick_s
    number = sum(lengths.values())
    if quiet < LEAST_QUIET and number < FEWEST_SILENCES:
        notes.append(f"{direction} idle: {number} silences, too few to model")
        return None
    if not lengths:
        censored = [censored for censored in workload.censored_idle if censored.direction == direction]
        longest_s = max((max(item.longest_s, item.longest_at_gaps_s) for item in censored), default=tick_s)
        notes.append(
            f"{direction} idle: no silence both begins and ends in the window; all are taken to last {longest_s:g} s"
        )
        return Marginal.of_quantiles((max(longest_s, tick_s),) * len(SHARES))
    keys = np.array(sorted(lengths), np.float64)
    often = np.array([lengths[int(key)] for key in keys], np.int64)
    sample = TailSample.of_multiples(keys * tick_s, tick_s, "nearest", often)
    return _marginal(f"{direction} idle", workload.models[f"{direction}_idle"], sample, float(keys[-1]) * tick_s, notes)


def _marginal(name: str, tail: HeavyTail, sample: TailSample, maximum: float, notes: list[str]) -> Marginal:
    """Pareto where `tail` says so and it comes near the sample; its end is the family's, else `maximum`."""
    for family in tail.families:
        if family.model != tail.best_model or family.model not in (PARETO, TRUNCATED_PARETO):
            continue
        end = family.parameters.get("maximum", maximum)
        xm = family.parameters["xm"]
        if end > xm and _comes_near(marginal := Marginal.pareto(family.parameters["alpha"], xm, end), sample):
            notes.append(f"{name}: Pareto, alpha {family.parameters['alpha']:.4g}")
            return marginal
    reason = "few values" if tail.best_model is None else f"of the five families {tail.best_model} is best"
    if tail.best_model in (PARETO, TRUNCATED_PARETO):
        reason = "Pareto is the best of five families, but not near"
    notes.append(f"{name}: as observed, by quantiles ({reason})")
    return Marginal.of_quantiles(tuple(quantiles_of(sample).tolist()))


def _comes_near(marginal: Marginal, sample: TailSample) -> bool:
    """Whether the shares above every value agree as well as quantiles within `NEAR` would, chance aside."""
    above = 1.0 - np.cumsum(sample.counts) / sample.counts.sum()
    some = (above >= LEAST_SHARE) & np.isfinite(sample.upper)
    if not some.any():
        return True
    modelled = 1.0 - marginal.cdf(sample.upper[some])
    forgiven = CHANCE / np.sqrt(sample.counts.sum() * above[some])
    off = np.abs(np.log(np.maximum(modelled, 1e-12) / above[some]))
    return bool(np.all(off <= NEAR * (marginal.alpha or 1.0) + forgiven))


def quantiles_of(sample: TailSample) -> Floats:
    """Values at `SHARES`: by interpolation where values are known, else evenly within bins on a logarithmic scale."""
    shares = np.array(SHARES)
    if sample.values is not None:
        values: Floats = np.quantile(sample.values, shares)
        return values
    reached = np.cumsum(sample.counts) / sample.counts.sum()
    place = np.minimum(np.searchsorted(reached, shares, side="left"), sample.counts.size - 1)
    before = reached[place] - sample.counts[place] / sample.counts.sum()
    part = np.clip((shares - before) / (reached[place] - before), 0.0, 1.0)
    low, high = np.log(sample.lower[place]), np.log(sample.upper[place])
    array: Floats = np.maximum.accumulate(np.exp(low + part * (high - low)))
    return array


def _bounded(sample: TailSample, tick_s: float) -> TailSample:
    """One request in a sample: the next may be any time away, but twice the sample says as much."""
    upper = np.where(np.isfinite(sample.upper), sample.upper, 2.0 * tick_s)
    return TailSample(sample.lower, upper, sample.counts, sample.mean_log, sample.zeros, sample.values)


def _sizes(
    workload: Workload, direction: str, model: DirectionModel, notes: list[str]
) -> tuple[tuple[int, float], ...]:
    """Shares by size; where none are known, every request is as large as the mean."""
    known = [(size.size_bytes, size.pdf) for size in workload.sizes if size.direction == direction]
    if known:
        return tuple(known)
    requests = workload.models[f"{direction}_interarrival"].samples * model.mean_requests(workload.tick_s)
    size = max(1, -(-round(_total(workload, direction) / requests) // SIZE_STEP)) * SIZE_STEP
    notes.append(f"{direction} sizes are not known: all are taken to be the mean, {size // KIB} KiB")
    return ((size, 1.0),)


def _total(workload: Workload, direction: str) -> int:
    moved = getattr(workload.aggregate, f"{direction}_bytes") if workload.aggregate is not None else None
    return int(moved or 0)


def _scores(
    selection: Selection,
    workload: Workload,
    directions: dict[str, DirectionModel],
    timezone: str,
    progress: Callable[[date], None] | None,
) -> dict[str, BusyScores]:
    scores = {direction: BusyScores(direction, model.bandwidth) for direction, model in directions.items()}
    ticks = ticks_of(selection)
    left_out = workload.maintenance if workload.maintenance_left_out else ()
    for matrix in (
        ticks.matrices(selection, [f"{direction}_bytes" for direction in DIRECTIONS], progress) if ticks else ()
    ):
        kept = outside(matrix, left_out)
        hours = local_hours(kept.end_us, timezone)
        for score in scores.values():
            score.add(kept, hours)
    return scores


def _rhythm(scores: dict[str, BusyScores], weights: dict[str, float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of the bytes: how often there is traffic, times how fast it is; each is cleared of chance on its own."""
    often = day_and_week({direction: score.presence() for direction, score in scores.items()}, weights)
    fast = day_and_week({direction: score.speeds() for direction, score in scores.items()}, weights)
    hours, days = (
        tuple(value * other for value, other in zip(*pair, strict=True)) for pair in zip(often, fast, strict=True)
    )
    return hours, days


def _correlation(scores: dict[str, BusyScores], notes: list[str]) -> float:
    """Both directions together, by the pairs of samples each rests on."""
    by_name = {direction: score.correlation() for direction, score in scores.items()}
    pairs = sum(count for _, count in by_name.values())
    if not pairs:
        return 0.0
    reported = ", ".join(f"{direction}s {value:.3g}" for direction, (value, _) in by_name.items())
    notes.append(f"correlation of two targets: {reported}")
    return sum(value * count for value, count in by_name.values()) / pairs
