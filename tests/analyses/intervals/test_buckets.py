"""Widths of time buckets: nested in a day, few enough for a figure, wide enough for the rows."""

from __future__ import annotations

import narwhals as nw
import pyarrow as pa
import pytest

from iolens.analyses.intervals.buckets import bucket_seconds, checked_width, width_for
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
    ends = pa.array([item * 1_000_000 for item in intervals_s], pa.int64())
    frame = nw.from_native(pa.table({"epoch_us": ends, "start_us": pa.array([0] * len(ends), pa.int64())})).lazy()
    assert width_for(frame, (0, 60_000_000), 400) == width


def test_a_given_width_divides_a_day_and_gives_no_more_than_can_be_held() -> None:
    assert checked_width(3600.0, (0, DAY_US)) == 3600
    for wrong in (7.0, 0.0, 2.5, 90_000.0):
        with pytest.raises(UsageError, match="does not divide a day"):
            checked_width(wrong, None)
    with pytest.raises(UsageError, match="more than 5,000 in this window"):
        checked_width(5, (0, DAY_US))
