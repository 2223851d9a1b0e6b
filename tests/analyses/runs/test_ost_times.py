"""Times of files of equal work by OST, and the finding that a log of such a run gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.runs.advise import run_advice
from iolens.analyses.runs.finding_inputs import ost_times
from iolens.analyses.runs.summary import RunSummary, run_summary
from iolens.analyses.runs.used_files import used_files
from iolens.api.runs import record_of_log
from iolens.findings.rule import OstTimes
from tests.analyses.runs.one_run import GIB, MIB, file_row, run_record

SLOW_OST, SLOW_S, USUAL_S = 2, 60.0, 5.0


def on_osts(osts: int = 4, each: int = 5, **values: Any) -> list[dict[str, Any]]:
    """Files of one rank each, on one OST after the other; those on OST 2 take twelve times as long, give or take."""
    rows = []
    for rank in range(osts * each):
        ost = rank % osts
        own = {"record_id": rank, "rank": rank, "path": f"/scratch/out/a.{rank}", "mount": "/scratch"}
        write_s = (SLOW_S if ost == SLOW_OST else USUAL_S) + 0.01 * rank
        rows.append(file_row(**{**own, "write_s": write_s, "metadata_s": 0.0, "writes": 1024, **values}))
        rows.append(file_row(**own, module="LUSTRE", write_bytes=None, stripe_count=1, osts=str(ost)))
    return rows


def times_of(rows: list[dict[str, Any]]) -> list[list[OstTimes]]:
    return [list(group) for group in ost_times(used_files(run_record(rows).files, 20))]


def a_run(rows: list[dict[str, Any]] | None = None, **values: Any) -> RunSummary:
    usual = {
        "processes": 20, "write_bytes": 20 * GIB, "write_s": 375.0, "metadata_s": 5.0, "slowest_rank_s": 60.2,
        "busiest_rank_bytes": GIB,
    }  # fmt: skip
    return run_summary(run_record(on_osts() if rows is None else rows, **{**usual, **values}))


def test_files_of_equal_work_are_compared_by_ost() -> None:
    (group,) = times_of(on_osts())
    assert [(times.ost, times.files, times.mount) for times in group] == [(ost, 5, "/scratch") for ost in range(4)]
    slow = group[SLOW_OST]
    assert slow.mean_s == pytest.approx(SLOW_S + 0.01 * 10)
    assert slow.io_s == pytest.approx(5 * (SLOW_S + 0.01 * 10))
    assert slow.p < 0.001 < 0.5 < group[0].p
    assert slow.file_bytes == GIB


def test_run_time_lost_is_that_of_the_slowest_rank() -> None:
    """Its file takes 60.18 s; without the slow OST the slowest rank would have taken 5.19 s."""
    (group,) = times_of(on_osts())
    assert group[SLOW_OST].lost_s == pytest.approx(60.18 - 5.19)
    assert group[0].lost_s == 0.0


def test_other_work_is_no_comparison() -> None:
    """Half of the bytes, another direction, several stripes, or as many ranks as there are."""
    rows = on_osts()
    for number, row in enumerate(rows[::2]):
        row["write_bytes"] = GIB if number % 4 == SLOW_OST else GIB // 2
    assert [len(group) for group in times_of(rows)] == [3]
    within = on_osts()
    within[0]["write_bytes"] = int(1.1 * GIB)
    assert [len(group) for group in times_of(within)] == [4]
    assert sum(times.files for times in times_of(within)[0]) == 20
    within[0]["write_bytes"] = int(1.1 * GIB) + 2
    assert sum(times.files for times in times_of(within)[0]) == 19
    striped = [{**row, "stripe_count": 2, "osts": "1,2"} if row["module"] == "LUSTRE" else row for row in on_osts()]
    assert times_of(striped) == []


def test_a_run_with_a_slow_ost_is_not_asked_to_balance_its_ranks_first() -> None:
    run = a_run()
    assert [finding.code for finding in run.findings] == ["slow-ost", "rank-imbalance"]
    slow, imbalance = run.findings
    assert slow.message.startswith("files on OST 2 (OST0002 of /scratch) took 60.1 s each, 11.8 times as long")
    assert "about 55 s of run time lost" in slow.message
    assert imbalance.remedy.startswith("Ranks moved equal bytes already")
    assert slow.io_s == pytest.approx(300.5)


def test_a_log_that_names_no_osts_is_not_judged() -> None:
    without = [row for row in on_osts() if row["module"] != "LUSTRE"]
    assert "slow-ost" in {item.code for item in a_run(without).not_evaluated}


def test_the_same_ost_in_runs_of_several_users_is_one_line_with_the_evidence_of_each() -> None:
    runs = [a_run(user="ada", job_id="1", run_id="aa"), a_run(user="bob", job_id="2", run_id="bb")]
    first, *others = run_advice(runs).lines
    assert (first.code, first.subject, first.runs, first.user) == ("slow-ost", "OST 2 of /scratch", 2, None)
    assert [(case.user, case.jobid) for case in first.cases] == [("ada", "1"), ("bob", "2")]
    assert first.core_hours == pytest.approx(2 * 300.5 / 3600)
    assert [(line.code, line.user) for line in others] == [("rank-imbalance", "ada"), ("rank-imbalance", "bob")]


def test_a_file_of_many_ranks_counts_by_rank() -> None:
    """Shared files of four ranks each: their time is summed over ranks."""
    rows = on_osts()
    for row in rows:
        row |= {"rank": -1, "ranks": 4, "record_id": row["record_id"]}
    (group,) = times_of(rows)
    assert group[SLOW_OST].mean_s == pytest.approx((SLOW_S + 0.1) / 4)


def test_the_captured_run_on_a_bad_ost(shared_data: Path) -> None:
    """2,048 ranks wrote 256 MiB each; files on OST 14 took 547 s, elsewhere 10.4 to 14.1 s."""
    record = record_of_log(shared_data / "darshan" / "apps" / "sample-badost.darshan")
    first, *others = run_summary(record).findings
    assert (first.code, first.evidence["ost"], first.evidence["files"]) == ("slow-ost", 14, 85)
    assert first.evidence["mean_s"] == pytest.approx(546.99, abs=0.01)
    assert first.evidence["factor"] == pytest.approx(47.4, abs=0.1)
    assert first.evidence["lost_s"] == pytest.approx(761.8, abs=1.0)
    assert [finding.code for finding in others] == ["rank-imbalance"]
    assert "equal shares" not in others[0].remedy
    assert first.evidence["file_bytes"] == MIB * 256


def test_files_of_different_sizes_are_not_compared() -> None:
    """Each has twice the bytes of the one before."""
    rows = on_osts(osts=3, each=2)
    for number, row in enumerate(rows):
        row["write_bytes"] = None if row["module"] == "LUSTRE" else GIB * 2 ** (number // 2)
    assert times_of(rows) == []


def test_an_ost_that_holds_nothing_of_the_slowest_rank_costs_no_run_time() -> None:
    rows = on_osts()
    rows.append(file_row(record_id=99, rank=3, path="/scratch/other", write_bytes=9 * GIB, write_s=500.0))
    (group,) = times_of(rows)
    assert group[SLOW_OST].p < 0.001
    assert group[SLOW_OST].lost_s == 0.0
