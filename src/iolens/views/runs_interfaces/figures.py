"""Figures of I/O interfaces by the size of runs (Fig. 3 of the study on Intrepid)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from iolens.views.runs.classes import FIGURES as FIGURES
from iolens.views.runs.classes import class_figures
from iolens.views.runs_interfaces.tables import WHAT, WORDS

if TYPE_CHECKING:
    from iolens.analyses.runs_interfaces import RunInterfaces
    from iolens.views.render.figures import Figure


def figures(result: RunInterfaces) -> dict[str, Callable[[], Figure]]:
    """Shares of runs and bytes, and the bytes themselves."""
    return class_figures(result, WHAT, WORDS)
