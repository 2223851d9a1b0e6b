"""Both fits of paper U on a device whose costs are known, on rows of any origin, and what is left out and why."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.calibration.fit import CalibrationFit, DirectionFit, calibration_fit
from iolens.analyses.calibration.stored import drift, find_calibration, known_calibrations
from iolens.config import Config
from iolens.errors import UsageError
from iolens.models.transaction_time import GRACE_2012, Calibration, Coefficients
from iolens.records import Row
from iolens.sources import ReadOptions, get_source
from iolens.units import GIB, KIB, MIB, epoch_us
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from iolens.views.render.json_text import to_plain
from tests.simulator.device import SimulatedDevice

FLASH = Calibration("flash", Coefficients(4e-5, 3e-10), Coefficients(1.5e-5, 2.5e-10))


def fits(result: CalibrationFit, sizes: str) -> Iterator[tuple[str, DirectionFit]]:
    for direction in ("write", "read"):
        fit = (result.observed if sizes == "observed" else result.requested).of(direction)
        assert fit is not None
        yield direction, fit


@pytest.mark.parametrize(("truth", "noise"), [(GRACE_2012, 0.005), (FLASH, 0.002)], ids=["grace", "flash"])
@pytest.mark.parametrize("read_ahead", [False, True])
def test_known_coefficients_come_back_within_two_per_cent(truth: Calibration, noise: float, read_ahead: bool) -> None:
    """Under read-ahead every run is mostly transfer time, so flash with its small latency needs quieter runs."""
    for seed in range(5):
        device = SimulatedDevice(truth, read_ahead, noise=noise, seed=seed)
        result = calibration_fit(device.sweep(repeats=3))
        for direction, fit in fits(result, "observed"):
            assert fit.latency_s == pytest.approx(truth.of(direction).latency_s, rel=0.02)
            assert fit.s_per_byte == pytest.approx(truth.of(direction).s_per_byte, rel=0.02)
            assert fit.r2 is not None
            assert fit.r2 > 0.999


def test_table_one_round_trips() -> None:
    result = calibration_fit(SimulatedDevice(GRACE_2012).sweep())
    write, read = (fit for _, fit in fits(result, "observed"))
    assert write.rate_mib_per_s == pytest.approx(551, abs=0.5)
    assert read.rate_mib_per_s == pytest.approx(775, abs=0.5)
    assert write.iops_limit == pytest.approx(961.5, abs=0.1)


def test_with_read_ahead_requested_sizes_explain_reads_badly() -> None:
    """The point of Fig. 7."""
    result = calibration_fit(SimulatedDevice(GRACE_2012, read_ahead=True, noise=0.005).sweep(repeats=3))
    asked, seen = result.requested.read, result.observed.read
    assert asked is not None
    assert seen is not None
    assert asked.r2 is not None
    assert asked.r2 < 0.7
    assert asked.mape_pct > 10 * seen.mape_pct
    assert asked.latency_s < 0.1 * GRACE_2012.read.latency_s  # and its coefficients mean nothing
    quiet = calibration_fit(SimulatedDevice(GRACE_2012, noise=0.005, largest_io_bytes=4 * MIB).sweep(repeats=3))
    assert quiet.requested.read == quiet.observed.read


def test_read_amplification_of_figure_six() -> None:
    """9.5 bytes read for 8 asked: 15.8 % are discarded."""
    device = SimulatedDevice(GRACE_2012, read_ahead=True)
    rows = [device.run("read", size, 8 * 10**9) for size in (4096, 8192, 16384)]
    result = calibration_fit(rows)
    assert result.read_amplification == pytest.approx(9.5 / 8, rel=1e-3)
    assert result.discarded_pct == pytest.approx(15.8, abs=0.1)
    assert result.observed.write is None
    assert calibration_fit(SimulatedDevice(GRACE_2012).sweep()).discarded_pct is None


def test_every_run_has_its_prediction_and_the_quality_follows_from_them() -> None:
    result = calibration_fit(SimulatedDevice(GRACE_2012, noise=0.1).sweep())
    assert len(result.runs) == 22
    for direction, fit in fits(result, "observed"):
        mine = [run for run in result.runs if run.direction == direction]
        measured = np.array([run.measured_bytes_per_s for run in mine])
        predicted = np.array([run.predicted_bytes_per_s for run in mine])
        residual = ((measured - predicted) ** 2).sum() / ((measured - measured.mean()) ** 2).sum()
        assert fit.r2 == pytest.approx(1 - residual)
        assert fit.mape_pct == pytest.approx(100 * np.abs(predicted / measured - 1).mean())
        for run, reported in zip(mine, predicted, strict=True):
            size = run.observed_size_bytes
            assert size is not None
            assert reported == pytest.approx(size / (fit.latency_s + fit.s_per_byte * size))  # Eq. 2


def test_keys_of_the_result() -> None:
    plain = to_plain(calibration_fit(SimulatedDevice(GRACE_2012, noise=0.01).sweep()))
    assert {"requested", "observed", "queue_depth", "read_amplification", "runs"} <= plain.keys()
    fitted = {"latency_s", "s_per_byte", "rate_mib_per_s", "iops_limit", "r2", "mape_pct", "ci95"}
    for sizes in ("requested", "observed"):
        assert plain[sizes].keys() == {"write", "read"}
        assert fitted <= plain[sizes]["read"].keys()
        for name in ("latency_s", "s_per_byte", "rate_mib_per_s", "iops_limit"):
            low, high = plain[sizes]["read"]["ci95"][name]
            assert low <= plain[sizes]["read"][name] <= high
    expected = {"direction", "size_bytes", "observed_size_bytes", "measured_bytes_per_s", "predicted_bytes_per_s"}
    assert all(run.keys() == expected for run in plain["runs"])


def run(direction: str, size: int, seconds: float, count: int = 1000, **more: Any) -> dict[str, Any]:
    values = {"tool": "fio", "direction": direction, "transfer_bytes": size, "duration_s": seconds, "queue_depth": 4}
    return {**values, "operations": count, "bytes": count * size, "access": "random", "complete": True, **more}


TWO = [run("write", 4096, 1.0), run("write", MIB, 3.0), run("read", 4096, 0.5), run("read", MIB, 2.0)]


def test_without_an_observation_there_is_only_the_requested_fit() -> None:
    result = calibration_fit(TWO)
    assert (result.observed.write, result.observed.read, result.read_amplification) == (None, None, None)
    assert result.requested.write is not None
    assert all(item.observed_size_bytes is None and item.predicted_bytes_per_s for item in result.runs)
    assert any("nothing was observed" in note for note in result.notes)


def test_what_cannot_tell_is_left_out_and_counted() -> None:
    strange = [
        run("write", 4096, 1.0, mixed=True),
        run("write", 4096, 1.0, access="sequential"),
        run("write", 4096, 1.0, complete=False),
        run("write", 4096, 0.0),
        {"tool": "mdtest", "direction": "file_stat", "operations": 9, "duration_s": 1.0},
    ]
    result = calibration_fit([*TWO, *strange])
    assert len(result.runs) == 4
    assert result.runs_left_out == 4
    assert sum("left out" in note for note in result.notes) == 4
    assert len(calibration_fit([*TWO, *strange], access="any").runs) == 5


def test_runs_that_do_not_name_their_order_are_taken_and_said() -> None:
    result = calibration_fit([{**item, "access": None} for item in TWO])
    assert any("do not say" in note for note in result.notes)


def test_queue_depths_are_not_mixed() -> None:
    deeper = [{**item, "queue_depth": 32, "duration_s": item["duration_s"] / 4} for item in TWO]
    with pytest.raises(UsageError, match=r"several queue depths \(4, 32\)"):
        calibration_fit([*TWO, *deeper])
    shallow, deep = (calibration_fit([*TWO, *deeper], queue_depth=depth) for depth in (4, 32))
    assert shallow.requested.write is not None
    assert deep.requested.write is not None
    assert shallow.requested.write.latency_s == pytest.approx(4 * deep.requested.write.latency_s)
    with pytest.raises(UsageError, match="no run has queue depth 7"):
        calibration_fit(TWO, queue_depth=7)


def test_repeats() -> None:
    """All, unless the median or the best of each point is asked for; then the result says so."""
    slower = [{**item, "duration_s": item["duration_s"] * factor} for item in TWO for factor in (1.0, 1.1, 2.0)]
    assert len(calibration_fit(slower).runs) == 12
    best = calibration_fit(slower, repeats="best")
    assert best.requested == calibration_fit(TWO).requested
    assert any("of 12 runs the best of each point's repeats: 4" in note for note in best.notes)
    middle = calibration_fit([{**item, "duration_s": item["duration_s"] * 1.1} for item in TWO])
    assert calibration_fit(slower, repeats="median").requested == middle.requested


def test_degenerate_runs_are_explained() -> None:
    with pytest.raises(UsageError, match="there are no runs"):
        calibration_fit([])
    with pytest.raises(UsageError, match="same size"):
        calibration_fit([run("write", 4096, 1.0), run("write", 4096, 2.0)])
    one_way = calibration_fit(TWO[:2])
    assert one_way.requested.read is None
    with pytest.raises(UsageError, match="no read fit"):
        one_way.record("x")


def test_a_negative_coefficient_is_never_silent() -> None:
    rows = [run("write", 4096, 1.0), run("write", 64 * KIB, 1.0), run("write", MIB, 1.0, count=1100)]
    result = calibration_fit(rows)
    assert result.requested.write is not None
    assert result.requested.write.negative
    assert result.requested.write.s_per_byte == 0
    assert result.requested.write.rate_mib_per_s is None
    assert any("negative" in note for note in result.notes)
    assert to_plain(result)["requested"]["write"]["rate_mib_per_s"] is None


def test_operations_without_bytes_give_an_estimate_that_is_called_one() -> None:
    """Before 3.36 fio prints how many I/Os the device did, not their bytes, and misses the last quarter second."""
    rows = [
        run("read", 4096, 2.0, direct=True, device_ops=950),
        run("read", 4 * MIB, 2.0, direct=True, device_ops=3750),
        run("read", 64 * KIB, 2.0, direct=False, device_ops=3000),
    ]
    result = calibration_fit(rows)
    sizes = {item.size_bytes: item.observed_size_bytes for item in result.runs}
    assert sizes[4096] == 4096  # fewer than asked for: none was split
    assert sizes[4 * MIB] == pytest.approx(4 * MIB * 1000 / (3750 * 2.0 / 1.875))
    assert sizes[64 * KIB] is None  # through memory anything may happen
    assert result.read_amplification is None
    assert any("estimates" in note for note in result.notes)


def test_company_at_the_disk_is_said() -> None:
    rows = [
        {**item, "device_ops": 1000, "device_bytes": item["bytes"], "device_other_bytes": item["bytes"]} for item in TWO
    ]
    assert any("somebody else" in note for note in calibration_fit(rows).notes)


def guarded() -> list[dict[str, Any]]:
    sizes = (8, 16, 32, 64, 128, 256, 512)
    rates = {"read": (4200, 4100, 3000, 700, 470, 455, 450), "write": (400,) * 7}
    return [
        run(direction, MIB, size * 1024 / rate, count=size * 1024, aggregate_bytes=size * GIB, study="aggregate_size")
        for direction, levels in rates.items()
        for size, rate in zip(sizes, levels, strict=True)
    ]


def test_the_cache_guard_of_figure_two() -> None:
    result = calibration_fit([*TWO, *guarded()])
    assert len(result.runs) == 4  # the guard's runs are not fitted
    reads = next(asymptote for asymptote in result.asymptotes if asymptote.direction == "read")
    assert reads.asymptote is not None
    assert reads.asymptote.bytes_per_s == pytest.approx(455 * MIB)
    assert reads.asymptote.from_bytes == 128 * GIB
    falling = [item for item in guarded() if item["aggregate_bytes"] <= 64 * GIB]
    assert any("still changes at 64 GiB" in note for note in calibration_fit([*TWO, *falling]).notes)


def test_small_files_can_be_left_out() -> None:
    rows = [{**item, "aggregate_bytes": size} for item in TWO for size in (GIB, 64 * GIB)]
    assert len(calibration_fit(rows, minimum_aggregate_bytes=2 * GIB).runs) == 4


def test_real_sweeps_fit(shared_data: Path) -> None:
    paths = sorted((shared_data / "fio" / "sweep-json").glob("rand*.json"))
    rows: list[dict[str, Any]] = [
        dict(item.values)
        for capture in get_source("fio").captures(paths, ReadOptions())
        for item in capture.items()
        if isinstance(item, Row)
    ]
    result = calibration_fit(rows)
    for direction, fit in fits(result, "requested"):
        mine = [row for row in rows if row["direction"] == direction]
        equations = [[row["operations"] / row["duration_s"], row["bytes"] / row["duration_s"]] for row in mine]
        expected = np.linalg.lstsq(np.array(equations), np.ones(len(mine)), rcond=None)[0]
        assert (fit.latency_s, fit.s_per_byte) == pytest.approx(tuple(expected), rel=1e-6)
        assert fit.r2 is not None
        assert fit.r2 > 0.9
    assert result.queue_depth == 8


def test_tables_and_figures(tmp_path: Path) -> None:
    result = calibration_fit([*SimulatedDevice(GRACE_2012, read_ahead=True).sweep(), *_at_depth_one(guarded())])
    names = list(figures_of(result))
    assert names == ["prediction", "bandwidth", "sizes", "asymptote"]
    drawn = draw_figures(
        result, [f"{name}={tmp_path / name}{suffix}" for name in names for suffix in (".svg", ".html")]
    )
    assert all(path.stat().st_size > 5000 for path in drawn)
    titles = [table.title for table in tables_of(result)]
    assert titles == ["What a disk I/O costs", "Runs", "Cache guard", "Basis"]
    plain = calibration_fit(TWO)
    assert draw_figures(plain, [f"{name}={tmp_path / name}.svg" for name in names])


def _at_depth_one(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "queue_depth": 1} for row in rows]


def test_histograms_count_by_their_labels() -> None:
    sizes = {"4096": 10, "1048576": 5}
    rows = [run("read", 4096, 1.0, device_sizes=json.dumps(sizes), device_ops=99), *TWO]
    seen = next(item for item in calibration_fit(rows).runs if item.observed_size_bytes is not None)
    assert seen.observed_size_bytes == pytest.approx((10 * 4096 + 5 * MIB) / 15)


def stored(name: str, day: datetime, rate: float, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "filesystem": "scratch", "target_class": None, "valid_from": epoch_us(day), "evidence": "a sweep",
        "write_latency_s": 1.04e-3, "write_s_per_byte": 1 / rate, "read_latency_s": 8e-4, "read_s_per_byte": 1.2e-9,
        "queue_depth": 4, "fullness_pct": None, **more,
    }  # fmt: skip


def test_drift_per_year() -> None:
    """From Grace's 551 MiB/s to the 220 MB/s of a full Hopper: each byte costs 2.6 times as much."""
    rows = [
        stored("new", datetime(2012, 1, 1, tzinfo=UTC), 551 * MIB, fullness_pct=20.0),
        stored("full", datetime(2014, 1, 1, tzinfo=UTC), 220e6, fullness_pct=95.0),
        stored("other", datetime(2014, 1, 1, tzinfo=UTC), 220e6, target_class="ssd"),
        stored("deep", datetime(2014, 1, 1, tzinfo=UTC), 220e6, queue_depth=64),
    ]
    result = drift(known_calibrations(rows, Config()))
    assert [(item.earlier, item.later) for item in result] == [("new", "full")]
    assert result[0].fullness_change_pct == 75.0
    change = next(change for change in result[0].changes if change.coefficient == "write_s_per_byte")
    assert change.change_pct == pytest.approx(100 * (551 * MIB / 220e6 - 1))
    assert change.change_pct_per_year == pytest.approx(100 * (551 * MIB / 220e6 - 1) / 2, rel=2e-3)
    assert next(change for change in result[0].changes if change.coefficient == "write_latency_s").change_pct == 0.0


