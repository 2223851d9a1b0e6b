"""Questions over many runs against what the definitions give by hand, through a real store."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.runs.asked import RunConditions
from iolens.analyses.runs_coverage import RunCoverage, runs_coverage
from iolens.analyses.runs_files import runs_files
from iolens.analyses.runs_interfaces import runs_interfaces
from iolens.analyses.runs_patterns import runs_patterns
from iolens.analyses.runs_projects import runs_projects
from iolens.analyses.runs_scaling import runs_scaling, scaling_of
from iolens.analyses.runs_sizes import runs_sizes
from iolens.analyses.runs_variance import runs_variance
from iolens.records import Row
from iolens.run_tables import ACCESS_BINS, access_column
from iolens.store.maintenance import compact_store
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import MIB, from_epoch_us
from tests.analyses.run_rows import T0_S, fill_runs, job_row, run_row, selected
from tests.analyses.telemetry import made_up
from tests.store.samples import capture

SIZES = (*ACCESS_BINS, None)


def store_of(folder: Path, runs: list[dict[str, Any]], jobs: list[dict[str, Any]] | None = None) -> Store:
    return fill_runs(Store(folder), runs, jobs)


# Projects -------------------------------------------------------------------------------------------------------------


def test_the_measures_of_one_run_by_hand(tmp_path: Path) -> None:
    """1,024 MiB in 10 s of the slowest rank on 2 nodes: 51.2 MiB/s per node."""
    run = run_row(
        "a", 0, 100, job_id="1", processes=8, read_bytes=768 * MIB, write_bytes=256 * MIB, slowest_rank_s=10.0,
        read_s=20.0, write_s=30.0, metadata_s=50.0, files=16, new_files=4, posix_reads=60, posix_writes=40,
        sequential_reads=30, sequential_writes=20, misaligned_ops=25,
    )  # fmt: skip
    result = runs_projects(selected(store_of(tmp_path, [run], [job_row("1", nodes=2)])), min_processes=0, min_bytes=0)
    (line,) = result.projects
    assert (line.project, line.runs, line.runs_with_nodes) == ("earth", 1, 1)
    assert line.mib_per_s_per_node == pytest.approx(1024 / 10 / 2)
    assert line.mib_per_s == pytest.approx(102.4)
    assert line.io_time_pct == pytest.approx(100 * 100 / (8 * 100))
    assert line.slowest_rank_io_time_pct == pytest.approx(10)
    assert line.metadata_time_pct == pytest.approx(50)
    assert (line.files_per_proc, line.creates_per_proc, line.mib_per_proc) == (2, 0.5, 128)
    assert (line.sequential_pct, line.aligned_pct) == (50, 75)


def test_what_is_unknown_or_divided_by_nothing_is_null(tmp_path: Path) -> None:
    runs = [
        run_row("a", read_bytes=MIB, slowest_rank_s=1.0),  # no job, no nodes
        run_row("b", processes=None, slowest_rank_s=None, metadata_s=None, files=None, misaligned_ops=None),
    ]
    result = runs_projects(selected(store_of(tmp_path, runs)), min_processes=0, min_bytes=0)
    (line,) = result.projects
    assert (line.project, line.runs, line.runs_with_nodes, line.mib_per_s_per_node) == (None, 1, 0, None)
    assert (line.mib_per_s, line.metadata_time_pct, line.sequential_pct, line.aligned_pct) == (1.0, None, None, None)
    assert line.mib_per_s_per_node_box is None
    assert (result.runs, result.joined.without_job) == (2, 2)


def made_up_runs(seed: int, count: int = 400) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Runs of six projects, one of them unknown; some without nodes or operations."""
    random = np.random.default_rng(seed)
    runs, jobs = [], []
    for number in range(count):
        project = [None, "a", "b", "c", "d", "e"][int(random.integers(0, 6))]
        operations = int(random.integers(0, 50))
        counts = {
            access_column(direction, size): int(random.integers(0, 9))
            for direction in ("read", "write")
            for size in SIZES
        }
        runs.append(run_row(
            f"r{number}", number, number + float(random.uniform(10, 500)), job_id=str(number), **counts,
            processes=int(2 ** random.integers(0, 13)), read_bytes=int(random.lognormal(20, 2)),
            write_bytes=int(random.lognormal(20, 2)), slowest_rank_s=float(random.choice([0.0, 1.5, 7.25, 80.0])),
            read_s=float(random.random()), write_s=float(random.random()), metadata_s=float(random.random()),
            files=int(random.integers(0, 99)), new_files=int(random.integers(0, 9)), posix_reads=operations,
            posix_writes=operations, sequential_reads=operations, misaligned_ops=operations // 2,
        ))  # fmt: skip
        nodes = int(random.integers(1, 9)) if random.random() < 0.8 else None
        jobs.append(job_row(str(number), number, number + 600, project=project, nodes=nodes))
    return runs, jobs


