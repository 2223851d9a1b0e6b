"""The study that runs IOR as a job did: its plan is read and edited by people, and checked before anything is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iolens.benchmarks.studies.imitate_study import KIND, ImitateParameters, summed_rows
from iolens.benchmarks.studies.plan import (
    StudyJournal,
    StudyPlace,
    StudyPlan,
    Values,
    parameters_of,
    plan_text,
    read_plan,
)
from iolens.benchmarks.studies.run import check_study, expected_work
from iolens.errors import UsageError
from iolens.models.ior_parameters import IorParameters
from iolens.units import KIB, MIB
from tests.benchmarks.standins import put_ior

WRITTEN = IorParameters(
    api="MPIIO", tasks=2, transfer_bytes=64 * KIB, block_bytes=MIB, segments=4, file_per_process=True, write=True,
    read=True, collective=True, repetitions=3,
)  # fmt: skip
READ = IorParameters(
    api="POSIX", tasks=1, transfer_bytes=MIB, block_bytes=8 * MIB, segments=1, file_per_process=False, write=False,
    read=True,
)  # fmt: skip


def plan(folder: Path, *runs: IorParameters, launcher: str | None = "launch {tasks}") -> StudyPlan:
    parameters = ImitateParameters.of("job 4711", 0.01, runs or (WRITTEN, READ), launcher)
    return StudyPlan("made-up", "imitate", (StudyPlace("here", folder),), parameters, 2)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    put_ior(folder)
    return folder


def test_a_plan_is_the_same_after_it_was_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan_text(plan(tmp_path)))
    assert read_plan(path, parameters_of) == plan(tmp_path)
    assert plan(tmp_path).parameters.runs() == [WRITTEN, READ]


def test_a_reader_of_the_plan_sees_a_table(tmp_path: Path) -> None:
    lines = plan_text(plan(tmp_path)).splitlines()
    assert 'api = ["MPIIO", "POSIX"]' in lines
    assert 'block_bytes = ["1MiB", "8MiB"]' in lines
    assert "collective = [true, false]" in lines


def test_each_run_of_ior_is_a_point(tmp_path: Path) -> None:
    points = KIND.points(plan(tmp_path))
    assert [point.key for point in points] == ["here/run=1/0", "here/run=2/0", "here/run=1/1", "here/run=2/1"]
    work = expected_work(plan(tmp_path), StudyJournal())
    assert work.bytes_written == 2 * (3 * 2 * 4 * MIB + 8 * MIB)  # what is only read is written once
    assert work.bytes_read == 2 * (3 * 2 * 4 * MIB + 8 * MIB)
    assert work.bytes_at_once == 8 * MIB


def test_lists_of_different_lengths_are_refused(tmp_path: Path, programs: Path) -> None:
    broken = plan(tmp_path)
    parameters = replace(broken.parameters, tasks=(2,))
    with pytest.raises(UsageError, match="must be lists of one length, not api 2, tasks 1"):
        check_study(replace(broken, parameters=parameters), StudyJournal())


def test_what_ior_would_refuse_is_refused_before_anything_is_written(tmp_path: Path, programs: Path) -> None:
    broken = plan(tmp_path, replace(WRITTEN, random=True))
    with pytest.raises(UsageError, match="collective I/O cannot be in random order"):
        check_study(broken, StudyJournal())


def test_more_tasks_than_processors_are_said_where_the_launcher_is_ours(tmp_path: Path, programs: Path) -> None:
    many = replace(WRITTEN, tasks=100_000, block_bytes=64 * KIB, segments=1, repetitions=1)
    (note,) = KIND.check(plan(tmp_path, many, launcher=None))
    assert note.startswith("100000 tasks on ")
    assert KIND.check(plan(tmp_path, many)) == []


def test_repetitions_of_ior_are_one_job() -> None:
    rows: list[Values] = [
        {
            "direction": direction,
            "bytes": 100,
            "operations": 4,
            "duration_s": seconds,
            "iteration": place,
            "repetitions": 2,
        }
        for place, seconds in enumerate((1.0, 3.0))
        for direction in ("write", "read")
    ]
    written, read = summed_rows(rows)
    assert (written["direction"], read["direction"]) == ("write", "read")
    assert (written["bytes"], written["operations"], written["duration_s"]) == (200, 8, 4.0)
    assert written["reported_bytes_per_s"] == 50.0
    assert "iteration" not in written