def test_a_class_of_targets_has_its_own_calibration() -> None:
    first, second = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    rows = [
        stored("disks", first, 200e6),
        stored("flash-24", first, 2e9, target_class="ssd"),
        stored("flash-25", second, 1e9, target_class="ssd"),
    ]
    late = datetime(2026, 1, 1, tzinfo=UTC)

    def name(target_class: str | None, at: datetime) -> str:
        return find_calibration(rows, Config(), None, "scratch", at, target_class)[0].name

    assert name("ssd", late) == "flash-25"
    assert name("ssd", datetime(2024, 6, 1, tzinfo=UTC)) == "flash-24"
    assert name("tape", late) == "disks"


def test_a_cost_of_zero_has_no_limit() -> None:
    assert Coefficients(0.0, 1e-9).iops_limit == math.inf
    assert Coefficients(1e-3, 0.0).bytes_per_s_limit == math.inf


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "calibration.md").read_text("utf-8")
    result = to_plain(calibration_fit([*TWO, *guarded()]))
    keys = {*result, *result["requested"], *result["requested"]["write"], *result["runs"][0], *result["asymptotes"][0]}
    keys |= {*result["asymptotes"][0]["asymptote"]}
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


# The ceiling: FSU of a full disk.


def mixed(run: int, seconds: float, **counts: tuple[int, int]) -> list[dict[str, Any]]:
    """A run of the saturating test: I/Os and bytes at the disk by direction."""
    return [
        {
            "tool": "fio", "run_id": f"sweep/{run}", "study": "saturation", "direction": direction,
            "duration_s": seconds,
            "bytes": moved, "operations": ops, "queue_depth": 1, "mixed": True, "device_ops": ops,
            "device_bytes": moved, "complete": True,
        }
        for direction, (ops, moved) in counts.items()
    ]  # fmt: skip


