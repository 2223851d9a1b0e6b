"""Real IOR under real Darshan: its log gives back what IOR was asked for, and so does the log of the imitation."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.analyses.bench_imitate import imitation_distance
from iolens.api.runs import record_of_log
from iolens.api.studies import file_rows
from iolens.benchmarks.imitation.run_imitation import imitation_of_run, ior_commands
from iolens.benchmarks.ior_sweep import IorCommand
from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies.imitate_study import ImitateParameters
from iolens.benchmarks.studies.plan import StudyFolder, StudyPlace, StudyPlan, new_folder
from iolens.benchmarks.studies.run import run_study
from iolens.models.ior_parameters import Imitation, IorParameters
from iolens.units import KIB, MIB
from tests.cli.command import iolens
from tests.live.hpc_tools import hpc_tools
from tests.live.spark_cluster import ComponentMissing
from tests.simulator.stated_runs import NEEDS_DARSHAN
from tests.sources.darshan import LOGS

pytestmark = [pytest.mark.live, NEEDS_DARSHAN]

LAUNCHER = "mpirun --allow-run-as-root --oversubscribe -np {tasks}"
USUAL = IorParameters(
    api="POSIX", tasks=3, transfer_bytes=64 * KIB, block_bytes=MIB, segments=1, file_per_process=False, write=True,
    read=True,
)  # fmt: skip
ASKED = {
    "shared": USUAL,
    "shared, only written, with fsync": replace(USUAL, read=False, fsync=True),
    "shared, blocks in turn": replace(USUAL, segments=5),
    "shared, a transfer in turn": replace(USUAL, segments=32, block_bytes=64 * KIB),
    "shared, in random order": replace(USUAL, random=True),
    "shared, repeated": replace(USUAL, repetitions=3, segments=2),
    "shared, MPI-IO": replace(USUAL, api="MPIIO", segments=2),
    "shared, collective": replace(USUAL, api="MPIIO", segments=2, collective=True),
    "shared, collective, a transfer in turn": replace(
        USUAL, api="MPIIO", segments=16, block_bytes=64 * KIB, collective=True
    ),
    "file per process": replace(USUAL, file_per_process=True),
    "file per process, in random order": replace(USUAL, file_per_process=True, random=True),
    "file per process, repeated": replace(USUAL, file_per_process=True, repetitions=2),
    "one task": replace(USUAL, tasks=1, block_bytes=3 * MIB),
}
Recorded = Callable[[IorCommand], Imitation]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new folder that Darshan looks at: files below /dev and /var, where temporary ones may be, it leaves out."""
    with tempfile.TemporaryDirectory(prefix="iolens-live-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Runs a command under Darshan, and gives the imitation of what the log counted: the command line is left out."""
    try:
        tools = hpc_tools()
    except ComponentMissing as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("PATH", str(tools / "bin"), prepend=":")
    numbers = itertools.count()

    def run(command: IorCommand) -> Imitation:
        logs = tmp_path / f"logs{next(numbers)}"
        logs.mkdir()
        preload = f"{LAUNCHER} -x LD_PRELOAD={tools}/lib/libdarshan.so"
        run_program(command.argv(preload), variables={"DARSHAN_LOG_DIR_PATH": str(logs)})
        (log,) = logs.iterdir()
        record = record_of_log(log)
        return imitation_of_run({**record.run, "command": None}, file_rows(record.files))

    return run


@pytest.mark.parametrize("case", ASKED)
def test_a_log_of_ior_gives_back_its_parameters_and_so_does_the_imitation(
    recorded: Recorded, folder: Path, case: str
) -> None:
    (command,) = ior_commands(ASKED[case], folder / "data")
    first = recorded(command).runs[0]
    assert replace(first.parameters, nodes=None) == ASKED[case]
    (again,) = ior_commands(first.parameters, folder / "again")
    second = recorded(again).runs[0]
    assert second.parameters == first.parameters
    assert [line.ratio for line in imitation_distance(first.recorded, second.recorded)] == [1.0] * 4


def test_segments_that_leave_no_trace_are_imitated_by_an_equal_block(recorded: Recorded, folder: Path) -> None:
    """Segments of a file that one task has for itself follow each other: they are as one block."""
    asked = replace(USUAL, file_per_process=True, segments=4)
    first = recorded(ior_commands(asked, folder / "data")[0]).runs[0]
    assert replace(first.parameters, nodes=None) == replace(asked, segments=1, block_bytes=4 * MIB)
    assert first.parameters.work == asked.work


def test_a_run_of_the_study_moves_its_share(tmp_path: Path, recorded: Recorded) -> None:
    """The log of a real IOR with 4 tasks, each 4 blocks of 64 MiB of one file that was there before."""
    place, study = tmp_path / "place", tmp_path / "study"
    place.mkdir()
    options = ("--share", "5%", "--tasks", "2", "--repeats", "2", "--launcher", LAUNCHER, "--folder", study)
    done = iolens(
        "bench", "imitate", LOGS / "n1-read.darshan", "--place", f"here={place}", *options, "--format", "json"
    )
    assert done.code == 0, done.err
    assert list(place.iterdir()) == []
    result = json.loads(done.out)
    ratios = {line["quantity"]: line["ratio"] for line in result["nearness"] if line["place"] == "here"}
    assert {name: ratios[name] for name in ("bytes", "operations", "bytes_per_operation")} == {
        "bytes": 1.0, "operations": 1.0, "bytes_per_operation": 1.0,
    }  # fmt: skip
    assert ratios["mib_per_s"] > 0
    rows = [row for rows in StudyFolder(study).journal().rows.values() for row in rows]
    assert [(row["direction"], row["bytes"], row["page_cache"]) for row in rows] == [("read", 50 * MIB, "dropped")] * 2


def test_files_that_are_read_again_and_again_are_there_to_the_end(tmp_path: Path, recorded: Recorded) -> None:
    run = replace(USUAL, tasks=2, write=False, repetitions=3, file_per_process=True)
    plan = StudyPlan(
        "again", "imitate", (StudyPlace("here", tmp_path),), ImitateParameters.of("made up", 1.0, [run], LAUNCHER), 1
    )
    folder = new_folder(tmp_path / "study", plan)
    assert run_study(folder).is_whole
    ((row,),) = folder.journal().rows.values()
    assert (row["direction"], row["bytes"], row["operations"]) == ("read", 3 * 2 * MIB, 3 * 32)
    assert row["reported_bytes_per_s"] == pytest.approx(row["bytes"] / row["duration_s"])
    assert [path.name for path in tmp_path.iterdir()] == ["study"]
