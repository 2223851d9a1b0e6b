"""The light probe: within its limits, only beside idle disks, and no word about what it did not determine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from iolens.analyses.calibration.light import LEAST_FACTOR, light_fit, light_record, not_determined
from iolens.benchmarks.device_counters import Counts
from iolens.benchmarks.fio_sweep import FioTool
from iolens.benchmarks.light_probe import (
    LOOK_S,
    STARTING_S,
    TRANSFER_SIZES,
    LightLimits,
    LightWatch,
    had_company,
    is_idle,
    light_plan,
)
from iolens.benchmarks.sweep import Plan, Values, run_sweep, sweep_points
from iolens.errors import IolensError, OptionError
from iolens.models.transaction_time import GRACE_2012
from iolens.units import GIB, KIB, MIB
from tests.benchmarks.standins import put_fio
from tests.simulator.device import SimulatedDevice

HOUR = LightLimits(3600.0, 4 * GIB)


def probe_of(limits: LightLimits, place: Path = Path(), **more: object) -> Plan:
    return light_plan(Plan(place, GIB, **more), limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("limits", [LightLimits(), LightLimits(60, GIB), LightLimits(600, 16 * GIB)])
def test_all_runs_together_stay_within_the_limits(limits: LightLimits) -> None:
    plan = probe_of(limits)
    runs = sweep_points(plan, _Mixes())
    assert len(runs) == 20  # five sizes, both ways, twice: no cache guard, no saturating test
    assert {point.transfer_bytes for point in runs} == set(TRANSFER_SIZES)
    assert plan.run_bytes is not None
    assert plan.layout_s is not None
    assert plan.file_bytes + len(runs) * plan.run_bytes <= limits.bytes
    assert plan.layout_s + len(runs) * (plan.runtime_s + LOOK_S + STARTING_S) <= limits.seconds * (1 + 1e-9)


class _Mixes:
    name, mixes = "fio", True

    def lay_out(self) -> None:
        raise NotImplementedError

    def run(self, point: object) -> list[Values]:
        raise NotImplementedError


def test_limits_that_tell_nothing_are_refused() -> None:
    with pytest.raises(OptionError, match=r"--gib 0\.01 is too little for 20 runs of up to 1 MiB"):
        probe_of(LightLimits(120, GIB // 100))
    with pytest.raises(OptionError, match="--seconds 20 is too short for 20 runs: at least 32"):
        probe_of(LightLimits(20, GIB))


def test_fio_is_given_both_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run ends at its bytes or its time, whichever is first; the file is removed at the end."""
    put_fio(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (place := tmp_path / "disk").mkdir()
    plan = probe_of(LightLimits(60, GIB), place, queue_depth=8)
    rows = list(run_sweep(plan, FioTool(plan), None))
    assert len(rows) == 20
    layout, first, *_ = [json.loads(line) for line in (tmp_path / "bin/log").read_text().splitlines()]
    assert layout["runtime"] == "15000ms"
    assert (first["io_size"], first["runtime"]) == (str(plan.run_bytes), f"{round(plan.runtime_s * 1000)}ms")
    assert (first["iodepth"], "time_based" in first) == ("8", False)
    assert list(place.iterdir()) == []
    assert str(rows[0]["sweep"]).startswith("light-")


def test_a_file_that_takes_too_long_ends_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_fio(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    plan = replace(probe_of(LightLimits(60, GIB), tmp_path), layout_s=0.0)
    with pytest.raises(IolensError, match="256 MiB were not written within 0 s: nothing was measured"):
        list(run_sweep(plan, FioTool(plan), None))
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def counts(ops: int, busy_us: int | None = None) -> Counts:
    return Counts({"read": ops, "write": 0}, None, busy_us)


def test_idle_is_by_busy_time_else_by_disk_ios() -> None:
    assert is_idle(counts(0, 0), counts(5000, 50_000), 0.5)  # a device that is busy for a tenth of the time
    assert not is_idle(counts(0, 0), counts(5000, 50_001), 0.5)
    assert is_idle(counts(0), counts(5), 0.5)
    assert not is_idle(counts(0), counts(6), 0.5)


class Device:
    """Counters of a device that others use in the looks of these numbers; time passes only while one waits."""

    name = "made up"

    def __init__(self, busy_looks: set[int]) -> None:
        self.busy_looks = busy_looks
        self.now, self.ops, self.looks = 0.0, 0, count()

    def read(self) -> Counts:
        return counts(self.ops)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if next(self.looks) in self.busy_looks:
            self.ops += 1000

    def watch(self, limit_s: float, runtime_s: float = 1.0) -> LightWatch:
        return LightWatch(self, limit_s, runtime_s, clock=lambda: self.now, sleep=self.sleep)


def test_a_run_waits_until_others_have_finished() -> None:
    device = Device({1, 2})
    watch = device.watch(60)
    assert [watch.may_run() for _ in range(3)] == [True] * 3
    assert (device.now, watch.waited_s, watch.is_over) == (5 * LOOK_S, 2 * LOOK_S, False)


def test_others_who_go_on_end_the_probe_in_its_time() -> None:
    device = Device(set(range(1, 1000)))
    watch = device.watch(10, runtime_s=2.0)
    assert (watch.may_run(), watch.may_run(), watch.is_over) == (True, False, True)
    assert watch.used_s + 2.0 <= 10


def test_without_counters_there_is_nothing_to_wait_for() -> None:
    device = Device(set())
    watch = LightWatch(None, 10, 1, clock=lambda: device.now, sleep=device.sleep)
    assert (watch.may_run(), device.now) == (True, 0.0)


@pytest.mark.parametrize(
    ("seen", "company"),
    [
        ({}, False),
        ({"device_bytes": 105 * MIB, "device_other_bytes": 5 * MIB}, False),
        ({"device_bytes": 100 * MIB, "device_other_bytes": 6 * MIB}, True),
        ({"device_bytes": 151 * MIB, "device_other_bytes": 0}, True),
        ({"device_sizes": '{"1048576": 110}', "device_ops": 110, "device_other_ops": 5}, False),
        ({"device_sizes": '{"1048576": 110}', "device_ops": 110, "device_other_ops": 6}, True),
        ({"device_sizes": '{"1048576": 200}', "device_ops": 200, "device_other_ops": 0}, True),
    ],
)
def test_a_run_that_others_disturbed_is_known_by_what_the_disk_moved(seen: dict[str, object], company: bool) -> None:
    assert had_company({"bytes": 100 * MIB, **seen}) is company


def runs(noise: float = 0.0, seed: int = 1) -> Iterator[dict[str, object]]:
    device = SimulatedDevice(GRACE_2012, noise=noise, seed=seed)
    return device.sweep(TRANSFER_SIZES, requested_bytes=150 * MIB, repeats=2)


def test_the_ends_are_wide_also_where_runs_agree() -> None:
    fit, why = light_fit(list(runs()))
    assert fit is not None
    assert why is None
    record = light_record(fit, "light-1")
    assert (record["state"], record["ceiling_fsu_pct"], record["name"]) == ("measured", None, "light-1")
    for direction in ("write", "read"):
        truth = GRACE_2012.of(direction)
        assert record[f"{direction}_latency_s"] == pytest.approx(truth.latency_s, rel=1e-6)
        assert record[f"{direction}_latency_low_s"] == pytest.approx(truth.latency_s / LEAST_FACTOR, rel=1e-6)
        assert record[f"{direction}_s_per_byte_high"] == pytest.approx(LEAST_FACTOR * truth.s_per_byte, rel=1e-6)


@pytest.mark.parametrize(("noise", "least_kept"), [(0.15, 40), (0.3, 39)])
def test_the_ends_hold_the_truth_of_disturbed_disks(noise: float, least_kept: int) -> None:
    """Of 40 probes whose runs differ by so much among each other, in nine of ten."""
    outside = dict.fromkeys(("write_latency", "write_s_per_byte", "read_latency", "read_s_per_byte"), 0)
    kept = 0
    for seed in range(40):
        fit, why = light_fit(list(runs(noise, seed)))
        if fit is None or why is not None:
            continue
        kept += 1
        record = light_record(fit, "light")
        for direction in ("write", "read"):
            truth = GRACE_2012.of(direction)
            for name, unit, value in (("latency", "_s", truth.latency_s), ("s_per_byte", "", truth.s_per_byte)):
                low, high = (record[f"{direction}_{name}_{end}{unit}"] for end in ("low", "high"))
                outside[f"{direction}_{name}"] += not low <= value <= high
    assert kept >= least_kept
    assert max(outside.values()) <= 0.1 * kept


def test_runs_that_do_not_follow_the_model_give_no_calibration() -> None:
    rows = list(runs())
    for row in rows:
        if row["direction"] == "write":
            row["duration_s"] = 1.0  # as fast at every size
    _, why = light_fit(rows)
    assert why is not None
    assert "write" in why
    assert light_fit([row for row in rows if row["direction"] == "read"])[1] == "there is no write fit"
    assert light_fit([])[0] is None


def test_what_was_not_determined_is_listed() -> None:
    rows = [row for row in runs() if (row["direction"], row["transfer_bytes"]) != ("read", MIB)]
    said = not_determined(rows, TRANSFER_SIZES, 4, None)
    assert said[0] == "reads of 1 MiB: no undisturbed run"
    assert said[1] == "I/Os larger than 1 MiB, and other queue depths than 4"
    assert any("full disk" in item for item in said)
    assert not_determined([], (4 * KIB,), 4, "there are no runs")[:2] == [
        "the coefficients: there are no runs", "writes of 4 KiB: no undisturbed run",
    ]  # fmt: skip