def test_the_ceiling_is_the_median_fsu_of_the_saturating_runs() -> None:
    """By hand: 500 writes and 250 reads of 1 MiB in T seconds."""
    busy = 500 * GRACE_2012.write.seconds(MIB) + 250 * GRACE_2012.read.seconds(MIB)
    runs = [
        row
        for number, share in enumerate((0.6, 0.72, 0.9))
        for row in mixed(number, busy / share, write=(500, 500 * MIB), read=(250, 250 * MIB))
    ]
    result = calibration_fit([*SimulatedDevice(GRACE_2012).sweep(), *runs])
    assert result.saturating_fsu_pct == pytest.approx([60, 72, 90], rel=1e-6)
    assert result.ceiling_fsu_pct == pytest.approx(72, rel=1e-6)
    assert result.record("ours")["ceiling_fsu_pct"] == result.ceiling_fsu_pct
    assert len(result.runs) == 22
    assert result.runs_left_out == 0
    reported = "3 runs that read and wrote all sizes at once showed an FSU of 60 to 90 %: their median is the ceiling"
    assert reported in result.notes
    deeper = calibration_fit([*SimulatedDevice(GRACE_2012).sweep(), *({**row, "queue_depth": 9} for row in runs)])
    assert deeper.saturating_fsu_pct == pytest.approx([100, 100])  # the test is of another experiment
    assert any("2 runs with the smallest transfers showed" in note for note in deeper.notes)


