"""Targets far from their peers: known scores, and when nothing may be said."""

from __future__ import annotations

import pytest

import iolens
from iolens.analyses.results import TargetCoverage
from iolens.analyses.utilization.targets import TargetUtilization, target_outliers
from tests.analyses.telemetry import made_up

TB = 10**12


def target(number: int, fsu: float | None, moved: int | None = TB) -> TargetUtilization:
    return TargetUtilization(f"OST{number:04x}", fsu, None, moved, None)


def peers(*fsu: float | None, moved: int | None = TB) -> list[TargetUtilization]:
    return [target(number, value, moved) for number, value in enumerate(fsu)]


def reported(number: int, hours: float) -> TargetCoverage:
    return TargetCoverage(f"OST{number:04x}", hours, 5.0, 0.0, 0)


def test_the_score_is_the_distance_from_the_median_in_robust_standard_deviations() -> None:
    result = target_outliers(peers(8, 9, 10, 11, 12, 40))
    assert (result.judged, result.median_pct) == (6, 10.5)
    assert result.spread_pct == pytest.approx(1.4826 * 1.5)
    (item,) = result.outliers
    assert item.target == "OST0005"
    assert item.robust_z == pytest.approx(29.5 / (1.4826 * 1.5))
    assert item.fsu_ratio == pytest.approx(40 / 10.5)


def test_many_strangers_do_not_hide_each_other() -> None:
    result = target_outliers(peers(10, 10.2, 10.4, 9.8, 9.6, 10.1, 60, 70, 0.1))
    assert [outlier.target for outlier in result.outliers] == ["OST0007", "OST0006", "OST0008"]
    assert result.outliers[-1].robust_z < 0


def test_alike_targets_have_no_outlier() -> None:
    assert target_outliers(peers(7, 8, 9, 10, 11, 12, 13)).outliers == []
    assert target_outliers(peers(*[5.0] * 8)).outliers == []


def test_a_difference_below_one_per_cent_does_not_matter() -> None:
    assert target_outliers(peers(1.0, 1.01, 1.02, 1.01, 1.0, 1.9)).outliers == []


def test_where_most_are_equal_the_mean_deviation_serves() -> None:
    (item,) = target_outliers(peers(*[5.0] * 9, 50.0)).outliers
    assert item.robust_z == pytest.approx(45 / (1.2533 * 4.5))


def test_few_targets_are_not_judged() -> None:
    result = target_outliers(peers(1, 2, 3, 90))
    assert (result.judged, result.median_pct, result.outliers) == (0, None, [])
    assert target_outliers([]).judged == 0


def test_targets_without_fsu_are_not_peers() -> None:
    assert target_outliers(peers(8, 9, 10, 11, None, 12)).judged == 5


def test_a_target_that_reported_for_a_short_time_is_named_and_not_judged() -> None:
    hours = [*(reported(number, 24.0) for number in range(6)), reported(6, 2.0)]
    result = target_outliers(peers(8, 9, 10, 11, 12, 10, 90), hours)
    assert (result.judged, result.outliers, result.too_short) == (6, [], ["OST0006"])


@pytest.mark.parametrize(
    ("fsu", "moved", "reason"),
    [
        (40.0, 4 * TB, "more bytes"),
        (40.0, TB, "smaller I/Os"),
        (0.5, TB // 20, "fewer bytes"),
        (0.5, TB, "larger I/Os"),
        (40.0, None, "unknown"),
    ],
)
def test_bytes_tell_why(fsu: float, moved: int | None, reason: str) -> None:
    (item,) = target_outliers([*peers(9, 10, 11, 10, 10.5, 9.5), target(9, fsu, moved)]).outliers
    assert item.reason == reason


def test_without_bytes_anywhere_the_reason_is_unknown() -> None:
    (item,) = target_outliers(peers(9, 10, 11, 10, 10.5, 40, moved=None)).outliers
    assert (item.reason, item.bytes_ratio) == ("unknown", None)


def test_they_are_part_of_the_result() -> None:
    part = made_up(1, 12, 6)
    result = iolens.utilization(target_sizes=part.table("target_sizes"), target_io=part.table("target_io"))
    assert result.target_outliers.judged == 6
    assert result.target_outliers == target_outliers(result.per_target, result.coverage.per_target)
