"""`bench ior` and `bench metadata` before anything is started: which runs, and what is refused. Live tests run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.studies import ior_study, metadata_study
from iolens.benchmarks.studies.ior_study import IorStudyParameters
from iolens.benchmarks.studies.metadata_study import MetadataParameters
from iolens.benchmarks.studies.plan import PointSite, StudyPlace, StudyPlan
from iolens.benchmarks.studies.run import check_study, expected_work
from iolens.errors import IolensError, UsageError
from iolens.sources.benchmarks.study_runs import StudyJournal
from iolens.units import GIB, MIB
from tests.benchmarks.studies.made_studies import NO_LIMITS, made_place

LAUNCHER = "mpirun -np {tasks}"
MDTEST = """mdtest-4.0.0 was launched with 2 total task(s) on 1 node(s)
Command line used: mdtest '-n' '3' '-d' '/x'
2 tasks, 6 files/directories

SUMMARY rate: (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                 400.000        400.000        400.000          0.000
   File stat                    8000.000       8000.000       8000.000          0.000
-- finished at 03/03/2026 11:02:00 --
"""


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are there, and only that."""
    (tmp_path / "bin").mkdir()
    for name in ("ior", "mdtest"):
        (tmp_path / "bin" / name).write_text("#!/bin/false\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def plan_of(kind: str, parameters: Any, *places: StudyPlace, repeats: int = 1) -> StudyPlan:
    return StudyPlan("x", kind, places, parameters, repeats, NO_LIMITS)


def refusal(plan: StudyPlan) -> str:
    with pytest.raises(UsageError) as caught:
        check_study(plan, StudyJournal())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_case_of_ior_once_per_repeat(tmp_path: Path) -> None:
    parameters = IorStudyParameters((1, 4), (64 * MIB, GIB), (MIB,), launcher=LAUNCHER)
    points = ior_study.KIND.points(plan_of("ior", parameters, made_place(tmp_path), repeats=2))
    assert len(points) == len({point.key for point in points}) == 16
    assert points[0].key == "scratch/per-process/tasks=1/size=64MiB/transfer=1MiB/0"
    assert [point.iteration for point in points] == [0] * 8 + [1] * 8
    four = [point for point in points if "tasks=4/size=1GiB" in point.key][:2]
    assert [(point.values["command"].block_bytes, point.files) for point in four] == [(GIB // 4, 4), (GIB // 4, 1)]
    assert all(point.bytes_written == point.bytes_read == point.bytes_at_once == GIB for point in four)
    assert all(point.values["command"].reorder for point in four)  # each reads what its neighbour wrote


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": (3,)}, "3 tasks cannot share 1 GiB in transfers of 1 MiB: name sizes that divide"),
        ({"tasks": (0,)}, "at least 1"),
        ({"transfer_bytes": (0,)}, "at least 1"),
        ({"transfer_bytes": (3 * MIB,)}, "name sizes that divide"),
        ({"aggregate_bytes": (0,)}, "name sizes that divide"),
        ({"files": ("alone",)}, "files 'alone': there are per-process and shared"),
        ({"api": "NFS"}, "api 'NFS' is none of"),
        ({"collective": True}, "POSIX has no collective I/O"),
        ({"stripe_counts": (2,)}, "stripes are not applicable"),
        ({"launcher": None}, "no MPI launcher"),
        ({"launcher": "mpirun '"}, "--launcher"),
    ],
)
def test_what_ior_cannot_do_is_refused_before_it_is_started(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    parameters = IorStudyParameters(**{"launcher": LAUNCHER, **changes})
    assert words in refusal(plan_of("ior", parameters, made_place(tmp_path)))


@pytest.mark.parametrize(("kind", "program"), [("ior", "ior"), ("metadata", "mdtest")])
def test_a_program_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, program: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    parameters = {"ior": IorStudyParameters(), "metadata": MetadataParameters()}[kind]
    assert f"{program} is not on PATH" in refusal(plan_of(kind, parameters, made_place(tmp_path)))


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        ("ior", IorStudyParameters(launcher=LAUNCHER), "'@' separates files for IOR"),
        ("metadata", MetadataParameters(launcher=LAUNCHER), "'@' separates directories for mdtest"),
    ],
)
def test_a_directory_that_the_program_would_take_for_two_is_refused(
    tmp_path: Path, kind: str, parameters: Any, words: str
) -> None:
    assert words in refusal(plan_of(kind, parameters, made_place(tmp_path, "me@home")))


def test_files_and_time_of_a_metadata_study(tmp_path: Path) -> None:
    plan = plan_of("metadata", MetadataParameters((1, 4), 100, 10, launcher=LAUNCHER), made_place(tmp_path), repeats=2)
    work = expected_work(plan, StudyJournal())
    assert (work.points, work.files) == (4, 2 * 2 * (100 + 400))
    assert work.bytes_written == work.bytes_read == 2 * 5 * 100 * 10
    assert work.seconds > 2 * 8 * 500 / 2000


@pytest.mark.parametrize("parameters", [MetadataParameters((0,)), MetadataParameters((1,), 0)])
def test_no_tasks_or_items_are_refused(tmp_path: Path, parameters: MetadataParameters) -> None:
    assert "tasks and items: at least 1" in refusal(plan_of("metadata", parameters, made_place(tmp_path)))


def test_the_command_of_mdtest_and_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def ran(words: list[str], **_: object) -> str:
        commands.append(words)
        return MDTEST

    monkeypatch.setattr(metadata_study, "run_program", ran)
    plan = plan_of("metadata", MetadataParameters((2,), 3, 100, launcher=LAUNCHER), made_place(tmp_path))
    (point,) = metadata_study.KIND.points(plan)
    rows = list(metadata_study.KIND.run(plan, point, PointSite(tmp_path)))
    folder = str(tmp_path / "data-mdtest")
    program = str(tmp_path / "bin" / "mdtest")
    assert commands == [["mpirun", "-np", "2", program, "-n", "3", "-d", folder, "-u", "-w", "100", "-e", "100"]]
    assert {row["direction"]: row["reported_ops_per_s"] for row in rows} == {
        "file_creation": 400.0,
        "file_stat": 8000.0,
    }
    assert all("time" not in row and "iteration" not in row for row in rows)  # a study says them itself


def test_what_mdtest_printed_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_study, "run_program", lambda *_, **__: "hello\n")
    plan = plan_of("metadata", MetadataParameters((2,), 3, launcher=LAUNCHER), made_place(tmp_path))
    (point,) = metadata_study.KIND.points(plan)
    with pytest.raises(IolensError, match=r"^mdtest: "):
        list(metadata_study.KIND.run(plan, point, PointSite(tmp_path)))
