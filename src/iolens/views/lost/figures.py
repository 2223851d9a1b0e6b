"""Figures of core-hours lost: by application, by project, by finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import READ, WRITE, Axis, Bars, Figure, Panel
from iolens.views.runs.words import EMPTY, MOST_NAMES, names_axis, titled

if TYPE_CHECKING:
    from iolens.analyses.lost import LostCoreHours

FIGURES: Final = ("lost", "fixes")


def figures(result: LostCoreHours) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {"lost": lambda: lost(result), "fixes": lambda: fixes(result)}


def lost(result: LostCoreHours) -> Figure:
    """Applications above projects."""
    panels = [
        _bars(what, [(line.name, line.core_hours_lost) for line in lines], WRITE)
        for what, lines in (("application", result.applications), ("project", result.projects))
    ]
    return Figure("lost", titled(result, "core-hours lost to slow I/O"), tuple(panels))


def fixes(result: LostCoreHours) -> Figure:
    """Findings by what their runs lost."""
    lines = [(fix.code, fix.core_hours_lost) for fix in result.fixes]
    return Figure("fixes", titled(result, "core-hours lost by runs with a finding"), (_bars("finding", lines, READ),))


def _bars(what: str, lines: Sequence[tuple[str, float | None]], colour: str) -> Panel:
    known = [(name, hours) for name, hours in lines if hours][:MOST_NAMES]
    names = tuple(name for name, _ in known)
    y = Axis("core-hours lost", low=0.0)
    if not known:
        return Panel(f"by {what}", Axis(what), y, message=EMPTY)
    places = np.arange(float(len(known)))
    bars = Bars(places - 0.4, places + 0.4, np.array([hours for _, hours in known]), "core-hours", colour, names)
    return Panel(f"by {what}", names_axis(names), y, (bars,))
