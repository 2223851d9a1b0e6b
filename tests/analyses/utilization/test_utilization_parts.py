"""Parts of days, written and taken together in any grouping, say what the whole window says, and what a count does."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.intervals import tick_totals
from iolens.analyses.utilization.analysis import Utilization, utilization
from iolens.analyses.utilization.part import FORM, UtilizationPart
from iolens.models.transaction_time import GRACE_2012, Calibration, Coefficients, fsu_pct
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.store.frames import FrameSelection
from iolens.store.parts import PartMaker
from iolens.units import DAY_US, MIB, from_epoch_us
from iolens.views.render.json_text import to_json
from tests.analyses.intervals.test_parts import same
from tests.analyses.telemetry import table_of
from tests.analyses.utilization.test_utilization import ios_of
from tests.soak import IS_SOAK

MIDNIGHT_US = 1_603_584_000_000_000  # of the day on which Europe's clocks go back an hour
CHANGE_US = MIDNIGHT_US + DAY_US // 3
QUICK = Calibration("quick", Coefficients(2e-4, 1e-9), Coefficients(1e-4, 5e-10))
CALIBRATIONS = [
    AppliedCalibration("flash", ["t0"], None, None, QUICK),
    AppliedCalibration(None, None, from_epoch_us(CHANGE_US), None, QUICK),
    AppliedCalibration(None, None, None, from_epoch_us(CHANGE_US), GRACE_2012),
]
SIZES = (4096, MIB, 4 * MIB)


@dataclass
class Cut(FrameSelection):
    """A window in parts that end at those times, some of which were taken together before they are asked for."""

    cuts: Sequence[int] = ()
    random: Random = field(default_factory=Random)

    def parts(self, maker: PartMaker[Any], progress: Any = None) -> Iterator[Any]:
        borders = [0, *sorted(self.cuts), 1 << 60]
        made = [self._written(maker.made(self._ending(*ends))) for ends in pairwise(borders)]
        while len(made) > 1 and self.random.random() < 0.8:
            place = self.random.randrange(len(made) - 1)
            made[place].take(made.pop(place + 1))
        return iter(made)

    def _ending(self, after_us: int, until_us: int) -> FrameSelection:
        frames = {}
        for name, rows in self.frames.items():
            ends = rows.column("time").cast(pa.int64())
            frames[name] = rows.filter(pc.and_(pc.greater(ends, after_us), pc.less_equal(ends, until_us)))
        days = FrameSelection(frames)
        days.end_us = until_us  # type: ignore[assignment]
        return days

    @staticmethod
    def _written(part: UtilizationPart) -> UtilizationPart:
        taken: UtilizationPart = FORM.read(FORM.written(part))
        return taken


def rows_of(random: Random, targets: int, ticks: int, tick_us: int) -> list[dict[str, Any]]:
    """Intervals over some midnights: steady and idle stretches, missed samples, days without any, resets."""
    rows = []
    first_us = MIDNIGHT_US - random.randrange(ticks) * tick_us
    level = {"read": 0, "write": 0}
    starts = dict.fromkeys(range(targets), first_us)
    for tick in range(ticks):
        if random.random() < 0.05:
            level = {direction: random.choice([0, 1, 40, 100, 400]) for direction in DIRECTIONS}
        if random.random() < 0.01:
            first_us += random.choice([1, 7, 30]) * DAY_US // 4
        for target in range(targets):
            end_us = first_us + (tick + 1) * tick_us
            if random.random() < 0.05:
                continue
            start_us = starts[target]
            starts[target] = end_us
            seconds = (end_us - start_us) / 1e6 * random.choice([1.0, 1.0, 0.999, 1.2])
            counts = {size_column(direction, size): 0 for direction in DIRECTIONS for size in SIZE_BINS}
            counts |= {
                size_column(direction, size): round(level[direction] * seconds * random.choice([1, 1, 1, 0.9]))
                for direction in DIRECTIONS for size in SIZES
            }  # fmt: skip
            moved = {
                f"{direction}_bytes": sum(counts[size_column(direction, size)] * size for size in SIZES)
                for direction in DIRECTIONS
            }
            rows.append({
                "time": end_us, "start": start_us, "duration_s": seconds, "date": start_us // DAY_US,
                "filesystem": "scratch", "source": "made-up", "target": f"t{target}", "target_kind": "device",
                "after_reset": random.random() < 0.02, **counts, "read_ios_outside": random.choice([0, 0, 3]),
                "write_ios_outside": 0, **moved, "read_ops": random.randrange(9), "write_ops": random.randrange(900),
                "busy_us": None if target == 1 else round(seconds * 1e6 * random.random()),
            })  # fmt: skip
    return rows


def frames_of(rows: list[dict[str, Any]]) -> dict[str, pa.Table]:
    return {name: table_of(name, rows) for name in ("target_sizes", "target_io")}


def asked(selection: FrameSelection, model: Any) -> Utilization:
    return utilization(selection, model=model, calibrations=CALIBRATIONS, plateau_minimum_s=900.0)


def said(result: Utilization) -> dict[str, Any]:
    """Everything, with what only figures show."""
    series = result.series and [result.series.time_us, result.series.fsu_pct, result.series.write_bytes_per_s]
    heat = result.heat_map and [result.heat_map.targets, result.heat_map.time_us, result.heat_map.fsu_pct]
    return {"json": json.loads(to_json(result)), "series": series, "heat": heat}


@pytest.mark.parametrize("model", ["histogram", "counters"])
@given(
    st.integers(0, 3), st.integers(1, 150), st.sampled_from([5_000_000, 60_000_000, 1_800_000_000]),
    st.lists(st.integers(-40, 400), max_size=6), st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=200 if IS_SOAK else 12, deadline=None, derandomize=True)
def test_parts_in_any_grouping_are_the_whole(
    model: str, targets: int, ticks: int, tick_us: int, cuts: list[int], seed: int
) -> None:
    random = Random(seed)
    rows = rows_of(random, targets, ticks, tick_us)
    frames = frames_of(rows)
    model = model if rows else "histogram"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tick_totals, "FIRST_TICKS", random.choice([2, 20, 1000]))
        whole = asked(FrameSelection(frames), model)
        times = [MIDNIGHT_US + cut * tick_us for cut in cuts]
        same(said(asked(Cut(frames, cuts=times, random=random), model)), said(whole))


def calibration_of(row: dict[str, Any]) -> Calibration:
    return QUICK if row["target"] == "t0" or row["start"] >= CHANGE_US else GRACE_2012


@given(st.integers(1, 3), st.integers(1, 100), st.sampled_from([60_000_000, 1_800_000_000]), st.integers(0, 1 << 30))
@settings(max_examples=100 if IS_SOAK else 8, deadline=None, derandomize=True)
def test_parts_say_what_a_count_in_plain_python_says(targets: int, ticks: int, tick_us: int, seed: int) -> None:
    random = Random(seed)
    rows = rows_of(random, targets, ticks, tick_us)
    cuts = [MIDNIGHT_US, MIDNIGHT_US + DAY_US]
    result = asked(Cut(frames_of(rows), cuts=cuts, random=random), "histogram")
    by_tick, by_target = defaultdict(list), defaultdict(list)
    for row in rows:
        observation = fsu_pct(ios_of(row), row["duration_s"], calibration_of(row)), row
        by_tick[row["time"]].append(observation)
        by_target[row["target"]].append(observation)
    fsu = {time: float(np.mean([value for value, _ in seen])) for time, seen in by_tick.items()}
    seconds = {time: float(np.mean([row["duration_s"] for _, row in seen])) for time, seen in by_tick.items()}
    total_s = sum(seconds.values())
    if not rows:
        assert result.mean_fsu_pct is None
        return
    assert result.samples == len(fsu)
    assert result.mean_fsu_pct == pytest.approx(sum(fsu[time] * seconds[time] for time in fsu) / total_s, rel=1e-9)
    busy_s = sum(seconds[time] for time in fsu if fsu[time] > 30)
    assert result.busy_time_pct == pytest.approx(100 * busy_s / total_s, rel=1e-9)
    for line, low, high in zip(result.categories, (0, 2, 30), (2, 30, 1e9), strict=True):
        times = [time for time, value in fsu.items() if (low <= value < high if high == 2 else low < value <= high)]
        times += [time for time, value in fsu.items() if low == value == 2]
        ios = [(size, count) for time in times for _, row in by_tick[time] for (_, size), count in ios_of(row).items()]
        assert line.observations_pct == pytest.approx(100 * len(times) / len(fsu), rel=1e-9)
        if all_ios := sum(count for _, count in ios):
            optimal = sum(count for size, count in ios if size >= MIB)
            assert line.optimal_pct == pytest.approx(100 * optimal / all_ios, rel=1e-9)
    for line in result.per_target:
        mine = [(value, row["duration_s"]) for value, row in by_target[line.target]]
        reported_s = sum(duration_s for _, duration_s in mine)
        assert line.mean_fsu_pct == pytest.approx(sum(value * length for value, length in mine) / reported_s, rel=1e-9)
        busy_s = sum(length for value, length in mine if value > 30)
        assert line.busy_time_pct == pytest.approx(100 * busy_s / reported_s, rel=1e-9)
        assert line.read_bytes == sum(row["read_bytes"] for _, row in by_target[line.target])
