"""Applications beside each other, and one across core counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.job_applications import Applications, ApplicationTotals, LoggedAccesses, job_applications
from iolens.api import OpenStore
from iolens.api.jobs import applications_of
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.views.job_applications import COLOURS, figures, tables
from iolens.views.render.figures import Bars, legible
from tests.analyses.like_jobs import application_job, five_applications, stored_like_jobs
from tests.analyses.run_rows import fill_runs, run_row
from tests.views.documented import undocumented

MIB = 1 << 20
NOTHING = (0, 0, 0, 0, 0, 0, 0, 0)


def application(result: Applications, name: str, cores: int | None = None) -> ApplicationTotals:
    return next(line for line in result.applications if (line.name, line.cores) == (name, cores))


@pytest.fixture
def result() -> Applications:
    return job_applications("scratch", five_applications())


def test_applications_are_in_the_order_of_what_they_moved(result: Applications) -> None:
    assert [line.name for line in result.applications] == ["enzo", "overflow", "mitgcm", "usm3d", "cart3d"]


def test_sums_are_of_all_jobs_and_means_of_one(result: Applications) -> None:
    line = application(result, "overflow")
    assert (line.jobs, line.cores_min, line.cores_max) == (3, 8, 128)
    assert (line.read_bytes, line.read_bytes_mean) == (6 * 10**9, 2 * 10**9)
    assert (line.opens_mean, line.closes_mean) == (35, 37)


def test_shares_are_of_all_rpcs_of_the_application(result: Applications) -> None:
    """Table I of the study: 42,082 reads, of which 26,572 of 1 MiB and 12,886 of 64 KiB or less."""
    line = application(result, "enzo")
    assert sum(size.reads for size in line.rpc_sizes) == 42_082
    assert line.rpc_sizes[-1].read_pct == pytest.approx(100 * 26_572 / 42_082)
    assert line.small_read_rpc_pct == pytest.approx(100 * 12_886 / 42_082)
    assert line.small_write_rpc_pct == pytest.approx(100 * 904 / 54_378)
    pooled = application(result, "overflow").rpc_sizes[0]
    assert pooled.reads == 264 * 7
    assert pooled.read_pct == pytest.approx(100 * 264 * 7 / (264 * 7 + 3 * 1550))


def test_core_counts_are_kept_apart_in_their_order() -> None:
    result = job_applications("scratch", [line for line in five_applications() if line.job.name == "overflow"], "cores")
    assert [line.cores for line in result.applications] == [8, 32, 128]
    assert [line.rpc_sizes[0].reads for line in result.applications] == [264, 528, 1056]
    assert [line.opens_mean for line in result.applications] == [20, 35, 50]


def test_what_is_not_known_is_not_zero() -> None:
    job = replace(five_applications()[0], read_bytes=None, metadata=None, rpc_sizes=None)
    other = application_job(9, "overflow", 8, (0, *NOTHING), (5, *NOTHING), (4, 0), 10)
    alone = job_applications("scratch", [job]).applications[0]
    assert (alone.read_bytes, alone.read_bytes_mean, alone.opens_mean, alone.rpc_sizes) == (None, None, None, [])
    assert alone.small_read_rpc_pct is None
    both = job_applications("scratch", [job, other]).applications[0]
    assert (both.read_bytes_mean, both.opens_mean, both.rpc_jobs) == (4e9, 10, 1)
    assert both.small_read_rpc_pct is None  # no reads
    assert both.small_write_rpc_pct == 100.0


def test_what_is_left_out_is_counted_and_said() -> None:
    jobs = five_applications()
    unnamed = replace(jobs[3], job=replace(jobs[3].job, name=None))
    result = job_applications("scratch", [*jobs, unnamed], top=2, without_counters=4, running=1)
    assert (result.applications_left_out, result.jobs_left_out, result.jobs_unnamed) == (3, 3, 1)
    assert tables(result)[0].note.endswith(
        "Not here: 3 jobs of 3 applications that moved less, 1 job of which no name is known, 4 jobs without counters,"
        " 1 job still running."
    )


def test_the_words_say_what_the_table_says(result: Applications) -> None:
    """Cart3D's 40 writes are all small, and too few to speak of."""
    line = application(result, "mitgcm")
    assert line.small_read_rpc_pct == pytest.approx(100 * 60_000 / 60_040)
    assert tables(result)[0].note == (
        "enzo moves most: 110 GB in 1 job. mitgcm has the largest share of small RPCs: 99.9 % of its reads are of"
        " 64 KiB or less."
    )


def test_jobs_on_shared_nodes_are_warned_about() -> None:
    jobs = [replace(line, shares_nodes=True) for line in five_applications()[:2]]
    result = job_applications("scratch", jobs)
    assert result.applications[0].sharing_nodes == 2
    assert tables(result)[0].warnings == ("2 jobs shared nodes with others, whose I/O is in the counters",)


