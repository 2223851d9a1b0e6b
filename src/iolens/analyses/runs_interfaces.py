"""I/O interfaces by the size of runs (SPEC D5, Fig. 3a): POSIX, STDIO, MPI-IO, HDF5, PnetCDF, DFS.

A file counts under the highest interface that opened it: POSIX bytes of a file that MPI-IO also reports are MPI-IO's.
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
from iolens.run_tables import INTERFACES
from iolens.store.selection import StoreSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInterfaces(OverRuns):
    """Classes by processes, from small to large, and all runs together."""

    runs_without_processes: int  # in no class: their number is not known
    overall: ProcessClass
    classes: list[ProcessClass]


def runs_interfaces(selection: StoreSelection, like: RunConditions | None = None) -> RunInterfaces:
    """Runs and bytes of each of the interfaces, by classes of powers of two of processes."""
    classes, overall, unknown = classes_by_processes(asked_runs(selection, like or RunConditions()), INTERFACES)
    return RunInterfaces(
        **window_of(selection), runs=overall.runs, runs_without_processes=unknown, overall=overall, classes=classes
    )
