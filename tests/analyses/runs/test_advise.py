"""Advice over many runs: who and what first, by the core-hours of the I/O that a finding is about."""

from __future__ import annotations

from typing import Any

import pytest

from iolens.analyses.runs.advise import run_advice
from iolens.analyses.runs.like_rates import like_rates
from iolens.analyses.runs.summary import RunSummary, run_summary
from tests.analyses.runs.one_run import run_record

BOUND = {"metadata_s": 7200.0, "write_s": 3600.0}
SLOW = {"slowest_rank_s": 1000.0, "write_s": 1600.0, "metadata_s": 0.0}


def page(like: Any = None, **values: Any) -> RunSummary:
    return run_summary(run_record(**values), like=like)


def test_findings_of_the_same_program_are_one_line() -> None:
    runs = [page(**BOUND), page(**{**BOUND, "metadata_s": 14400.0}, job_id="4712"), page(**BOUND, user="bob")]
    advice = run_advice([*runs, page()])
    assert (advice.runs, advice.runs_without_findings) == (4, 1)
    lines = {(line.code, line.user): line for line in advice.lines}
    assert set(lines) == {(code, who) for code in ("metadata-bound", "file-per-process") for who in ("alice", "bob")}
    line = lines["metadata-bound", "alice"]
    assert (line.runs, line.core_hours, line.jobid) == (2, pytest.approx(6.0), "4712")
    assert line.message.startswith("80 % of the time in I/O calls")
    assert advice.core_hours == pytest.approx((10800 + 18000 + 10800 + 160) / 3600)
    assert advice.lines[0].user == "alice"


def test_core_hours_are_those_of_the_part_a_finding_is_about() -> None:
    (line,) = run_advice([page(**SLOW)]).lines
    assert line.code == "rank-imbalance"
    assert line.core_hours == pytest.approx(16 * (1000 - 100) / 3600)  # all wait for the slowest
    assert line.core_hours_lost is None


def test_a_known_gain_says_what_is_lost() -> None:
    like = like_rates([4 * 1638.4] * 5)
    (line, *_) = run_advice([page(like, **BOUND)]).lines
    assert line.estimated_gain == pytest.approx(4.0)
    assert line.core_hours == pytest.approx(2.0)
    assert line.core_hours_lost == pytest.approx(1.5)


def test_order_by_severity_or_core_hours() -> None:
    runs = [page(**SLOW, user="small"), page(**BOUND, user="large")]
    assert run_advice(runs).lines[0].user == "small"  # 4 core-hours against 2
    assert [line.severity for line in run_advice(runs, "severity").lines] == ["warn"] * 3
    assert run_advice(runs, left_out=7).left_out == 7


def test_what_could_not_be_judged_is_listed_once() -> None:
    advice = run_advice([page(), page()])
    assert advice.lines == []
    assert [item.code for item in advice.not_evaluated] == ["client-cache", "small-rpcs", "stat-storm", "stripe"]
