"""A real sweep with fio on this machine's disk: it fits, and the utilization that follows from it is right.

The machine may be busy: runs are short, repeated far apart, ahead of other programs where that is allowed, and the best
of each size counts, because company only ever slows a run down.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.device_counters import BlockDeviceCounters, underlying_device
from iolens.benchmarks.programs import may_raise_priority
from iolens.benchmarks.safety import direct_io_trouble
from iolens.models.transaction_time import Calibration, Coefficients, fsu_bytes_pct
from tests.cli.command import iolens

pytestmark = pytest.mark.live

SIZE = "512MiB"
QUEUE_DEPTH = 4
REPEATS = 8
SIZES = "4KiB,8KiB,16KiB,64KiB,128KiB,256KiB"  # larger reads cost this virtual disk less per byte (docs/calibration.md)
MIX = "4k/25:16k/25:64k/25:256k/25"
LEAST_R2 = 0.9
LEAST_CEILING_PCT = 40
MOST_READ_BESIDE = 0.1  # share of the reads that is of other processes
LONGEST_SWEEP_S = 90  # of runs; starting fio so often on a busy machine comes on top
SAMPLES = 7
TRIES = 3

Record = Callable[[str, object], None]  # into the test report


@dataclass(frozen=True)
class Sweep:
    """One sweep, fitted."""

    folder: Path
    device: str
    seconds: float
    rows: list[dict[str, Any]]
    fit: dict[str, Any]

    @property
    def calibration(self) -> Calibration:
        """Coefficients on observed sizes."""
        costs = {
            direction: Coefficients(result["latency_s"], result["s_per_byte"])
            for direction, result in self.fit["observed"].items()
        }
        return Calibration("live", costs["write"], costs["read"])


def _disk() -> tuple[Path, str]:
    """A place on a real disk that can be observed and written around the page cache."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    for place in (Path("/var/tmp"), Path(__file__).parent):
        result = underlying_device(place)
        if result.device is not None and direct_io_trouble(place) is None:
            return place, result.device
    pytest.skip("no disk here that can be observed, with direct I/O")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweep]:
    """A sweep and its fit; others use the disk, so that one which was disturbed is made again, twice at most."""
    place, device = _disk()
    folder = place / f"iolens-live-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        for _ in range(3):
            sweep = _swept(folder, device, tmp_path_factory.mktemp("sweep") / "sweep.json")
            is_good = all(sweep.fit["observed"][direction]["r2"] >= LEAST_R2 for direction in ("write", "read"))
            is_full = sweep.fit["ceiling_fsu_pct"] >= LEAST_CEILING_PCT
            if is_good and is_full and abs(sweep.fit["read_amplification"] - 1.0) <= MOST_READ_BESIDE:
                break
        yield sweep
    finally:
        shutil.rmtree(folder)


def _swept(folder: Path, device: str, file: Path) -> Sweep:
    realtime = ["--realtime"] if may_raise_priority() else []
    options = (
        "--size",
        SIZE,
        "--sizes",
        SIZES,
        "--runtime",
        "200ms",
        "--repeats",
        REPEATS,
        "--queue-depth",
        QUEUE_DEPTH,
    )
    os.sync()  # what other tests wrote is not written back meanwhile
    began = time.monotonic()
    done = iolens("calibrate", "run", folder, *options, "--no-asymptote", *realtime, "-o", file)
    seconds = time.monotonic() - began
    assert done.code == 0, done.err
    assert list(folder.iterdir()) == []
    return Sweep(folder, device, seconds, json.loads(file.read_text())["runs"], _fit(file))


def _fit(file: Path) -> dict[str, Any]:
    fitted = iolens("calibrate", "fit", file, "--repeats", "best", "--format", "json")
    assert fitted.code == 0, fitted.err
    result: dict[str, Any] = json.loads(fitted.out)
    return result


