"""Demand over ticks against brute force, ticks that are left out, and how days differ."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.demand import Demand, DemandMeasure, demand
from iolens.errors import UsageError
from iolens.plans.cases import value
from iolens.plans.performance import plan_performance
from iolens.schema import DIRECTIONS, METADATA_OPERATIONS
from iolens.store.frames import FrameSelection
from iolens.store.store import Store
from tests.analyses.telemetry import SIZES, T0_US, TICK_US, Telemetry, made_up, table_of

DAY_TICKS = 17_280


def asked(*parts: Telemetry) -> Demand:
    whole = Telemetry([row for part in parts for row in part.sizes], [row for part in parts for row in part.io])
    return demand(FrameSelection({name: whole.table(name) for name in ("target_io", "target_sizes")}, "scratch"))


def measure(result: Demand, name: str) -> DemandMeasure:
    return next(item for item in result.measures if item.measure == name)


def test_percentiles_are_those_of_the_sums_over_targets() -> None:
    telemetry = made_up(5, 300, 3, missing=0.0)
    ticks: dict[int, float] = defaultdict(float)
    ios: dict[int, float] = defaultdict(float)
    for row, sizes in zip(telemetry.io, telemetry.sizes, strict=True):
        ticks[row["time"]] += row["write_bytes"] / row["duration_s"]
        ios[row["time"]] += (
            sum(sizes[f"{direction}_ios_{size}"] for direction in DIRECTIONS for size in SIZES) / row["duration_s"]
        )
    rates = np.array(list(ticks.values()))
    result = asked(telemetry)
    written = measure(result, "write_bytes_per_s")
    assert (written.ticks, written.days, written.unit) == (300, 1, "bytes/s")
    assert written.mean == pytest.approx(rates.mean())
    for level, share in ((written.p50, 50), (written.p95, 95), (written.p99, 99), (written.max, 100)):
        assert level == pytest.approx(np.percentile(rates, share))
    assert written.at(99) == written.p99
    assert written.max_time.timestamp() * 1e6 == max(ticks, key=lambda time: ticks[time])
    assert written.p95_ci95 is None  # one day says nothing of others
    assert measure(result, "disk_ios_per_s").p95 == pytest.approx(np.percentile(list(ios.values()), 95))
    assert result.tick_s == 5
    assert result.target_kinds == ["ost"]


def test_ticks_with_too_few_targets_are_left_out_and_counted() -> None:
    telemetry = made_up(6, 100, 4, missing=0.0)
    lost = {T0_US + (tick + 1) * TICK_US for tick in (3, 50)}
    io = [row for row in telemetry.io if not (row["time"] in lost and row["target"].endswith("OST0001"))]
    result = demand(FrameSelection({"target_io": table_of("target_io", io)}, "scratch"))
    assert result.ticks_left_out == 2
    assert measure(result, "bytes_per_s").ticks == 98
    assert "2 ticks are left out" in result.notes[0]


def test_bytes_of_which_a_part_is_unknown_are_unknown() -> None:
    telemetry = made_up(7, 60, 1, missing=0.0)
    io = [{**row, "read_bytes": None} if place < 20 else row for place, row in enumerate(telemetry.io)]
    result = demand(FrameSelection({"target_io": table_of("target_io", io)}, "scratch"))
    assert measure(result, "write_bytes_per_s").ticks == 60
    assert measure(result, "read_bytes_per_s").ticks == 40
    assert measure(result, "bytes_per_s").ticks == 40


def test_metadata_operations_that_are_not_listed_have_not_happened() -> None:
    common = {"filesystem": "scratch", "source": "made-up", "target": "MDT0", "duration_s": 5.0}
    rows = [
        {**common, "time": T0_US + (tick + 1) * TICK_US, "start": T0_US + tick * TICK_US, "open": 5 * tick}
        for tick in range(11)
    ]
    result = demand(FrameSelection({"metadata_ops": table_of("metadata_ops", rows)}, "scratch"))
    assert "getattr" in METADATA_OPERATIONS
    assert [(item.measure, item.max, item.p50) for item in result.measures] == [("metadata_ops_per_s", 10, 5)]


def test_a_rename_counts_once() -> None:
    """Servers count samedir, crossdir and parallel renames inside `rename` as well."""
    common = {"filesystem": "scratch", "source": "made-up", "target": "MDT0", "duration_s": 5.0}
    kinds = {"samedir_rename": 30, "crossdir_rename": 20, "parallel_rename_file": 10, "parallel_rename_dir": 5}
    rows = [
        {
            **common, "time": T0_US + (tick + 1) * TICK_US, "start": T0_US + tick * TICK_US, "rename": 50, "open": 25,
            **kinds,
        }
        for tick in range(10)
    ]  # fmt: skip
    result = demand(FrameSelection({"metadata_ops": table_of("metadata_ops", rows)}, "scratch"))
    assert measure(result, "metadata_ops_per_s").max == (50 + 25) / 5


def test_a_day_with_less_than_95_percent_of_its_ticks_is_partial_and_listed() -> None:
    """Hourly ticks: a day with 24 of them, one with 23 (95.8 %), one with 22 (91.7 %)."""
    hour = 3_600_000_000
    common = {
        "filesystem": "scratch",
        "source": "made-up",
        "target": "OST0",
        "target_kind": "ost",
        "duration_s": 3600.0,
    }
    starts = [T0_US + (24 * day + item) * hour for day, ticks in enumerate((24, 23, 22)) for item in range(ticks)]
    rows = [{**common, "time": start + hour, "start": start, "write_bytes": 3600} for start in starts]
    result = demand(FrameSelection({"target_io": table_of("target_io", rows)}, "scratch"))
    written = measure(result, "write_bytes_per_s")
    assert (written.days, written.complete_days) == (3, 2)
    assert [str(day) for day in result.partial_days] == ["2020-09-16"]
    assert "2 complete and 1 partial days" in result.origin


def test_a_tick_belongs_to_the_day_in_which_it_starts() -> None:
    """Daily sums of a zone eight hours behind: each ends on the next UTC day, and the window begins with the first."""
    day, noon = 86_400_000_000, T0_US + 8 * 3_600_000_000
    common = {
        "filesystem": "scratch",
        "source": "made-up",
        "target": "OST0",
        "target_kind": "ost",
        "duration_s": 86400.0,
    }
    rows = [
        {**common, "start": noon + number * day, "time": noon + (number + 1) * day, "write_bytes": 86400 * number}
        for number in range(3)
    ]
    result = demand(FrameSelection({"target_io": table_of("target_io", rows)}, "scratch"))
    assert result.window_start is not None
    assert f"{result.window_start:%Y-%m-%d %H}" == "2020-09-14 08"
    assert (measure(result, "write_bytes_per_s").complete_days, result.partial_days) == (3, [])


def test_metadata_targets_are_not_part_of_the_bandwidth() -> None:
    telemetry = made_up(8, 20, 1, missing=0.0)
    mdt = [{**row, "target": "MDT0", "target_kind": "mdt", "write_bytes": 10**12} for row in telemetry.io]
    alone = asked(telemetry)
    both = demand(FrameSelection({"target_io": table_of("target_io", [*telemetry.io, *mdt])}, "scratch"))
    assert measure(both, "bytes_per_s").max == measure(alone, "bytes_per_s").max


@pytest.mark.parametrize(
    "kinds", [("ost", "controller"), ("controller", "lun"), ("lun", "device"), ("server", "filesystem")]
)
def test_workload_and_demand_take_targets_of_the_same_kind(kinds: tuple[str, str]) -> None:
    """Targets of several kinds that count the same bytes: from the outside in, and sums only where nothing is finer."""
    telemetry = made_up(8, 200, 2, missing=0.0)
    rows = [{**row, "target": f"{row['target']}-{kind}", "target_kind": kind} for kind in kinds for row in telemetry.io]
    table = table_of("target_io", rows)
    assert demand(FrameSelection({"target_io": table}, "scratch")).target_kinds == [kinds[0]]
    assert iolens.workload(target_io=table, filesystem="scratch", sections=["bandwidth"]).coverage.target_kinds == [
        kinds[0]
    ]


def test_intervals_come_from_whole_days() -> None:
    """Quiet and busy days: resampling ticks would give a narrow interval, resampling days does not."""
    days = [made_up(day, 60, 1, first_tick=day * DAY_TICKS, missing=0.0) for day in range(6)]
    loud = [
        [{**row, "write_bytes": row["write_bytes"] * (100 if day % 2 else 1)} for row in part.io]
        for day, part in enumerate(days)
    ]
    rows = [row for part in loud for row in part]
    result = measure(demand(FrameSelection({"target_io": table_of("target_io", rows)}, "scratch")), "write_bytes_per_s")
    assert result.days == 6
    assert result.p95_ci95 is not None
    low, high = result.p95_ci95
    assert low < result.p95 / 3
    assert low <= result.p95 * 1.01
    assert high >= result.p95 * 0.99
    bins = result.days_apart
    assert bins is not None
    assert bins.counts.sum() == result.ticks
    drawn = bins.resampled(95.0, np.random.default_rng(3), 500)
    brute = []
    random = np.random.default_rng(4)
    for _ in range(500):
        pooled = np.concatenate(
            [[row["write_bytes"] / row["duration_s"] for row in loud[day]] for day in random.integers(0, 6, 6)]
        )
        brute.append(np.percentile(pooled, 95))
    assert np.median(drawn) == pytest.approx(np.median(brute), rel=0.05)


def test_a_store_over_midnight_gives_what_a_frame_gives(tmp_path: Path) -> None:
    telemetry = made_up(9, 200, 3, first_tick=DAY_TICKS - 100, missing=0.0)
    store = Store(tmp_path)
    for name in ("target_io", "target_sizes"):
        store.append(name, telemetry.table(name))
    with iolens.open(str(tmp_path)) as opened:
        stored = opened.ask(demand, "scratch")
    for item, other in zip(stored.measures, asked(telemetry).measures, strict=True):
        assert (item.measure, item.ticks) == (other.measure, other.ticks)
        assert (item.p95, item.max) == pytest.approx((other.p95, other.max))


def test_long_ticks_are_said_to_hide_bursts() -> None:
    common = {"filesystem": "scratch", "source": "tokio-csv", "target": "scratch", "target_kind": "filesystem"}
    day = 86_400_000_000
    rows = [
        {
            **common,
            "time": T0_US + (n + 1) * day,
            "start": T0_US + n * day,
            "duration_s": 86_400.0,
            "write_bytes": 86_400 * n,
        }
        for n in range(5)
    ]
    result = demand(FrameSelection({"target_io": table_of("target_io", rows)}, "scratch"))
    assert result.target_kinds == ["filesystem"]
    assert measure(result, "write_bytes_per_s").max == 4
    assert result.tick_s == 86_400
    plan = plan_performance([value("ssi", 3, "test")], result)
    (warning,) = (warning for warning in plan.warnings if warning.code == "tick_long")  # a note became a warning
    assert str(warning) == "Demand is known by the day: shorter bursts are averaged out, and it is understated."


def test_nothing_known_is_said() -> None:
    with pytest.raises(UsageError, match="no bytes or operations"):
        demand(FrameSelection({}, "scratch"))
