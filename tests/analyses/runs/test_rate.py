"""What the rate of a run is, wherever it is asked: one definition for projects, scaling, variance, losses, causes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iolens.analyses.explain.history import compared_runs
from iolens.analyses.lost import run_losses
from iolens.analyses.runs.asked import RunConditions, asked_runs, lines_of
from iolens.analyses.runs.summary import run_summary
from iolens.analyses.runs_interfaces import runs_interfaces
from iolens.analyses.runs_projects import runs_projects
from iolens.analyses.runs_scaling import runs_scaling
from iolens.analyses.runs_variance import runs_variance
from iolens.api.stored_runs import StoredRuns
from iolens.run_tables import RUNS, rate_of
from iolens.schema import TABLES
from iolens.store.store import Store
from iolens.views import runs_projects as projects_view
from iolens.views import runs_scaling as scaling_view
from iolens.views import runs_variance as variance_view
from iolens.views.runs_summary.text import run_summary_text
from tests.analyses.run_rows import fill_runs, job_row, run_row, selected

MIB = 1 << 20
RATE = ("rate_bytes", "rate_s", "rate_method", "rate_files_overlap")


def collective(run_id: str, rate_s: float = 20.0, **more: Any) -> dict[str, Any]:
    """400 MiB written in `rate_s` of MPI-IO, of which half a second is POSIX."""
    return run_row(
        run_id, modules="POSIX,MPI-IO", write_bytes=400 * MIB, slowest_rank_s=0.5, rate_bytes=400 * MIB, rate_s=rate_s,
        rate_method="slowest_rank", rate_files_overlap=False, files=1, **more,
    )  # fmt: skip


def before(run: dict[str, Any]) -> dict[str, Any]:
    """As an iolens without these columns stored it."""
    return {name: value for name, value in run.items() if name not in RATE}


def test_the_highest_layer_counts_wherever_rates_and_times_are_asked(tmp_path: Path) -> None:
    """Six like runs of 20 to 25 s and a job of two nodes each: 20 MiB/s, 10 of each node; POSIX alone would say 800."""
    runs = [collective(f"r{k}", 20.0 + k, start_s=200.0 * k, end_s=200.0 * k + 100, job_id=str(k)) for k in range(6)]
    jobs = [job_row(str(k), 200.0 * k, 200.0 * k + 100, nodes=2) for k in range(6)]
    selection = selected(fill_runs(Store(tmp_path), runs, jobs))
    rates = [400 / (20.0 + k) for k in range(6)]
    (project,) = runs_projects(selection, min_processes=0, min_bytes=0).projects
    assert project.mib_per_s == pytest.approx(np.mean(rates))
    assert (project.mib_per_s_per_node, project.mib_per_s_posix) == (pytest.approx(np.mean(rates) / 2), 800.0)
    scaling = runs_scaling(selection, RunConditions(projects=["earth"]))
    assert scaling.listed[0].mib_per_s_per_node == pytest.approx(10.0)
    assert scaling.steps[0].mib_per_s == pytest.approx(np.median(rates))
    (group,) = runs_variance(selection).groups
    assert (group.min_s, group.max_s, group.mean_s) == (20.0, 25.0, 22.5)
    losses = run_losses(selection, RunConditions())
    assert losses.io_s.tolist() == [20.0, 21.0, 22.0, 23.0, 24.0, 25.0]
    assert losses.expected_s == pytest.approx(np.percentile(losses.io_s, 25))
    compared = compared_runs(selection, "r3")
    assert compared.performance == pytest.approx(np.array(rates) / 2)


def test_the_method_of_the_study_is_posix_and_stdio_alone(tmp_path: Path) -> None:
    selection = selected(fill_runs(Store(tmp_path), [collective("a"), collective("b")]))
    result = runs_projects(selection, min_processes=0, min_bytes=0, method="paper")
    (line,) = result.projects
    assert (line.mib_per_s, line.mib_per_s_posix, result.method) == (800.0, 800.0, "paper")
    variance = runs_variance(selection, method="paper")
    assert [group.mean_s for group in variance.groups] == [0.5]
    scaling = runs_scaling(selection, RunConditions(executables=["app"]), method="paper")
    assert scaling.steps[0].mib_per_s == 800.0
    for view, answer in ((projects_view, result), (variance_view, variance), (scaling_view, scaling)):
        assert any("by POSIX and STDIO alone" in words for words in view.tables(answer)[0].warnings)


def test_runs_that_were_loaded_before_have_a_rate_where_posix_tells_it_and_else_none(tmp_path: Path) -> None:
    runs = [before(collective("mpiio")), before(collective("posix") | {"modules": "POSIX,STDIO,LUSTRE"})]
    store = fill_runs(Store(tmp_path), runs)
    rows = {row["run_id"]: row for row in lines_of(asked_runs(selected(store), RunConditions()))}
    assert [rows["mpiio"][name] for name in ("rate_bytes", "rate_s", "mib_per_s")] == [None, None, None]
    assert (rows["posix"]["rate_bytes"], rows["posix"]["rate_s"], rows["posix"]["mib_per_s"]) == (400 * MIB, 0.5, 800.0)
    for result, view in (
        (runs_projects(selected(store), min_processes=0, min_bytes=0), projects_view),
        (runs_scaling(selected(store), RunConditions(executables=["app"])), scaling_view),
        (runs_variance(selected(store)), variance_view),
    ):
        assert result.runs_without_rate == 1
        assert any(words.startswith("1 run loaded by an iolens that") for words in view.tables(result)[0].warnings)
    stored = StoredRuns.opened(str(tmp_path), None)
    pages = [run_summary(stored.record(stored.of_ids([run_id])[0])) for run_id in ("mpiio", "posix")]
    assert [(page.mib_per_s, page.mib_per_s_posix, page.rate_is_lost) for page in pages] == [
        (None, 800.0, True), (800.0, 800.0, False)
    ]  # fmt: skip
    assert "an earlier iolens loaded this run" in run_summary_text(pages[0])


def test_a_table_without_these_columns_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a store of an older iolens has it; the first new run adds them."""
    added = (*RATE, "appended_write_bytes")
    older = dataclasses.replace(RUNS, columns=tuple(column for column in RUNS.columns if column.name not in added))
    with monkeypatch.context() as patch:
        patch.setitem(TABLES, "runs", older)
        fill_runs(Store(tmp_path), [before(collective("old")), before(collective("plain") | {"modules": "POSIX"})])
    table: pa.Table = Store(tmp_path).tables.load("runs").to_pyarrow_table()  # type: ignore[union-attr]
    assert not set(added) & set(table.column_names)
    answers = runs_projects(selected(Store(tmp_path)), min_processes=0, min_bytes=0)
    assert (answers.runs, answers.runs_without_rate, answers.projects[0].mib_per_s) == (2, 1, 800.0)
    fill_runs(Store(tmp_path), [collective("new")])
    answers = runs_projects(selected(Store(tmp_path)), min_processes=0, min_bytes=0)
    assert (answers.runs, answers.runs_without_rate) == (3, 1)
    assert answers.projects[0].mib_per_s == pytest.approx((800.0 + 20.0) / 2)


