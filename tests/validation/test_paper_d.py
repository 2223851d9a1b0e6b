"""Study D: tables that went in as runs and jobs come back, and what the paper says of itself."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from iolens.validation import Validation
from iolens.validation.evidence import PublicData
from iolens.validation.paper_d import TABLE_IV, _times, like_runs
from tests.validation.all_studies import AllStudies


@pytest.fixture(scope="module")
def result(studies_without_data: AllStudies) -> Validation:
    return studies_without_data.of("D")


def test_nothing_differs_without_a_reason(result: Validation) -> None:
    assert result.passed
    assert result.verdicts["differs, explained"] == 4
    assert (result.verdicts["no data"], result.verdicts["not reachable"]) == (3, 11)
    assert sum(result.verdicts.values()) == len(result.checks) == 73


@pytest.mark.parametrize(
    ("quantity", "recomputed"),
    [
        ("IOR N-1 write: MiB/s/CN", 4026.91 / 1024),
        ("most by the tree network, 700 MiB/s of 64 nodes", 10.9375),
        ("jobs with a log", 100 * 6480 / 23653),
        ("projects with over half of their core-hours covered", 7),
        ("NuclearPhysics B: coefficient of variation", 100 * 63.7 / 24.3),
        ("CombustionPhysics on 4,096 nodes", 0.36),
        ("gain of files created before", 29.12),
    ],
)
def test_numbers_by_hand(result: Validation, quantity: str, recomputed: float) -> None:
    (line,) = (line for line in result.checks if line.quantity == quantity)
    assert line.recomputed == pytest.approx(recomputed)


def test_like_runs_are_seven_groups_with_the_printed_samples() -> None:
    with PublicData(None) as evidence:
        groups = {group.project: group.samples for group in like_runs(evidence).groups}
    assert groups == {name: samples for name, (samples, *_) in TABLE_IV.items()}


@pytest.mark.parametrize("name", list(TABLE_IV))
def test_made_up_times_have_the_printed_mean_and_deviation_and_are_times(name: str) -> None:
    samples, *_, mean_s, stddev_s, _ = TABLE_IV[name]
    times = _times(samples, mean_s, stddev_s)
    assert len(times) == samples
    assert min(times) > 0
    assert (statistics.fmean(times), statistics.stdev(times)) == (pytest.approx(mean_s), pytest.approx(stddev_s))


def test_logs_of_another_machine_are_as_fast_as_ior_says(shared_data: Path, studies_with_data: AllStudies) -> None:
    if not (shared_data / "darshan-ior-pairs").is_dir():
        pytest.skip("darshan-ior-pairs is not in the shared data")
    lines = {line.quantity: line for line in studies_with_data.of("D").checks if "here" in line.quantity}
    assert {name: line.verdict for name, line in lines.items()} == {
        "N-1 write, here: by Darshan over by IOR": "agrees",
        "N-1 read, here: by Darshan over by IOR": "differs, explained",
        "N-N write, here: by Darshan over by IOR": "agrees",
    }
