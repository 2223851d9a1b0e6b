"""The sweep: what it runs, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from iolens.analyses.calibration.fit import calibration_fit
from iolens.benchmarks import light_probe as safety
from iolens.benchmarks.device_counters import LustreTargetCounters
from iolens.benchmarks.fio_sweep import FioTool
from iolens.benchmarks.guardian import our_guardian
from iolens.benchmarks.ior_sweep import IorTool
from iolens.benchmarks.light_probe import check_plan
from iolens.benchmarks.programs import _stop, found_program, run_program
from iolens.benchmarks.sweep import (
    TRANSFER_SIZES,
    Plan,
    SweepPoint,
    Values,
    rows_of_document,
    run_sweep,
    sweep_document,
)
from iolens.errors import IolensError, UsageError
from iolens.models.transaction_time import GRACE_2012
from iolens.units import GIB, KIB, MIB
from tests.benchmarks.standins import put_fio, put_ior

SMALL = (4 * KIB, 64 * KIB, MIB)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary directories may be memory; these tests are about something else."""
    monkeypatch.setattr(safety, "mounted_kind", lambda *_: "ext4")


def disk_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def test_the_sweep_of_the_paper_has_eleven_sizes_writes_before_reads() -> None:
    assert tuple(4 * KIB * 2**power for power in range(11)) == TRANSFER_SIZES
    points = Plan(Path(), 4 * GIB, repeats=3, guard=False).points()
    assert len(points) == 66
    assert [point.direction for point in points[:22]] == ["write"] * 11 + ["read"] * 11
    assert [point.transfer_bytes for point in points[:11]] == list(TRANSFER_SIZES)
    assert [point.repeat for point in points[::22]] == [0, 1, 2]


def test_the_cache_guard_doubles_the_size_up_to_the_whole_file() -> None:
    guard = [point for point in Plan(Path(), 4 * GIB).points() if point.study == "aggregate_size"]
    assert [point.aggregate_bytes for point in guard[:5]] == [256 * MIB, 512 * MIB, GIB, 2 * GIB, 4 * GIB]
    assert {point.transfer_bytes for point in guard} == {MIB}
    assert len(guard) == 10
    small = Plan(Path(), 20 * MIB).points()
    assert all(point.study == "transfer_size" for point in small)  # one size says nothing


def test_a_sweep_observed_at_the_target_finds_the_device_again(tmp_path: Path, programs: Path) -> None:
    put_fio(programs, read_ahead=True)
    plan = Plan(disk_folder(tmp_path), 64 * MIB, repeats=1, runtime_s=0.5, queue_depth=7, filesystem="lake")
    counters = LustreTargetCounters(("lake-OST0000",), programs / "lustre")
    rows = list(run_sweep(plan, FioTool(plan), counters))
    assert list(plan.place.iterdir()) == []
    result = calibration_fit(rows)
    for direction in ("write", "read"):
        fit, truth = result.observed.of(direction), GRACE_2012.of(direction)
        assert fit is not None
        assert (fit.latency_s, fit.s_per_byte) == pytest.approx((truth.latency_s, truth.s_per_byte), rel=0.02)
    asked = result.requested.read
    assert asked is not None
    assert asked.mape_pct > 10
    assert result.queue_depth == 7
    assert result.read_amplification == pytest.approx(1.14, abs=0.05)
    assert {row["filesystem"] for row in rows} == {"lake"}
    assert len({row["run_id"] for row in rows}) == len(rows) - 1 == 22 + 6 + 1  # the last both reads and writes
    assert result.ceiling_fsu_pct == pytest.approx(80, rel=0.02)
    assert result.saturating_fsu_pct == [result.ceiling_fsu_pct]
    assert result.runs_left_out == 0
    assert result.sizes_at_disk is not None
    assert result.sizes_at_disk[0].transfer_bytes == 4096