def test_the_engine_and_a_single_row_say_the_same(tmp_path: Path) -> None:
    known = [
        collective("a"),
        collective("b") | {"rate_files_overlap": True},
        run_row("c", write_bytes=MIB, slowest_rank_s=2.0),
    ]
    unknown = [before(known[0]) | {"run_id": "d"}, collective("e") | {"rate_bytes": None, "rate_s": None}]
    daos = run_row("f", modules="DFS", dfs_write_bytes=MIB, write_bytes=MIB, slowest_rank_s=1.0)
    store = fill_runs(Store(tmp_path), [*known, *unknown, daos])
    for method in ("layers", "paper"):
        lines = {line["run_id"]: line for line in lines_of(asked_runs(selected(store), RunConditions(), method))}
        for row in (*known, *unknown, daos):
            rate, line = rate_of(row, method), lines[row["run_id"]]
            assert (line["rate_bytes"], line["rate_s"], line["mib_per_s"]) == (rate.bytes, rate.seconds, rate.mib_per_s)
            assert line["rate_files_overlap"] == rate.overlap


def test_rates_of_little_time_are_counted_and_said(tmp_path: Path) -> None:
    seconds = (0.0, 0.05, 0.0999, 0.1, 5.0)  # nothing, short, short, …
    store = fill_runs(Store(tmp_path), [collective(f"r{s}", s) for s in seconds])
    for result, view in (
        (runs_projects(selected(store), min_processes=0, min_bytes=0), projects_view),
        (runs_scaling(selected(store), RunConditions(executables=["app"])), scaling_view),
        (runs_variance(selected(store)), variance_view),
    ):
        assert result.runs_short == 2
        said = "2 runs with less than 0.1 s in I/O: so short a time says little"
        assert said in view.tables(result)[0].warnings


def test_bytes_of_stdio_in_a_file_of_posix_are_a_use_of_stdio(tmp_path: Path) -> None:
    run = run_row("a", files=1, posix_files=1, posix_write_bytes=6 * MIB, stdio_write_bytes=2 * MIB)
    uses = {use.name: use for use in runs_interfaces(selected(fill_runs(Store(tmp_path), [run]))).overall.uses}
    assert (uses["stdio"].runs, uses["stdio"].write_bytes, uses["stdio"].write_pct) == (1, 2 * MIB, 25.0)
    assert (uses["posix"].runs, uses["dfs"].runs) == (1, 0)
