"""Many samples of one target at once: the same as `counters.advance` for each, but whole columns where nothing odd is.

An LMT database of a year is a thousand million samples. Stretches in which every counter is known and none falls are
differenced with NumPy; each sample between such stretches goes through `advance`, which alone knows the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolens.records import CounterSet, Sample, Samples
from iolens.store.counters import Baseline, Outcome, Step, advance

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stretch:
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
    stretches: list[Stretch] = field(default_factory=list)
    steps: list[tuple[Sample, Step]] = field(default_factory=list)


def advance_series(baseline: Baseline | None, series: Samples) -> SeriesSteps:
    """Apply all samples of a series to the target's baseline, in their order."""
    values = {name: column for name, column in series.counters.items() if not np.ma.getmaskarray(column).all()}
    plain = _plain_after(series, values)
    done = SeriesSteps(baseline)
    position, total = 0, len(series)
    while position < total:
        end = _end_of_run(plain, position) if _is_at(done.baseline, series, values, position - 1) else position
        if end > position:
            _take_stretch(done, series, values, position, end)
            position = end
        else:
            _take_step(done, _sample(series, values, position))
            position += 1
    return done


def _plain_after(series: Samples, values: dict[str, Integers]) -> NDArray[np.bool_]:
    """Whether each sample follows its predecessor plainly: later, all known on both sides, nothing fell."""
    plain = np.zeros(len(series), bool)
    if len(series) < 2:
        return plain
    plain[1:] = (np.diff(series.snapshot_us) > 0) & (np.diff(series.time_us) > 0)
    for column in values.values():
        mask = np.ma.getmaskarray(column)
        numbers = np.ma.getdata(column)
        plain[1:] &= ~mask[1:] & ~mask[:-1] & (numbers[1:] >= numbers[:-1]) & (numbers[:-1] >= 0)
    return plain


def _end_of_run(plain: NDArray[np.bool_], position: int) -> int:
    broken = np.flatnonzero(~plain[position:])
    return position + int(broken[0]) if broken.size else len(plain)


def _is_at(baseline: Baseline | None, series: Samples, values: dict[str, Integers], position: int) -> bool:
    """Whether the baseline is that very sample of the series, with every counter as read."""
    if baseline is None or position < 0:
        return False
    if baseline.snapshot_us != series.snapshot_us[position] or baseline.time_us != series.time_us[position]:
        return False
    held = baseline.sets.get("")
    return held is not None and all(
        not np.ma.getmaskarray(column)[position] and held.counters.get(name) == column[position]
        for name, column in values.items()
    )


def _take_stretch(done: SeriesSteps, series: Samples, values: dict[str, Integers], first: int, end: int) -> None:
    assert done.baseline is not None
    here, before = slice(first, end), slice(first - 1, end - 1)
    stretch = Stretch(
        series.time_us[here],
        series.time_us[before],
        (series.snapshot_us[here] - series.snapshot_us[before]) / 1e6,
        {name: np.ma.getdata(column)[here] - np.ma.getdata(column)[before] for name, column in values.items()},
    )
    done.stretches.append(stretch)
    old = done.baseline.sets[""]
    last = {name: int(column[end - 1]) for name, column in values.items()}
    sets = {**done.baseline.sets, "": CounterSet({**old.counters, **last})}
    done.baseline = Baseline(int(series.time_us[end - 1]), int(series.snapshot_us[end - 1]), sets)
    done.moved = True


def _take_step(done: SeriesSteps, sample: Sample) -> None:
    step = advance(done.baseline, sample)
    done.steps.append((sample, step))
    if step.outcome in (Outcome.BASELINE, Outcome.INTERVAL):
        done.baseline, done.moved = step.baseline, True


def _sample(series: Samples, values: dict[str, Integers], position: int) -> Sample:
    known = {name: int(column[position]) for name, column in values.items() if column[position] is not np.ma.masked}
    return Sample(
        series.table,
        series.filesystem,
        series.target,
        int(series.time_us[position]),
        int(series.snapshot_us[position]),
        {"": CounterSet(known, complete=False, forgets=series.forgets)},
        series.labels,
    )
