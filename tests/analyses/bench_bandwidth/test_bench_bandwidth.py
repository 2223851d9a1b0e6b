"""Bandwidth of a study: best, median and spread of the repeats, and the comparisons of paper N."""

from __future__ import annotations

import pytest

from iolens.analyses.bench_bandwidth import bandwidth_cases, improvement_pct, study_bandwidth
from iolens.errors import UsageError
from iolens.units import GIB, KIB, MIB
from tests.analyses.study_rows import repeats, run

MB = 1e6


def test_best_median_and_spread_of_five() -> None:
    result = study_bandwidth(repeats("write", [200e6, 100e6, 400e6, 250e6, 300e6]))
    (case,) = result.cases
    assert case.best_bytes_per_s == pytest.approx(400e6)  # paper N takes the best of five
    assert case.median_bytes_per_s == pytest.approx(250e6)
    assert case.spread_pct == pytest.approx(100 * (400 - 100) / 250)
    assert case.runs == result.runs == 5
    assert case.bytes_per_s == pytest.approx([200e6, 100e6, 400e6, 250e6, 300e6])


def test_a_single_run_has_no_spread() -> None:
    assert study_bandwidth([run("read", 1e9)]).cases[0].spread_pct is None


@pytest.mark.parametrize(
    "differing",
    [
        {"place": "home"}, {"direction": "read"}, {"api": "MPIIO"}, {"tasks": 2}, {"file_per_process": False},
        {"collective": True}, {"transfer_bytes": KIB}, {"aggregate_bytes": MIB}, {"stripe_count": 4},
        {"stripe_bytes": MIB}, {"direct": True}, {"fsync": False}, {"page_cache": "warm"},
    ],
)  # fmt: skip
def test_runs_that_differ_in_anything_asked_for_are_no_repeats(differing: dict[str, object]) -> None:
    assert len(bandwidth_cases([run("write", 1e9), {**run("write", 1e9), **differing}])) == 2


@pytest.mark.parametrize("same", [{"iteration": 1}, {"host": "n2"}, {"time": 5}, {"duration_s": 9.0}])
def test_runs_that_differ_in_what_came_out_are(same: dict[str, object]) -> None:
    assert len(bandwidth_cases([run("write", 1e9), {**run("write", 1e9), **same}])) == 1


def test_improvement_over_one_ost_as_paper_n_prints_it() -> None:
    """Writes from 220 to 714 MB/s on 16 OSTs, 3.2 times; reads from 385 to 920 MB/s."""
    rows = [
        *repeats("write", [220 * MB, 150 * MB], stripe_count=1, stripe_bytes=MIB),
        *repeats("write", [500 * MB, 714 * MB], stripe_count=16, stripe_bytes=MIB),
        *repeats("write", [600 * MB], stripe_count=16, stripe_bytes=32 * MIB),
        *repeats("read", [385 * MB], stripe_count=1, stripe_bytes=MIB),
        *repeats("read", [920 * MB], stripe_count=16, stripe_bytes=32 * MIB),
    ]
    written, read = study_bandwidth(rows).improvements
    assert written.improvement_pct == pytest.approx(224.5, abs=0.1)
    assert 1 + written.improvement_pct / 100 == pytest.approx(3.2, abs=0.05)
    assert (written.stripe_count, written.stripe_bytes) == (16, MIB)  # the best stripe size
    assert read.improvement_pct == pytest.approx(139.0, abs=0.1)
    assert (read.bytes_per_s, read.one_ost_bytes_per_s) == pytest.approx((920 * MB, 385 * MB))


def test_improvement_is_at_equal_block_size_and_only_where_one_ost_was_measured() -> None:
    rows = [
        run("write", 1e8, stripe_count=1, transfer_bytes=MIB),
        run("write", 2e8, stripe_count=4, transfer_bytes=MIB),
        run("write", 9e8, stripe_count=4, transfer_bytes=4 * MIB),
        run("write", 5e8, stripe_count=None),
    ]
    (line,) = study_bandwidth(rows).improvements
    assert (line.transfer_bytes, line.stripe_count) == (MIB, 4)
    assert line.improvement_pct == pytest.approx(100.0)


