"""The page of a user from made-up stores: shares against counts by hand, any layer missing, nobody else named."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from iolens.analyses.user_page import UserJob, UserPage, first_jobs, slow_candidates
from iolens.api import OpenStore
from iolens.api.page_parts import pieces_of
from iolens.api.user_page import user_page
from iolens.errors import InputError, StoreError
from iolens.models.transaction_time import GRACE_2012
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import MIB, from_epoch_us, parse_time
from tests.analyses.client_rows import client_rows, fill
from tests.analyses.explain.centre import made_up_centre
from tests.analyses.page_centre import (
    DAY_S,
    OWN,
    RUN_S,
    STRANGE_PROGRAM,
    STRANGE_PROJECT,
    STRANGER,
    Tables,
    filled,
    page_centre,
)
from tests.analyses.run_rows import T0_S, fill_runs, job_row, run_row
from tests.cli.command import iolens

COST_S = GRACE_2012.write.seconds(MIB)
STRANGE = (STRANGER, STRANGE_PROGRAM, STRANGE_PROJECT, "90002", "90004")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("pages"), page_centre())


def stored(folder: Path, tables: Tables) -> Path:
    filled(Store(folder), tables)
    return folder


def page_of(folder: Path, user: str = OWN, scope: Scope | None = None, **options: Any) -> UserPage:
    with OpenStore(str(folder)) as opened:
        return user_page(opened, user, scope, **options)


def missing(page: UserPage) -> str:
    return "\n".join(f"{item.what}: {item.reason}" for item in page.missing)


@pytest.fixture(scope="module")
def page(folder: Path) -> UserPage:
    return page_of(folder)


def test_the_window_is_the_last_seven_days_of_data(page: UserPage) -> None:
    assert page.window_end == from_epoch_us((T0_S + DAY_S + RUN_S) * 1_000_000)
    assert page.window_start == from_epoch_us((T0_S - 5 * DAY_S) * 1_000_000)
    assert len(page.days) == 7


def test_shares_over_all_days_and_by_day(page: UserPage) -> None:
    """200 of 1,300 I/Os per tick on the first day, 300 of 400 on the second."""
    (use,) = page.uses
    assert (use.filesystem, use.cost.method) == ("scratch", "job_stats")
    assert use.cost.share_pct == pytest.approx(100 * 500 / 1700)
    assert use.cost.others_pct == pytest.approx(100 * 1000 / 1700)
    assert use.cost.unattributed_pct == pytest.approx(100 * 200 / 1700)
    assert use.cost.bytes_share_pct == pytest.approx(100 * 500 / 1500)
    assert use.cost.disk_seconds == pytest.approx(10 * 500 * COST_S)
    assert use.cost.fsu_pct == pytest.approx(100 * 1700 * COST_S / (2 * 60 * 4))
    days = {day.day: (day.share_pct, day.moved_bytes) for day in page.days if day.share_pct is not None}
    assert days == {
        date(2023, 11, 15): (pytest.approx(100 * 200 / 1300), 2000 * MIB),
        date(2023, 11, 16): (pytest.approx(75), 3000 * MIB),
    }


def test_sums_and_jobs(page: UserPage) -> None:
    assert (page.jobs, page.runs, page.write_bytes) == (2, 2, 5000 * MIB)
    assert page.core_hours == pytest.approx(2 * 60 * RUN_S / 3600)
    assert [(job.job_id, job.name, job.write_bytes) for job in page.top_jobs] == [
        ("103", "wrf.exe", 3000 * MIB),
        ("101", "wrf.exe", 2000 * MIB),
    ]
    assert [job.disk_seconds for job in page.top_jobs] == [pytest.approx(count * COST_S) for count in (3000, 2000)]


def test_findings_of_all_runs_are_one_line_each(page: UserPage) -> None:
    line = next(line for line in page.advice if line.code == "small-accesses")
    assert (line.runs, line.user) == (2, OWN)
    assert line.core_hours == pytest.approx(1.0)


def test_nobody_else_is_in_the_result(page: UserPage) -> None:
    text = str(asdict(page))
    assert [word for word in STRANGE if word in text] == []


def test_a_name_that_looks_like_a_pattern_means_itself(tmp_path: Path) -> None:
    runs = [run_row("a" * 64, user="a*", write_bytes=5), run_row("b" * 64, user="ab", write_bytes=7)]
    fill_runs(Store(tmp_path), runs)
    assert (page_of(tmp_path, "a*").runs, page_of(tmp_path, "a*").write_bytes) == (1, 5)


def test_a_day_is_one_of_the_time_zone(folder: Path) -> None:
    """Both days' first ten minutes are of the evening before in New York."""
    page = page_of(folder, timezone="America/New_York")
    assert {day.day.day for day in page.days if day.share_pct} == {14, 15}


def test_without_job_stats_on_one_day_the_rest_is_association(tmp_path: Path) -> None:
    tables = page_centre()
    last_us = (T0_S + DAY_S) * 1_000_000
    tables["job_io"] = [row for row in tables["job_io"] if row["start"] < last_us]
    (use,) = page_of(stored(tmp_path, tables)).uses
    assert use.cost.method == "both"
    assert use.cost.share_pct == pytest.approx(100 * 500 / 1700)


