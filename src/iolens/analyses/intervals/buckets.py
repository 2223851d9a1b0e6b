"""Time buckets that nest in a UTC day, chosen so that a window has about as many as a figure can show."""

from __future__ import annotations

from typing import Any, Final

import narwhals as nw

from iolens.errors import UsageError
from iolens.units import DAY_S

USUAL_SHARE: Final = 0.9
MOST_GIVEN: Final = 5_000
_WIDTHS_S: Final = (5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, DAY_S)


def bucket_seconds(span_us: int, most: int, least_s: float = 0.0) -> int:
    """The narrowest width from `least_s` on that needs at most `most` buckets for the span; a day at the widest."""
    fits = (width for width in _WIDTHS_S if span_us / 1e6 / width <= most and width >= least_s)
    return next(fits, _WIDTHS_S[-1])


def width_for(frame: nw.LazyFrame[Any], extent_us: tuple[int, int] | None, most: int) -> int:
    """The narrowest width that is no narrower than nine tenths of the rows' own intervals."""
    intervals = frame.select((nw.col("epoch_us") - nw.col("start_us")).alias("us"))
    counted = intervals.group_by("us").agg(nw.len().alias("rows")).collect(backend="pyarrow").to_native()
    pairs = sorted(zip(counted.column("us").to_pylist(), counted.column("rows").to_pylist(), strict=True))
    least_us, reached = 0, 0
    for interval_us, rows in pairs:
        if reached >= USUAL_SHARE * sum(rows for _, rows in pairs):
            break
        least_us, reached = interval_us, reached + rows
    return bucket_seconds(extent_us[1] - extent_us[0] if extent_us else 0, most, least_us / 1e6)


def checked_width(seconds: float, extent_us: tuple[int, int] | None) -> int:
    """A width somebody asked for, if buckets of it nest in a day and are not too many."""
    width = round(seconds)
    if width != seconds or width < 1 or DAY_S % width:
        raise UsageError(f"{seconds:g} s does not divide a day evenly; take 5min, 1h, 6h or 1d")
    if extent_us is not None and (extent_us[1] - extent_us[0]) / 1e6 / width > MOST_GIVEN:
        raise UsageError(f"buckets of {width} s are more than {MOST_GIVEN:,} in this window; take wider ones")
    return width