def known_mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def per_node(run: dict[str, Any], job: dict[str, Any]) -> float | None:
    if not run["slowest_rank_s"] or not job["nodes"]:
        return None
    return float((run["read_bytes"] + run["write_bytes"]) / MIB / run["slowest_rank_s"] / job["nodes"])


@pytest.mark.parametrize("ceiling", [None, 50.0])
def test_projects_as_a_brute_force(tmp_path: Path, ceiling: float | None) -> None:
    runs, jobs = made_up_runs(1)
    store = store_of(tmp_path, runs, jobs)
    result = runs_projects(selected(store), ceiling_mib_per_s_per_node=ceiling)
    large: dict[str | None, list[tuple[dict, dict]]] = {}
    moved: dict[str | None, int] = {}
    above = []
    for run, job in zip(runs, jobs, strict=True):
        total = run["read_bytes"] + run["write_bytes"]
        moved[job["project"]] = moved.get(job["project"], 0) + total
        if run["processes"] >= 1024 and total >= 500 * MIB:
            if ceiling is not None and (per_node(run, job) or 0) > ceiling:
                above.append((-(per_node(run, job) or 0), run["run_id"]))
            else:
                large.setdefault(job["project"], []).append((run, job))
    assert [line.project for line in result.top_projects] == sorted(moved, key=lambda name: -moved[name])
    assert {line.project: (line.read_bytes or 0) + (line.write_bytes or 0) for line in result.top_projects} == moved
    assert {line.project for line in result.projects} == set(large)
    assert result.runs_above_ceiling == len(above)
    assert [line.run_id for line in result.above_ceiling] == [name for _, name in sorted(above)][:20]
    assert result.runs_filtered == len(above) + sum(map(len, large.values())) > 20
    for line in result.projects:
        members = large[line.project]
        speeds = [speed for run, job in members if (speed := per_node(run, job)) is not None]
        assert (line.runs, line.runs_with_nodes) == (len(members), len(speeds))
        assert line.mib_per_s_per_node == pytest.approx(known_mean([per_node(*pair) for pair in members]))
        box = line.mib_per_s_per_node_box
        if box is not None:
            expected = [min(speeds), *np.percentile(speeds, [25, 50, 75]), max(speeds)]
            assert [box.min, box.q1, box.median, box.q3, box.max] == pytest.approx(expected)
        assert line.sequential_pct == pytest.approx(
            known_mean([50.0 if run["posix_reads"] else None for run, _ in members])
        )
        assert line.files_per_proc == pytest.approx(known_mean([run["files"] / run["processes"] for run, _ in members]))
        for item in line.access_sizes:
            column = access_column("read", item.to_bytes)
            assert item.reads == sum(run[column] for run, _ in members)
        assert sum(item.write_pct or 0 for item in line.access_sizes) == pytest.approx(100)


# Coverage -------------------------------------------------------------------------------------------------------------


def covered(folder: Path, **scope: Any) -> RunCoverage:
    runs = [
        run_row("a", 0, 10, job_id="1", posix_files=1, mpiio_files=3, filesystem="scratch", read_bytes=100),
        run_row("b", 20, 30, job_id="1", hdf5_files=1, filesystem="scratch", write_bytes=50),
        run_row("c", 0, 10, job_id="77", user="eve", stdio_files=1, read_bytes=9),
        run_row("d", 7200, 7300, job_id="4", pnetcdf_files=1),
    ]
    jobs = [
        job_row("1", 0, 3600, cores=10, project="earth"),
        job_row("2", 0, 7200, cores=5, project="earth"),
        job_row("3_1", 0, 3600, cores=None, project="air"),
        job_row("4", 7000, 8000, cores=36, project="air"),
        job_row("5", 0, 60, cores=99, project="air", ended=False),
    ]
    store = store_of(folder, runs, jobs)
    return runs_coverage(selected(store, **scope))


