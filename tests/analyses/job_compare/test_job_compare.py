"""Jobs before and after: a planted shift is seen, shuffled jobs are not taken for one, words say the numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from iolens.analyses.job_compare import SIGNIFICANT, JobComparison, SizeShift, job_compare
from iolens.analyses.job_totals import JobTotals
from iolens.views.job_compare import figures, tables, verdict
from iolens.views.render.json_text import to_json
from tests.analyses.like_jobs import REGRESSION, USUAL, like_job
from tests.views.documented import undocumented

KIB = 1024


def compared(
    first: Sequence[JobTotals], second: Sequence[JobTotals], significance: float = SIGNIFICANT
) -> JobComparison:
    return job_compare("scratch", ("before", first), ("after", second), significance=significance)


def planted(before: int = 12, after: int = 10, seed: int = 1) -> JobComparison:
    random = np.random.default_rng(seed)
    first = [like_job(number, random) for number in range(before)]
    return compared(first, [like_job(number, random, REGRESSION) for number in range(before, before + after)])


def shift(result: JobComparison, direction: str, kib: int, share: str = "rpcs") -> SizeShift:
    key = direction, kib * KIB, share
    return next(line for line in result.sizes if (line.direction, line.size_bytes, line.share) == key)


def test_a_planted_shift_is_seen_where_it_is() -> None:
    """8 KiB reads from 2 to 36 %, 1 MiB reads from 48 to 14 %; writes, bytes, opens and duration as before."""
    result = planted()
    assert result.verdict == "moved"
    moved = {(line.direction, line.size_bytes // KIB) for line in result.sizes if line.moved and line.share == "rpcs"}
    assert moved == {("read", 8), ("read", 1024)}
    assert shift(result, "read", 8).difference_points == pytest.approx(34, abs=6)
    assert shift(result, "read", 1024).difference_points == pytest.approx(-34, abs=6)
    assert not any(line.moved for line in result.totals)
    assert not any(line.moved for line in result.sizes if line.direction == "write")


def test_false_alarms_in_shuffled_jobs_are_at_most_five_per_cent() -> None:
    """The same jobs, half of them of another kind, dealt into two groups at random: 200 times."""
    random = np.random.default_rng(2012)
    alarms = 0
    for _ in range(200):
        jobs = [like_job(number, random, REGRESSION if number % 2 else USUAL) for number in range(12)]
        order = random.permutation(12)
        alarms += compared([jobs[i] for i in order[:6]], [jobs[i] for i in order[6:]]).verdict == "moved"
    assert alarms <= 0.05 * 200


@pytest.mark.parametrize("significance", [0.01, 0.05])
def test_of_all_arrangements_of_like_jobs_no_more_than_promised_raise_an_alarm(significance: float) -> None:
    random = np.random.default_rng(7)
    jobs = [like_job(number, random, REGRESSION if number % 2 else USUAL) for number in range(9)]
    verdicts = []
    for chosen in combinations(range(9), 4):
        groups = [jobs[i] for i in range(9) if i not in chosen], [jobs[i] for i in chosen]
        verdicts.append(compared(*groups, significance).verdict)
    assert len(verdicts) == 126
    assert 0 < verdicts.count("moved") <= significance * 126


def test_shares_and_statistics_are_those_of_plain_python() -> None:
    result, random = planted(5, 4), np.random.default_rng(1)
    first = [like_job(number, random) for number in range(5)]
    second = [like_job(number, random, REGRESSION) for number in range(5, 9)]

    def shares(jobs: Sequence[JobTotals], size: int, by_bytes: bool) -> list[float]:
        weights = [
            [(line.reads * (line.size_bytes if by_bytes else 1), line.size_bytes) for line in job.rpc_sizes or ()]
            for job in jobs
        ]
        return [100 * sum(w for w, s in job if s == size) / sum(w for w, _ in job) for job in weights]

    for by_bytes, share in ((False, "rpcs"), (True, "bytes")):
        for kib in (4, 8, 1024):
            groups = [shares(jobs, kib * KIB, by_bytes) for jobs in (first, second)]
            line = shift(result, "read", kib, share)
            means = [statistics.fmean(group) for group in groups]
            assert [line.first_pct, line.second_pct] == pytest.approx(means)
            assert line.difference_points == pytest.approx(means[1] - means[0])
            pooled = sum(statistics.variance(group) * (len(group) - 1) for group in groups) / 7
            assert line.statistic == pytest.approx((means[1] - means[0]) / math.sqrt(pooled * (1 / 5 + 1 / 4)))
    opens = next(line for line in result.totals if line.quantity == "opens")
    logarithms = [[math.log(job.opens or 0) for job in jobs] for jobs in (first, second)]
    assert opens.ratio == pytest.approx(math.exp(statistics.fmean(logarithms[1]) - statistics.fmean(logarithms[0])))
    assert result.arrangements == math.comb(9, 4)


def test_totals_are_compared_on_logarithms() -> None:
    random = np.random.default_rng(3)
    first = [like_job(number, random) for number in range(10)]
    second = [
        replace(line, read_bytes=4 * (line.read_bytes or 0)) for line in [like_job(n, random) for n in range(10, 20)]
    ]
    result = compared(first, second)
    moved = [line for line in result.totals if line.moved]
    assert [line.quantity for line in moved] == ["read_bytes"]
    assert moved[0].ratio == pytest.approx(4, rel=0.5)
    assert "bytes read per job changed by a factor of" in verdict(result)


def test_jobs_without_reads_have_no_shares_of_reads() -> None:
    random = np.random.default_rng(4)
    jobs = [like_job(number, random) for number in range(8)]
    none = replace(jobs[0], rpc_sizes=[replace(size, reads=0) for size in jobs[0].rpc_sizes or ()], read_bytes=0)
    unknown = replace(jobs[1], rpc_sizes=None, metadata=None)
    result = compared([none, unknown, *jobs[2:4]], jobs[4:])
    assert shift(result, "read", 1024).first_jobs == 2
    assert shift(result, "write", 1024).first_jobs == 3
    assert {line.quantity: line.first_jobs for line in result.totals} == {
        "read_bytes": 3, "write_bytes": 4, "opens": 3, "duration_s": 4
    }  # fmt: skip


def test_one_job_on_a_side_has_differences_only() -> None:
    result = planted(1, 6)
    assert shift(result, "read", 8).difference_points is not None
    assert all(line.p is None and line.statistic is None and not line.moved for line in result.sizes)
    assert result.verdict == "undecided"
    assert verdict(result) == (
        "Differences only (1 job before, 6 after): with one job on a side, a change cannot be distinguished"
        " from chance."
    )


def test_so_few_jobs_that_nothing_can_be_decided() -> None:
    result = planted(3, 3)
    assert result.smallest_p == pytest.approx(0.1)  # 2 of 20 arrangements
    assert result.verdict == "undecided"
    assert verdict(result).startswith("Undecided (3 jobs before, 3 after): with so few jobs p cannot be below 0.1")


def test_no_shift_is_said_with_the_smallest_p() -> None:
    random = np.random.default_rng(6)
    jobs = [like_job(number, random) for number in range(20)]
    result = compared(jobs[:10], jobs[10:])
    assert result.verdict == "not shown"
    least = min(line.p for line in (*result.sizes, *result.totals) if line.p is not None)
    assert least > SIGNIFICANT
    assert verdict(result).endswith(f"the smallest p is {least:.2g}.")


def test_a_difference_that_so_few_jobs_do_not_show_is_not_denied() -> None:
    """Nine jobs, of which a p of 0.095 is neither a shift nor its absence."""
    random = np.random.default_rng(10)
    jobs = [like_job(number, random) for number in range(9)]
    result = compared(jobs[:5], jobs[5:])
    assert min(line.p for line in (*result.sizes, *result.totals) if line.p is not None) == pytest.approx(12 / 126)
    assert result.verdict == "not shown"
    assert verdict(result).startswith("No shift is shown (5 jobs before, 4 after)")
    by_size, totals, _ = tables(result)
    assert {row[-1] for row in by_size.rows} == {"not shown"}
    moved = [column.name for column in totals.columns].index("moved")
    assert {row[moved] for row in totals.rows} == {"not shown"}


@pytest.mark.parametrize("seed", range(8))
def test_the_words_say_what_the_numbers_say(seed: int) -> None:
    result = planted(9, 9, seed)
    words = verdict(result)
    assert words.startswith("The shift is real (9 jobs before, 9 after")
    for kib, name in ((8, "8 KiB"), (1024, "1 MiB")):
        line = shift(result, "read", kib)
        verb = "rose" if line.second_pct > line.first_pct else "fell"
        change = f"from {line.first_pct:.1f} to {line.second_pct:.1f} % of a job's RPCs (p {line.p:.2g})"
        assert (f"reads of {name} {verb} {change}" in words) is line.moved


def test_views_show_it_all() -> None:
    result = planted()
    names = [table.title for table in tables(result)]
    assert names == ["scratch: sizes of RPCs, after beside before", "Totals of a job", "Jobs"]
    assert len(tables(result)[0].rows) == 2 * 9
    drawn = {name: describe() for name, describe in figures(result).items()}
    assert list(drawn) == ["sizes", "bytes", "totals"]
    assert len(drawn["totals"].panels) == 4
    assert "NaN" not in to_json(result)
    assert "Infinity" not in to_json(result)


def test_every_key_is_documented() -> None:
    assert undocumented(JobComparison, "job-compare.md") == []
