"""The newest load: the last five minutes of a series, against plain means."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.utilization.analysis import LatestLoad

START_US = 1_767_571_200_000_000  # 2026-01-05


def test_the_last_five_minutes_of_short_ticks() -> None:
    times = START_US + np.arange(1, 121) * 5_000_000
    latest = LatestLoad.of(times, 5.0, np.arange(120.0), np.arange(120.0) * 10)
    assert latest is not None
    assert latest.length_s == 300
    assert latest.end.isoformat() == "2026-01-05T00:10:00+00:00"
    assert latest.fsu_pct == pytest.approx(np.mean(range(60, 120)))
    assert latest.bytes_per_s == pytest.approx(10 * np.mean(range(60, 120)))
    assert latest.whole_bytes_per_s == pytest.approx(10 * np.mean(range(120)))


def test_a_longer_bucket_is_the_last_one_alone() -> None:
    latest = LatestLoad.of(
        START_US + np.array([1, 2]) * 3_600_000_000, 3600.0, np.array([1.0, 7.0]), np.array([2.0, 4.0])
    )
    assert latest is not None
    assert (latest.length_s, latest.fsu_pct, latest.bytes_per_s, latest.whole_bytes_per_s) == (3600.0, 7.0, 4.0, 3.0)


def test_what_is_not_known_is_none() -> None:
    assert LatestLoad.of(np.array([], np.int64), 5.0, np.array([]), np.array([])) is None
    latest = LatestLoad.of(np.array([START_US]), 5.0, np.array([np.nan]), np.array([np.nan]))
    assert latest is not None
    assert (latest.fsu_pct, latest.bytes_per_s, latest.whole_bytes_per_s) == (None, None, None)
