"""How runs share files, by their size (SPEC D5, Fig. 3b): unique (N:N), shared (N:1), partially shared (N:M).

By opens: a file of one rank is unique, of all ranks shared, of some partially shared.
"""

from __future__ import annotations

from dataclasses import dataclass

from iolens.analyses.runs.asked import (
    OverRuns,
    ProcessClass,
    RunConditions,
    asked_runs,
    classes_by_processes,
    window_of,
)
from iolens.run_tables import PATTERNS
from iolens.store.selection import StoreSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPatterns(OverRuns):
    """Classes by processes, from small to large, and all runs together."""

    runs_without_processes: int  # in no class: their number is not known
    overall: ProcessClass
    classes: list[ProcessClass]


def runs_patterns(selection: StoreSelection, like: RunConditions | None = None) -> RunPatterns:
    """Runs and bytes of each of the patterns, by classes of powers of two of processes."""
    classes, overall, unknown = classes_by_processes(asked_runs(selection, like or RunConditions()), PATTERNS)
    return RunPatterns(
        **window_of(selection), runs=overall.runs, runs_without_processes=unknown, overall=overall, classes=classes
    )
