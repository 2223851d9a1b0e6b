"""Runs of a store are found by the project of their job, whether they name that job or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.api.stored_runs import StoredRuns, WantedRuns
from iolens.store.store import Store
from tests.analyses.run_rows import fill_runs, job_row, run_row


@pytest.fixture
def runs(tmp_path: Path) -> StoredRuns:
    rows = [
        run_row("by-id", 10, 90, job_id="7", user="ada"),
        run_row("by-user", 10, 90, job_id="0", user="bob", executable="app"),
        run_row("of-nobody", 10, 90, job_id="0", user="eve", executable="app"),
        run_row("own", 10, 90, job_id="0", user="eve", executable="app", project="earth"),
        run_row("later", 5000, 5100, job_id="8", user="ada"),
    ]
    jobs = [
        job_row("7", 0, 100, user="ada", project="earth", nodes=3),
        job_row("9", 0, 100, user="bob", name="app", project="earth", nodes=5),
        job_row("8", 5000, 5100, user="ada", project="sea"),
    ]
    return StoredRuns(fill_runs(Store(tmp_path), rows, jobs))


@pytest.mark.parametrize(
    ("projects", "expected"),
    [
        (["earth"], {"by-id", "by-user", "own"}),
        (["sea"], {"later"}),
        (["e*"], {"by-id", "by-user", "own"}),
        ([], {"by-id", "by-user", "of-nobody", "own", "later"}),
        (["moon"], set()),
    ],
)
def test_runs_of_a_project(runs: StoredRuns, projects: list[str], expected: set[str]) -> None:
    assert {row["run_id"] for row in runs.wanted(WantedRuns(projects=projects))} == expected


def test_a_run_has_the_nodes_and_the_project_of_its_job(runs: StoredRuns) -> None:
    rows = {row["run_id"]: row for row in runs.wanted(WantedRuns())}
    assert (rows["by-id"]["nodes"], rows["by-id"]["project"]) == (3, "earth")
    assert (rows["by-user"]["nodes"], rows["by-user"]["project"]) == (5, "earth")
    assert (rows["of-nobody"]["nodes"], rows["of-nobody"]["project"]) == (None, None)
