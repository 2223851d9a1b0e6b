"""`iolens calibrate`: measure, fit, store, show and compare; and `iolens config`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.calibration.applied import applied_calibrations
from iolens.analyses.calibration.stored import find_calibration
from iolens.benchmarks import light_probe
from iolens.config import Config
from iolens.models.transaction_time import GRACE_2012, VIRTUAL_DISK
from iolens.store.store import Store
from iolens.units import MIB, epoch_us
from tests.benchmarks.standins import put_fio
from tests.cli.command import Finished, iolens
from tests.simulator.device import SimulatedDevice


def test_the_paper_s_table_one_ships(tmp_path: Path) -> None:
    done = iolens("calibrate", "show", cwd=tmp_path)
    assert done.code == 0
    assert "grace-2012" in done.out
    assert "551 MiB/s" in done.out


def test_a_known_calibration_is_stored_and_shown(tmp_path: Path) -> None:
    options = ("-f", "scratch", "--write", "1e-3,4.5e-9", "--read", "8e-4,1.2e-9", "--from", "2012-10-01")
    assert iolens("calibrate", "add", "hopper", *options, "--store", tmp_path).code == 0
    shown = iolens("calibrate", "show", "--store", tmp_path).out
    assert "hopper  stored for scratch from 2012-10-01T00:00:00Z" in shown
    assert "full at" not in shown
    assert iolens("calibrate", "add", "full", *options, "--ceiling", "70", "--store", tmp_path).code == 0
    assert "full at an FSU of 70.0 %" in iolens("calibrate", "show", "--store", tmp_path).out


def test_calibrations_of_one_file_system_are_compared_over_time(tmp_path: Path) -> None:
    """Grace's 551 MiB/s, then Hopper's 220 MB/s a year later: 2.63 times the time per byte."""
    for name, rate, day in (("grace", 551 * MIB, "2012-01-01"), ("hopper", 220e6, "2013-01-01")):
        cost = f"1.04e-3,{1 / rate}"
        options = ("--write", cost, "--read", "8e-4,1.2e-9", "--from", day, "-f", "scratch", "--target-class", "sata")
        assert iolens("calibrate", "add", name, *options, "--store", tmp_path).code == 0
    shown = iolens("calibrate", "show", "-f", "scratch", "--store", tmp_path)
    assert "hopper [sata]" in shown.out
    assert "+162.6" in shown.out
    result = json.loads(iolens("calibrate", "show", "-f", "scratch", "--store", tmp_path, "--format", "json").out)
    drift = result["drift"][0]
    assert (drift["earlier"], drift["later"], drift["target_class"]) == ("grace", "hopper", "sata")
    change = next(item for item in drift["changes"] if item["coefficient"] == "write_s_per_byte")
    assert change["change_pct"] == pytest.approx(162.6, abs=0.1)
    assert change["change_pct_per_year"] == pytest.approx(162.6 * 365.25 / 366, abs=0.1)


def test_coefficients_must_be_two_positive_numbers(tmp_path: Path) -> None:
    for wrong in ("1e-3", "a,b", "0,1e-9", "1e-3,-1e-9"):
        done = iolens("calibrate", "add", "x", "--write", wrong, "--read", "1,1", "--store", tmp_path)
        assert (done.code, "--write" in done.err) == (2, True)


def test_classes_are_listed_with_their_ends_and_evidence(tmp_path: Path) -> None:
    shown = iolens("calibrate", "classes", cwd=tmp_path).out
    assert "Grace" in shown
    listed = json.loads(iolens("calibrate", "classes", "--format", "json", cwd=tmp_path).out)["classes"]
    grace = listed[0]
    write, read = grace["directions"]
    assert (grace["name"], write["direction"], read["direction"]) == ("grace-2012", "write", "read")
    assert write["s_per_byte_high"] == pytest.approx(1 / 220e6)
    assert (read["latency_low_s"], read["latency_high_s"]) == (None, None)
    assert "Fig. 8" in grace["evidence"]


def _stored(store: Path) -> list[dict[str, Any]]:
    return [row for row in Store(str(store)).calibrations() if row["source"] == "calibrate use"]


def test_a_class_is_chosen_with_its_band_and_state(tmp_path: Path) -> None:
    options = ("-f", "scratch", "--class", "ssd", "--from", "2026-03-01", "--store", tmp_path)
    done = iolens("calibrate", "use", "virtual-disk-2026", *options)
    assert done.code == 0, done.err
    assert "scratch, class ssd, uses virtual-disk-2026 from 2026-03-01T00:00:00Z on (state: class)" in done.out
    (row,) = _stored(tmp_path)
    assert (row["filesystem"], row["target_class"], row["state"]) == ("scratch", "ssd", "class")
    assert row["valid_from"] == epoch_us(datetime(2026, 3, 1, tzinfo=UTC))
    assert (row["write_latency_s"], row["queue_depth"]) == (VIRTUAL_DISK.calibration.write.latency_s, 8)
    assert (row["write_latency_low_s"], row["write_latency_high_s"]) == (2.63829e-05, 9.68361e-05)
    assert (row["read_s_per_byte_low"], row["read_s_per_byte_high"]) == (2.73050e-10, 5.97971e-10)
    assert row["method"] is None


def test_an_end_that_is_not_known_is_stored_as_such(tmp_path: Path) -> None:
    assert iolens("calibrate", "use", "grace-2012", "-f", "scratch", "--store", tmp_path).code == 0
    (row,) = _stored(tmp_path)
    assert (row["valid_from"], row["read_latency_low_s"]) == (None, None)
    assert row["write_s_per_byte_high"] == pytest.approx(1 / 220e6)


def test_a_choice_takes_the_place_of_what_was_in_use(tmp_path: Path) -> None:
    """Without a time it holds from where the newest calibration of these targets began, and of no others."""
    costs = ("--write", "1e-3,4e-9", "--read", "8e-4,1e-9", "--store", tmp_path)
    for name, day, more in (("old", "2024-01-01", ()), ("new", "2025-01-01", ()), ("of-ssd", "2026-01-01", ("ssd",))):
        where = ("-f", "scratch", "--from", day, *(("--target-class", *more) if more else ()))
        assert iolens("calibrate", "add", name, *where, *costs).code == 0
    done = iolens("calibrate", "use", "virtual-disk-2026", "-f", "scratch", "--store", tmp_path)
    assert "from 2025-01-01T00:00:00Z on" in done.out
    store = Store(str(tmp_path))
    for at, expected in ((2024, "old"), (2025, "virtual-disk-2026"), (2026, "virtual-disk-2026")):
        applied, _ = applied_calibrations(
            store.calibrations(), Config(), None, "scratch",
            tuple(epoch_us(datetime(at, month, 1, tzinfo=UTC)) for month in (2, 3)), ["OST0"],
        )  # fmt: skip
        assert applied[-1].calibration.name == expected


def test_a_calibration_of_all_time_does_not_hide_a_dated_one(tmp_path: Path) -> None:
    costs = ("--write", "1e-3,4e-9", "--read", "8e-4,1e-9", "-f", "scratch", "--store", tmp_path)
    assert iolens("calibrate", "add", "dated", *costs, "--from", "2025-01-01").code == 0
    assert iolens("calibrate", "add", "ever", *costs).code == 0
    stored = Store(str(tmp_path)).calibrations()
    assert find_calibration(stored, Config(), None, "scratch", None)[0].name == "dated"


def test_a_stored_calibration_is_chosen_by_its_name(tmp_path: Path) -> None:
    """For its own file system as it is; for another one it is coefficients of other disks: a class."""
    store = Store(str(tmp_path / "store"))
    costs = {f"{direction}_{name}": 1e-4 for direction in ("write", "read") for name in ("latency_s", "s_per_byte")}
    measured = {"name": "lake-1", "filesystem": "lake", "state": "measured", "write_latency_low_s": 9e-5, **costs}
    store.add_calibration({**measured, "time": 1, "source": "calibrate", "evidence": "44 runs"})
    for filesystem in ("lake", "pond"):
        assert iolens("calibrate", "use", "lake-1", "-f", filesystem, "--store", tmp_path / "store").code == 0
    own, other = sorted(_stored(tmp_path / "store"), key=lambda row: str(row["filesystem"]))
    assert (own["state"], own["evidence"], own["write_latency_low_s"]) == ("measured", "44 runs", 9e-5)
    assert (other["state"], other["evidence"]) == ("class", "made for lake: 44 runs")


def test_a_configured_calibration_is_a_class(tmp_path: Path) -> None:
    config = tmp_path / "iolens.toml"
    config.write_text(
        "[calibrations.ours]\nwrite_latency_s = 1e-3\nwrite_s_per_byte = 2e-9\n"
        "read_latency_s = 9e-4\nread_s_per_byte = 1e-9\n"
    )
    options = ("-f", "scratch", "--store", tmp_path / "store", "--config", config)
    assert iolens("calibrate", "use", "ours", *options).code == 0
    (row,) = _stored(tmp_path / "store")
    assert (row["state"], row["write_s_per_byte"], row["evidence"]) == ("class", 2e-9, "configured as ours")


def test_a_choice_that_the_configuration_overrules_says_so(tmp_path: Path) -> None:
    config = tmp_path / "iolens.toml"
    config.write_text('[filesystems.scratch]\ncalibration = "grace-2012"\n')
    options = ("-f", "scratch", "--store", tmp_path / "store", "--config", config)
    said = iolens("calibrate", "use", "virtual-disk-2026", "--class", "ssd", *options).err
    assert "[filesystems.scratch] names the calibration grace-2012, which comes before stored ones" in said
    assert "[filesystems.scratch.classes] names no targets of class ssd" in said
    assert iolens("calibrate", "use", "grace-2012", *options).err == ""


def test_an_unknown_name_lists_those_there_are(tmp_path: Path) -> None:
    done = iolens("calibrate", "use", "nvme", "-f", "scratch", "--store", tmp_path)
    assert (done.code, "grace-2012, virtual-disk-2026" in done.err) == (2, True)


def disk() -> Path:
    """A directory that is not memory, where sweeps may be pretended."""
    for place in (Path(__file__).parent, Path("/var/tmp")):
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", place], capture_output=True, text=True, check=True
        ).stdout.strip()
        if kind not in ("tmpfs", "ramfs"):
            return place
    pytest.skip("no disk here")


@pytest.fixture
def bench() -> Iterator[Path]:
    """A directory for a sweep; empty again at the end."""
    folder = disk() / f".calibrate-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        assert [item.name for item in folder.iterdir()] == []
        folder.rmdir()


def sweep(bench: Path, programs: Path, *options: object) -> Finished:
    observed = ("--lustre-root", programs / "lustre", "--target", "lake-OST0000")
    words = ("calibrate", "run", bench, "--size", "64MiB", "--repeats", "2", "--runtime", "1s", "--buffered")
    return iolens(*words, *observed, *options, PATH=f"{programs}:{os.environ['PATH']}")


def test_run_fit_save_and_use(tmp_path: Path, bench: Path) -> None:
    """A sweep of a device that behaves like Grace, through the store, gives Table I again."""
    programs = tmp_path / "bin"
    put_fio(programs, read_ahead=True)
    store = tmp_path / "store"
    done = sweep(bench, programs, "-f", "lake", "--store", store)
    assert done.code == 0, done.err
    assert "warning: buffered" in done.err
    assert "observing brw_stats of lake-OST0000" in done.err
    assert "52 runs" in done.out  # six of the cache guard, 44 of sizes, two that saturate
    fitted = iolens(
        "calibrate", "fit", "--store", store, "--format", "json", "--save", "lake-1", "--target-class", "hdd"
    )
    assert fitted.code == 0, fitted.err
    result = json.loads(fitted.out)
    for direction in ("write", "read"):
        truth = GRACE_2012.of(direction)
        fit = result["observed"][direction]
        assert fit["latency_s"] == pytest.approx(truth.latency_s, rel=0.02)
        assert fit["s_per_byte"] == pytest.approx(truth.s_per_byte, rel=0.02)
    assert result["requested"]["read"]["r2"] < 0.9 < result["observed"]["read"]["r2"]
    assert len(result["runs"]) == 44  # eleven sizes, both ways, twice
    assert result["ceiling_fsu_pct"] == pytest.approx(80, rel=0.02)
    assert len(result["saturating_fsu_pct"]) == 2
    assert "2 runs that read and wrote all sizes at once showed an FSU of 80 to 80 %" in " ".join(result["notes"])
    shown = json.loads(iolens("calibrate", "show", "-f", "lake", "--store", store, "--format", "json").out)
    assert shown["calibrations"][0]["ceiling_fsu_pct"] == result["ceiling_fsu_pct"]
    assert "full at an FSU of 8" in iolens("calibrate", "show", "-f", "lake", "--store", store).out
    assert [(item["calibration"]["name"], item["target_class"]) for item in shown["calibrations"]] == [
        ("lake-1", "hdd")
    ]
    assert shown["calibrations"][0]["calibration"]["write"]["latency_s"] == result["observed"]["write"]["latency_s"]


def test_a_sweep_in_a_file_is_fitted_with_its_figures(tmp_path: Path, bench: Path) -> None:
    programs, file = tmp_path / "bin", tmp_path / "sweep.json"
    put_fio(programs)
    assert sweep(bench, programs, "--sizes", "4KiB,64KiB,1MiB", "-o", file).code == 0
    assert not Path("iolens-store").exists()
    figures = [f"--figure={name}={tmp_path / name}.svg" for name in ("prediction", "bandwidth", "sizes", "asymptote")]
    fitted = iolens("calibrate", "fit", file, *figures)
    assert fitted.code == 0, fitted.err
    assert "What a disk I/O costs" in fitted.out
    assert "1.040e-03 s" in fitted.out
    assert all((tmp_path / f"{name}.svg").stat().st_size for name in ("prediction", "bandwidth", "sizes", "asymptote"))
    assert iolens("calibrate", "fit", file, "--figure", "list").out.split() == [
        "prediction", "bandwidth", "sizes", "asymptote",
    ]  # fmt: skip


def light(bench: Path, programs: Path, *options: object) -> Finished:
    """A probe of three sizes, once: seven looks at the target and six runs."""
    observed = ("--lustre-root", programs / "lustre", "--target", "lake-OST0000")
    words = ("calibrate", "run", bench, "--light", "--buffered", "--gib", "1", "--seconds", "60", *observed)
    return iolens(*words, *options, PATH=f"{programs}:{os.environ['PATH']}")


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(light_probe, "LOOK_S", 0.01)


@pytest.mark.usefixtures("short_looks")
def test_a_light_probe_is_stored_with_wide_ends_and_says_what_it_does_not_tell(tmp_path: Path, bench: Path) -> None:
    programs, store = tmp_path / "bin", tmp_path / "store"
    put_fio(programs)
    more = ("--sizes", "4KiB,64KiB,1MiB", "--repeats", "1", "-f", "lake", "--target-class", "hdd", "--store", store)
    done = light(bench, programs, *more)
    assert done.code == 0, done.err
    assert "at most 60 s and 1 GiB on" in done.err
    assert ": 6 runs; fit them with: iolens calibrate fit light-" in done.out
    assert "waited 0 s for others\n" in done.out
    assert "the FSU of a full disk: nothing was saturated" in done.out
    stored = Store(str(store))
    (row,) = stored.calibrations()
    assert (row["filesystem"], row["target_class"], row["state"]) == ("lake", "hdd", "measured")
    assert row["ceiling_fsu_pct"] is None
    for direction in ("write", "read"):
        truth = GRACE_2012.of(direction)
        assert row[f"{direction}_latency_s"] == pytest.approx(truth.latency_s, rel=0.02)
        assert row[f"{direction}_s_per_byte_low"] == pytest.approx(truth.s_per_byte / 1.25, rel=0.02)
        assert row[f"{direction}_s_per_byte_high"] == pytest.approx(1.25 * truth.s_per_byte, rel=0.02)
    assert {run["sweep"] for run in stored.benchmark_runs()} == {row["name"]}
    assert iolens("calibrate", "fit", row["name"], "--store", store).code == 0


@pytest.mark.usefixtures("short_looks")
def test_a_light_probe_of_one_size_stores_its_runs_and_no_calibration(tmp_path: Path, bench: Path) -> None:
    programs, store = tmp_path / "bin", tmp_path / "store"
    put_fio(programs)
    done = light(bench, programs, "--sizes", "1MiB", "--repeats", "1", "-f", "lake", "--store", store)
    assert (done.code, "two unknowns need at least two runs of different size" in done.out) == (0, True)
    assert "stored light-" not in done.out
    assert (len(Store(str(store)).benchmark_runs()), Store(str(store)).calibrations()) == (2, [])


def test_a_light_probe_sets_its_own_limits(tmp_path: Path, bench: Path) -> None:
    programs = tmp_path / "bin"
    put_fio(programs)
    refused = (
        (("--size", "1GiB", "--jobs", "2"), "leave out --size, --jobs"),
        (("--ior",), "leave out --ior"),
        (("--target", "a,b"), "--light probes one target: --target names 2"),
        (("--gib", "0.01"), "--gib 0.01 is too little"),
    )
    for options, why in refused:
        done = light(bench, programs, *options)
        assert (done.code, why in done.err) == (2, True), done.err
    done = sweep(bench, programs, "--seconds", "10")
    assert (done.code, "--seconds: only with --light" in done.err) == (2, True)


FULL = ("--size", "64MiB", "--no-asymptote")


@pytest.mark.parametrize(
    ("how", "kind"), [(signal.SIGINT, FULL), (signal.SIGTERM, FULL), (signal.SIGINT, ("--light", "--gib", "1"))]
)
def test_an_interrupted_sweep_keeps_its_runs_and_no_file(
    tmp_path: Path, bench: Path, how: signal.Signals, kind: tuple[str, ...]
) -> None:
    programs, file = tmp_path / "bin", tmp_path / "sweep.json"
    put_fio(programs)
    (programs / "log.hold").write_text("4")  # runs from the fifth on wait: the sweep cannot end before the signal
    command = [
        sys.executable, "-m", "iolens.cli.main", "calibrate", "run", bench, *kind, "--buffered", "-o", file,
        "--lustre-root", programs / "lustre", "--target", "lake-OST0000",
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    process = subprocess.Popen(list(map(str, command)), env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        log = programs / "log"
        deadline = time.monotonic() + 60
        while not log.exists() or len(log.read_text().splitlines()) < 5:  # the layout, and three whole runs
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    assert "interrupted after" in err.decode()
    kept = json.loads(file.read_text())
    assert kept["complete"] is False
    assert len(kept["runs"]) == 3


def test_places_that_are_refused(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    put_fio(programs)
    path = f"{programs}:{os.environ['PATH']}"
    done = iolens("calibrate", "run", "/dev/shm", "--store", tmp_path / "s", PATH=path)
    assert (done.code, "memory, not a disk" in done.err) == (2, True)
    done = iolens("calibrate", "run", disk(), "--size", "7EiB", "--store", tmp_path / "s", PATH=path)
    assert (done.code, "free" in done.err) == (2, True)
    done = iolens("calibrate", "run", tmp_path / "nowhere", PATH=path)
    assert (done.code, "no such" in done.err) == (2, True)
    done = iolens("calibrate", "run", disk(), "--lustre-root", "/", "--buffered", PATH=path)
    assert (done.code, "belong together" in done.err) == (2, True)
    assert not (tmp_path / "s").exists()


def test_imported_results_are_fitted(tmp_path: Path) -> None:
    """fio files of a device with known costs, through ingest and directly."""
    device = SimulatedDevice(GRACE_2012, largest_io_bytes=4 * MIB)
    for row in device.sweep():
        side = {
            "io_bytes": row["bytes"], "io_kbytes": 1, "total_ios": row["operations"], "bw_bytes": 1, "iops": 1,
            "runtime": float(str(row["duration_s"])) * 1000,
        }  # fmt: skip
        options = {"rw": f"rand{row['direction']}", "bs": str(row["transfer_bytes"]), "direct": "1"}
        job = {"jobname": "j", "groupid": 0, "error": 0, "job options": options, str(row["direction"]): side}
        document = {"fio version": "fio-3.40", "timestamp_ms": 1_700_000_000_000, "jobs": [job]}
        (tmp_path / f"{row['direction']}-{row['transfer_bytes']}.json").write_text(json.dumps(document))
    store = tmp_path / "store"
    files = sorted(tmp_path.glob("*.json"))
    loaded = iolens("ingest", *files, "-f", "lake", "--store", store)
    assert (loaded.code, "22 benchmark_runs" in loaded.out) == (0, True), loaded.err
    again = iolens("ingest", *files, "-f", "lake", "--store", store)
    assert "22 captures were already present" in again.out
    direct = json.loads(iolens("calibrate", "fit", *files, "--format", "json").out)
    by_store = json.loads(iolens("calibrate", "fit", "-f", "lake", "--store", store, "--format", "json").out)
    assert direct["requested"] == by_store["requested"]
    assert direct["requested"]["write"]["rate_mib_per_s"] == pytest.approx(551, abs=0.5)
    assert direct["observed"]["write"] is None


def test_a_fit_that_cannot_be_says_why(tmp_path: Path) -> None:
    nothing = iolens("calibrate", "fit", "--store", tmp_path / "store")
    assert (nothing.code, "no such directory" in nothing.err) == (1, True)
    iolens("calibrate", "add", "a", "--write", "1e-3,4e-9", "--read", "8e-4,1e-9", "--store", tmp_path / "store")
    empty = iolens("calibrate", "fit", "--store", tmp_path / "store")
    assert (empty.code, "no benchmark runs" in empty.err) == (2, True)
    (tmp_path / "x.txt").write_text("nothing of interest\n")
    strange = iolens("calibrate", "fit", tmp_path / "x.txt", "--store", tmp_path / "store")
    assert (strange.code, "x.txt" in strange.err) == (1, True)


def test_the_configuration_in_force_is_shown(tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text('store = "s"\n[filesystems.scratch]\npeak = "35GB/s"\n')
    shown = iolens("config", "show", cwd=tmp_path).out
    assert "iolens.toml" in shown
    assert "peak_bytes_per_s = 35000000000.0" in shown
    assert "/elsewhere" in iolens("config", "show", cwd=tmp_path, IOLENS_STORE="/elsewhere").out
