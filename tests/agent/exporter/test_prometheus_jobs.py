"""Ten thousand jobs are ten series and one more; what is served of a job never invents traffic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from iolens.agent.exporter import jobs as job_ranking
from iolens.agent.exporter.metrics import OPENMETRICS, TEXT
from tests.agent.exposition import exporter, matching, only, parsed

T0 = 1_600_000_000
TARGETS = ("scratch-OST0000", "scratch-OST0001")


def plant(root: Path, jobs: Mapping[str, int], targets: tuple[str, ...] = TARGETS, start: int = T0 - 100) -> None:
    """Every job has written that many bytes to each target, and read half as many."""
    text = "job_stats:\n" + "".join(
        f"- job_id:          {job_id}\n  snapshot_time:   {T0}\n  start_time:      {start}\n"
        f"  read_bytes:      {{ samples: 1, unit: bytes, min: 1, max: 1, sum: {written // 2} }}\n"
        f"  write_bytes:     {{ samples: 2, unit: bytes, min: 1, max: 1, sum: {written} }}\n"
        for job_id, written in jobs.items()
    )
    for target in targets:
        path = root / f"proc/fs/lustre/obdfilter/{target}/job_stats"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Clock:
    """A wall clock and a monotonic one that go on by a second at every reading."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.second = T0
        monkeypatch.setattr(job_ranking, "time", self)

    def time_ns(self) -> int:
        self.second += 1
        return self.second * 1_000_000_000

    def monotonic(self) -> float:
        return float(self.second)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_ten_thousand_jobs_are_a_handful_of_series(tmp_path: Path, clock: Clock) -> None:
    served = exporter(tmp_path, jobs=10)
    plant(tmp_path, {f"job.{number}": 1000 * number for number in range(10_000)})
    first = parsed(served.page(OPENMETRICS).body, OPENMETRICS)
    plant(tmp_path, {f"job.{number}": 1000 * number + (number if number < 9_000 else 0) for number in range(10_000)})
    samples = parsed(served.page(OPENMETRICS).body, OPENMETRICS)
    for page in (first, samples):
        of_jobs = [series for series in page if dict(series[1]).get("jobid")]
        assert len(of_jobs) <= 10 * len(TARGETS) * 4 + 2 * (10 + 1)
        assert only(page, "iolens_jobs", component="ost") == 10_000
    assert len({dict(pairs)["jobid"] for name, pairs in first if "jobid" in dict(pairs)}) == 10

    busiest = {dict(pairs)["jobid"] for name, pairs in samples if name == "iolens_job_bytes_per_second"}
    assert busiest == {"other", *(f"job.{number}" for number in range(8_990, 9_000))}
    moved = 2 * sum(range(9_000))  # on both targets, in one second
    rates = {
        direction: list(matching(samples, "iolens_job_bytes_per_second", direction=direction))
        for direction in ("read", "write")
    }
    assert sum(rates["write"]) == moved
    assert only(samples, "iolens_job_bytes_per_second", direction="write", jobid="job.8999") == 2 * 8_999
    counter = only(samples, "lustre_job_write_bytes_total", jobid="job.8999", target=TARGETS[0])
    assert counter == 8_999_000 + 8_999


def test_the_first_reading_shows_the_largest_and_no_rates(tmp_path: Path, clock: Clock) -> None:
    plant(tmp_path, {"small": 10, "large": 1000, "middle": 100})
    samples = parsed(exporter(tmp_path, jobs=2).page(TEXT).body)
    assert {dict(pairs).get("jobid") for _, pairs in samples} == {None, "large", "middle"}
    assert list(matching(samples, "iolens_job_bytes_per_second")) == []