def test_a_real_sweep_fits_on_the_sizes_the_disk_saw(
    swept: Sweep, record_property: Callable[[str, object], None]
) -> None:
    runs = {row["run_id"] for row in swept.rows}
    assert len(runs) == 13 * REPEATS  # six sizes read and written, and all of them at once
    assert len(swept.rows) == 14 * REPEATS
    assert sum(row["duration_s"] for row in swept.rows) < LONGEST_SWEEP_S
    for direction in ("write", "read"):
        result = swept.fit["observed"][direction]
        record_property(f"{direction}_r2", result["r2"])
        assert result["r2"] >= LEAST_R2
        assert result["latency_s"] > 0
        assert result["s_per_byte"] > 0
    assert swept.fit["queue_depth"] == QUEUE_DEPTH
    assert swept.fit["read_amplification"] == pytest.approx(1.0, abs=MOST_READ_BESIDE)


def test_the_saturating_runs_show_what_a_full_disk_looks_like(swept: Sweep, record_property: Record) -> None:
    record_property("saturating_fsu_pct", [round(item, 1) for item in swept.fit["saturating_fsu_pct"]])
    record_property("ceiling_fsu_pct", swept.fit["ceiling_fsu_pct"])
    assert len(swept.fit["saturating_fsu_pct"]) == REPEATS
    assert LEAST_CEILING_PCT <= swept.fit["ceiling_fsu_pct"] <= 140


def test_the_disk_saw_every_byte(swept: Sweep) -> None:
    """Reads of a file that was only allocated would never reach it."""
    for row in swept.rows:
        assert row["device"] == swept.device
        assert row["device_bytes"] >= 0.99 * row["bytes"]
        assert row["direct"] is True


@dataclass(frozen=True)
class Sample:
    """One second of the disk."""

    fsu_pct: float
    util_pct: float


def _sample(counters: BlockDeviceCounters, calibration: Calibration, seconds: int) -> list[Sample]:
    samples = []
    before, began = counters.read(), time.monotonic()
    for _ in range(seconds):
        time.sleep(1)
        after, now = counters.read(), time.monotonic()
        assert before.bytes is not None
        assert after.bytes is not None
        fsu_pct = fsu_bytes_pct(
            read_ops=after.ops["read"] - before.ops["read"],
            read_bytes=after.bytes["read"] - before.bytes["read"],
            write_ops=after.ops["write"] - before.ops["write"],
            write_bytes=after.bytes["write"] - before.bytes["write"],
            duration_s=now - began,
            calibration=calibration,
        )
        busy_us = (after.busy_us or 0) - (before.busy_us or 0)
        samples.append(Sample(fsu_pct, busy_us / 1e4 / (now - began)))
        before, began = after, now
    return samples


def saturated(swept: Sweep, counters: BlockDeviceCounters) -> list[Sample]:
    """The disk while fio keeps it full."""
    file = swept.folder / "saturate.dat"
    common = ["fio", "--name=saturate", f"--filename={file}", f"--size={SIZE}", "--direct=1", "--ioengine=libaio"]
    subprocess.run([*common, "--rw=write", "--bs=1m", "--end_fsync=1"], check=True, capture_output=True)
    command = [
        *common, "--rw=randrw", f"--bssplit={MIX}", f"--iodepth={QUEUE_DEPTH}", "--time_based", "--norandommap",
        f"--runtime={SAMPLES + 3}", "--eta=never",
    ]  # fmt: skip
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # as in the sweep
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    try:
        if may_raise_priority():
            os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
        time.sleep(1.5)  # until it is under way
        return _sample(counters, swept.calibration, SAMPLES)
    finally:
        process.wait(60)
        file.unlink()


def test_a_saturated_disk_is_near_100_and_an_idle_one_near_0(swept: Sweep, record_property: Record) -> None:
    """The disk and its host are shared: at times it is slower than when it was calibrated; it has three tries."""
    counters = BlockDeviceCounters(swept.device)
    idle = _sample(counters, swept.calibration, SAMPLES)
    tries = []
    while len(tries) < TRIES and not any(60 <= level <= 140 for level in tries):
        busy = saturated(swept, counters)
        tries.append(statistics.median(sample.fsu_pct for sample in busy))
    for name, samples in (("idle", idle), ("saturated", busy)):
        for number, sample in enumerate(samples):
            record_property(f"{name}_{number}", f"FSU {sample.fsu_pct:.1f} %, util {sample.util_pct:.1f} %")
    assert min(sample.fsu_pct for sample in idle) < 5  # the quietest second: other tests write to the same disk
    assert 60 <= tries[-1] <= 140, tries
