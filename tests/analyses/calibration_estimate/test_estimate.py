"""Calibrations from telemetry: random centres of known cost, windows, engines, and what is in use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bench.estimates import ORDERS, by_evidence, estimated, outcome
from bench.limited_centre import CentreOrder, random_centre

from iolens.analyses.calibration_estimate.analysis import EvidenceEstimate, agreement, calibration_estimate, in_use
from iolens.analyses.calibration_estimate.part import FORM, telemetry_part
from iolens.schema import DIRECTIONS, size_column
from iolens.store.frames import FrameSelection
from tests.analyses.telemetry import table_of
from tests.soak import IS_SOAK

SMALL = CentreOrder(1, days=6, ticks_a_day=200, targets=2)


def test_the_cost_of_a_random_centre_comes_back_from_its_limit() -> None:
    """Within 15 %, small as it is; `python -m bench.estimates` has a hundred of full size."""
    centre = random_centre(SMALL)
    result = estimated(centre)
    for place, direction in enumerate(DIRECTIONS):
        estimate = by_evidence(result, direction, "frontier")
        truth = centre.devices[0].costs[place]
        assert estimate is not None
        assert (estimate.identified, estimate.upper_bound, estimate.targets, estimate.days) == (
            ["latency", "s_per_byte"],
            False,
            2,
            6,
        )
        assert estimate.latency_s == pytest.approx(truth.latency_s, rel=0.15)
        assert estimate.s_per_byte == pytest.approx(truth.s_per_byte, rel=0.15)
    assert (result.missing, result.in_use.state) == ([], "assumed")


def test_a_centre_far_from_its_limit_gets_upper_bounds_above_the_truth() -> None:
    centre = random_centre(replace(SMALL, reaches_limit=False))
    result = estimated(centre)
    assert len(result.estimates) == 2
    for estimate in result.estimates:
        truth = centre.devices[0].costs[DIRECTIONS.index(estimate.direction)]
        assert (estimate.upper_bound, estimate.identified) == (True, [])
        assert estimate.latency_s is not None
        assert estimate.s_per_byte is not None
        assert all(
            estimate.latency_s + estimate.s_per_byte * size >= truth.seconds(size) for size in estimate.sizes_bytes
        )


def test_busy_time_of_the_kernel_gives_the_same_coefficients() -> None:
    centre = random_centre(replace(SMALL, with_busy=True, seed=2))
    result = estimated(centre)
    for place, direction in enumerate(DIRECTIONS):
        estimate = by_evidence(result, direction, "busy_time")
        truth = centre.devices[0].costs[place]
        assert estimate is not None
        assert estimate.latency_s == pytest.approx(truth.latency_s, rel=0.1)
        assert estimate.s_per_byte == pytest.approx(truth.s_per_byte, rel=0.1)
    assert {(pair.first, pair.second) for pair in result.agreement} <= {("frontier", "busy_time")}


def test_short_windows_resample_blocks_of_ticks_and_say_so() -> None:
    result = estimated(random_centre(replace(SMALL, days=1, ticks_a_day=600, seed=2)))
    notes = " ".join(estimate.note for estimate in result.estimates if not estimate.upper_bound)
    assert result.days == 1
    assert "fewer than 5 days: interval from" in notes


def test_nothing_stored_is_no_estimate_and_says_what_is_missing() -> None:
    result = calibration_estimate(FrameSelection({}))
    assert (result.estimates, result.samples, result.targets) == ([], 0, 0)
    assert [line.partition(":")[0] for line in result.missing] == ["writes", "reads"]


def test_mixed_ticks_and_resets_are_left_out() -> None:
    rows: dict[str, Any] = {
        "time": pa.array(np.arange(1, 31) * 10_000_000, pa.timestamp("us", "UTC")),
        "duration_s": np.full(30, 10.0),
        "target": ["a-OST0000"] * 30,
        "after_reset": [place == 3 for place in range(30)],
        size_column("read", 4096): [1000] * 30,
        size_column("write", 4096): [200 if place % 2 else 100 for place in range(30)],
    }
    result = calibration_estimate(FrameSelection({"target_sizes": pa.table(rows)}))
    assert result.samples == 15  # 1,000 of 1,100 are reads: nine tenths, 1,000 of 1,200 are not
    assert [estimate.direction for estimate in result.estimates] == ["read"]
    assert result.missing[0].startswith("writes: no tick")


def test_a_part_is_the_same_after_it_was_written() -> None:
    days = FrameSelection(random_centre(replace(SMALL, with_busy=True, ticks_a_day=20)).frames)
    part = telemetry_part(days, "histogram", True, True, 86_400_000_000)
    again = FORM.read(FORM.written(part))
    assert (again.ticks_s, again.cells.names) == (part.ticks_s, part.cells.names)
    for rows, same in ((again.cells, part.cells), (again.busy, part.busy)):
        assert rows.columns.keys() == same.columns.keys()
        assert all(np.array_equal(rows.columns[name], values) for name, values in same.columns.items())


def timed_rows(per_tick: int = 40, ticks: int = 60, depth: int = 1) -> pa.Table:
    """In flight and latency by size as Lustre 2.17 has them, of 100 us + 1 ns per byte without spread."""
    rows = []
    for tick in range(ticks):
        common = {"time": (tick + 1) * 60_000_000, "duration_s": 60.0, "target": "a-OST0000", "direction": "write"}
        rows.append({**common, "histogram": "disk_ios_in_flight_pow2", "bin": depth, "count": 4 * per_tick})
        for size, label_ns in ((4096, 131072), (65536, 262144), (1 << 20, 2097152), (4 << 20, 8388608)):
            rows.append({**common, "histogram": f"io_latency_ns_from_{size}", "bin": label_ns, "count": per_tick})
    table = pa.Table.from_pylist(rows)
    return table.set_column(0, "time", table["time"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")))


def sizes_beside(ticks: int = 60) -> pa.Table:
    times = pa.array(np.arange(1, ticks + 1) * 60_000_000, pa.timestamp("us", "UTC"))
    columns = {size_column("write", size): [40] * ticks for size in (4096, 65536, 1 << 20, 4 << 20)}
    return pa.table({"time": times, "duration_s": [60.0] * ticks, "target": ["a-OST0000"] * ticks, **columns})


def test_times_of_single_ios_count_only_where_few_are_in_flight() -> None:
    frames = {"target_histograms": timed_rows(), "target_sizes": sizes_beside()}
    estimate = by_evidence(calibration_estimate(FrameSelection(frames)), "write", "latency")
    assert estimate is not None
    assert (estimate.one_at_a_time, estimate.upper_bound) == (True, False)
    assert estimate.latency_s is not None
    assert 60e-6 < estimate.latency_s < 200e-6
    deep = {**frames, "target_histograms": timed_rows(depth=4)}
    assert by_evidence(calibration_estimate(FrameSelection(deep)), "write", "latency") is None


def device_rows(
    in_flight: int, *, share: float = 1.0, tick_s: float = 10.0, begin_us: int = 0, **unknown: None
) -> pa.Table:
    """A device that serves eight at once, busy for that share of the time: each size with so many in flight."""
    rows = []
    for number, (size, tick) in enumerate((size, tick) for size in (4096, 65536, 1 << 20) for tick in range(30)):
        alone_s = (100e-6 + 1e-9 * size) * (1 + 0.01 * (tick % 3))
        ops = round(tick_s * share * min(in_flight, 8) / alone_s)
        length = round(tick_s * 1e6)
        time, busy = begin_us + (number + 1) * length, round(share * length)
        counted = {"write_ops": ops, "write_bytes": ops * size, "read_ops": 0, "read_bytes": 0}
        times = {"busy_us": busy, "queue_us": busy * in_flight, **unknown}
        common = {"time": time, "start": time - length, "duration_s": tick_s, "target": "h:nvme0n1"}
        rows.append({**common, "filesystem": "h", "target_kind": "device", "source": "made-up", **counted, **times})
    return table_of("target_io", rows)


def frontier_of(table: pa.Table, **options: float) -> EvidenceEstimate:
    result = by_evidence(calibration_estimate(FrameSelection({"target_io": table}), **options), "write", "frontier")
    assert result is not None
    return result


def test_a_device_that_is_always_busy_with_one_io_after_the_other_is_not_at_its_limit() -> None:
    alone = frontier_of(device_rows(in_flight=1))
    assert (alone.upper_bound, alone.identified) == (True, [])
    queued = frontier_of(device_rows(in_flight=16))
    assert (queued.upper_bound, queued.in_flight) == (False, pytest.approx(16))
    assert queued.latency_s == pytest.approx(100e-6 / 8, rel=0.03)
    assert queued.s_per_byte == pytest.approx(1e-9 / 8, rel=0.03)
    assert not frontier_of(device_rows(in_flight=1, queue_us=None)).upper_bound  # all that is known: always busy


def test_busy_time_rests_on_ticks_in_which_ios_do_not_overlap() -> None:
    """Half of each tick is busy: with one I/O after the other, or with sixteen at once on eight servers."""
    queued = device_rows(in_flight=16, share=0.5, begin_us=1_000_000_000)
    both = pa.concat_tables([device_rows(in_flight=1, share=0.5), queued])
    result = calibration_estimate(FrameSelection({"target_io": both}))
    estimate = by_evidence(result, "write", "busy_time")
    assert estimate is not None
    assert (estimate.ticks, estimate.one_at_a_time) == (90, True)
    assert estimate.latency_s == pytest.approx(100e-6, rel=0.03)
    assert estimate.s_per_byte == pytest.approx(1e-9, rel=0.03)
    only_deep = calibration_estimate(FrameSelection({"target_io": queued}))
    assert by_evidence(only_deep, "write", "busy_time") is None


def test_ticks_are_ten_seconds_or_longer_unless_shorter_ones_are_asked_for() -> None:
    table = device_rows(in_flight=16, tick_s=1.0)
    usual = frontier_of(table)
    assert (usual.ticks, usual.upper_bound) == (9, True)  # three of each size
    quick = frontier_of(table, shortest_tick_s=1.0)
    assert (quick.ticks, quick.upper_bound) == (90, False)


def test_one_that_was_measured_is_in_use_before_an_estimate() -> None:
    row = {"filesystem": "a", "name": "m", "target_class": None, "valid_from": None, "state": None, "evidence": "sweep"}
    rows = [row, {**row, "name": "e", "state": "estimated"}]
    assert (in_use(rows, "a", None).name, in_use(rows, "a", None).state) == ("m", "measured")
    assert (in_use(rows[1:], "a", None).name, in_use(rows[1:], "a", None).state) == ("e", "estimated")
    assert in_use(rows, "b", None).state == "assumed"


def test_evidence_that_disagrees_beyond_its_intervals_is_shown() -> None:
    result = estimated(random_centre(replace(SMALL, with_busy=True, seed=2)))
    busy_time = next(
        estimate for estimate in result.estimates if estimate.evidence == "busy_time" and estimate.direction == "write"
    )
    other = replace(busy_time, evidence="frontier", s_per_byte=3.0, s_per_byte_low=2.9, s_per_byte_high=3.1)
    pairs = {pair.coefficient: pair.agrees for pair in agreement([other, busy_time], None)}
    assert pairs == {"latency": True, "s_per_byte": False}
    assert busy_time.one_at_a_time
    assert busy_time.latency_s is not None
    limit = replace(busy_time, evidence="frontier", one_at_a_time=False, latency_s=busy_time.latency_s / 4)
    alone = agreement([limit, busy_time], None)
    assert alone[0].agrees is None
    assert alone[0].served_at_once is not None
    assert alone[0].served_at_once > 1


@pytest.mark.skipif(not IS_SOAK, reason="a long form, in make soak")
@pytest.mark.parametrize("kind", list(ORDERS))
def test_of_twenty_random_centres_most_come_out_right(kind: str) -> None:
    right = [outcome(kind, seed).is_right for seed in range(20)]
    assert sum(right) >= 18
