"""Sums of jobs: by their own samples where there are any, else by the intervals of their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.job_report import RpcSize
from iolens.analyses.job_totals import JobTotals, KnownJob, sharing_jobs
from iolens.api import OpenStore
from iolens.api.job_totals import JobsOfWindow, jobs_of_window
from iolens.errors import OptionError
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.store import Store
from tests.analyses.client_rows import T0_S, client_rows, fill, job_row

MINUTE = 60
DAY = 86_400


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStore]:
    folder = tmp_path_factory.mktemp("store")
    minutes = [
        client_rows(
            node, k * MINUTE, (k + 1) * MINUTE, read_bytes=read, write_bytes=1, targets=3,
            rpcs={("read", 1): 4, ("write", 256): 1}, metadata={"open": 1, "getattr": 2},
        )
        for node, read in (("n1", 100), ("n2.site.org", 10)) for k in range(DAY // MINUTE - 20, DAY // MINUTE + 20)
    ]  # fmt: skip
    again = [client_rows("n1", DAY - 600, DAY - 540, read_bytes=5, source="second")]
    sampled = [
        client_rows("n1", DAY + 700, DAY + 1100, job_id="8", read_bytes=7, metadata={"open": 3}, source="job-files")
    ]
    unknown = [client_rows("n3", DAY + 100, DAY + 400, job_id="77", write_bytes=9, source="job-files")]
    elsewhere = [client_rows("n1", DAY - 600, DAY - 540, read_bytes=1, filesystem="home")]
    jobs = [
        job_row("7", DAY - 620, DAY + 100, node_list="n[1-2]", nodes=2, cores=64, name="enzo", user="ann"),
        job_row("8", DAY + 710, DAY + 1090, node_list="n1", nodes=1, cores=8, name="enzo-small", user="bob"),
        job_row("9", DAY + 110, DAY + 650, node_list="n2", nodes=1, cores=8, name="other", user="bob"),
        job_row("10", DAY + 120, DAY + 140, node_list="n2", nodes=1, name="short"),
        job_row("11", DAY + 120, DAY + 500, node_list="n9", nodes=1, name="elsewhere"),
        job_row("12", DAY + 120, DAY + 500, node_list="n1", nodes=1, name="running", ended=False),
    ]
    fill(Store(folder), [*minutes, *again, *sampled, *unknown, *elsewhere], jobs)
    with OpenStore(str(folder)) as store:
        yield store


@pytest.fixture(scope="module")
def answer(opened: OpenStore) -> JobsOfWindow:
    return jobs_of_window(opened, Scope("scratch"))


def by_id(answer: JobsOfWindow) -> dict[str, JobTotals]:
    return {line.job.job_id: line for line in answer.jobs}


def test_intervals_count_that_are_mostly_within_the_job_over_midnight(answer: JobsOfWindow) -> None:
    """From 620 s before midnight to 100 s after: minutes −10 … +1, of which the last is within by 40 of 60 s."""
    job = by_id(answer)["7"]
    assert (job.origin, job.nodes_sampled) == ("nodes", 2)
    assert job.read_bytes == 12 * (100 + 10)
    assert job.rpc_sizes == (RpcSize(4096, 12 * 2 * 4, 0), RpcSize(1 << 20, 0, 12 * 2))
    assert job.metadata == {"open": 24, "stat": 48}
    assert job.opens == 24
    assert job.closes == 0
    assert job.observed_pct == 100.0


def test_a_second_source_of_a_node_is_no_second_job(answer: JobsOfWindow) -> None:
    """`made-up` and `second` have the same minute of n1; the first by name wins its quarter of an hour."""
    assert by_id(answer)["7"].read_bytes == 1320


def test_samples_at_begin_and_end_come_before_intervals(answer: JobsOfWindow) -> None:
    job = by_id(answer)["8"]
    assert (job.origin, job.read_bytes, job.metadata, job.rpc_sizes) == ("job", 7, {"open": 3}, None)
    assert (job.job.name, job.job.cores) == ("enzo-small", 8)


def test_a_sampled_job_without_a_record_is_known_by_its_rows(answer: JobsOfWindow) -> None:
    job = by_id(answer)["77"]
    assert (job.job.name, job.job.nodes, job.write_bytes) == (None, 1, 9)
    assert job.job.start_us == (T0_S + DAY + 100) * 1_000_000
    assert job.job.duration_s == 300


def test_jobs_without_counters_and_running_ones_are_named_and_counted(answer: JobsOfWindow) -> None:
    assert sorted(job.job_id for job in answer.without_counters) == ["10", "11"]  # 20 s are less than half a minute
    assert answer.running == 1
    assert [line.job.job_id for line in answer.jobs] == ["7", "77", "9", "8"]


def test_jobs_that_share_nodes_are_flagged(answer: JobsOfWindow) -> None:
    assert {name: line.shares_nodes for name, line in by_id(answer).items()} == {
        "7": False, "8": False, "9": True, "77": None
    }  # fmt: skip


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        (JobFilter(names=["enzo*"]), ["7", "8"]),
        (JobFilter(names=["enzo"]), ["7"]),
        (JobFilter(users=["bob"], cores=[8]), ["9", "8"]),
        (JobFilter(clusters=["elsewhere"]), []),
        (JobFilter(job_ids=["77", "8"]), ["77", "8"]),
        (JobFilter(job_ids=["77"], users=["ann"]), []),
    ],
)
def test_like_jobs(opened: OpenStore, like: JobFilter, expected: list[str]) -> None:
    assert [line.job.job_id for line in jobs_of_window(opened, Scope("scratch"), like).jobs] == expected


def test_a_window_has_the_jobs_that_ran_in_it(opened: OpenStore) -> None:
    from iolens.units import from_epoch_us

    scope = Scope("scratch", since=from_epoch_us((T0_S + DAY + 600) * 1_000_000))
    answer = jobs_of_window(opened, scope)
    assert [line.job.job_id for line in answer.jobs] == ["9", "8"]
    assert by_id(answer)["9"].read_bytes == 9 * 10  # the whole job, also before the window


def test_targets_do_not_go_with_jobs(opened: OpenStore) -> None:
    with pytest.raises(OptionError, match="summed over all targets"):
        jobs_of_window(opened, Scope("scratch", targets=("OST0000",)))


@pytest.mark.parametrize("seed", range(20))
def test_company_is_that_of_plain_python(seed: int) -> None:
    random = np.random.default_rng(seed)
    jobs = []
    for number in range(30):
        start = int(random.integers(0, 100))
        hosts = tuple(f"n{host}" for host in random.choice(12, size=int(random.integers(0, 4)), replace=False))
        jobs.append(KnownJob(str(number), start * 10**6, (start + int(random.integers(1, 15))) * 10**6, hosts=hosts))
    expected = [
        any(
            other is not job and set(other.hosts or ()) & set(job.hosts or ())
            and other.start_us < job.end_us and job.start_us < other.end_us
            for other in jobs
        )
        for job in jobs
    ]  # fmt: skip
    assert sharing_jobs(jobs).tolist() == expected
    assert any(expected)


def test_nothing_to_share() -> None:
    assert sharing_jobs([]).tolist() == []
    assert sharing_jobs([KnownJob("1", 0, 1)]).tolist() == [False]


def test_a_store_without_jobs_has_none(tmp_path: Path) -> None:
    fill(Store(tmp_path), [client_rows("n1", 0, 60, rpcs={("read", 1): 1})])
    with OpenStore(str(tmp_path)) as opened:
        answer = jobs_of_window(opened, Scope())
    assert (answer.jobs, answer.without_counters, answer.running) == ([], [], 0)