def test_figures_draw_what_the_result_holds(result: Applications) -> None:
    drawn = {name: legible(describe()) for name, describe in figures(result).items()}
    assert list(drawn) == ["gigabytes", "opens", "rpcs", "counts"]
    read, written = drawn["gigabytes"].panels[0].marks
    assert isinstance(read, Bars)
    assert isinstance(written, Bars)
    assert read.heights.tolist() == pytest.approx([54, 2, 1, 6, 4])
    assert written.heights.tolist() == pytest.approx([56, 3, 9, 1, 1])
    assert drawn["gigabytes"].panels[0].y.scale == "linear"
    assert drawn["opens"].panels[0].y.scale == "log"  # 30 to 40,000
    assert [panel.title for panel in drawn["rpcs"].panels] == ["reads", "writes"]
    assert len(drawn["rpcs"].panels[0].marks) == 5
    overflow = next(mark for mark in drawn["counts"].panels[0].marks if mark.label == "overflow")
    assert overflow.heights[-1] == 1550  # per job


def test_more_applications_than_colours_are_said_in_the_title() -> None:
    jobs = [application_job(k, f"a{k}", 8, (k + 1, *NOTHING), (0, *NOTHING), (k, 0), 1) for k in range(10)]
    figure = figures(job_applications("scratch", jobs))["rpcs"]()
    assert len(figure.panels[0].marks) == len(COLOURS)
    assert figure.title == "scratch: sizes of RPCs of applications (the first 8)"
    assert figure.panels[1].message == "none known"


def logged_run(job: int, **more: int) -> dict[str, Any]:
    """The log of one job: a MiB of 256 reads and three of 256 writes, and what is stated."""
    return run_row(
        f"r{job}", job * 7200.0, job * 7200.0 + 3000, job_id=str(5000 + job), posix_reads=256, posix_writes=256,
        read_bytes=MIB, write_bytes=3 * MIB, **more,
    )  # fmt: skip


def test_logs_tell_the_attributes_of_the_survey(tmp_path: Path) -> None:
    """Two of the three jobs of overflow have logs; those of other names have none, and one run has no job."""
    first = {"sequential_reads": 256, "sequential_writes": 128, "unique_read_bytes": MIB, "unique_write_bytes": 3 * MIB,
             "posix_read_bytes": MIB, "posix_write_bytes": 3 * MIB, "appended_write_bytes": 3 * MIB}  # fmt: skip
    second = {"sequential_reads": 0, "sequential_writes": 128, "shared_read_bytes": MIB, "shared_write_bytes": 3 * MIB,
              "mpiio_read_bytes": MIB, "mpiio_write_bytes": 3 * MIB, "appended_write_bytes": 0}  # fmt: skip
    jobs = five_applications()
    overflow = [int(line.job.job_id) - 5000 for line in jobs if line.job.name == "overflow"]
    store = stored_like_jobs(Store(tmp_path), jobs)
    runs = [logged_run(overflow[0], **first), logged_run(overflow[1], **second), logged_run(99, **first)]
    fill_runs(store, [{**run, "user": None} for run in runs])
    with OpenStore(tmp_path) as opened:
        result = applications_of(opened, Scope("scratch"), JobFilter())
    lines = {line.name: line for line in result.applications}
    assert {name: line.logged_jobs for name, line in lines.items() if line.logged_jobs} == {"overflow": 2}
    assert lines["enzo"].accesses is None
    assert lines["overflow"].accesses == LoggedAccesses(
        runs=2, sequential_read_pct=50.0, sequential_write_pct=50.0, appended_write_pct=50.0, unique_pct=50.0,
        shared_pct=50.0, partially_shared_pct=0.0, interface="posix", interface_pct={"posix": 50.0, "mpiio": 50.0},
    )  # fmt: skip
    table = next(table for table in tables(result) if table.name == "accesses")
    assert [row[0] for row in table.rows] == ["overflow"]
    assert table.rows[0][-1] == "POSIX (50.0 %)"
    assert table.note == "By the Darshan logs of 2 of 7 jobs; files of all file systems."


def test_a_log_loaded_before_does_not_tell_what_was_appended(tmp_path: Path) -> None:
    """It is in no share: neither what was appended nor what was written."""
    jobs = five_applications()
    number = next(int(line.job.job_id) - 5000 for line in jobs if line.job.name == "enzo")
    store = stored_like_jobs(Store(tmp_path), jobs)
    fill_runs(store, [logged_run(number, unique_write_bytes=3 * MIB) | {"user": None}])
    with OpenStore(tmp_path) as opened:
        (enzo,) = applications_of(opened, Scope("scratch"), JobFilter(names=["enzo"])).applications
    assert enzo.accesses is not None
    assert (enzo.accesses.appended_write_pct, enzo.accesses.unique_pct) == (None, 100.0)


def test_without_logs_that_is_said(result: Applications) -> None:
    table = next(table for table in tables(result) if table.name == "accesses")
    assert (table.rows, table.note) == (
        [], "No Darshan log of these jobs is stored: how they access files is not known."
    )  # fmt: skip


def test_every_key_is_documented() -> None:
    assert undocumented(Applications, "job-compare.md") == []