def test_a_job_with_several_logs_counts_once_with_all_its_core_hours(tmp_path: Path) -> None:
    result = covered(tmp_path)
    earth = next(line for line in result.projects if line.project == "earth")
    assert (earth.jobs, earth.jobs_with_log, earth.jobs_pct) == (2, 1, 50)
    assert (earth.core_hours, earth.core_hours_with_log) == (20, 10)
    assert (earth.runs, earth.apis) == (2, ["P", "M", "H"])
    assert (result.jobs, result.jobs_with_log, result.core_hours, result.core_hours_with_log) == (4, 2, 30, 20)
    assert (result.jobs_running, result.jobs_without_cores, result.jobs_of_arrays) == (1, 1, 1)
    assert (result.joined.by_id, result.joined.without_job, result.projects_with_log) == (3, 1, 2)
    unknown = next(line for line in result.projects if line.project is None)
    assert (unknown.jobs, unknown.runs, unknown.jobs_pct, unknown.apis) == (0, 1, None, ["S"])


def test_a_window_counts_jobs_that_start_in_it_and_their_logs_whenever_they_start(tmp_path: Path) -> None:
    until = from_epoch_us((T0_S + 7100) * 10**6)
    result = covered(tmp_path, since=from_epoch_us(T0_S * 10**6), until=until)
    assert (result.jobs, result.jobs_with_log) == (4, 2)  # the run of job 4 starts after the window
    assert result.runs == 3


@pytest.mark.parametrize("compacted", [False, True])
def test_jobs_that_were_loaded_again_with_another_zone_count_once(tmp_path: Path, compacted: bool) -> None:
    """Three jobs, of which two have a log; first two hours too early."""
    store = store_of(tmp_path, [run_row("a", 10, 90, job_id="0"), run_row("b", 5010, 5090, job_id="1")])
    for zone_s in (-7200, 0):
        jobs = [job_row(f"{number}", zone_s + 5000 * number, zone_s + 5000 * number + 100) for number in range(3)]
        rows = [Row("jobs", {name: value for name, value in job.items() if name != "date"}) for job in jobs]
        store.ingest([capture(rows, f"zone {zone_s}")], "slurm")
    if compacted:
        compact_store(store)
    result = runs_coverage(selected(store))
    assert (result.jobs, result.jobs_with_log, result.joined.by_id) == (3, 2, 2)


def test_which_bytes_of_targets_runs_explain(tmp_path: Path) -> None:
    result = covered(tmp_path)
    (line,) = result.explained
    assert (line.filesystem, line.run_bytes, line.device_bytes, line.explained_pct) == ("scratch", 150, None, None)
    store = Store(tmp_path)
    rows = [{**row, "time": T0_S * 10**6 + 60 * 10**6, "start": T0_S * 10**6, "date": T0_S // 86_400,
             "target": f"scratch-OST{number:04x}", "read_bytes": 500, "write_bytes": 100}
            for number, row in enumerate(made_up(1, 1, 1, missing=0).io * 2)]  # fmt: skip
    controller = [{**rows[0], "target": "c1", "target_kind": "controller", "read_bytes": 10**6}]
    from iolens.schema import TABLES

    store.append("target_io", to_arrow(TABLES["target_io"], rows + controller))
    (line,) = runs_coverage(selected(store)).explained
    assert (line.target_kind, line.device_bytes, line.explained_pct) == ("ost", 1200, 12.5)


# Interfaces and patterns ----------------------------------------------------------------------------------------------