def test_fio_is_asked_for_a_random_seek_after_every_transfer(tmp_path: Path, programs: Path) -> None:
    put_fio(programs)
    plan = Plan(disk_folder(tmp_path), 64 * MIB, SMALL, 1, 1.5, queue_depth=8, jobs=2, guard=False)
    list(run_sweep(plan, FioTool(plan), None))
    layout, first, *_ = [json.loads(line) for line in (programs / "log").read_text().splitlines()]
    assert (layout["rw"], layout["size"], layout["end_fsync"]) == ("write", str(64 * MIB), "1")
    expected = {
        "rw": "randwrite", "bs": "4096", "direct": "1", "iodepth": "8", "numjobs": "2", "runtime": "1500ms",
        "size": str(64 * MIB), "randrepeat": "0",
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    assert {"norandommap", "time_based", "group_reporting"} <= first.keys()


def test_the_saturating_test_mixes_all_sizes_and_directions_at_the_same_depth(tmp_path: Path, programs: Path) -> None:
    put_fio(programs)
    plan = Plan(disk_folder(tmp_path), 64 * MIB, SMALL, repeats=2, runtime_s=1.5, queue_depth=8, guard=False)
    rows = list(run_sweep(plan, FioTool(plan), LustreTargetCounters(("lake-OST0000",), programs / "lustre")))
    *_, first, last = [json.loads(line) for line in (programs / "log").read_text().splitlines()]
    assert first == last
    assert (first["rw"], first["bssplit"], first["iodepth"]) == ("randrw", "4096/:65536/:1048576/", "8")
    mixed = [row for row in rows if row["study"] == "saturation"]
    assert [row["direction"] for row in mixed] == ["read", "write"] * 2
    assert all(row["mixed"] for row in mixed)
    assert all(json.loads(str(row["device_sizes"])).keys() == {"4096", "65536", "1048576"} for row in mixed)
    assert not [row for row in rows if row["study"] != "saturation" and row.get("mixed")]


def test_ior_writes_and_reads_at_random_the_file_that_is_there(tmp_path: Path, programs: Path) -> None:
    put_ior(programs)
    plan = Plan(disk_folder(tmp_path), 64 * MIB, SMALL, 1, 3.0, jobs=2, guard=False)
    rows = list(run_sweep(plan, IorTool(plan), None))
    assert list(plan.place.iterdir()) == []
    assert [row["direction"] for row in rows] == ["write"] * 3 + ["read"] * 3
    log = [line for line in (programs / "log").read_text().splitlines() if not line.startswith("mpirun")]
    assert "-E" not in log[0].split()
    assert {"-w", "-E", "-z", "-k", "--posix.odirect", "-e"} <= set(log[1].split())
    assert {"-r", "-z", "-E"} <= set(log[-1].split())
    assert "-C" not in log[-1].split()  # IOR refuses it beside -z on a shared file
    assert "-D 3" in log[1]
    assert "mpirun -np 2" in (programs / "log").read_text()
    fit = calibration_fit(rows).requested.write
    assert fit is not None
    assert fit.latency_s == pytest.approx(GRACE_2012.write.latency_s, rel=0.01)
    assert calibration_fit(rows).ceiling_fsu_pct is None  # nothing was observed at the disk
    given = IorTool(plan, "launch -N {tasks}")
    assert given.launcher == ["launch", "-N", "2"]


def test_ior_lays_out_all_that_any_size_will_read(tmp_path: Path, programs: Path) -> None:
    """10 MiB hold two transfers of 4 MiB, and more of 4 KiB: those would else read beyond the end of the file."""
    put_ior(programs)
    plan = Plan(disk_folder(tmp_path), 20 * MIB, (4 * KIB, 1536 * KIB, 4 * MIB), 1, 1.0, jobs=2, guard=False)
    list(run_sweep(plan, IorTool(plan), None))
    log = [line.split() for line in (programs / "log").read_text().splitlines() if not line.startswith("mpirun")]
    blocks = [int(words[words.index("-b") + 1]) for words in log]
    assert blocks[0] == 10 * MIB == max(blocks)
    assert blocks[1:4] == [10 * MIB, 6 * 1536 * KIB, 8 * MIB]
    for words, block in zip(log, blocks, strict=True):
        assert block % int(words[words.index("-t") + 1]) == 0


def test_ior_is_not_asked_for_a_random_order_of_one_transfer(tmp_path: Path, programs: Path) -> None:
    put_ior(programs)
    plan = Plan(disk_folder(tmp_path), 64 * MIB, (4 * KIB, 32 * MIB), 1, 1.0, jobs=2, guard=False)
    with pytest.raises(UsageError, match=r"2 tasks cannot share 64 MiB in transfers of 32 MiB \(at least 2 for each\)"):
        IorTool(plan)


def test_a_launcher_that_starts_lone_tasks_is_found_out(tmp_path: Path, programs: Path) -> None:
    """The stand-in says that it ran with 2 tasks: one run of them where 4 were asked for, or two side by side."""
    put_ior(programs)
    four = Plan(disk_folder(tmp_path), 64 * MIB, SMALL, 1, 1.0, jobs=4, guard=False)
    with pytest.raises(IolensError, match="expected one run of 4 tasks, found tasks of 2"):
        list(run_sweep(four, IorTool(four), None))
    twice = programs / "twice"
    twice.write_text('#!/bin/sh\n"$@"\n"$@"\n')
    twice.chmod(0o755)
    two = replace(four, jobs=2)
    with pytest.raises(IolensError, match=r"twice: expected one run of 2 tasks, found tasks of 2 \+ 2"):
        list(run_sweep(two, IorTool(two, str(twice)), None))


def test_the_error_of_ior_is_said_and_not_the_complaint_of_its_launcher() -> None:
    script = "echo 'ERROR: no such file, (ior.c:1)'; echo 'mpirun noticed an error' >&2; exit 3"
    with pytest.raises(IolensError, match=r"sh failed with code 3: ERROR: no such file, \(ior.c:1\)"):
        run_program(["sh", "-c", script])


class Failing:
    """A tool that fails at its second run."""

    name = "fio"
    mixes = False

    def __init__(self, plan: Plan) -> None:
        self.plan, self.runs = plan, 0

    def lay_out(self) -> None:
        self.plan.file.write_bytes(b"x")

    def run(self, point: SweepPoint) -> list[Values]:
        self.runs += 1
        if self.runs == 2:
            raise IolensError("the disk went away")
        return [{"direction": point.direction}]


def test_the_file_goes_when_the_sweep_fails_or_is_given_up(tmp_path: Path) -> None:
    plan = Plan(disk_folder(tmp_path), 64 * MIB, guard=False)
    sweep = run_sweep(plan, Failing(plan), None)
    assert next(sweep)["iteration"] == 0
    assert plan.file.exists()
    with pytest.raises(IolensError, match="went away"):
        next(sweep)
    assert not plan.file.exists()
    given_up = run_sweep(plan, Failing(plan), None)
    next(given_up)
    given_up.close()  # type: ignore[attr-defined]
    assert not plan.file.exists()


def test_a_result_of_the_wrong_direction_is_an_error(tmp_path: Path) -> None:
    class Wrong(Failing):
        def run(self, point: SweepPoint) -> list[Values]:
            return []

    plan = Plan(disk_folder(tmp_path), 64 * MIB)
    with pytest.raises(IolensError, match="no write result"):
        list(run_sweep(plan, Wrong(plan), None))


@pytest.mark.usefixtures("on_a_disk")
def test_without_space_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"free; the sweep needs"):
        check_plan(Plan(tmp_path, 1 << 60, direct=False), destroy_data=False)


