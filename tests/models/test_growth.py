"""Daily growth by both methods, on days whose growth is known."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.models.growth import CHANGED, DAY_US, GAP, KEPT, SHRANK, paper_changes, strict_changes

HOUR_US = DAY_US // 24


def strict(readings: list[tuple[float, int, int, int]]) -> list[tuple[float | None, str]]:
    """Readings as (hours, used, calendar day, set of targets)."""
    hours, used, days, sets = zip(*readings, strict=True)
    result = strict_changes(
        np.array([round(hour * HOUR_US) for hour in hours]), np.array(used), np.array(days), np.array(sets)
    )
    return [
        (None if np.isnan(gain) else float(gain), fate)
        for gain, fate in zip(result.bytes_per_day, result.fates, strict=True)
    ]


def test_strict_growth_is_per_exact_day() -> None:
    assert strict([(0, 100, 0, 1), (25, 125, 1, 1)]) == [(24.0, KEPT)]
    assert strict([(0, 100, 0, 1), (23, 123, 1, 1)]) == [(24.0, KEPT)]


def test_strict_growth_keeps_only_gains() -> None:
    assert strict([(0, 100, 0, 1), (24, 90, 1, 1), (48, 90, 2, 1)]) == [(-10.0, SHRANK), (0.0, SHRANK)]


def test_strict_growth_needs_neighbouring_days_with_the_same_targets() -> None:
    assert strict([(0, 100, 0, 1), (48, 200, 2, 1)]) == [(None, GAP)]
    assert strict([(0, 100, 0, 1), (24, 200, 1, 2), (48, 210, 2, 2)]) == [(None, CHANGED), (10.0, KEPT)]


def test_huge_counts_stay_exact() -> None:
    used = [30_000_000_000_000_001, 30_000_000_000_000_002]
    assert strict([(0, used[0], 0, 1), (24, used[1], 1, 1)]) == [(1.0, KEPT)]


def test_paper_growth_is_the_change_of_mean_fullness_times_capacity() -> None:
    result = paper_changes(np.array([40.0, 40.5, 40.5, 40.0]), 1000.0)
    assert result.bytes_per_day == pytest.approx([5.0, 0.0, -5.0])
    assert result.fates == (KEPT, KEPT, SHRANK)  # kept if not negative
    assert result.kept.tolist() == [True, True, False]
    assert result.count(KEPT) == 2


def test_one_reading_has_no_change() -> None:
    assert paper_changes(np.array([40.0]), 1000.0).fates == ()
    assert strict([(0, 1, 0, 1)]) == []
