"""Figure of coverage: shares of jobs and core-hours with a log, by project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import READ, WRITE, Axis, Figure, Panel, side_by_side
from iolens.views.runs.words import EMPTY, MOST_NAMES, first_of, names_axis, project_name, titled

if TYPE_CHECKING:
    from iolens.analyses.runs_coverage import RunCoverage

FIGURES: Final = ("coverage",)


def figures(result: RunCoverage) -> dict[str, Callable[[], Figure]]:
    """Shares by project."""
    return {"coverage": lambda: coverage(result)}


def coverage(result: RunCoverage) -> Figure:
    """Two bars for each project, those with most core-hours first."""
    known = [line for line in result.projects if line.jobs]
    lines = known[:MOST_NAMES]
    title = titled(result, f"jobs and core-hours with a Darshan log{first_of(len(lines), len(known))}")
    names = tuple(project_name(line.project) for line in lines)
    x, y = names_axis(names), Axis("% with a log", low=0.0, high=100.0)
    if not lines:
        return Figure("coverage", title, (Panel("", x, y, message=EMPTY),))
    jobs = np.array([line.jobs_pct or 0.0 for line in lines])
    hours = np.array([line.core_hours_pct or 0.0 for line in lines])
    bars = side_by_side([("jobs", READ, jobs), ("core-hours", WRITE, hours)], names)
    return Figure("coverage", title, (Panel("", x, y, bars, height=1.2),))
