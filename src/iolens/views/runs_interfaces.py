"""I/O interfaces by the size of runs, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iolens.views.runs import FIGURES as FIGURES
from iolens.views.runs import class_figures, class_tables

if TYPE_CHECKING:
    from iolens.analyses.runs_interfaces import RunInterfaces
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import TableView


WHAT: Final = "I/O interface"
WORDS: Final = {
    "posix": "POSIX", "stdio": "STDIO", "mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "dfs": "DFS",
}  # fmt: skip


def tables(result: RunInterfaces) -> list[TableView]:
    """Classes of processes from small to large, then all runs."""
    return class_tables(result, WHAT, WORDS)


# Figures of I/O interfaces by the size of runs (Fig. 3 of the study on Intrepid) --------------------------------------


def figures(result: RunInterfaces) -> dict[str, Callable[[], Figure]]:
    """Shares of runs and bytes, and the bytes themselves."""
    return class_figures(result, WHAT, WORDS)
