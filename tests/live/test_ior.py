"""Real IOR: the calibration sweep, the script of a workload and the acceptance suite, held against IOR's own summaries.

Alone, under mpirun and as steps of a real Slurm; the file is shared in a sweep, and each task has its own in a script.
Also that a real mdtest which time stopped created the files that we count.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks import ior_sweep
from iolens.benchmarks import ior_sweep as ior_command
from iolens.benchmarks.acceptance import write_acceptance
from iolens.benchmarks.light_probe import direct_io_trouble
from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies.plan import StudyFolder
from iolens.benchmarks.synthetic_fio import TrafficBounds
from iolens.benchmarks.synthetic_ior import ior_workload, write_ior
from iolens.records import Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.results import ResultFile
from iolens.units import MIB
from tests.benchmarks.made_models import model
from tests.cli.command import iolens
from tests.live.hpc_tools import hpc_tools
from tests.live.slurm_cluster import SlurmCluster
from tests.live.spark_cluster import ComponentMissing
from tests.sources.results import Results

pytestmark = pytest.mark.live

MPIRUN = "mpirun --allow-run-as-root --oversubscribe -np {tasks}"
SRUN = "srun --mpi=pmix --nodes 1 -n {tasks}"
NO_LAUNCHER = ""
SIZES = (64 << 10, MIB)
FILE_BYTES = 16 * MIB
PRINTED = 0.01  # IOR prints rates and seconds to three digits or more
LONG_S = 600.0  # no run of a script is stopped by time, however busy the machine is
AS_ROOT = {  # of Open MPI, where the command line is not ours; all tasks on this host
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl": "self,vader",
}
SUMMARY = re.compile(r"Operation +Max\(MiB\)")
MOVED = re.compile(r"Using actual aggregate bytes moved = (\d+)")


@dataclass(frozen=True)
class IorSummary:
    """The line that IOR prints below "Summary of all tests", and the bytes that it says it moved."""

    cells: Mapping[str, str]
    moved_bytes: int | None  # printed where they are not those of the whole file

    @property
    def direction(self) -> str:
        return self.cells["Operation"]

    @property
    def bytes_per_s(self) -> float:
        return float(self.cells["Mean(MiB)"]) * MIB

    @property
    def seconds(self) -> float:
        return float(self.cells["Mean(s)"])

    @property
    def tasks(self) -> int:
        return int(self.cells["#Tasks"])

    @property
    def bytes(self) -> int:
        whole = int(self.cells["blksiz"]) * int(self.cells["segcnt"]) * self.tasks
        return whole if self.moved_bytes is None else self.moved_bytes


def summaries(text: str) -> list[IorSummary]:
    """One of each direction of each run in a text."""
    result: list[IorSummary] = []
    names: list[str] = []
    moved: int | None = None
    for line in text.splitlines():
        if match := MOVED.search(line):
            moved = int(match[1])
        elif SUMMARY.match(line):
            names = line.split()
        elif names and line.startswith(("write ", "read ")):
            result.append(IorSummary(dict(zip(names, line.split(), strict=True)), moved))
            moved = None
        else:
            names = []
    return result


def assert_same(row: Mapping[str, Any], summary: IorSummary, *, file_per_process: bool) -> None:
    """A row has the numbers that IOR printed."""
    assert row["direction"] == summary.direction
    assert row["tasks"] == summary.tasks
    assert row["bytes"] == summary.bytes
    assert row["transfer_bytes"] == int(summary.cells["xsize"])
    assert row["operations"] == summary.bytes // int(summary.cells["xsize"])
    assert row["file_per_process"] is file_per_process
    assert (summary.cells["fPP"] == "1") is file_per_process
    assert row["reported_bytes_per_s"] == pytest.approx(summary.bytes_per_s, rel=PRINTED)
    assert row["bytes"] / row["duration_s"] == pytest.approx(summary.bytes_per_s, rel=PRINTED)
    assert row["collective"] is False
    assert row.get("fsync") is (True if summary.direction == "write" else None)


@pytest.fixture(scope="module")
def tools() -> Path:
    try:
        return hpc_tools()
    except ComponentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A new folder that can be written around the page cache; nothing is left in it by any test."""
    for place in (Path("/var/tmp"), Path(__file__).parent):
        if direct_io_trouble(place) is None:
            folder = place / f"iolens-live-{uuid.uuid4().hex[:8]}"
            folder.mkdir()
            try:
                yield folder
                assert list(folder.iterdir()) == []
            finally:
                shutil.rmtree(folder)
            return
    pytest.skip("no disk here with direct I/O")


