"""Jobs of made-up stores: every layer alone and together, one file system, pages, words that look like patterns."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.job_search import JobSearch, MergedJob
from iolens.api import OpenStore
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.jobs import SORTS, JobSearchOptions, listed_jobs, search_jobs
from iolens.api.user_page import user_page
from iolens.errors import OptionError, StoreError, UsageError
from iolens.models.transaction_time import GRACE_2012
from iolens.questions.jobs.question import SEARCH_ORDERS
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import MIB, from_epoch_us
from iolens.views.job_search import ORDER_WORDS
from iolens.views.render.formats import tables_of
from iolens.views.render.json_text import to_json
from iolens.views.render.tables import to_terminal
from tests.analyses.client_rows import client_rows, fill
from tests.analyses.explain.centre import interval
from tests.analyses.page_centre import DAY_S, OWN, RUN_S, STRANGE_PROGRAM, STRANGER, filled, page_centre
from tests.analyses.run_rows import T0_S, fill_runs, job_row, run_row
from tests.cli.command import iolens
from tests.views.documented import undocumented

COST_S = GRACE_2012.write.seconds(MIB)
HOSTILE = '<script>"x"\x1b[J\u202e=x+y'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    filled(Store(folder), page_centre())
    return folder


def searched(folder: Path, filesystem: str | None = None, **wanted: Any) -> JobSearch:
    """`since` and `until` are of the scope, the rest is looked for."""
    scope = Scope.taken_from(wanted, filesystem)
    with OpenStore(str(folder)) as opened:
        return search_jobs(opened, scope, JobSearchOptions(**wanted))


def ids(result: JobSearch) -> list[str]:
    return [job.job_id for job in result.jobs]


def test_all_layers_together(folder: Path) -> None:
    result = searched(folder, "scratch", sort="disk")
    assert (ids(result), result.jobs_known) == (["90002", "103", "101", "90004"], 4)
    first = result.jobs[0]
    assert (first.user, first.name, first.job_name, first.state, first.nodes, first.cores, first.runs) == (
        STRANGER, STRANGE_PROGRAM, STRANGE_PROGRAM, "COMPLETED", 2, 60, 1
    )  # fmt: skip
    assert first.disk_seconds == pytest.approx(9000 * COST_S)
    assert first.disk_share_pct == pytest.approx(100 * 900 / 1700)
    assert (first.write_bytes, first.core_hours) == (9000 * MIB, pytest.approx(60 * RUN_S / 3600))
    assert (first.filesystems, first.known_by) == (["scratch"], ["record", "log", "job_stats"])
    assert (first.start, first.end) == tuple(from_epoch_us((T0_S + s) * 1_000_000) for s in (0, RUN_S))


def test_without_a_file_system_there_is_no_share(folder: Path) -> None:
    result = searched(folder)
    assert [job.disk_share_pct for job in result.jobs] == [None] * 4
    assert {job.job_id: job.disk_seconds for job in result.jobs} == {
        job.job_id: job.disk_seconds for job in searched(folder, "scratch").jobs
    }


def test_the_window_is_the_last_seven_days_of_data(folder: Path) -> None:
    result = searched(folder)
    assert result.window_end == from_epoch_us((T0_S + DAY_S + RUN_S) * 1_000_000)
    assert result.window_start == from_epoch_us((T0_S - 5 * DAY_S) * 1_000_000)
    second_day = from_epoch_us((T0_S + DAY_S) * 1_000_000)
    assert sorted(ids(searched(folder, since=second_day))) == ["103", "90004"]
    assert sorted(ids(searched(folder, until=second_day))) == ["101", "90002"]


def test_jobs_of_a_user_are_those_of_the_page_of_that_user(folder: Path) -> None:
    result = searched(folder, users=(OWN,))
    with OpenStore(str(folder)) as opened:
        page = user_page(opened, OWN)
    assert {(job.job_id, job.name, job.start, job.core_hours, job.write_bytes, job.runs) for job in result.jobs} == {
        (job.job_id, job.name, job.start, job.core_hours, job.write_bytes, job.runs) for job in page.top_jobs
    }
    by_id = {job.job_id: job.disk_seconds for job in page.top_jobs}
    assert {job.job_id: job.disk_seconds for job in result.jobs} == {
        name: pytest.approx(seconds) for name, seconds in by_id.items()
    }


def test_disk_seconds_are_those_of_blame(folder: Path) -> None:
    result = searched(folder, "scratch")
    with OpenStore(str(folder)) as opened:
        blame = blame_of(opened, Scope("scratch", result.window_start, result.window_end), BlameOptions(top=100))
    assert {(job.job_id, job.disk_seconds, job.disk_share_pct) for job in result.jobs} == {
        (line.name, line.disk_seconds, line.share_pct) for line in blame.who
    }


def test_the_state_of_the_calibration_stands_beside_disk_time(folder: Path, tmp_path: Path) -> None:
    """By the shipped default: seconds are by coefficients that nobody chose, and shares hold for one mix of sizes."""
    result = searched(folder, "scratch", sort="disk")
    assert (result.calibration_state, result.has_levels) == ("assumed", False)
    title, first = to_terminal(tables_of(result), None).splitlines()[:2]
    assert title == "scratch: jobs, most disk time first (not calibrated)"
    assert first.startswith("Warning: Not calibrated: what an I/O costs")
    assert first.rstrip(".").endswith("shares of it hold among I/Os of one mix of sizes")
    assert json.loads(to_json(result))["warnings"][0].startswith("Not calibrated")
    filled(Store(tmp_path), page_centre(job_stats=False))
    without = searched(tmp_path, "scratch")
    assert (without.calibration_state, without.level_unknown) == (None, "")


@pytest.mark.parametrize(
    ("layers", "known_by"),
    [
        ({"records": False, "logs": False}, ["job_stats"]),
        ({"records": False, "job_stats": False}, ["log"]),
        ({"logs": False, "job_stats": False}, ["record"]),
    ],
)
def test_a_layer_alone_knows_all_jobs(tmp_path: Path, layers: dict[str, bool], known_by: list[str]) -> None:
    filled(Store(tmp_path), page_centre(**layers))
    result = searched(tmp_path)
    assert sorted(ids(result)) == ["101", "103", "90002", "90004"]
    assert all(job.known_by == known_by for job in result.jobs)
    for job in result.jobs:
        has_bytes, has_disk = known_by != ["record"], known_by == ["job_stats"]
        assert (job.write_bytes is not None, job.disk_seconds is not None) == (has_bytes, has_disk)
        assert (job.start is None, job.core_hours is None) == (has_disk, has_disk)
    assert bool(result.disk_missing) is (known_by != ["job_stats"])


def test_shares_follow_new_rows(tmp_path: Path) -> None:
    """What is kept of shares in this process is not that of an earlier state of the store."""
    tables = page_centre()
    late = [row for row in tables["job_io"] if row["start"] >= (T0_S + DAY_S) * 1_000_000]
    first = [row for row in tables["job_io"] if row not in late]
    filled(Store(tmp_path), {**tables, "job_io": first})
    assert {job.job_id for job in searched(tmp_path).jobs if job.disk_seconds is not None} == {"101", "90002"}
    filled(Store(tmp_path), {"job_io": late})
    assert all(job.disk_seconds is not None for job in searched(tmp_path).jobs)


def test_counters_of_nodes_where_nothing_else_counted(tmp_path: Path) -> None:
    """A job by its record, on a node that counted 700 bytes written; in whatever order, and with its file system."""
    store = filled(Store(tmp_path), {"target_io": [interval(0, 60, "scratch-OST0000")]})
    jobs = [job_row("1", 0, 100, node_list="n1"), job_row("2", 200, 300, node_list="n2")]
    fill(store, [client_rows("n1", 0, 100, write_bytes=700)], jobs)
    for wanted in ({}, {"sort": "bytes"}):
        result = searched(tmp_path, **wanted)
        assert {job.job_id: (job.write_bytes, job.known_by) for job in result.jobs} == {
            "1": (700, ["record", "nodes"]),
            "2": (None, ["record"]),
        }
    only = searched(tmp_path, "scratch")
    assert (ids(only), only.jobs[0].filesystems) == (["1"], ["scratch"])


def test_jobs_of_one_file_system_are_those_that_used_it(tmp_path: Path) -> None:
    runs = [
        run_row("a" * 64, job_id="1", filesystem="home", write_bytes=5),
        run_row("b" * 64, job_id="1", filesystem="scratch", write_bytes=7),
        run_row("c" * 64, job_id="2", filesystem="home", write_bytes=9),
    ]
    fill_runs(Store(tmp_path), runs, [job_row("1"), job_row("2"), job_row("3")])
    home, scratch, everything = (searched(tmp_path, name, sort="written") for name in ("home", "scratch", None))
    assert [(job.job_id, job.write_bytes) for job in home.jobs] == [("2", 9), ("1", 5)]
    assert [(job.job_id, job.write_bytes) for job in scratch.jobs] == [("1", 7)]
    assert [(job.job_id, job.write_bytes) for job in everything.jobs] == [("1", 12), ("2", 9), ("3", None)]
    with pytest.raises(UsageError, match=r"no file system is called 'hom'.*home"):
        searched(tmp_path, "hom")


def test_two_clusters_with_one_id_are_two_jobs(tmp_path: Path) -> None:
    jobs = [job_row("1", 0, 100, cluster="frost"), job_row("1", 5000, 5100, cluster="blaze", user="bob")]
    runs = [run_row("a" * 64, 5010, 5090, job_id="1", user="bob", write_bytes=3)]
    fill_runs(Store(tmp_path), runs, jobs)
    assert [(job.cluster, job.user, job.runs, job.write_bytes) for job in searched(tmp_path).jobs] == [
        ("blaze", "bob", 1, 3),
        ("frost", "ada", 0, None),
    ]
    assert [job.cluster for job in searched(tmp_path, clusters=("frost",)).jobs] == ["frost"]


def test_samples_of_several_nodes_are_one_job(tmp_path: Path) -> None:
    """As `iolens job list` has it: from the first begin to the last end."""
    sampled = {"source": "job-files", "ended": None, "nodes": 1}
    rows = [job_row("1", start, end, node_list=node, **sampled) for node, start, end in (("a", 0, 90), ("b", 5, 100))]
    fill_runs(Store(tmp_path), [], rows)
    (job,) = searched(tmp_path).jobs
    assert (job.job_id, job.nodes, job.duration_s) == ("1", 2, 100.0)


def test_a_running_job_has_no_end(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [], [job_row("1", ended=False, state="RUNNING")])
    (job,) = searched(tmp_path).jobs
    assert (job.end, job.state, job.duration_s) == (None, "RUNNING", 100.0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("AD", {"1"}), ("1", {"1", "12"}), ("2", set()), ("*2", {"12"}), ("%", set()), ("my_job", {"1"}),
     ("my?job", {"1"}), ("a_d", set()), ("'; --", set()), ("prog", {"12"}), ("earth", {"1", "12"}),
     ("script", {"7"}), ("\u202e", {"7"})],
)  # fmt: skip
def test_words_match_ids_from_their_begin_and_names_anywhere(tmp_path: Path, text: str, wanted: set[str]) -> None:
    jobs = [
        job_row("1", name="my_job"),
        job_row("12", user="bob"),
        job_row("7", user="eve", name=HOSTILE, project=None),
    ]
    fill_runs(Store(tmp_path), [run_row("a" * 64, job_id="12", user="bob", executable="prog.exe")], jobs)
    assert set(ids(searched(tmp_path, text=text))) == wanted


def test_pages_follow_each_other(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [], [job_row(str(number), number, number + 50) for number in range(10)])
    pages = [searched(tmp_path, top=4, skip=skip) for skip in (0, 4, 8, 12)]
    assert [name for page in pages for name in ids(page)] == [str(number) for number in range(9, -1, -1)]
    assert [page.jobs_known for page in pages] == [10] * 4
    assert ids(searched(tmp_path, top=2, reverse=True)) == ["0", "1"]


def test_questions_that_have_no_answer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no data yet"):
        searched(tmp_path / "nothing")
    fill_runs(Store(tmp_path), [], [job_row("1")])
    with pytest.raises(UsageError, match="no order is called 'size'"):
        searched(tmp_path, sort="size")
    with OpenStore(str(tmp_path)) as opened, pytest.raises(OptionError, match="--target"):
        search_jobs(opened, Scope(targets=("OST0000",)))


def test_orders_have_words_and_are_those_of_the_command() -> None:
    assert set(ORDER_WORDS) == set(SORTS) == set(SEARCH_ORDERS)


def test_the_command_shows_hostile_names_as_text(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [], [job_row(HOSTILE, user=HOSTILE, project=HOSTILE, name=HOSTILE)])
    answer = json.loads(iolens("job", "search", "--store", tmp_path, "--format", "json").out)
    assert set(answer) == set(JobSearch.__dataclass_fields__) - {"calibration_refuted"}
    assert [job["name"] for job in answer["jobs"]] == [HOSTILE]
    for format_ in ("table", "markdown"):
        shown = iolens("job", "search", HOSTILE, "--store", tmp_path, "--format", format_)
        assert (shown.code, "1 to 1 of 1 job" in shown.out) == (0, True)
        assert not {"\x1b", "\u202e"}.intersection(shown.out)
    cells = iolens("job", "search", "--user", HOSTILE, "--store", tmp_path, "--format", "csv").out
    assert "\x1b" not in cells


def test_every_key_is_documented() -> None:
    assert undocumented(JobSearch, "jobs.md") == []
    assert MergedJob.__dataclass_fields__.keys() >= {"job_id", "known_by"}


def test_a_simulated_centre_against_the_list_of_jobs(tmp_path: Path) -> None:
    """Every job that `job list` has is here with the same figures, and so are those it does not have."""
    done = iolens(
        "simulate", "telemetry", "--store", tmp_path / "s", "--workload", "scratch", "--osts", 2, "--days", 0.5
    )
    assert done.code == 0, done.err
    with OpenStore(str(tmp_path / "s")) as opened:
        found_by_search = search_jobs(opened, Scope("scratch"), JobSearchOptions(top=10_000))
        window = found_by_search.window_start, found_by_search.window_end
        records = {str(row["job_id"]): row for row in opened.store.jobs(*window)}
        blame = blame_of(opened, Scope("scratch", *window), BlameOptions(top=10_000))
        listed = listed_jobs(opened, Scope("scratch", *window), JobFilter(), top=10_000)
    jobs = {job.job_id: job for job in found_by_search.jobs}
    assert len(jobs) == len(found_by_search.jobs) == found_by_search.jobs_known > 5
    assert set(jobs) >= {line.name for line in blame.who} | {job.jobid for job in listed.jobs}
    for line in blame.who:
        assert (jobs[line.name].disk_seconds, jobs[line.name].write_bytes) == (line.disk_seconds, line.write_bytes)
    for name, job in jobs.items():
        if name in records:
            assert (job.user, job.project, job.cores) == tuple(
                records[name][key] for key in ("user", "project", "cores")
            )
    starts = [job.start for job in found_by_search.jobs if job.start is not None]
    assert starts == sorted(starts, reverse=True)
    assert isinstance(starts[0], datetime)
