"""Parts of a window, made apart and taken together in any grouping, say what the whole window says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.imbalance.part import FORM as IMBALANCE
from iolens.analyses.imbalance.part import HOUR_US, ImbalancePart
from iolens.analyses.intervals.tick_matrix import TickMatrix, Ticks
from iolens.analyses.workload.part import FORM as WORKLOAD
from iolens.analyses.workload.part import WorkloadPart
from iolens.analyses.workload.request_sizes import WindowPeaks
from tests.soak import IS_SOAK

TICK_US = 5_000_000
FIRST_US = 1_600_000_000_000_000
MEASURES = ("read_bytes", "write_bytes", "read_ops", "write_ops", "background_bytes")

Part = WorkloadPart | ImbalancePart


def made_up_matrix(random: Random, ticks: int, targets: int) -> TickMatrix:
    """Idle and busy stretches of every target, one that is absent for a time, missing samples, long ones, and ticks in
    which nobody reports.
    """
    generator = np.random.default_rng(random.randrange(1 << 30))
    numbers = np.arange(ticks)
    if random.random() < 0.5:
        numbers = np.sort(generator.choice(2 * ticks, ticks, replace=False))
    shape = ticks, targets
    duration_s = np.where(generator.random(shape) < 0.1, 10.0, 5.0)
    duration_s[generator.random(shape) < random.choice([0.0, 0.1, 0.4])] = np.nan
    absent_from = random.randrange(2 * ticks)
    duration_s[absent_from : absent_from + random.randrange(1, ticks + 1), random.randrange(targets)] = np.nan
    busy = np.repeat(generator.random((-(-ticks // 4), targets)) < 0.5, 4, axis=0)[:ticks]
    busy &= np.repeat(generator.random((-(-ticks // 6), 1)) < random.choice([0.4, 1.0]), 6, axis=0)[:ticks]
    measures = {name: np.where(busy, generator.integers(0, 1000, shape), 0.0) for name in MEASURES}
    for values in measures.values():
        values[np.isnan(duration_s) | (generator.random(shape) < random.choice([0.0, 0.05]))] = np.nan
    names = tuple(f"t{place}" for place in range(targets))
    return TickMatrix(FIRST_US + numbers * TICK_US, TICK_US, names, duration_s, measures)


def workload(ticks: Ticks) -> WorkloadPart:
    return WorkloadPart(ticks, WindowPeaks())


def imbalance(ticks: Ticks) -> ImbalancePart:
    return ImbalancePart(ticks, True, HOUR_US)


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """Every number of a part by its place; lists of arrays are as good as the one array they make."""
    if isinstance(value, Counter):
        return {place: sorted(value.items())}
    if isinstance(value, dict):
        return {key: item for name, part in value.items() for key, item in flat(part, f"{place}/{name}").items()}
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return flat(parts, place)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return {place: np.concatenate([np.atleast_1d(item) for item in value], axis=value[0].ndim > 1)}
    return {place: value}


def said(part: Part) -> dict[str, Any]:
    """What a part says: sums by minute and quarter-hour instead of the pieces they are made of."""
    if isinstance(part, ImbalancePart):
        series = part.series
        by_tick = {name: getattr(series, name) for name in ("numbers", "std", "mean", "follows")}
        bits = [list(hot) for hot in series.hot(series.unbalanced(0.0))]  # of ticks without load nobody is the hottest
        by_tick |= {"incomplete": part.incomplete, "left_out": part.left_out}
        return by_tick | {"bits": bits, "snapshots": part.snapshots.result(), "peers": part.peers.result()}
    for runs in part.idle.values():
        runs.finish()
    part.bandwidths.settle(part.ticks.expected)
    counts = {
        name: flat(getattr(part, name)) for name in ("sums", "reported", "samples", "silent", "certain", "ticks_seen")
    }
    sketches = [sketch.quantiles([0.5, 0.95, 1.0]) for sketch in (*part.bandwidths.by_target.values(),)]
    return {
        **counts, "minutes": part.minutes.series(), "rhythm": part.quarters.result("Europe/Berlin", {"read": True}),
        "runs": [(runs.lengths, runs.at_ends, runs.at_gaps) for runs in part.idle.values()], "sketches": sketches,
        "arrivals": [flat(spacings) for spacings in part.arrivals.of.values()],
        "peaks": part.bandwidths.peaks(), "extent": part.extent_us, "left_out": part.bandwidths.ticks_left_out,
    }  # fmt: skip


def same(left: Any, right: Any) -> None:
    """To 1e-9."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name, value in left.items():
            same(value, right[name])
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for item, other in zip(left, right, strict=True):
            same(item, other)
    elif is_dataclass(left):
        same(flat(left), flat(right))
    elif isinstance(left, np.ndarray):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    else:
        assert left == (pytest.approx(right, rel=1e-9, abs=1e-9, nan_ok=True) if isinstance(left, float) else right)


@pytest.mark.parametrize("empty", [workload, imbalance])
@given(
    st.integers(1, 60), st.integers(2, 5), st.lists(st.integers(1, 59), max_size=6), st.randoms(use_true_random=False)
)
@settings(max_examples=1000 if IS_SOAK else 300, deadline=None)
def test_parts_in_any_grouping_are_the_whole(
    empty: Callable[[Ticks], Part], ticks: int, targets: int, cuts: list[int], random: Random
) -> None:
    matrix = made_up_matrix(random, ticks, targets)
    span = int(matrix.end_us[0]), int(matrix.end_us[-1])
    asked = Ticks(matrix.targets, ("ost",), TICK_US, frozenset(MEASURES), (span,) * targets)
    whole = empty(asked)
    whole.add(matrix)
    parts: list[Any] = []
    for places in np.split(np.arange(ticks), sorted({cut for cut in cuts if cut < ticks})):
        part = empty(asked)
        part.add(matrix.part(slice(places[0], places[-1] + 1)))
        parts.append(part)
    while len(parts) > 1:
        place = random.randrange(len(parts) - 1)
        parts[place].take(written(alone(parts.pop(place + 1))))
    same(said(written(parts[0])), said(whole))


def alone(part: Any) -> Any:
    """With the targets that report in it, as it is remembered."""
    present = part.samples > 0 if isinstance(part, WorkloadPart) else part.present
    return part.of_targets(part.ticks.only(present))


def written(part: Part) -> Any:
    """As another process or machine gets it."""
    form = WORKLOAD if isinstance(part, WorkloadPart) else IMBALANCE
    return form.read(form.written(part))