def test_a_job_that_drops_out_takes_its_series_along_and_others_keep_theirs(tmp_path: Path, clock: Clock) -> None:
    served = exporter(tmp_path, jobs=1)
    plant(tmp_path, {"a": 0, "b": 0}, TARGETS[:1])
    served.page(TEXT)
    plant(tmp_path, {"a": 1000, "b": 10}, TARGETS[:1])
    samples = parsed(served.page(TEXT).body)
    assert only(samples, "iolens_job_bytes_per_second", jobid="a", direction="write") == 1000
    assert only(samples, "iolens_job_bytes_per_second", jobid="other", direction="write") == 10
    plant(tmp_path, {"a": 1000, "b": 900}, TARGETS[:1])  # one good second does not oust the job that leads
    samples = parsed(served.page(TEXT).body)
    assert only(samples, "iolens_job_bytes_per_second", jobid="a", direction="write") == 0
    assert only(samples, "iolens_job_bytes_per_second", jobid="other", direction="write") == 890
    clock.second += 3600  # an hour later what it did has faded
    plant(tmp_path, {"a": 1000, "b": 1900}, TARGETS[:1])
    samples = parsed(served.page(TEXT).body)
    assert only(samples, "lustre_job_write_bytes_total", jobid="b") == 1900
    assert list(matching(samples, "lustre_job_write_bytes_total", jobid="a")) == []
    assert list(matching(samples, "lustre_job_write_bytes_total", jobid="other")) == []


def test_a_job_that_began_since_counts_whole_and_one_that_was_cleaned_up_is_gone(tmp_path: Path, clock: Clock) -> None:
    served = exporter(tmp_path, jobs=5)
    plant(tmp_path, {"old": 500}, TARGETS[:1])
    served.page(TEXT)
    plant(tmp_path, {"new": 80}, TARGETS[:1], start=T0 + 1)
    samples = parsed(served.page(TEXT).body)
    assert only(samples, "iolens_job_bytes_per_second", jobid="new", direction="write") == 80
    assert list(matching(samples, "iolens_job_bytes_per_second", jobid="old")) == []
    assert only(samples, "iolens_jobs") == 1


def test_ids_nobody_expects(tmp_path: Path, clock: Clock) -> None:
    served = exporter(tmp_path, jobs=5)
    odd = 'dd "x" \\ ü'
    names = {odd: 100, "other": 200, "x" * 500: 300, "": 400, "(blank id)": 7}
    plant(tmp_path, dict.fromkeys(names, 0), TARGETS[:1])
    served.page(TEXT)
    plant(tmp_path, names, TARGETS[:1])
    samples = parsed(served.page(OPENMETRICS).body, OPENMETRICS)
    assert only(samples, "iolens_job_bytes_per_second", jobid=odd, direction="write") == 100
    assert only(samples, "iolens_job_bytes_per_second", jobid="other", direction="write") == 507
    assert only(samples, "iolens_job_bytes_per_second", jobid="(blank id)", direction="write") == 400
    assert only(samples, "lustre_job_write_bytes_total", jobid="(blank id)") == 400


def test_jobs_of_an_mdt_are_ranked_by_operations(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "proc/fs/lustre/mdt/scratch-MDT0000/job_stats"
    path.parent.mkdir(parents=True)
    served = exporter(tmp_path, jobs=1)
    for opens in (0, 7):
        path.write_text(
            "job_stats:\n"
            + "".join(
                f"- job_id: {job_id}\n  snapshot_time: {T0}\n  open: {{ samples: {opens * factor}, unit: reqs }}\n"
                f"  rename: {{ samples: {opens * factor}, unit: reqs }}\n"
                f"  samedir_rename: {{ samples: {opens * factor}, unit: reqs }}\n"
                for job_id, factor in (("busy", 3), ("quiet", 1))
            )
        )
        samples = parsed(served.page(TEXT).body)
    assert only(samples, "iolens_job_metadata_operations_per_second", jobid="busy") == 42  # a rename counts once
    assert only(samples, "iolens_job_metadata_operations_per_second", jobid="other") == 14
    assert only(samples, "lustre_job_stats_total", jobid="busy", operation="open") == 21
    assert list(matching(samples, "lustre_job_stats_total", jobid="quiet")) == []


def test_a_damaged_entry_is_counted_and_the_others_stay(tmp_path: Path, clock: Clock) -> None:
    plant(tmp_path, {"good": 10}, TARGETS[:1])
    path = tmp_path / f"proc/fs/lustre/obdfilter/{TARGETS[0]}/job_stats"
    path.write_text(path.read_text() + "- job_id: bad\n  write_bytes: { samples: no }\n")
    samples = parsed(exporter(tmp_path).page(TEXT).body)
    assert only(samples, "lustre_job_write_bytes_total", jobid="good") == 10
    assert only(samples, "iolens_scrape_problems", collector="jobs") == 1
