"""Figures of a comparison of jobs: shares of RPC sizes side by side, moved ones marked; and every job's totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.schema import DIRECTIONS
from iolens.units import epoch_us, format_bytes
from iolens.views.render.figures import (
    BEFORE_AFTER,
    SATURATED,
    Axis,
    Figure,
    Mark,
    Panel,
    PointsMark,
    Rule,
    Span,
    side_by_side,
)
from iolens.views.render.log_scales import log_axis

if TYPE_CHECKING:
    from iolens.analyses.job_compare import ComparedJob, JobComparison

FIGURES: Final = ("sizes", "bytes", "totals")
MEASURES: Final = (
    ("read_bytes", "GB read", 1e-9), ("write_bytes", "GB written", 1e-9), ("opens", "opens", 1.0),
    ("duration_s", "duration (h)", 1 / 3600),
)  # fmt: skip
EMPTY: Final = "none known"


def figures(result: JobComparison) -> dict[str, Callable[[], Figure]]:
    """Shares of RPCs by size, shares of their bytes, and the totals of all jobs over time."""
    return {
        "sizes": lambda: shares(result, "rpcs"),
        "bytes": lambda: shares(result, "bytes"),
        "totals": lambda: totals(result),
    }


def shares(result: JobComparison, share: str) -> Figure:
    """Reads above writes; a shaded size has moved."""
    what = "RPCs" if share == "rpcs" else "the bytes of RPCs"
    name = "sizes" if share == "rpcs" else "bytes"
    title = f"{result.filesystem}: {what} by size, {result.second.label} beside {result.first.label}"
    return Figure(name, title, tuple(_shares(result, direction, share, what) for direction in DIRECTIONS))


def _shares(result: JobComparison, direction: str, share: str, what: str) -> Panel:
    lines = [line for line in result.sizes if (line.direction, line.share) == (direction, share)]
    names = tuple(format_bytes(line.size_bytes) for line in lines)
    x = Axis("size of RPC, up to", low=-0.6, high=max(len(lines), 1) - 0.4, ticks=tuple(enumerate(names)))
    y = Axis(f"% of a job's {what}", low=0.0, high=100.0)
    if not lines:
        return Panel(f"{direction}s", x, y, message=EMPTY)
    moved: list[Mark] = [
        Span(place - 0.5, place + 0.5, f"moved (p ≤ {result.significance:g})", SATURATED)
        for place, line in enumerate(lines)
        if line.moved
    ]
    sides = (
        (f"{result.first.label} ({lines[0].first_jobs} jobs)", BEFORE_AFTER[0], [line.first_pct for line in lines]),
        (f"{result.second.label} ({lines[0].second_jobs} jobs)", BEFORE_AFTER[1], [line.second_pct for line in lines]),
    )
    bars = side_by_side([(label, colour, _heights(values)) for label, colour, values in sides], names)
    return Panel(f"{direction}s", x, y, (*moved, *bars))


def _heights(values: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([0.0 if value is None else value for value in values])


def totals(result: JobComparison) -> Figure:
    """A dot for each job at its start."""
    panels = tuple(_total(result, *measure) for measure in MEASURES)
    return Figure("totals", f"{result.filesystem}: totals of the jobs compared", panels, linked_x=True)


def _total(result: JobComparison, measure: str, label: str, scale: float) -> Panel:
    starts = [epoch_us(job.start) for job in result.jobs]
    edge = max((max(starts) - min(starts)) // 20, 3_600_000_000)
    x = Axis("start of the job", "time", min(starts) - edge, max(starts) + edge)
    marks = [
        _dots([job for job in result.jobs if job.group == side.label], measure, scale, side.label, colour)
        for side, colour in zip((result.first, result.second), BEFORE_AFTER, strict=True)
    ]
    if not any(mark.x.size for mark in marks):
        return Panel(label, x, Axis(label), message=EMPTY)
    dates = dict.fromkeys(date for date in (result.before, result.after) if date is not None)
    rules: list[Mark] = [Rule(float(epoch_us(date)), "vertical", f"{date:%Y-%m-%d}") for date in dates]
    y = log_axis(f"{label}, log scale", np.concatenate([mark.y for mark in marks]))
    return Panel(label, x, y, (*rules, *marks), height=0.7)


def _dots(jobs: Sequence[ComparedJob], measure: str, scale: float, label: str, colour: str) -> PointsMark:
    known = [(epoch_us(job.start), getattr(job, measure)) for job in jobs if getattr(job, measure)]
    x = np.array([start for start, _ in known], dtype=float)
    return PointsMark(x, np.array([value * scale for _, value in known]), label, colour, weight=3.0)
