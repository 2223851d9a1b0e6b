"""Access patterns by the size of runs, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.runs.classes import class_tables

if TYPE_CHECKING:
    from iolens.analyses.runs_patterns import RunPatterns
    from iolens.views.render.tables import TableView

WHAT: Final = "access pattern"
WORDS: Final = {"unique": "unique (N:N)", "shared": "shared (N:1)", "partially_shared": "partially shared (N:M)"}


def tables(result: RunPatterns) -> list[TableView]:
    """Classes of processes from small to large, then all runs."""
    return class_tables(result, WHAT, WORDS)