def test_without_a_saturating_test_the_smallest_transfers_stand_in_as_in_the_paper() -> None:
    """Fig. 8: writes of 4 KiB that take longer than the line through all sizes says."""
    rows = [
        {**row, "duration_s": row["duration_s"] / 0.7 if row["transfer_bytes"] == 4096 else row["duration_s"]}
        for row in SimulatedDevice(GRACE_2012).sweep(sizes=[4096, *[MIB << n for n in range(3)]], repeats=3)
    ]
    result = calibration_fit(rows)
    assert len(result.saturating_fsu_pct) == 6
    expected = []
    for direction, fit in fits(result, "observed"):
        (seconds,) = {r["duration_s"] for r in rows if r["direction"] == direction and r["transfer_bytes"] == 4096}
        expected.append(100 * (2**33 // 4096) * (fit.latency_s + fit.s_per_byte * 4096) / seconds)
    assert sorted(set(result.saturating_fsu_pct)) == pytest.approx(sorted(expected))
    assert result.ceiling_fsu_pct == pytest.approx(sum(expected) / 2)


def test_what_others_did_meanwhile_is_part_of_the_fsu() -> None:
    rows = list(SimulatedDevice(GRACE_2012).sweep())
    alone = calibration_fit(rows).ceiling_fsu_pct
    assert alone == pytest.approx(100)
    disturbed = [
        {**row, "device_other_ops": 1000, "device_other_bytes": 1000 * MIB} if row["transfer_bytes"] == 4096 else row
        for row in rows
    ]
    assert calibration_fit(disturbed).ceiling_fsu_pct > 100


def test_without_an_observed_disk_there_is_no_ceiling() -> None:
    rows = [
        {name: value for name, value in row.items() if not name.startswith("device")}
        for row in SimulatedDevice(GRACE_2012).sweep()
    ]
    result = calibration_fit(rows)
    assert (result.ceiling_fsu_pct, result.saturating_fsu_pct) == (None, [])
    assert any("the FSU of a full disk is not measured" in note for note in result.notes)