def test_classes_are_powers_of_two_and_a_run_counts_under_each_interface_it_uses(tmp_path: Path) -> None:
    runs = [
        run_row(str(count), processes=count, files=2, posix_files=1, posix_read_bytes=30, mpiio_files=int(count > 4),
                mpiio_read_bytes=70 if count > 4 else 0, unique_files=1, shared_files=1, shared_write_bytes=5)
        for count in (1, 2, 3, 4, 5, 8, 9)
    ]  # fmt: skip
    runs += [run_row("none", processes=4), run_row("unknown", processes=None, files=1, posix_files=1)]
    store = store_of(tmp_path, runs)
    result = runs_interfaces(selected(store))
    ends = [(line.processes_from, line.processes_to, line.runs) for line in result.classes]
    assert ends == [(1, 1, 1), (2, 2, 1), (3, 4, 3), (5, 8, 2), (9, 16, 1)]
    posix, _, mpiio, *_ = result.classes[3].uses
    assert (posix.name, posix.runs, posix.runs_pct, posix.read_bytes, posix.read_pct) == ("posix", 2, 100, 60, 30)
    assert (mpiio.name, mpiio.runs, mpiio.read_bytes, mpiio.read_pct, mpiio.write_pct) == ("mpiio", 2, 140, 70, None)
    assert (result.runs, result.runs_without_processes, result.classes[2].runs_without_files) == (9, 1, 1)
    patterns = runs_patterns(selected(store))
    assert [(use.name, use.runs, use.write_bytes) for use in patterns.overall.uses] == [
        ("unique", 7, 0), ("shared", 7, 35), ("partially_shared", 0, 0)
    ]  # fmt: skip


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "category"),
    [
        ({"files": 0}, "no files"),
        ({"files": 9, "processes": 1, "unique_files": 9}, "serial"),
        ({"files": 4, "unique_files": 4}, "N:N"),
        ({"files": 5, "unique_files": 4, "shared_files": 1}, "N:N"),
        ({"files": 3, "unique_files": 3}, "N:M"),
        ({"files": 1, "shared_files": 1}, "N:1"),
        ({"files": 3, "unique_files": 3, "io_ranks": 1}, "N:1"),
        ({"files": 9, "partially_shared_files": 9}, "N:M"),
        ({"files": 9, "unique_files": None}, "unknown"),
        ({"files": None}, "unknown"),
    ],
)
def test_categories_of_files(tmp_path: Path, columns: dict[str, Any], category: str) -> None:
    result = runs_files(selected(store_of(tmp_path, [run_row("a", **columns)])))
    assert {line.category: line.runs for line in result.categories if line.runs} == {category: 1}


def test_new_files_and_points(tmp_path: Path) -> None:
    runs = [
        run_row("a", project="p", files=4, written_files=10, new_files=9, read_bytes=5),
        run_row("b", project="p", files=4, written_files=0, read_bytes=5),
        run_row("c", processes=64, files=0, written_files=None, new_files=None),
    ]
    result = runs_files(selected(store_of(tmp_path, runs)))
    assert (result.written_files, result.new_files, result.new_files_pct) == (10, 9, 90)
    assert (result.runs_without_files, result.runs_without_files_pct) == (1, pytest.approx(100 / 3))
    assert [(p.project, p.processes, p.files, p.runs) for p in result.points] == [("p", 4, 4, 2), (None, 64, 0, 1)]
    assert [(line.project, line.new_files_pct) for line in result.projects] == [("p", 90), (None, None)]


# Sizes ----------------------------------------------------------------------------------------------------------------


def test_sizes_and_who_dominates_them(tmp_path: Path) -> None:
    small, large = access_column("write", 100), access_column("write", 1 << 20)
    runs = [run_row("a", project="p", **{small: 90, large: 5}), run_row("b", project="q", **{small: 10, large: 15})]
    store = store_of(tmp_path, runs)
    result = runs_sizes(selected(store))
    first, fifth = (
        next(s for s in result.sizes if s.direction == "write" and s.to_bytes == to) for to in (100, 1 << 20)
    )
    assert (first.accesses, first.pct, first.top_project, first.top_project_pct) == (
        100,
        pytest.approx(250 / 3),
        "p",
        90,
    )
    assert (fifth.cumulative_pct, fifth.top_project, fifth.top_project_pct) == (100, "q", 75)
    assert (result.reads, result.most_popular_read_to_bytes, result.most_popular_write_to_bytes) == (0, None, 100)
    without = runs_sizes(selected(store), without_projects=["p"])
    assert (without.runs, without.writes, without.most_popular_write_to_bytes) == (1, 25, 1 << 20)


# Variance -------------------------------------------------------------------------------------------------------------


