"""Numbers, sparklines and bars as text, for cells of fixed width. Unknown is a dash, never a zero."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import Final, Literal

from iolens.models.transaction_time import BUSY_ABOVE_PCT, IDLE_BELOW_PCT, FsuCategory
from iolens.units import MIB, format_bytes

UNKNOWN: Final = "–"
LEVELS: Final = "▁▂▃▄▅▆▇█"
# Upper ends of the levels above the idle one: three are moderate, four are busy, so that height tells the category
# where there is no colour.
LEVEL_ENDS: Final = (11.0, 20.0, BUSY_ABOVE_PCT, 50.0, 70.0, 90.0)
UNLEVELLED: Final = "unlevelled"  # not calibrated: one colour, and no mark
Category = Literal["unlevelled"] | FsuCategory | None
STYLES: Final = {"idle": "#5f8787", "moderate": "#d7af5f", "busy": "bold #ff5f5f", UNLEVELLED: "#87afaf", None: "dim"}
MARKS: Final = {"idle": "·", "moderate": "▪", "busy": "▲", UNLEVELLED: " ", None: " "}
SILENT, LATE, AFTER_RESET = "✗", "?", "↺"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def category(fsu_pct: float | None, has_levels: bool) -> Category:
    """Of an FSU; `unlevelled` where it cannot be compared with a level."""
    known = FsuCategory.of(fsu_pct)
    return UNLEVELLED if known is not None and not has_levels else known


def style_of(fsu_pct: float | None, has_levels: bool = True) -> str:
    """The colour of an FSU's category."""
    return STYLES[category(fsu_pct, has_levels)]


def short(value: float | None) -> str:
    """A number in at most six or seven places: `0`, `0.3`, `42`, `1,234`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if 0 < value < 9.95 else f"{value:,.0f}"


def per_cent(value: float | None) -> str:
    """One decimal; none from a hundred on. What is less than all or more than nothing is not shown as such."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if 0 < value < 0.05:
        return "<0.1"
    return f"{min(value, 99.9):.1f}" if value < 100 else f"{value:.0f}"


def mib_per_s(value: float | None) -> str:
    """A rate in MiB/s."""
    return short(None if value is None else value / MIB)


def milliseconds(value: float | None) -> str:
    """A latency in ms."""
    return short(None if value is None else 1e3 * value)


def ago(seconds: float | None) -> str:
    """An age: `3 s`, `12 min`, `5 h`, `2 d`."""
    if seconds is None:
        return UNKNOWN
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86400:.0f} d"


def label(size_bytes: int) -> str:
    """A size bin's label: `4 KiB`."""
    return format_bytes(size_bytes)


def level(fsu_pct: float | None, largest: float | None = None) -> str:
    """One character of a sparkline; blank where nothing was reported.

    By its category; where FSU has none, by its share of the `largest` that is shown.
    """
    if fsu_pct is None:
        return " "
    if largest is not None:
        return LEVELS[min(round(len(LEVELS) * fsu_pct / largest), len(LEVELS) - 1) if largest > 0 else 0]
    return LEVELS[0 if fsu_pct < IDLE_BELOW_PCT else 1 + bisect.bisect_left(LEVEL_ENDS, fsu_pct)]


def largest(course: Iterable[float | None]) -> float:
    """Of those that were reported."""
    return max((value for value in course if value is not None), default=0.0)


def bar(share: float, width: int) -> str:
    """A horizontal bar; `share` of 1 fills it, anything above zero is visible."""
    eighths = max(round(min(share, 1.0) * width * 8), 1) if share > 0 else 0
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)