@pytest.mark.usefixtures("on_a_disk")
def test_a_margin_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = GIB + 100 * MIB

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage)
    with pytest.raises(UsageError, match="leaves at least 102 MiB"):
        check_plan(Plan(tmp_path, GIB, direct=False), destroy_data=False)


def test_memory_is_not_a_disk() -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("no tmpfs here")
    with pytest.raises(UsageError, match="tmpfs: memory, not a disk"):
        check_plan(Plan(Path("/dev/shm"), 64 * MIB), destroy_data=False)


@pytest.mark.usefixtures("on_a_disk")
def test_where_direct_io_fails_only_a_flag_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "direct_io_trouble", lambda directory: "Invalid argument")
    with pytest.raises(UsageError, match=r"O_DIRECT does not work here \(Invalid argument\)"):
        check_plan(Plan(tmp_path, 64 * MIB), destroy_data=False)
    warnings = check_plan(Plan(tmp_path, 64 * MIB, direct=False), destroy_data=False)
    assert any("buffered" in warning for warning in warnings)


def test_direct_io_is_tried_without_leaving_a_file(tmp_path: Path) -> None:
    safety.direct_io_trouble(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert safety.direct_io_trouble(tmp_path / "nowhere") is not None


@pytest.mark.usefixtures("on_a_disk")
def test_a_file_smaller_than_memory_is_warned_of(tmp_path: Path) -> None:
    warnings = check_plan(Plan(tmp_path, 64 * MIB, direct=False), destroy_data=False)
    assert any("smaller than this machine's memory" in warning for warning in warnings)


class PretendedDevice:
    """Makes some path look like an unused block device."""

    @staticmethod
    def put(monkeypatch: pytest.MonkeyPatch, users: list[str]) -> None:
        monkeypatch.setattr(Path, "is_block_device", lambda path: path.name == "sdx")
        monkeypatch.setattr(safety, "users_of_device", lambda *_: users)
        monkeypatch.setattr(safety, "device_bytes", lambda path: GIB)


def test_a_device_is_touched_only_if_that_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "sdx"
    device.touch()
    PretendedDevice.put(monkeypatch, ["mounted on /data"])
    with pytest.raises(UsageError, match=r"in use \(mounted on /data\)"):
        check_plan(Plan(device, 64 * MIB), destroy_data=True)
    PretendedDevice.put(monkeypatch, [])
    with pytest.raises(UsageError, match="everything on it is lost"):
        check_plan(Plan(device, 64 * MIB), destroy_data=False)
    with pytest.raises(UsageError, match=r"has 1 GiB, less than"):
        check_plan(Plan(device, 2 * GIB), destroy_data=True)
    check_plan(Plan(device, 64 * MIB), destroy_data=True)
    assert Plan(device, 64 * MIB).file == device


@pytest.mark.usefixtures("on_a_disk")
def test_places_that_are_neither(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, words in ((tmp_path / "file", "neither"), (tmp_path / "nowhere", "no such")):
        with pytest.raises(UsageError, match=words):
            check_plan(Plan(place, 64 * MIB), destroy_data=False)
    with pytest.raises(UsageError, match="smaller than a transfer"):
        check_plan(Plan(tmp_path, MIB), destroy_data=False)


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(IolensError, match=r"sh failed with code 3: error: no such disk"):
        run_program(["sh", "-c", "echo hello >&2; echo 'error: no such disk' >&2; exit 3"])
    with pytest.raises(UsageError, match="not on PATH"):
        found_program("a-benchmark-nobody-has")


def test_a_program_is_stopped_with_us(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def remembered(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        started.append(real(*arguments, **options))  # type: ignore[call-overload]
        return started[-1]

    def interrupted(self: subprocess.Popen[bytes], **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", remembered)
    monkeypatch.setattr(real, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_program(["sleep", "3600"])
    assert started[-1].returncode == -signal.SIGTERM


LAUNCHER = """
import subprocess, sys, time
task = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], process_group=0)
print(task.pid, file=open(sys.argv[1], "w"), flush=True)
time.sleep(3600)
"""


def launcher(tmp_path: Path) -> list[str]:
    """Begins a task in a process group of its own, as mpirun does, and leaves it behind when it is ended."""
    return [sys.executable, "-c", LAUNCHER, str(tmp_path / "task")]


def begun_task(tmp_path: Path) -> psutil.Process:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError, ValueError):
            return psutil.Process(int((tmp_path / "task").read_text()))
        time.sleep(0.01)
    raise AssertionError("the task was not begun")


def test_a_task_that_its_launcher_leaves_behind_is_ended(tmp_path: Path) -> None:
    process = subprocess.Popen(launcher(tmp_path), start_new_session=True)
    task = begun_task(tmp_path)
    _stop(process)
    task.wait(60)
    assert process.returncode == -signal.SIGTERM


def test_a_task_that_its_launcher_leaves_behind_ends_when_we_are_killed(tmp_path: Path) -> None:
    code = f"from iolens.benchmarks.programs import run_program; run_program({launcher(tmp_path)!r})"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        task = begun_task(tmp_path)
        process.kill()
    task.wait(60)


def test_the_guardian_outlives_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("no program")
    with pytest.raises(OSError, match="Permission denied"):
        run_program([str(tmp_path / "program")])
    guardian = our_guardian()
    assert run_program([sys.executable, "-c", "print('well')"]) == "well\n"
    assert our_guardian() is guardian
    guardian._process.kill()
    guardian._process.wait()
    assert run_program([sys.executable, "-c", "print('well')"]) == "well\n"
    assert our_guardian() is not guardian


def test_a_sweep_written_down_can_be_read_again() -> None:
    plan = Plan(Path("/lake"), GIB)
    rows: list[Values] = [{"direction": "read", "bytes": 5}]
    assert rows_of_document(sweep_document(plan, "fio", rows, complete=True)) == rows
    for other in ("", "[]", '{"fio version": "fio-3.40"}', "not json"):
        assert rows_of_document(other) is None
