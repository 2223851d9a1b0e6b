"""Study N: its two tables come back from counters of 4 nodes and 60 OSTs, and what they say of each other."""

from __future__ import annotations

import pytest

from iolens.validation import Validation
from iolens.validation.evidence import PublicData
from iolens.validation.paper_n import NODES, READS, WRITES, enzo
from tests.validation.all_studies import AllStudies


@pytest.fixture(scope="module")
def result(studies_without_data: AllStudies) -> Validation:
    return studies_without_data.of("N")


def test_both_tables_come_back_exactly(result: Validation) -> None:
    lines = [line for line in result.checks if line.where in ("Table I", "Table II")]
    assert len(lines) == 18 + 6
    assert {line.verdict for line in lines} == {"agrees"}
    assert [line.recomputed for line in lines if line.where == "Table I"] == [*READS, *WRITES]
    assert [line.recomputed for line in lines if line.where == "Table II"] == [5303, 5769, 12460, 0, 54, 56]
    assert all("there and back" in line.reason for line in lines)


def test_what_the_tables_say_of_each_other(result: Validation) -> None:
    values = {line.quantity: line for line in result.checks}
    written = values["data written, by the RPCs of Table I"]
    sizes = [4096 << power for power in range(9)]
    by_hand = sum(size * count for size, count in zip(sizes, WRITES, strict=True)) / 1e9
    assert written.recomputed == pytest.approx(by_hand)
    assert written.verdict == "agrees"
    read = values["data read, by the RPCs of Table I"]
    assert read.recomputed == pytest.approx(29.06, abs=0.01)
    assert read.verdict == "differs, explained"
    slip = values["Enzo's reads of 1024 KB, in the text"]
    assert (slip.recomputed, slip.verdict) == (26572, "differs, explained")


def test_the_counters_went_through_four_nodes() -> None:
    with PublicData(None) as evidence:
        job = enzo(evidence)
    assert (job.origin, job.nodes_sampled, job.job.duration_s) == ("nodes", NODES, 10_800)
    assert job.observed_pct == pytest.approx(100, abs=0.1)


def test_what_needs_the_machine_itself_is_not_claimed(result: Validation) -> None:
    assert result.passed
    assert result.verdicts["not reachable"] == 17
    assert sum(result.verdicts.values()) == 44
