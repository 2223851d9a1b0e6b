"""Time buckets that nest in a UTC day, chosen so that a window has about as many as a figure can show."""

from __future__ import annotations

from math import gcd
from typing import Final

import numpy as np

from iolens.arrays import Floats, Integers
from iolens.errors import UsageError
from iolens.units import DAY_S, SECOND_US

USUAL_SHARE: Final = 0.9
MOST_GIVEN: Final = 5_000
PART_S: Final = 3600  # the widest buckets of a part of days, whatever window it was asked in
_WIDTHS_S: Final = (5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, DAY_S)


def bucket_seconds(span_us: int, most: int, least_s: float = 0.0) -> int:
    """The narrowest width from `least_s` on that needs at most `most` buckets for the span; a day at the widest."""
    fits = (width for width in _WIDTHS_S if span_us / 1e6 / width <= most and width >= least_s)
    return next(fits, _WIDTHS_S[-1])


def common_width(span_us: int, most: int) -> int:
    """Seconds that divide every width the span may get, however long its rows' intervals are."""
    narrowest = bucket_seconds(span_us, most)
    return gcd(*(width for width in _WIDTHS_S if width >= narrowest))


def rows_by_width(length_us: Integers, rows: Integers | Floats) -> Integers:
    """Rows by the narrowest width that is no narrower than their interval; the last are wider than any."""
    places = np.searchsorted(np.array(_WIDTHS_S) * SECOND_US, length_us)
    return np.bincount(places, weights=rows, minlength=len(_WIDTHS_S) + 1).astype(np.int64)


def usual_width(rows: Integers, span_us: int, most: int) -> int:
    """The narrowest width that is no narrower than nine tenths of the intervals: rows of `rows_by_width`."""
    usual = int((rows.cumsum() >= USUAL_SHARE * rows.sum()).argmax())
    return bucket_seconds(span_us, most, [*_WIDTHS_S, DAY_S][usual] if rows.any() else 0.0)


def checked_width(seconds: float, extent_us: tuple[int, int] | None) -> int:
    """A width somebody asked for, if buckets of it nest in a day and are not too many."""
    width = round(seconds)
    if width != seconds or width < 1 or DAY_S % width:
        raise UsageError(f"{seconds:g} s does not divide a day evenly; take 5min, 1h, 6h or 1d")
    if extent_us is not None and (extent_us[1] - extent_us[0]) / 1e6 / width > MOST_GIVEN:
        raise UsageError(f"buckets of {width} s are more than {MOST_GIVEN:,} in this window; take wider ones")
    return width