def test_improvement_may_be_negative() -> None:
    assert improvement_pct(50.0, 100.0) == -50.0


def test_file_per_process_against_one_shared_file_best_against_best() -> None:
    shape = {"study": "ior", "tool": "ior", "tasks": 8}
    rows = [
        *repeats("write", [300e6, 600e6], file_per_process=True, **shape),
        *repeats("write", [400e6, 200e6], file_per_process=False, **shape),
        *repeats("read", [1e9], file_per_process=True, **shape),
        *repeats("read", [2e9], file_per_process=False, **shape),
        *repeats("read", [2e9], file_per_process=False, aggregate_bytes=MIB, study="ior"),  # of one kind only
    ]
    write, read = study_bandwidth(rows).files
    assert write.factor == pytest.approx(1.5)
    assert (write.per_process_bytes_per_s, write.shared_bytes_per_s) == pytest.approx((600e6, 400e6))
    assert read.factor == pytest.approx(0.5)


def test_places_against_the_first_over_the_cases_both_have() -> None:
    rows = [
        *(run("write", rate, place="nfs", transfer_bytes=size) for rate, size in ((1e8, 1), (1e8, 2), (1e8, 3))),
        *(run("write", rate, place="lake", transfer_bytes=size) for rate, size in ((4e8, 1), (0.5e8, 2), (2e8, 3))),
        run("read", 1e8, place="nfs"),
        run("read", 3e8, place="lake"),
        run("read", 9e8, place="lake", transfer_bytes=5),
    ]
    write, read = study_bandwidth(rows).differences
    assert (write.reference, write.place, write.cases) == ("nfs", "lake", 3)
    assert (write.median_pct, write.least_pct, write.most_pct) == pytest.approx((100.0, -50.0, 300.0))
    assert read.cases == 1
    assert read.median_pct == pytest.approx(200.0)


def test_one_place_has_no_difference() -> None:
    assert study_bandwidth([run("write", 1e9)]).differences == []


def warnings(*rows: dict[str, object]) -> str:
    return "; ".join(study_bandwidth(rows).warnings)


def test_a_read_that_memory_may_have_answered_is_warned_of() -> None:
    assert "the file of 1 GiB fits into the 16 GiB of this machine" in warnings(run("read", 1e9, page_cache="warm"))
    assert warnings(run("read", 1e9, page_cache="warm", memory_bytes=MIB)) == ""
    assert warnings(run("read", 1e9)) == ""


def test_a_write_without_fsync_is_warned_of() -> None:
    assert "writes without fsync" in warnings(run("write", 1e9, fsync=False))
    assert warnings(run("write", 1e9, fsync=False, direct=True)) == ""
    assert warnings(run("write", 1e9)) == ""


def test_runs_of_two_machines_are_warned_of() -> None:
    assert warnings(run("write", 1e9), run("write", 1e9, host="n2")) == "the runs were made on 2 machines: n1, n2"


def test_runs_without_bytes_or_time_are_none() -> None:
    with pytest.raises(UsageError, match="no run of this study has a bandwidth"):
        study_bandwidth([{**run("write", 1e9), "bytes": None}, {**run("write", 1e9), "duration_s": 0.0}])


def test_what_the_answer_says_of_the_study() -> None:
    result = study_bandwidth([run("write", 1e9, filesystem="lake1"), run("read", 1e9)])
    assert (result.study, result.kind, result.places) == ("blocks", "sequential", ["lake"])
    assert (result.hosts, result.filesystems, result.repetitions) == (["n1"], ["lake1"], 3)
    assert result.memory_bytes == 16 * GIB
