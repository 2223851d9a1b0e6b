"""Sentences on runs say what the numbers beside them say; every key is documented; names of others stay harmless."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import iolens
from iolens.analyses.runs.asked import RunConditions
from iolens.analyses.runs_applications import ReportedRuns
from iolens.analyses.runs_coverage import RunCoverage
from iolens.analyses.runs_files import RunFileCounts
from iolens.analyses.runs_interfaces import RunInterfaces
from iolens.analyses.runs_patterns import RunPatterns
from iolens.analyses.runs_projects import RunProjects
from iolens.analyses.runs_scaling import RunScaling
from iolens.analyses.runs_sizes import RunSizes
from iolens.analyses.runs_variance import RunVariance
from iolens.api.run_analyses import NAMES, reported_runs, run_analysis
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.views.render import matplotlib_figure
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.tables import to_terminal
from iolens.views.runs import names_axis, shown_number
from iolens.views.runs_applications import report_answers, variance_words
from iolens.views.runs_coverage import coverage_words
from iolens.views.runs_projects import most_words
from tests.analyses.run_rows import fill_runs, job_row, run_row
from tests.analyses.runs.test_run_analyses import made_up_runs
from tests.cli.command import iolens as command
from tests.hostile_names import SOURCES_OF_TROUBLE
from tests.views.documented import undocumented
from tests.views.test_hostile_names import is_harmless, texts_of

RESULTS = (RunProjects, RunCoverage, RunInterfaces, RunPatterns, RunFileCounts, RunSizes, RunVariance, RunScaling)


@pytest.mark.parametrize("result", RESULTS)
def test_every_key_is_documented(result: type) -> None:
    assert undocumented(result, "runs.md") == []


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> ReportedRuns:
    folder = tmp_path_factory.mktemp("store")
    runs, jobs = made_up_runs(3, 150)
    runs += [
        run_row(f"like{k}", read_bytes=77, files=2, slowest_rank_s=1.0 + k, user="eve", project="x") for k in range(6)
    ]
    fill_runs(Store(folder), runs, jobs[:140])
    with iolens.open(str(folder)) as opened:
        result = reported_runs(opened, Scope())
    assert result is not None
    return result


def test_the_summary_repeats_the_numbers(reported: ReportedRuns) -> None:
    ((words,),) = [answer.words for answer in report_answers(reported)]
    first, coverage, worst = reported.projects.top_projects[0], reported.coverage, reported.variance.groups[0]
    assert f"{first.project or '(unknown)'} moved most" in words
    assert f"in {first.runs:,} runs" in most_words(reported.projects)
    assert f"{coverage.jobs_with_log:,} of {coverage.jobs:,} jobs ({coverage.jobs_pct:.1f} %) left a log" in words
    assert f"{worst.samples} like runs of {worst.project} on {worst.nprocs} processes spent 1 to 6 s" in words
    assert f"(CV {worst.cv_pct:.1f} %)" in variance_words(reported.variance)


def test_a_centre_without_records_of_jobs_hears_what_to_load(reported: ReportedRuns) -> None:
    nothing = replace(reported.coverage, jobs=0, jobs_pct=None)
    assert "iolens ingest slurm" in coverage_words(nothing)


def test_the_report_has_a_chapter_on_applications_only_where_there_are_runs(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path / "s"), *made_up_runs(4, 60))
    done = command("report", "--store", tmp_path / "s", "-o", tmp_path / "r.html")
    assert done.code == 0, done.err
    page = (tmp_path / "r.html").read_text("utf-8")
    for heading in ("Applications", "Jobs with a Darshan log", "Interfaces and access patterns"):
        assert f">{heading}<" in page
    assert "moved most" in page
    with iolens.open(str(tmp_path / "s")) as opened:
        assert reported_runs(opened, Scope(until=iolens_time())) is None


def iolens_time() -> object:
    from datetime import UTC, datetime

    return datetime(2001, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("value", "text"), [(0.01234, "0.0123"), (45.678, "45.7"), (62960.4, "62,960"), (100, "100")])
def test_numbers_are_written_out(value: float, text: str) -> None:
    assert shown_number(value) == text


def test_names_below_a_figure_are_slanted_where_they_would_touch() -> None:
    assert not names_axis(["a", "b"]).slanted
    assert names_axis([f"CombustionPhysics-{k}" for k in range(10)]).slanted
    assert names_axis([]).ticks == ()


def test_hostile_names_of_projects_users_and_programs(tmp_path: Path) -> None:
    runs, jobs = [], []
    for number, name in enumerate(SOURCES_OF_TROUBLE):
        text = name.encode("utf-8", "replace").decode()
        for k in range(2):
            run_id = f"{number}-{k}"
            runs.append(run_row(run_id, job_id=run_id, executable=text, user=text, read_bytes=number + 1, files=1,
                                slowest_rank_s=1.0 + k, unique_files=1, posix_files=1))  # fmt: skip
            jobs.append(job_row(run_id, project=text, user=text))
    store = fill_runs(Store(tmp_path), runs, jobs)
    del store
    limits = {"projects": {"min_processes": 0, "min_bytes": 0, "ceiling_mib_per_s_per_node": 1e-9}}
    with iolens.open(str(tmp_path)) as opened:
        for name in NAMES:
            like = RunConditions(projects=["*"]) if name == "scaling" else RunConditions()
            result = run_analysis(opened, name, like=like, **limits.get(name, {}))
            assert is_harmless(to_terminal(tables_of(result)))
            for figure in figures_of(result).values():
                assert all(map(is_harmless, texts_of(matplotlib_figure.to_bytes(figure(), "svg"))))
