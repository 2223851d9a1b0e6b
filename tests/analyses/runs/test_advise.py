"""Advice over many runs: who and what first, by the core-hours of the I/O that a finding is about."""

from __future__ import annotations

from typing import Any

import pytest

from iolens.analyses.runs.advise import run_advice
from iolens.analyses.runs.like_runs import like_rates
from iolens.analyses.runs.summary import RunSummary, run_summary
from iolens.run_tables import access_column
from tests.analyses.runs.one_run import GIB, MIB, file_row, run_record

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
    assert line.core_hours == pytest.approx(1600 / 3600)  # that of the run: others wait, which is no I/O
    assert line.core_hours_lost is None


def test_a_known_gain_says_what_is_lost() -> None:
    like = like_rates([4 * 1638.4] * 5)
    (line, *_) = run_advice([page(like, **BOUND)]).lines
    assert line.estimated_gain == pytest.approx(4.0)
    assert line.core_hours == pytest.approx(2.0)
    assert line.core_hours_lost == pytest.approx(1.5)


def test_order_by_severity_or_core_hours() -> None:
    runs = [page(**SLOW, user="small"), page(**BOUND, user="large")]
    assert run_advice(runs).lines[0].user == "large"  # 2 core-hours against 0.4
    assert [line.severity for line in run_advice(runs, "severity").lines] == ["warn"] * 3
    assert run_advice(runs, left_out=7).left_out == 7


def test_what_could_not_be_judged_is_listed_once() -> None:
    advice = run_advice([page(), page()])
    assert advice.lines == []
    assert [item.code for item in advice.not_evaluated] == [
        "below-stripe", "client-cache", "slow-ost", "small-rpcs", "stat-storm", "stripe",
    ]  # fmt: skip


SMALL: dict[str, Any] = {
    access_column("write", MIB): 0, access_column("write", 10240): 16384, "write_s": 1600.0, "metadata_s": 0.0,
}  # fmt: skip
ON_ONE_OST = [
    file_row(rank=-1, ranks=16, path="/scratch/out/big", write_bytes=16 * GIB, extent_bytes=16 * GIB, write_s=1600.0),
    file_row(module="LUSTRE", rank=-1, ranks=16, write_bytes=None, stripe_count=1, osts="3"),
]


def test_of_findings_about_one_time_the_one_that_explains_stands_first_and_they_say_so() -> None:
    advice = run_advice([page(**SMALL, misaligned_ops=16384, file_rows=ON_ONE_OST)])
    assert [line.code for line in advice.lines] == ["small-accesses", "misaligned", "stripe"]
    small, misaligned, stripe = advice.lines
    assert small.shares_time_with == ("misaligned", "stripe")
    assert stripe.shares_time_with == ("small-accesses", "misaligned")
    assert misaligned.shares_time_with == ("small-accesses", "stripe")
    for line in advice.lines:  # none has more than the run spent in I/O, though the file's times add up to more
        assert line.core_hours == advice.core_hours == pytest.approx(1600 / 3600)


def test_findings_about_different_time_share_none() -> None:
    bound = run_advice([page(**{**SMALL, "metadata_s": 2000.0})]).lines
    by_code = {line.code: line.shares_time_with for line in bound}
    assert by_code["small-accesses"] == ()
    assert by_code["metadata-bound"] == ("file-per-process",)


def test_what_explains_a_costly_finding_stands_before_it_however_little_time_it_is_about() -> None:
    """Small writes in a tenth of the time, misaligned reads and writes in all of it."""
    reads = {"read_s": 14400.0, "posix_reads": 4096, "sequential_reads": 4096, access_column("read", MIB): 4096}
    advice = run_advice([page(**{**SMALL, **reads}, misaligned_ops=20000)])
    assert [line.code for line in advice.lines] == ["small-accesses", "misaligned"]
    assert [line.core_hours for line in advice.lines] == [pytest.approx(1600 / 3600), pytest.approx(16000 / 3600)]
