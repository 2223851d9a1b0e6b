"""Figure 3 of paper P for any file system, and what each case needs against the classes of drives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes_si
from iolens.views.render.figures import (
    FIT,
    FSU,
    READ,
    WRITE,
    Axis,
    Bars,
    Figure,
    Mark,
    Panel,
    Rule,
    side_by_side,
)

if TYPE_CHECKING:
    from iolens.plans.endurance import EndurancePlan

BINS: Final = 40


FIGURES: Final = ("fswpd", "dwpd")


def figures(result: EndurancePlan) -> dict[str, Callable[[], Figure]]:
    """What each case needs against the classes, and Fig. 3 of paper P where the days are known."""
    by_name: dict[str, Callable[[], Figure]] = {}
    if result.fswpd.daily is not None:
        by_name["fswpd"] = lambda: file_system_writes(result)
    by_name["dwpd"] = lambda: drive_writes(result)
    return by_name


def file_system_writes(result: EndurancePlan) -> Figure:
    """Days by FSWPD; on a logarithmic scale, so that single days show (Fig. 3)."""
    daily = result.fswpd.daily
    assert daily is not None
    top = float(daily.max()) or 1.0
    counts, edges = np.histogram(daily, BINS, (0.0, top))
    names = tuple(
        f"{low:.3g} to {high:.3g}: {count} days" for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )
    marks: list[Mark] = [Bars(edges[:-1], edges[1:], counts.astype(float), f"{daily.size} days", WRITE, names)]
    mean, median = result.fswpd.mean or 0.0, result.fswpd.median or 0.0
    words = f"mean {mean:.3g}, median {median:.3g}"  # the two are often too close for a text each
    marks += [Rule(min(mean, median), "vertical", ""), Rule(max(mean, median), "vertical", words)]
    capacity = format_bytes_si(result.fswpd.capacity_bytes or 0)
    x = Axis(f"file-system writes per day (1 = {capacity})", low=0, high=top)
    y = Axis("days, log scale", "log", 0.5, 3.0 * float(counts.max()))
    ends = f"{result.fswpd.first_day} to {result.fswpd.last_day}"
    title = f"{result.filesystem}, {ends}" if result.filesystem else ends
    return Figure("fswpd", "Distribution of file-system writes per day", (Panel(title, x, y, tuple(marks)),))


def drive_writes(result: EndurancePlan) -> Figure:
    """Drive writes per day of every case by the three ways to count, with the classes on offer."""
    names = tuple(case.name for case in result.cases)
    groups = [
        ("Eq. 2", WRITE, np.array([case.dwpd for case in result.cases])),
        ("strict, host", FIT, np.array([case.strict_host_dwpd for case in result.cases])),
        ("strict, flash", READ, np.array([case.strict_nand_dwpd for case in result.cases])),
    ]
    marks: list[Mark] = list(side_by_side(groups, names))
    ratings = sorted({verdict.class_dwpd for case in result.cases for verdict in case.classes})
    marks += [Rule(rating, "horizontal", f"class {rating:g}") for rating in ratings]
    marks += [
        _interval(place, case.low_dwpd, case.high_dwpd)
        for place, case in enumerate(result.cases)
        if case.high_dwpd > case.low_dwpd
    ]
    heights = np.concatenate([values for _, _, values in groups])
    positive = heights[heights > 0]
    low = float(positive.min(initial=ratings[0])) / 3.0
    y = Axis("drive writes per day, log scale", "log", low, 2.0 * max(float(heights.max()), ratings[-1]))
    x = Axis("", low=-0.6, high=len(names) - 0.4, ticks=tuple((float(i), name) for i, name in enumerate(names)))
    title = f"{result.filesystem}: " * bool(result.filesystem) + "needed against rated endurance"
    return Figure("dwpd", "Endurance the drives need", (Panel(title, x, y, tuple(marks)),))


def _interval(place: int, low: float, high: float) -> Bars:
    """From the better to the worse end, as a thin bar in front of Eq. 2."""
    middle = place - 0.4 + 0.4 / 3
    span = np.array([max(high - low, 0.0)])
    ends = np.array([middle - 0.01]), np.array([middle + 0.01])
    return Bars(*ends, span, "Eq. 2, low to high", FSU, (f"{low:.3g} to {high:.3g}",), np.array([low]))