@pytest.fixture(autouse=True)
def environment(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IOR first on PATH."""
    for name, value in {"PATH": f"{tools / 'bin'}:{os.environ['PATH']}", **AS_ROOT}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def srun(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """How tasks are started in a real Slurm."""
    monkeypatch.setenv("SLURM_CONF", slurm.configuration)
    return SRUN


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What every run of IOR in a sweep printed."""
    texts: list[str] = []

    def recorded(*arguments: Any, **named: Any) -> str:
        texts.append(run_program(*arguments, **named))
        return texts[-1]

    monkeypatch.setattr(ior_sweep, "run_program", recorded)
    return texts


Swept = Callable[[int, str | None], list[dict[str, Any]]]


@pytest.fixture
def sweep(disk: Path, tmp_path: Path) -> Swept:
    """The rows of `iolens calibrate run --ior`."""

    def swept(tasks: int, launcher: str | None) -> list[dict[str, Any]]:
        sizes = ",".join(str(size) for size in SIZES)
        options = ("--size", FILE_BYTES, "--sizes", sizes, "--repeats", 1, "--runtime", "1s", "--jobs", tasks)
        named = () if launcher is None else ("--launcher", launcher)
        file = tmp_path / "sweep.json"
        done = iolens("calibrate", "run", disk, "--ior", *options, "--no-asymptote", *named, "-o", file)
        assert done.code == 0, done.err
        document: dict[str, Any] = json.loads(file.read_text())
        assert document["complete"]
        rows: list[dict[str, Any]] = document["runs"]
        return rows

    return swept


def assert_swept(rows: list[dict[str, Any]], printed: list[str], tasks: int) -> None:
    """Writes and reads of every size, each as IOR printed it; the first text is of the layout."""
    assert [(row["direction"], row["transfer_bytes"]) for row in rows] == [
        (direction, size) for direction in ("write", "read") for size in SIZES
    ]
    (layout,), *runs = [summaries(text) for text in printed]
    assert (layout.bytes, layout.tasks) == (FILE_BYTES, tasks)
    for row, (summary,) in zip(rows, runs, strict=True):
        assert_same(row, summary, file_per_process=False)
        assert summary.tasks == tasks
        assert (row["access"], row["direct"]) == ("random", True)
        assert 0 < row["bytes"] <= FILE_BYTES


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_sweep_under_mpirun(sweep: Swept, printed: list[str], tasks: int) -> None:
    assert_swept(sweep(tasks, MPIRUN), printed, tasks)


def test_a_sweep_with_the_launcher_that_is_on_path(sweep: Swept, printed: list[str]) -> None:
    assert_swept(sweep(2, None), printed, 2)


def test_a_sweep_of_one_task_needs_no_launcher(
    sweep: Swept, printed: list[str], tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is one it can be declined; and here is none, on a PATH that has nothing but the tools."""
    assert_swept(sweep(1, NO_LAUNCHER), printed, 1)
    printed.clear()
    monkeypatch.setenv("PATH", str(tools / "bin"))
    monkeypatch.setenv("OMPI_MCA_ess_singleton_isolated", "1")  # or Open MPI looks for ssh
    assert_swept(sweep(1, None), printed, 1)


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_sweep_as_steps_of_slurm(sweep: Swept, printed: list[str], srun: str, tasks: int) -> None:
    assert_swept(sweep(tasks, srun), printed, tasks)


@pytest.mark.usefixtures("srun")
def test_a_launcher_that_does_not_speak_the_mpi_of_ior_ends_the_sweep(disk: Path, tmp_path: Path) -> None:
    """Slurm's own default here is no MPI at all."""
    options = ("--size", FILE_BYTES, "--jobs", 2, "--launcher", "srun -n {tasks}", "-o", tmp_path / "sweep.json")
    done = iolens("calibrate", "run", disk, "--ior", *options)
    assert done.code != 0
    assert re.search(r"srun failed with code \d+: .|expected one run of 2 tasks", done.err), done.err
    assert not (tmp_path / "sweep.json").exists()


def script_rows(script: Path, text: str) -> list[Mapping[str, Any]]:
    items = list(read_ior_text(ResultFile(script, ReadOptions(), "script"), text))
    assert [item for item in items if isinstance(item, Problem)] == []
    return [item.values for item in items if isinstance(item, Row)]


def assert_scripted(disk: Path, folder: Path, tasks: int, **variables: str) -> None:
    """Every run of the script moved the transfers that the model's weights ask for, in files of its tasks' own."""
    bounds = TrafficBounds(max_bytes=32 * MIB, max_s=LONG_S, jobs=tasks)
    workload = ior_workload(model(), bounds)
    (script,) = write_ior(model(), folder / "ior", bounds)
    environment = {**os.environ, **variables, "DIR": str(disk)}
    done = subprocess.run(
        ["sh", script], env=environment, capture_output=True, text=True, check=False, timeout=LONG_S
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(disk.iterdir()) == []
    rows = script_rows(script, done.stdout)
    for row, summary, run in zip(rows, summaries(done.stdout), workload.runs, strict=True):
        assert_same(row, summary, file_per_process=True)
        assert (row["direction"], row["transfer_bytes"], row["tasks"]) == (run.direction, run.transfer_bytes, tasks)
        assert row["operations"] == run.transfers * tasks
        assert row["access"] == ("random" if run.transfers > 1 else "sequential")
    layouts = summaries(done.stderr)
    assert sorted(layout.bytes for layout in layouts) == sorted(
        size * transfers * tasks for size, transfers in workload.files.items()
    )


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_script_of_a_workload(disk: Path, tmp_path: Path, tasks: int) -> None:
    """With one task it starts IOR alone, with more by mpirun."""
    assert_scripted(disk, tmp_path, tasks)


def test_a_script_of_a_workload_as_steps_of_slurm(disk: Path, tmp_path: Path, srun: str) -> None:
    assert_scripted(disk, tmp_path, 2, LAUNCH=srun.format(tasks=2))


def test_studies_as_steps_of_slurm(disk: Path, tmp_path: Path, srun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def recorded(*arguments: Any, **named: Any) -> str:
        texts.append(run_program(*arguments, **named))
        return texts[-1]

    monkeypatch.setattr(ior_command, "run_program", recorded)
    options = ("--tasks", 2, "--repeats", 1, "--launcher", srun, "--max-fullness", 100)
    done = iolens("bench", "ior", disk, "--sizes", "8MiB", *options, "--folder", tmp_path / "ior")
    assert done.code == 0, done.err
    points = StudyFolder(tmp_path / "ior").journal().rows
    assert [rows[0]["file_per_process"] for rows in points.values()] == [True, False]
    for text, rows in zip(texts, points.values(), strict=True):
        for row, summary in zip(rows, summaries(text), strict=True):
            assert_same(row, summary, file_per_process=row["file_per_process"])
            assert row["tasks"] == 2
    done = iolens("bench", "metadata", disk, "--items", 20, *options, "--folder", tmp_path / "metadata")
    assert done.code == 0, done.err
    (rows,) = StudyFolder(tmp_path / "metadata").journal().rows.values()
    assert {row["tasks"] for row in rows} == {2}
    assert list(disk.iterdir()) == []


def test_an_acceptance_suite_measures_with_ior_what_ior_printed(disk: Path, tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    bounds = TrafficBounds(share=0.02, max_bytes=64 * MIB, max_s=8.0, jobs=2)
    write_acceptance(model(), tmp_path / "suite", bounds)
    results = tmp_path / "results"
    done = iolens("acceptance", tmp_path / "suite", disk, "--results", results, "--format", "json")
    assert done.code in (0, 1), done.err
    (step,) = (step for step in json.loads(done.out)["steps"] if step["name"] == "ior")
    assert not step.get("trouble")
    runs = summaries((results / "ior" / "output.txt").read_text())
    assert {run.tasks for run in runs} == {2}
    for direction in ("read", "write"):
        own = [run for run in runs if run.direction == direction]
        seconds = sum(run.bytes / run.bytes_per_s for run in own)
        transfers = sum(run.bytes // int(run.cells["xsize"]) for run in own)
        assert step[f"{direction}_bytes_per_s"] == pytest.approx(sum(run.bytes for run in own) / seconds, rel=PRINTED)
        assert step[f"{direction}_ops_per_s"] == pytest.approx(transfers / seconds, rel=PRINTED)


def test_mdtest_that_time_stopped_created_the_files_that_are_there(tmp_path: Path, tools: Path) -> None:
    """IO500 stops mdtest like this; then it has created fewer files than the million for each task it was asked for."""
    options = ("-F", "-C", "-u", "-n", "1000000", "-W", "1", "-Y", "-P", "-d", tmp_path / "files", "-x", tmp_path / "x")
    command: list[str | Path] = [*MPIRUN.format(tasks=2).split(), tools / "bin" / "mdtest", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG_S)
    assert done.returncode == 0, done.stderr[-3000:]
    output = tmp_path / "mdtest.txt"
    output.write_text(done.stdout)
    created = sum(len(files) for _, _, files in os.walk(tmp_path / "files"))
    result = Results(output, "mdtest")
    (row,) = (row for row in result.rows if row["direction"] == "file_creation")
    assert (result.problems, row["operations"], row["tasks"]) == ([], created, 2)
    assert 0 < created < 2_000_000
