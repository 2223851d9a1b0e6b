"""Time buckets that nest in a UTC day, chosen so that a window has about as many as a figure can show."""

from __future__ import annotations

from typing import Final

_WIDTHS_S: Final = (5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400)


def bucket_seconds(span_us: int, most: int) -> int:
    """The narrowest width that needs at most `most` buckets for the span; a day at the widest."""
    return next((width for width in _WIDTHS_S if span_us / 1e6 / width <= most), _WIDTHS_S[-1])
