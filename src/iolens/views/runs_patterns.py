"""Access patterns by the size of runs, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iolens.views.runs import FIGURES as FIGURES
from iolens.views.runs import class_figures, class_tables

if TYPE_CHECKING:
    from iolens.analyses.runs_patterns import RunPatterns
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import TableView


WHAT: Final = "access pattern"
WORDS: Final = {"unique": "unique (N:N)", "shared": "shared (N:1)", "partially_shared": "partially shared (N:M)"}


def tables(result: RunPatterns) -> list[TableView]:
    """Classes of processes from small to large, then all runs."""
    return class_tables(result, WHAT, WORDS)


# Figures of access patterns by the size of runs (Fig. 3 of the study on Intrepid) -------------------------------------


def figures(result: RunPatterns) -> dict[str, Callable[[], Figure]]:
    """Shares of runs and bytes, and the bytes themselves."""
    return class_figures(result, WHAT, WORDS)
