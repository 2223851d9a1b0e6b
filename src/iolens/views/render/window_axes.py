"""What figures over a window share: their title, time axis, rows of targets, and lines that break at gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from iolens.analyses.intervals.buckets import MOST_TICKS
from iolens.units import epoch_us
from iolens.views.render.figures import (
    NO_DATA,
    Axis,
    BandMark,
    HeatMapMark,
    LineMark,
    Mark,
    PointsMark,
    Side,
    Span,
    Zoom,
)
from iolens.views.render.shown_times import short_time, zone_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.analyses.intervals.buckets import BucketSpread
    from iolens.arrays import Floats, Integers

EMPTY: Final = "no data in this window"
LINE_AT_MOST: Final = 1500  # more points than this look calmer as dots
ROW_LABELS: Final = 26
LETTERS, LETTERS_BETWEEN = 62, 2  # of names below an axis
SEEN_AT_ONCE: Final = MOST_TICKS  # points of a line that can be seen apart on an axis
ROBUST_PCT: Final = 99.0


def midnight_us(day: date) -> int:
    """When a UTC day begins."""
    return epoch_us(datetime.combine(day, time(), UTC))


class Windowed(Protocol):
    """A result about a file system and a window."""

    @property
    def filesystem(self) -> str:
        """Its name."""

    @property
    def window_start(self) -> datetime | None:
        """From …"""

    @property
    def window_end(self) -> datetime | None:
        """… to."""


def window_title(system: Windowed) -> str:
    """File system and window."""
    if system.window_start is None or system.window_end is None:
        return system.filesystem
    start, end = (short_time(timestamp) for timestamp in (system.window_start, system.window_end))
    if start.endswith(" 00:00") and end.endswith(" 00:00"):
        start, end = start[:10], end[:10]
    return f"{system.filesystem}, {start} to {end.removeprefix(start[:10] + ' ')} {zone_name()}"


def time_axis(system: Windowed) -> Axis:
    """The window, as far as it is known."""
    start, end = system.window_start, system.window_end
    return Axis(
        "time",
        "time",
        None if start is None else float(epoch_us(start)),
        None if end is None else float(epoch_us(end)),
    )


def largest(*arrays: NDArray[Any]) -> float:
    """The largest finite value; 0 when there is none."""
    finite = [array[np.isfinite(array)] for array in arrays]
    return max((float(array.max()) for array in finite if array.size), default=0.0)


def over_time(x: Integers, y: Floats, bucket_s: float, label: str, colour: str, side: Side) -> Mark:
    """A line that breaks at gaps, or dots where there are many or most stand alone."""
    line = broken_line(x, y, bucket_s, label, colour, side)
    known = np.isfinite(y)
    gaps = len(line.x) - int(known.sum())
    if known.sum() > LINE_AT_MOST or 2 * gaps >= known.sum():
        weight = 0.6 if known.sum() > LINE_AT_MOST else 1.0
        return PointsMark(x[known], y[known], label, colour, side, weight=weight)
    return line


def with_finer(
    x: Integers, spread: BucketSpread, factor: float, colours: tuple[str, str], name: str, finer: LineMark
) -> list[Mark]:
    """5–95 %, maximum and median of each bucket in the middle of it, and the finer line for zooming in."""
    line, shade = colours
    words = f"{name} " if name else ""
    shown: Zoom | None = None if finer.zoom is None else ("out", finer.zoom[1])
    return [
        BandMark(x, spread.p5 / factor, spread.p95 / factor, f"{words}5–95 %", shade, alpha=0.45, zoom=shown),
        PointsMark(x, spread.max / factor, f"{words}maximum", line, weight=0.7, zoom=shown),
        LineMark(x, spread.median / factor, f"{words}median", line, zoom=shown),
        finer,
    ]


def finer_line(x: Integers, y: Floats, bucket_s: float, label: str, colour: str) -> LineMark:
    """A line for zooming in, drawn while the axis is so narrow that its points can be seen apart."""
    return replace(broken_line(x, y, bucket_s, label, colour), zoom=zoomed_in(bucket_s))


def zoomed_in(bucket_s: float) -> Zoom:
    """While the axis is so narrow that points of that length can be seen apart."""
    return "in", SEEN_AT_ONCE * bucket_s * 1e6


def broken_line(x: Integers, y: Floats, bucket_s: float, label: str, colour: str, side: Side = "left") -> LineMark:
    """A line that breaks at gaps and where nothing is known."""
    known = np.isfinite(y)
    x, y = x[known], y[known]
    gaps = np.flatnonzero(np.diff(x) > 2.5e6 * bucket_s) + 1
    return LineMark(np.insert(x, gaps, x[gaps]), np.insert(y, gaps, np.nan), label, colour, side)


def robust_high(*arrays: NDArray[Any]) -> float:
    """The 99th percentile of the finite values; 0 when there is none. Colours up to it differ."""
    finite = np.concatenate([array[np.isfinite(array)].ravel() for array in arrays] or [np.zeros(0)])
    return float(np.percentile(finite, ROBUST_PCT)) if finite.size else 0.0


def robust_range(positive: list[NDArray[Any]]) -> tuple[float, float]:
    """Ends of logarithmic colours: the 1st and 99th percentile, apart by a factor of two at the least."""
    values = np.concatenate([array.ravel() for array in positive] or [np.zeros(0)])
    if not values.size:
        return 1.0, 2.0
    low, high = (float(end) for end in np.percentile(values, [100.0 - ROBUST_PCT, ROBUST_PCT]))
    return low, max(high, 2.0 * low)


def names_axis(label: str, names: Sequence[str]) -> Axis:
    """The first name at the left; only as many as can be read."""
    letters = len(names) * (max(map(len, names), default=0) + LETTERS_BETWEEN)
    every = max(1, -(-letters // LETTERS))
    shown = tuple((float(place), name) for place, name in enumerate(names) if place % every == 0)
    return Axis(
        label if every == 1 else f"{label} (1 in {every} named)", low=-0.6, high=max(len(names), 1) - 0.4, ticks=shown
    )


def outside(time: Axis, mark: HeatMapMark) -> list[Span]:
    """Parts of the window before the first and after the last bucket."""
    ends = [(time.low, mark.start), (mark.end, time.high)]
    return [Span(a, b, "no data", NO_DATA) for a, b in ends if a is not None and b is not None and a < b]


def target_axis(rows: tuple[str, ...], groups: Sequence[tuple[str, int]] = ()) -> Axis:
    """The first target on top; names only as dense as can be read.

    Of groups (a server and how many targets it has, from the top) the first target has the server's name before its
    own; where there are many targets, servers alone are named.
    """
    if groups and len(rows) > ROW_LABELS:
        return _server_axis(len(rows), groups)
    if groups:
        firsts = {place: server for place, (server, _) in zip(_places(groups), groups, strict=True) if server}
        rows = tuple(f"{firsts[row]} · {name}" if row in firsts else name for row, name in enumerate(rows))
    every = -(-len(rows) // ROW_LABELS)
    shown = tuple((len(rows) - 1.0 - row, name) for row, name in enumerate(rows) if row % every == 0)
    label = "target" if every == 1 else f"target (1 in {every} named)"
    return Axis(label, low=-0.5, high=len(rows) - 0.5, ticks=shown)


def _server_axis(count: int, groups: Sequence[tuple[str, int]]) -> Axis:
    """Servers in the middle of their targets."""
    every = -(-len(groups) // ROW_LABELS)
    middles = [
        (count - 1 - place - (rows - 1) / 2, server)
        for place, (server, rows) in zip(_places(groups), groups, strict=True)
    ]
    label = "targets by server" if every == 1 else f"targets by server (1 in {every} named)"
    return Axis(label, low=-0.5, high=count - 0.5, ticks=tuple(middles[::every]))


def _places(groups: Sequence[tuple[str, int]]) -> list[int]:
    """The first row of each group."""
    return [0, *accumulate(rows for _, rows in groups[:-1])]


def rows_height(rows: Sequence[str]) -> float:
    """Of a panel with such rows, as a multiple of the usual."""
    return min(max(1.0, len(rows) / 14), 1.5)