def test_only_logs(tmp_path: Path) -> None:
    tables = page_centre(records=False)
    page = page_of(stored(tmp_path, {"runs": tables["runs"]}))
    assert (page.jobs, list(page.uses), page.write_bytes) == (2, [], 5000 * MIB)
    assert [day.moved_bytes for day in page.days if day.moved_bytes] == [2000 * MIB, 3000 * MIB]
    assert "nothing of the file systems' servers is stored" in missing(page)
    assert page.core_hours == pytest.approx(2 * 4 * RUN_S / 3600)


def test_only_records_and_job_stats(tmp_path: Path) -> None:
    page = page_of(stored(tmp_path, page_centre(logs=False)))
    assert (page.jobs, page.write_bytes, page.is_judged) == (2, 5000 * MIB, False)
    assert page.uses[0].cost.share_pct == pytest.approx(100 * 500 / 1700)
    assert "no Darshan logs of them" in missing(page)


def test_only_counters_of_nodes(tmp_path: Path) -> None:
    records = [job_row("5", 0, 600, node_list="n1", nodes=1)]
    fill(Store(tmp_path), [client_rows("n1", 0, 600, read_bytes=5, write_bytes=7, rpcs={("read", 1): 3})], records)
    page = page_of(tmp_path)
    assert (page.jobs, page.read_bytes, page.write_bytes) == (1, 5, 7)
    assert "the disk time on scratch" in missing(page)


def test_nothing_in_the_window_is_said_and_an_unknown_user_refused(folder: Path, tmp_path: Path) -> None:
    later = Scope(since=parse_time("2030-01-01"), until=parse_time("2030-01-02"))
    assert page_of(folder, OWN, later).jobs == 0
    with pytest.raises(InputError, match="no user 'adda'; did you mean ada"):
        page_of(folder, "adda")
    finished = iolens("report", "--store", folder, "--user", "adda", "-o", tmp_path / "x.html")
    assert (finished.code, len(finished.err.splitlines())) == (1, 1)
    Store(tmp_path / "empty").append("jobs", _no_rows())
    with pytest.raises(StoreError, match="holds no data yet"):
        page_of(tmp_path / "empty")


def _no_rows() -> Any:
    from iolens.schema import TABLES
    from iolens.store.rows import to_arrow

    return to_arrow(TABLES["jobs"], [])


def test_slow_runs_come_with_their_verdict(tmp_path: Path) -> None:
    """Twelve runs, one of which met many times the load of others and took three times as long."""
    others = [100.0 + 20 * number for number in range(12)]
    io_s = [60 + 0.1 * load for load in others]
    others[7], io_s[7] = 4000.0, 300.0
    made_up_centre(others, io_s).stored(Store(tmp_path))
    page = page_of(tmp_path)
    assert 1 <= len(page.slow_runs) <= 5
    assert page.slow_runs[0].job_id == "1007"
    assert all(run.slow and not run.neighbours for run in page.slow_runs)


def test_candidates_are_below_the_first_quartile_of_like_runs() -> None:
    rows = [
        {"executable": "a", "processes": 4, "read_bytes": 0, "write_bytes": 100 << 20, "slowest_rank_s": float(seconds)}
        for seconds in (10, 11, 12, 13, 14, 15, 80, 90)
    ]
    alone = {**rows[0], "processes": 8, "slowest_rank_s": 1000.0}
    assert [row["slowest_rank_s"] for row in slow_candidates([*rows, alone], 5)] == [90.0, 80.0]
    assert [row["slowest_rank_s"] for row in slow_candidates(rows, 1)] == [90.0]
    assert slow_candidates(rows[:5], 5) == []


def job(name: str, disk_s: float | None, moved: int | None, hours: float | None) -> UserJob:
    return UserJob(name, None, None, None, hours, moved, None, disk_s, 0)


def test_jobs_that_are_first_by_any_measure() -> None:
    jobs = [job("disk", 9.0, 1, 1.0), job("bytes", None, 99, 2.0), job("hours", 1.0, 2, 77.0), job("none", 2.0, 3, 3.0)]
    assert [line.job_id for line in first_jobs(jobs, 1)] == ["disk", "hours", "bytes"]


@pytest.mark.parametrize(("until", "each", "pieces"), [("2026-04-01", 1, 5), ("2026-05-30", 7, 10)])
def test_days_and_weeks_cover_the_window(until: str, each: int, pieces: int) -> None:
    """The clock of Berlin goes forward on 29 March: that day has 23 hours."""
    window = parse_time("2026-03-28T12:00:00Z"), parse_time(until)
    days, parts = pieces_of(window, ZoneInfo("Europe/Berlin"))
    assert (days, len(parts)) == (each, pieces)
    assert (parts[0][0], parts[-1][1]) == window
    assert all(first[1] == second[0] for first, second in pairwise(parts))
    if each == 1:
        assert [(end - start).total_seconds() / 3600 for start, end in parts[:3]] == [11, 23, 24]


def test_the_verb_writes_a_page_without_the_names_of_others(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "user.html"
    finished = iolens("report", "--store", folder, "--user", OWN, "-o", output)
    assert (finished.code, finished.out) == (0, "")
    text = output.read_text("utf-8")
    assert "They took 29.4\N{NO-BREAK SPACE}% of the disk time of scratch in this time" in text
    assert [word for word in STRANGE if word in text] == []
    assert "<script" not in text
    assert len(text) < 100_000
