"""A real sweep with fio on this machine's disk: what is certain of it, however busy the disk and its host are.

How well it fits, and how near a full disk comes to 100 %, depends on them: `python -m bench.calibration` shows that.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.benchmarks.device_counters import BlockDeviceCounters, underlying_device
from iolens.benchmarks.light_probe import direct_io_trouble
from iolens.store.store import Store
from tests.cli.command import iolens

pytestmark = pytest.mark.live

QUEUE_DEPTH = 4
REPEATS = 2
SIZES = "4KiB,8KiB,16KiB,64KiB,128KiB,256KiB"


@dataclass(frozen=True)
class Sweep:
    """One sweep, fitted."""

    device: str
    rows: list[dict[str, Any]]
    fit: dict[str, Any]


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
def swept(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    place, device = _disk()
    file = tmp_path_factory.mktemp("sweep") / "sweep.json"
    options = ("--size", "128MiB", "--sizes", SIZES, "--runtime", "200ms", "--queue-depth", QUEUE_DEPTH)
    with tempfile.TemporaryDirectory(dir=place, prefix="iolens-live-") as folder:
        done = iolens("calibrate", "run", folder, *options, "--repeats", REPEATS, "--no-asymptote", "-o", file)
        assert done.code == 0, done.err
        assert list(Path(folder).iterdir()) == []
    fitted = iolens("calibrate", "fit", file, "--repeats", "best", "--format", "json")
    assert fitted.code == 0, fitted.err
    return Sweep(device, json.loads(file.read_text())["runs"], json.loads(fitted.out))


def test_every_size_is_measured_as_often_as_asked_for(swept: Sweep) -> None:
    assert len({row["run_id"] for row in swept.rows}) == 13 * REPEATS  # six sizes read and written, and all at once
    assert len(swept.rows) == 14 * REPEATS
    assert swept.fit["queue_depth"] == QUEUE_DEPTH
    assert len(swept.fit["saturating_fsu_pct"]) == REPEATS


def test_the_disk_saw_every_byte(swept: Sweep) -> None:
    """Reads of a file that was only allocated would never reach it."""
    for row in swept.rows:
        assert row["device"] == swept.device
        assert row["device_bytes"] >= 0.99 * row["bytes"]
        assert row["direct"] is True


@pytest.mark.parametrize("direction", ["write", "read"])
def test_the_fit_is_the_regression_of_the_best_runs(swept: Sweep, direction: str) -> None:
    best: dict[int, dict[str, Any]] = {}
    for row in swept.rows:
        if row["direction"] == direction and row.get("transfer_bytes"):  # the saturating runs have several
            same = best.setdefault(row["transfer_bytes"], row)
            best[row["transfer_bytes"]] = max(same, row, key=lambda item: item["bytes"] / item["duration_s"])
    assert len(best) == 6
    equations = [[row["operations"] / row["duration_s"], row["bytes"] / row["duration_s"]] for row in best.values()]
    latency_s, s_per_byte = np.linalg.lstsq(np.array(equations), np.ones(len(best)), rcond=None)[0]
    result = swept.fit["requested"][direction]
    if result["negative"]:  # on a disk that others use
        assert result["unconstrained_latency_s"] == pytest.approx(latency_s)
        assert result["unconstrained_s_per_byte"] == pytest.approx(s_per_byte)
        assert 0.0 in (result["latency_s"], result["s_per_byte"])
    else:
        assert result["latency_s"] == pytest.approx(latency_s)
        assert result["s_per_byte"] == pytest.approx(s_per_byte)


SECONDS, GIB = 30, 0.5


def test_a_light_probe_stays_within_its_limits(tmp_path: Path) -> None:
    """Whether it finds the disk idle is not certain; its limits, and that its file is gone, are."""
    place, device = _disk()
    before = BlockDeviceCounters(device).read()
    with tempfile.TemporaryDirectory(dir=place, prefix="iolens-live-") as folder:
        options = ("--seconds", SECONDS, "--gib", GIB, "--sizes", "4KiB,64KiB,1MiB", "--repeats", 1)
        began = time.monotonic()
        done = iolens("calibrate", "run", folder, "--light", *options, "-f", "lake", "--store", tmp_path / "store")
        took_s = time.monotonic() - began
        assert done.code == 0, done.err
        assert list(Path(folder).iterdir()) == []
    after = BlockDeviceCounters(device).read()
    assert "not determined:" in done.out
    assert took_s < 1.5 * SECONDS  # the machine may be slow to start programs
    store = Store(str(tmp_path / "store"))
    runs = store.benchmark_runs() if (tmp_path / "store").exists() else []
    assert len(runs) <= 6
    assert sum(run["bytes"] for run in runs) <= 0.75 * GIB * 2**30
    assert after.ops["write"] >= before.ops["write"] + sum(
        run["operations"] for run in runs if run["direction"] == "write"
    )
    for row in store.calibrations():
        assert (row["filesystem"], row["state"]) == ("lake", "measured")
        assert row["write_latency_low_s"] < row["write_latency_s"] < row["write_latency_high_s"]
