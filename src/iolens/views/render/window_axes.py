"""What figures over a window share: their title, time axis, rows of targets, and lines that break at gaps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from iolens.units import epoch_us
from iolens.views.render.figures import NO_DATA, Axis, HeatMapMark, LineMark, Mark, PointsMark, Side, Span
from iolens.views.render.shown_times import short_time, zone_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.arrays import Floats, Integers

EMPTY: Final = "no data in this window"
LINE_AT_MOST: Final = 1500  # more points than this look calmer as dots
ROW_LABELS: Final = 26


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
    known = np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) > LINE_AT_MOST:
        return PointsMark(x, y, label, colour, side, weight=0.6)
    gaps = np.flatnonzero(np.diff(x) > 2.5e6 * bucket_s) + 1
    if 2 * len(gaps) >= len(x):
        return PointsMark(x, y, label, colour, side)
    return LineMark(np.insert(x, gaps, x[gaps]), np.insert(y, gaps, np.nan), label, colour, side)


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
