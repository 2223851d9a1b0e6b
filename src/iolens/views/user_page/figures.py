"""The figure of a user's days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import NAMES, WRITE, Axis, Bars, Figure, Panel

if TYPE_CHECKING:
    from iolens.analyses.user_page import UserDay, UserPage

TB: Final = 1e12
MOST_LABELS: Final = 10
WIDTH: Final = 0.8  # of a day


def trend(page: UserPage) -> Figure:
    """By day or week: the share of the disk time of each file system, or bytes where no share is known."""
    days = page.days
    dates = sorted({day.day for day in days})
    every = -(-len(dates) // MOST_LABELS)
    ticks = tuple((float(place), date.strftime("%m-%d")) for place, date in enumerate(dates) if place % every == 0)
    x = Axis("day" if page.days_each == 1 else "week from", low=-0.6, high=len(dates) - 0.4, ticks=ticks)
    names = list(dict.fromkeys(day.filesystem for day in days))
    is_share = any(day.share_pct is not None for day in days)
    y = Axis("share of the disk time (%)" if is_share else "read and written (TB)", low=0.0)
    width = WIDTH / len(names)
    marks = []
    for number, name in enumerate(names):
        heights = {day.day: _height(day, is_share) for day in days if day.filesystem == name}
        starts = np.arange(len(dates)) - WIDTH / 2 + number * width
        values = np.array([heights.get(date, 0.0) for date in dates])
        colour = WRITE if len(names) == 1 else NAMES[number % len(NAMES)]
        labels = tuple(date.isoformat() for date in dates)
        marks.append(Bars(starts, starts + width, values, name or "by the logs", colour, labels))
    heading = "Share of the disk time by day" if is_share else "Bytes by day"
    return Figure("trend", heading, (Panel("", x, y, tuple(marks)),))


def _height(day: UserDay, is_share: bool) -> float:
    return (day.share_pct or 0.0) if is_share else (day.moved_bytes or 0) / TB