def test_like_runs_by_hand(tmp_path: Path) -> None:
    def like(run_id: str, seconds: float | None, read: int = 1000, **more: Any) -> dict[str, Any]:
        return run_row(run_id, files=4, read_bytes=read, write_bytes=7, slowest_rank_s=seconds, **more)

    runs = [
        like("a", 10.0), like("b", 14.0, 1010), like("c", 30.0, 1011), like("d", 34.0, 1012, executable="other"),
        like("e", 1.0, user="bob"), like("f", None), like("g", 9.0, user=None), like("h", 3.0, user=None, uid=17),
        like("i", 5.0, user=None, uid=17),
    ]  # fmt: skip
    result = runs_variance(selected(store_of(tmp_path, runs)))
    assert [(line.user, line.samples) for line in result.groups] == [("17", 2), ("ada", 2), ("ada", 2)]
    first = result.groups[1]
    assert (first.mean_s, first.min_s, first.max_s, first.read_bytes, first.nprocs, first.files) == (
        12,
        10,
        14,
        1005,
        4,
        4,
    )
    assert first.stddev_s == pytest.approx(statistics.stdev([10, 14]))
    assert first.cv_pct == pytest.approx(100 * statistics.stdev([10, 14]) / 12)
    assert (result.groups[2].executable, result.groups[2].executables) == ("app", 2)
    assert (result.runs, result.runs_grouped, result.runs_without_user, result.runs_without_time) == (9, 6, 1, 1)
    assert runs_variance(selected(Store(tmp_path)), min_samples=3).groups == []
    fewer = runs_variance(selected(Store(tmp_path)), top=1)
    assert (len(fewer.groups), fewer.groups_known, fewer.groups_left_out) == (1, 3, 2)


# Scaling --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("processes", "moved", "verdict"),
    [
        ([64, 128, 256], [10**9, 10**9, 11 * 10**8], "strong"),
        ([64, 128, 256], [10**9, 2 * 10**9, 4 * 10**9], "weak"),
        ([64, 128, 256], [10**9, 14 * 10**8, 2 * 10**9], "neither"),
        ([64, 128, 256], [10**9, 10**10, 10**12], "neither"),
        ([64, 64], [10**9, 10**9], "undecided"),
        ([64, 100], [10**9, 10**9], "undecided"),
        ([64, 128], [0, 10**9], "undecided"),
        ([], [], "undecided"),
        ([None, 64, 128], [5, None, 5], "undecided"),
    ],
)
def test_strong_and_weak_scaling(processes: list[int | None], moved: list[int | None], verdict: str) -> None:
    result = scaling_of(processes, moved)
    assert result.scaling == verdict
    assert (result.slope is None) == (verdict == "undecided")


def test_scaling_by_nodes_and_single_runs(tmp_path: Path) -> None:
    """Table VIII in miniature: the same bytes on more nodes are slower per node."""
    runs, jobs = [], []
    for number, (nodes, seconds) in enumerate([(4, 10.0), (4, 20.0), (4, 40.0), (16, 40.0)]):
        runs.append(run_row(str(number), job_id=str(number), processes=4 * nodes, read_bytes=1024 * MIB,
                            slowest_rank_s=seconds, key_access_bytes=20, key_access_direction="w"))  # fmt: skip
        jobs.append(job_row(str(number), project="p", nodes=nodes))
    store = store_of(tmp_path, [*runs, run_row("other")], jobs)
    result = runs_scaling(selected(store), RunConditions(projects=["p"]), top=2)
    assert (result.runs, result.by, result.verdict.scaling, result.verdict.slope) == (
        4,
        "nodes",
        "strong",
        pytest.approx(0),
    )
    assert [(step.count, step.runs, step.mib_per_s_per_node) for step in result.steps] == [(4, 3, 12.8), (16, 1, 1.6)]
    assert [step.bytes_per_process for step in result.steps] == [64 * MIB, 16 * MIB]
    assert [(line.mib_per_s_per_node, line.key_access_bytes) for line in result.listed] == [(25.6, 20), (1.6, 20)]
    assert result.runs_not_listed == 2
    by_processes = runs_scaling(selected(store), RunConditions(executables=["app"]))
    assert (by_processes.runs, by_processes.by) == (5, "processes")
