"""What metadata operations cost, from mdtest rates."""

from __future__ import annotations

import pytest

from iolens.models.metadata_time import (
    BenchmarkRate,
    metadata_calibration,
    phase_name,
    unsaturated,
)
from iolens.schema import METADATA_OPERATIONS, SUMMED_OPERATIONS


def rates(**per_second: float) -> list[BenchmarkRate]:
    return [BenchmarkRate(phase, rate, 1.0, 8) for phase, rate in per_second.items()]


def cost(result, operation: str) -> tuple[float, str]:
    item = result.of(operation)
    return pytest.approx(item.s_per_op), item.basis


def test_a_rate_is_a_cost() -> None:
    result = metadata_calibration("x", rates(file_stat=50_000, file_removal=10_000, directory_creation=4_000))
    assert cost(result, "getattr") == (2e-5, "measured")
    assert cost(result, "unlink") == (1e-4, "measured")
    assert cost(result, "mkdir") == (2.5e-4, "measured")


def test_a_created_file_costs_its_creation_however_the_server_counts_it() -> None:
    """The server counts an open and a mknod for each; the close is in the open."""
    result = metadata_calibration("x", rates(file_creation=5_000, file_read=40_000))
    assert result.seconds({"open": 5_000, "close": 5_000, "mknod": 5_000}) == pytest.approx(1.0)
    assert result.seconds({"open": 40_000, "close": 40_000}) == pytest.approx(1.0)
    assert cost(result, "close") == (0.0, "in open")


def test_a_creation_without_a_read_phase() -> None:
    result = metadata_calibration("x", rates(file_creation=5_000, file_stat=50_000))
    assert cost(result, "open") == (2e-5, "assumed")
    assert result.seconds({"open": 1, "mknod": 1}) == pytest.approx(1 / 5_000)


def test_a_creation_faster_than_an_open_costs_nothing_more_and_never_less_than_nothing() -> None:
    assert cost(metadata_calibration("x", rates(file_creation=9_000, file_read=5_000)), "mknod") == (0.0, "measured")


def test_what_is_not_measured_costs_what_the_cheapest_does() -> None:
    result = metadata_calibration("x", rates(file_stat=50_000, file_removal=10_000))
    assert cost(result, "setattr") == (2e-5, "assumed")
    assert cost(result, "rmdir") == (2e-5, "assumed")


def test_the_fastest_result_of_a_phase_counts() -> None:
    slow, fast = BenchmarkRate("file_stat", 1_000, 1.0, 1), BenchmarkRate("file_stat", 30_000, 1.0, 16)
    assert cost(metadata_calibration("x", [slow, fast, slow]), "getattr") == (1 / 30_000, "measured")


def test_files_are_preferred_to_directories_where_both_do() -> None:
    assert cost(metadata_calibration("x", rates(directory_stat=80_000, file_stat=50_000)), "getattr") == (
        2e-5,
        "measured",
    )
    assert cost(metadata_calibration("x", rates(directory_stat=80_000)), "getattr") == (1 / 80_000, "measured")


@pytest.mark.parametrize("phases", [{}, {"tree_creation": 70.0}, {"file_stat": 0.0}])
def test_nothing_to_go_by_is_refused(phases: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected one of file_creation"):
        metadata_calibration("x", rates(**phases))


def test_a_rate_that_still_rises_is_reported() -> None:
    result = [BenchmarkRate("file_stat", rate, 1.0, tasks) for tasks, rate in ((1, 10_000), (4, 30_000), (8, 40_000))]
    flat = [BenchmarkRate("file_read", rate, 1.0, tasks) for tasks, rate in ((4, 30_000), (8, 31_000), (None, 99_000))]
    once = [BenchmarkRate("file_removal", 5_000, 1.0, 8)]
    assert unsaturated([*result, *flat, *once]) == ["file_stat"]


def test_names_of_phases_are_read_as_they_are_printed() -> None:
    assert {phase_name(text) for text in ("File creation", "file-creation", " file_creation ")} == {"file_creation"}


def test_kinds_of_rename_are_counted_in_rename_and_never_added_to_it() -> None:
    assert set(METADATA_OPERATIONS) - set(SUMMED_OPERATIONS) == {
        "samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir", "rename_trylocks",
    }  # fmt: skip
