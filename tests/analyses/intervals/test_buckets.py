"""Widths of time buckets: nested in a day, few enough for a figure, wide enough for the rows."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.intervals.buckets import bucket_seconds, checked_width, common_width, rows_by_width, usual_width
from iolens.errors import UsageError

DAY_US = 86_400_000_000


@pytest.mark.parametrize(("days", "most", "least", "width"), [
    (1, 24, 0, 3600), (1, 25, 0, 3600), (7, 96, 0, 7200), (1, 400, 300, 300), (1, 400, 301, 600), (1000, 10, 0, 86400),
])  # fmt: skip
def test_the_narrowest_that_fits(days: int, most: int, least: float, width: int) -> None:
    assert bucket_seconds(days * DAY_US, most, least) == width


@pytest.mark.parametrize(
    ("intervals_s", "width"),
    [([5] * 95 + [10] * 4 + [3600], 5), ([60] * 80 + [120] * 20, 120), ([3600], 3600), ([], 5)],
)
def test_rows_fill_their_buckets_but_a_gap_does_not_widen_them(intervals_s: list[int], width: int) -> None:
    length_us, counts = np.unique(np.array(intervals_s, np.int64) * 1_000_000, return_counts=True)
    assert usual_width(rows_by_width(length_us, counts), 60_000_000, 400) == width


@pytest.mark.parametrize(("days", "common"), [(1, 900), (4, 3600), (10, 3600), (1000, 86400)])
def test_a_common_width_divides_all_that_a_window_may_get(days: int, common: int) -> None:
    assert common_width(days * DAY_US, 96) == common
    for interval_s in (5, 61, 700, 3601, 7200, 10_801, 50_000, 90_000):
        rows = rows_by_width(np.array([interval_s * 1_000_000]), np.ones(1))
        assert usual_width(rows, days * DAY_US, 96) % common == 0


def test_a_given_width_divides_a_day_and_gives_no_more_than_can_be_held() -> None:
    assert checked_width(3600.0, (0, DAY_US)) == 3600
    for wrong in (7.0, 0.0, 2.5, 90_000.0):
        with pytest.raises(UsageError, match="does not divide a day"):
            checked_width(wrong, None)
    with pytest.raises(UsageError, match="more than 5,000 in this window"):
        checked_width(5, (0, DAY_US))
