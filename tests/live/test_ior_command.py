"""Real IOR, by the commands we make: rows have the bandwidth IOR prints in its summary, and no file is left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iolens.benchmarks.ior_sweep import IorCommand, IorTool, ior_rows, run_ior
from iolens.benchmarks.programs import run_program
from iolens.benchmarks.sweep import Plan, Values, run_sweep
from iolens.errors import IolensError
from iolens.units import KIB, MIB
from tests.live.hpc_tools import hpc_tools
from tests.live.spark_cluster import ComponentMissing

pytestmark = pytest.mark.live

LAUNCHER = "mpirun --allow-run-as-root --oversubscribe -np {tasks}"
ROUNDED = 1e-4  # IOR prints five digits of a bandwidth above 10 GiB/s


@pytest.fixture(autouse=True)
def _real_ior(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv("PATH", str(hpc_tools() / "bin"), prepend=":")
    except ComponentMissing as missing:
        pytest.skip(str(missing))


def command(folder: Path, **asked: object) -> IorCommand:
    usual: dict[str, object] = {"transfer_bytes": 64 * KIB, "block_bytes": MIB, "segments": 2}
    return IorCommand(file=folder / "data", **{**usual, **asked})  # type: ignore[arg-type]


def summary(text: str) -> dict[str, float]:
    """MiB/s by direction, of the lines under `Summary of all tests`."""
    lines = text.partition("Summary of all tests:")[2].splitlines()
    return {words[0]: float(words[3]) for line in lines if (words := line.split())[:1] in (["write"], ["read"])}


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("file_per_process", [False, True])
def test_rows_have_the_bandwidth_of_iors_summary(tmp_path: Path, tasks: int, file_per_process: bool) -> None:
    asked = command(tmp_path, tasks=tasks, file_per_process=file_per_process, reorder=True, fsync=True)
    text = run_program(asked.argv(LAUNCHER))
    rows = {str(row["direction"]): row for row in ior_rows(asked, text)}
    assert set(rows) == {"write", "read"}
    for direction, mib_per_s in summary(text).items():
        row = rows[direction]
        rounded = ROUNDED + 1e-6 / _number(row, "duration_s")  # IOR prints whole microseconds
        assert _number(row, "bytes") / _number(row, "duration_s") == pytest.approx(mib_per_s * MIB, rel=rounded)
        assert row["reported_bytes_per_s"] == pytest.approx(mib_per_s * MIB, rel=ROUNDED)
        assert row["bytes"] == tasks * 2 * MIB == asked.aggregate_bytes
        assert row["operations"] == tasks * 32
        assert (row["tasks"], row["segments"], row["file_per_process"]) == (tasks, 2, file_per_process)
    assert list(tmp_path.iterdir()) == []


def _number(row: Values, name: str) -> float:
    value = row[name]
    assert isinstance(value, int | float)
    return value


@pytest.mark.parametrize(
    "asked",
    [
        {"api": "MPIIO", "collective": True, "reorder": True},
        {"api": "MPIIO", "random": True},
        {"random": True, "file_per_process": True, "reorder": True},
        {"random": True, "tasks": 1},
        {"repetitions": 2},
    ],
    ids=str,
)
def test_what_is_not_refused_ior_can_do(tmp_path: Path, asked: dict[str, object]) -> None:
    wanted = command(tmp_path, **{"tasks": 2, **asked})
    rows = run_ior(wanted, LAUNCHER)
    assert [row["direction"] for row in rows] == ["write", "read"] * wanted.repetitions
    assert {row["collective"] for row in rows} == {wanted.collective}
    assert {row["access"] for row in rows} == {"random" if wanted.random else "sequential"}
    assert {row["api"] for row in rows} == {wanted.api}
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_kept_is_read_by_another_command(tmp_path: Path) -> None:
    (written,) = run_ior(command(tmp_path, tasks=2, read=False, keep=True), LAUNCHER)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    (read,) = run_ior(command(tmp_path, tasks=2, write=False), LAUNCHER)
    assert (written["direction"], read["direction"]) == ("write", "read")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_written_over_when_asked(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    before = (tmp_path / "data").stat().st_ino
    run_ior(command(tmp_path, tasks=2, read=False, keep=True, use_existing=True), LAUNCHER)
    assert (tmp_path / "data").stat().st_ino == before


def test_writing_is_broken_off_after_the_time(tmp_path: Path) -> None:
    tiny = command(tmp_path, transfer_bytes=512, block_bytes=64 * MIB, read=False, max_seconds=1, segments=1 << 20)
    (row,) = run_ior(tiny, LAUNCHER)
    assert 0 < _number(row, "bytes") < tiny.aggregate_bytes


def test_the_whole_run_is_stopped_after_its_time(tmp_path: Path) -> None:
    endless = command(tmp_path, transfer_bytes=512, block_bytes=64 * MIB, segments=1 << 20, tasks=2)
    with pytest.raises(subprocess.TimeoutExpired):
        run_ior(endless, LAUNCHER, timeout_s=2)


def test_a_sweep_with_two_tasks_runs_to_its_end(tmp_path: Path) -> None:
    plan = Plan(tmp_path, 4 * MIB, (64 * KIB, MIB), 1, 1.0, jobs=2, guard=False, direct=False)
    rows = list(run_sweep(plan, IorTool(plan, LAUNCHER), None))
    assert {(row["direction"], row["transfer_bytes"]) for row in rows} == {
        (direction, size) for direction in ("write", "read") for size in (64 * KIB, MIB)
    }


def test_what_ior_says_when_it_fails_is_the_error(tmp_path: Path) -> None:
    with pytest.raises(IolensError, match="failed with code"):
        run_ior(command(tmp_path / "nowhere"), LAUNCHER)
