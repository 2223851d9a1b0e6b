"""Many samples of one target at once: the same as `counters.advance` for each, but whole columns where nothing odd is.

An LMT database of a year is a thousand million samples. Stretches in which every counter is known and moved plainly
(on, and no further than its ceiling) are differenced with NumPy; each sample between such stretches goes through
`advance`, which alone knows the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Integers
from iolens.counters.ceilings import DEFAULT, SHORTEST_S, RateCeiling
from iolens.counters.differences import Baseline, CounterStep, OrderEvidence, Outcome, advance
from iolens.records import CounterSet, Sample, Samples

MOVING = (Outcome.BASELINE, Outcome.INTERVAL, Outcome.SET_BACK, Outcome.APART)  # outcomes that leave another baseline


@dataclass(frozen=True, slots=True)
class PlainStretch:
    """Intervals of one target in which every counter moved plainly."""

    time_us: Integers
    start_us: Integers
    duration_s: NDArray[np.float64]
    moved: dict[str, Integers]

    def __len__(self) -> int:
        return len(self.time_us)


@dataclass(slots=True)
class SeriesSteps:
    """What became of a series: plain stretches, single steps, and the baseline they leave."""

    baseline: Baseline | None
    moved: bool = False
    stretches: list[PlainStretch] = field(default_factory=list)
    steps: list[tuple[Sample, CounterStep]] = field(default_factory=list)


def advance_series(
    baseline: Baseline | None,
    series: Samples,
    ceiling: RateCeiling = DEFAULT,
    evidence: OrderEvidence = OrderEvidence.NONE,
) -> SeriesSteps:
    """Apply all samples of a series to the target's baseline, in their order.

    `evidence` is about the baseline; once the series has moved it, each sample is known to come after the one before.
    """
    values = {name: column for name, column in series.counters.items() if not np.ma.getmaskarray(column).all()}
    moved = {name: (data := np.ma.getdata(column))[1:] - data[:-1] for name, column in values.items()}
    plain = _plain_after(series, values, moved, ceiling)
    done = SeriesSteps(baseline)
    position, total = 0, len(series)
    while position < total:
        end = _end_of_run(plain, position) if _is_at(done.baseline, series, values, position - 1) else position
        if end > position:
            _take_stretch(done, series, values, moved, position, end)
            position = end
        else:
            _take_step(done, sample_at(series, position), ceiling, OrderEvidence.AFTER if done.moved else evidence)
            position += 1
    return done


def _plain_after(
    series: Samples, values: dict[str, Integers], moved: dict[str, Integers], ceiling: RateCeiling
) -> NDArray[np.bool_]:
    """Whether each sample follows its predecessor plainly: not too late, all known on both sides, on by what can be."""
    plain = np.zeros(len(series), bool)
    if len(series) < 2:
        return plain
    spacing = np.diff(series.snapshot_us)
    plain[1:] = (spacing > 0) & (spacing / 1e6 <= ceiling.longest_s) & (np.diff(series.time_us) > 0)
    for name, column in values.items():
        if np.ma.is_masked(column):
            mask = np.ma.getmaskarray(column)
            plain[1:] &= ~mask[1:] & ~mask[:-1]
        plain[1:] &= (moved[name] >= 0) & (np.ma.getdata(column)[:-1] >= 0)
        if moved[name].max() > ceiling.smallest:
            plain[1:] &= moved[name] <= np.maximum(spacing / 1e6, SHORTEST_S) * ceiling.per_second(name)
    return plain


def _end_of_run(plain: NDArray[np.bool_], position: int) -> int:
    broken = np.flatnonzero(~plain[position:])
    return position + int(broken[0]) if broken.size else len(plain)


def _is_at(baseline: Baseline | None, series: Samples, values: dict[str, Integers], position: int) -> bool:
    """Whether the baseline is that very sample of the series, with every counter as read."""
    if baseline is None or position < 0 or baseline.carry is not None or baseline.doubted:
        return False
    if baseline.snapshot_us != series.snapshot_us[position] or baseline.time_us != series.time_us[position]:
        return False
    held = baseline.sets.get("")
    return held is not None and all(
        not np.ma.getmaskarray(column)[position] and held.counters.get(name) == column[position]
        for name, column in values.items()
    )


def _take_stretch(
    done: SeriesSteps,
    series: Samples,
    values: dict[str, Integers],
    moved: dict[str, Integers],
    first: int,
    end: int,
) -> None:
    assert done.baseline is not None
    here, before = slice(first, end), slice(first - 1, end - 1)
    stretch = PlainStretch(
        series.time_us[here],
        series.time_us[before],
        (series.snapshot_us[here] - series.snapshot_us[before]) / 1e6,
        {name: column[before] for name, column in moved.items()},
    )
    done.stretches.append(stretch)
    old = done.baseline.sets[""]
    last = {name: int(column[end - 1]) for name, column in values.items()}
    sets = {**done.baseline.sets, "": CounterSet({**old.counters, **last})}
    done.baseline = Baseline(int(series.time_us[end - 1]), int(series.snapshot_us[end - 1]), sets)
    done.moved = True


def _take_step(done: SeriesSteps, sample: Sample, ceiling: RateCeiling, evidence: OrderEvidence) -> None:
    step = advance(done.baseline, sample, ceiling, evidence)
    done.steps.append((sample, step))
    if step.outcome in MOVING:
        done.baseline, done.moved = step.baseline, True


def sample_at(series: Samples, position: int) -> Sample:
    """One sample of a series."""
    known = {
        name: int(column[position]) for name, column in series.counters.items() if column[position] is not np.ma.masked
    }
    return Sample(
        series.table,
        series.filesystem,
        series.target,
        int(series.time_us[position]),
        int(series.snapshot_us[position]),
        {"": CounterSet(known, complete=False, forgets=series.forgets)},
        series.labels,
    )
