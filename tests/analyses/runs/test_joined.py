"""Runs meet their jobs: by id and time, by owner and time where that leaves no choice, and never twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iolens.analyses.runs import matching
from iolens.analyses.runs.asked import UNKNOWN, RunConditions
from iolens.analyses.runs.matching import joined_runs
from iolens.store.store import Store
from tests.analyses.run_rows import fill_runs, job_row, run_row, selected

HOUR = 3600.0
COLUMNS = ("run_id", "joined_by", "matched_job_id", "matched_cluster", "project", "user", "nodes", "cores")


def joined(folder: Path, runs: list[dict], jobs: list[dict], **scope: Any) -> dict[str, dict[str, Any]]:
    store = fill_runs(Store(folder), runs, jobs)
    rows = joined_runs(selected(store, **scope)).select(*COLUMNS).collect(backend="pyarrow").to_native().to_pylist()
    result = {row.pop("run_id"): row for row in rows}
    assert len(result) == len(rows), "a run counts once"
    return result


def test_by_id_where_the_job_overlaps_the_run(tmp_path: Path) -> None:
    runs = [
        run_row("a", 10, 90, job_id="7"),
        run_row("b", 10, 90, job_id="8", user="bob", nodes=9, project="own"),
        run_row("c", 10, 90, job_id="9", user="eve"),
    ]
    jobs = [
        job_row("7", 0, 100, project="earth", nodes=3, cores=12, user="carl"),
        job_row("8", 0, 100, project=None, nodes=None, user=None, cores=None),
        job_row("9", 90 + HOUR + 1, 90 + 2 * HOUR, user="nobody"),
    ]
    result = joined(tmp_path, runs, jobs)
    a, b, c = (result[name] for name in "abc")
    assert (a["joined_by"], a["project"], a["user"], a["nodes"], a["cores"]) == ("id", "earth", "carl", 3, 12)
    assert (b["joined_by"], b["project"], b["user"], b["nodes"], b["cores"]) == ("id", "own", "bob", 9, None)
    assert (c["joined_by"], c["project"], c["nodes"]) == ("none", None, None)


def test_a_clock_may_be_an_hour_off(tmp_path: Path) -> None:
    runs = [run_row("a", 0, 10, job_id="1", user=None), run_row("b", 0, 10, job_id="2", user=None)]
    jobs = [job_row("1", -2 * HOUR, -HOUR), job_row("2", -2 * HOUR, -HOUR - 1)]
    result = joined(tmp_path, runs, jobs)
    assert (result["a"]["joined_by"], result["b"]["joined_by"]) == ("id", "none")


def test_a_job_queued_again_and_clusters_that_count_alike(tmp_path: Path) -> None:
    runs = [
        run_row("first", 0, 50, job_id="5", user="ada"),
        run_row("again", 700, 900, job_id="5", user="ada"),
        run_row("other", 705, 900, job_id="5", user="bob"),
    ]
    jobs = [
        job_row("5", 0, 60, project="p1"),
        job_row("5", 690, 950, project="p2"),
        job_row("5", 690, 950, project="p2", ended=False),
        job_row("5", 705, 900, cluster="steam", project="p3", user="bob"),
    ]
    result = joined(tmp_path, runs, jobs)
    assert {name: row["project"] for name, row in result.items()} == {"first": "p1", "again": "p2", "other": "p3"}
    assert {row["joined_by"] for row in result.values()} == {"id"}
    assert result["other"]["matched_cluster"] == "steam"


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([job_row("9_1", 0, 100, name="app")], "9_1"),  # a task of an array, which a run cannot name
        ([job_row("9_1", 0, 100)], "9_1"),  # another name, but the only one
        ([job_row("9_1", 0, 100), job_row("9_2", 0, 100)], None),
        ([job_row("9_1", 0, 100), job_row("9_2", 0, 100, name="app")], "9_2"),
        ([job_row("9_1", 0, 100, name="app"), job_row("9_2", 0, 100, name="app")], None),
        ([job_row("9_1", 0, 100, cores=3)], None),  # too small for 4 processes
        ([job_row("9_1", 0, 100, cores=None)], None),
        ([job_row("9_1", 0, 100, cores=3), job_row("9_2", 0, 100)], "9_2"),
        ([job_row("9_1", 0, 100, user="bob", name="app")], None),
        ([job_row("9_1", 80, 200)], None),  # the run began before it
        ([job_row("9_1", 0, 100), job_row("9_1", 0, 100, ended=False)], "9_1"),  # one job, two records
    ],
)
def test_by_owner_and_time_where_that_leaves_no_choice(tmp_path: Path, jobs: list[dict], expected: str | None) -> None:
    result = joined(tmp_path, [run_row("a", 10, 90, job_id="4711")], jobs)
    assert result["a"]["matched_job_id"] == expected
    assert result["a"]["joined_by"] == ("none" if expected is None else "user_executable_time")


def test_without_jobs_a_run_knows_what_its_log_says(tmp_path: Path) -> None:
    result = joined(tmp_path, [run_row("a", project="own"), run_row("b", user=None)], [])
    assert (result["a"]["project"], result["a"]["joined_by"], result["b"]["project"]) == ("own", "none", None)


def test_a_file_system_narrows_runs_and_not_jobs(tmp_path: Path) -> None:
    runs = [run_row("a", job_id="1", filesystem="scratch"), run_row("b", job_id="1", filesystem="home")]
    result = joined(tmp_path, runs, [job_row("1", -40 * 86_400, 100)], filesystem="scratch")
    assert {name: row["project"] for name, row in result.items()} == {"a": "earth"}


def brute_force(run: dict, jobs: list[dict]) -> str | None:
    """The rule, run by run and job by job."""
    slack, close = matching.SLACK_US, matching.CLOSE_US
    by_id = [job for job in jobs if job["job_id"] == run["job_id"]
             and job["start"] <= run["time"] + slack and job["time"] >= run["start"] - slack]  # fmt: skip
    if by_id:
        best = min(by_id, key=lambda job: (job["user"] != run["user"], abs(job["start"] - run["start"])))
        return f"id {best['cluster']} {best['job_id']} {best['start']}"
    around = [job for job in jobs if job["user"] == run["user"] and job["start"] - close <= run["start"]
              and run["time"] <= job["time"] + close]  # fmt: skip
    named = [job for job in around if job["name"] == run["executable"]]
    fits = [job for job in around if job["cores"] is not None and job["cores"] >= run["processes"]]
    chosen = named if named else fits
    return f"user {chosen[0]['cluster']} {chosen[0]['job_id']} {chosen[0]['start']}" if len(chosen) == 1 else None


@pytest.mark.parametrize("seed", range(4))
def test_as_a_brute_force_over_all_pairs(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_PAIRS", 7)
    random = np.random.default_rng(seed)
    jobs, runs = {}, []
    for _ in range(60):
        start = int(random.integers(0, 40)) * 900 + int(random.integers(0, 800))
        job = job_row(str(random.integers(0, 40)), start, start + int(random.integers(60, 9000)),
                      cluster=str(random.choice(["frost", "steam"])), user=str(random.choice(["ada", "bob"])),
                      name=str(random.choice(["app", "sim"])), cores=[4, 64, None][random.integers(0, 3)])  # fmt: skip
        jobs[job["cluster"], job["job_id"], job["start"]] = job
    for number in range(80):
        start = int(random.integers(0, 40)) * 900 + int(random.integers(0, 899))
        processes = int(2 ** random.integers(0, 7))
        runs.append(run_row(str(number), start, start + int(random.integers(1, 3000)), processes=processes,
                            job_id=str(random.integers(0, 60)), user=str(random.choice(["ada", "bob"])),
                            executable=str(random.choice(["app", "sim", "else"]))))  # fmt: skip
    store = fill_runs(Store(tmp_path), runs, list(jobs.values()))
    names = ("run_id", "joined_by", "matched_cluster", "matched_job_id", "matched_start_us")
    table: pa.Table = joined_runs(selected(store)).select(*names).collect(backend="pyarrow").to_native()
    words = {"id": "id ", "user_executable_time": "user "}
    result = {
        row["run_id"]: words[row["joined_by"]] + " ".join(str(row[name]) for name in names[2:])
        if row["joined_by"] in words
        else None
        for row in table.to_pylist()
    }
    assert result == {run["run_id"]: brute_force(run, list(jobs.values())) for run in runs}
    assert len({text.split()[0] if text else None for text in result.values()}) == 3


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        (RunConditions(projects=["earth"]), "a"),
        (RunConditions(projects=["ea*", UNKNOWN]), "ab"),
        (RunConditions(projects=[UNKNOWN]), "b"),
        (RunConditions(without_projects=["earth"]), "bc"),
        (RunConditions(executables=["a?p.x"]), "a"),
        (RunConditions(executables=["a[p].x"]), ""),
        (RunConditions(users=["bob", "eve"]), "bc"),
        (RunConditions(min_processes=8), "c"),
        (RunConditions(min_bytes=100), "ac"),
    ],
)
def test_filters(tmp_path: Path, like: RunConditions, expected: str) -> None:
    runs = [
        run_row("a", project="earth", executable="app.x", read_bytes=60, write_bytes=40),
        run_row("b", user="bob", executable="appyx", read_bytes=None, write_bytes=500),
        run_row("c", user="eve", project="air", executable="ab", processes=8, write_bytes=100),
    ]
    store = fill_runs(Store(tmp_path), runs)
    kept = like.kept(joined_runs(selected(store))).select("run_id").collect(backend="pyarrow").to_native()
    assert "".join(sorted(kept.column("run_id").to_pylist())) == expected
