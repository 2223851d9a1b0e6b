"""How the ranks of a run share its files, by name (D13): a pure function of columns of `runs`, for one run or many.

The names are those of the study's Section 5: rank-0 I/O, aggregation by a subset of the ranks, a file per process,
shared and partially shared files; and MPI-IO's own aggregation by collective calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.runs.columns import Floats, float_column
from iolens.run_tables import PATTERNS

ONE_RANK_SHARE: Final = 0.9  # of the bytes, by one rank: more than this is rank-0 I/O
SUBSET_SHARE: Final = 0.5  # of the ranks: at most so many do the I/O for all
COLLECTIVE_SHARE: Final = 0.5  # of MPI-IO's reads and writes: more than this are collective calls
MPIIO_SHARE: Final = 0.5  # of the bytes: at least so many are of files that MPI-IO opened, or a library above it
OVER_MPIIO: Final = ("mpiio", "hdf5", "pnetcdf")

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class StrategyEvidence:
    """The numbers that strategies differ in, one for each run; NaN: not known."""

    processes: Floats
    moved_bytes: Floats  # read and written, of files: standard output is none
    io_ranks: Floats  # that moved bytes
    busiest_rank_pct: Floats  # of the bytes, by the rank that moved most
    unique_pct: Floats  # of the bytes, of files that one rank used
    shared_pct: Floats  # that all ranks used
    partially_shared_pct: Floats  # that some ranks used
    unique_files: Floats
    mpiio_pct: Floats  # of the bytes, of files that MPI-IO opened or a library above it
    collective_pct: Floats  # of MPI-IO's reads and writes

    def of_run(self, place: int = 0) -> dict[str, float | None]:
        """The numbers of one run; None is not known."""
        values = {field.name: float(getattr(self, field.name)[place]) for field in fields(self)}
        return {name: None if np.isnan(value) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Strategy:
    """A name, when it is given, and the test; the first that holds names the run."""

    name: str
    condition: str
    holds: Callable[[StrategyEvidence], Bools]


def _no_bytes(seen: StrategyEvidence) -> Bools:
    return np.equal(seen.moved_bytes, 0) | np.equal(seen.processes, 1)


def _collective(seen: StrategyEvidence) -> Bools:
    return (seen.collective_pct > 100 * COLLECTIVE_SHARE) & (seen.mpiio_pct >= 100 * MPIIO_SHARE)


def _one_rank(seen: StrategyEvidence) -> Bools:
    return (seen.busiest_rank_pct > 100 * ONE_RANK_SHARE) | np.equal(seen.io_ranks, 1)


def _subset(seen: StrategyEvidence) -> Bools:
    return seen.io_ranks <= SUBSET_SHARE * seen.processes


def _file_per_process(seen: StrategyEvidence) -> Bools:
    by_most = (seen.io_ranks > SUBSET_SHARE * seen.processes) | (
        np.isnan(seen.io_ranks) & (seen.unique_files > SUBSET_SHARE * seen.processes)
    )
    return by_most & (seen.unique_pct > seen.shared_pct) & (seen.unique_pct > seen.partially_shared_pct)


def _shared(seen: StrategyEvidence) -> Bools:
    return (seen.shared_pct >= seen.partially_shared_pct) & (seen.shared_pct >= seen.unique_pct)


def _partially_shared(seen: StrategyEvidence) -> Bools:
    return seen.partially_shared_pct >= seen.unique_pct


def _unique_of_few(seen: StrategyEvidence) -> Bools:
    return seen.unique_pct > 0


STRATEGIES: Final = (
    Strategy(
        "none", "no bytes of files were moved, or there is only one process, which has nobody to share with", _no_bytes
    ),
    Strategy(
        "collective",
        "more than half of MPI-IO's reads and writes are collective, and at least half of the bytes go through MPI-IO",
        _collective,
    ),
    Strategy("rank0", "one of several ranks moves more than 90 % of the bytes", _one_rank),
    Strategy("subset", "at most half of the ranks move bytes, as where a program aggregates by itself", _subset),
    Strategy(
        "file_per_process", "most bytes are of files of one rank, and most ranks have such files", _file_per_process
    ),
    Strategy("shared", "most bytes are of files that all ranks use", _shared),
    Strategy("partially_shared", "most bytes are of files that several ranks use, but not all", _partially_shared),
    Strategy("subset", "most bytes are of files of one rank, and few ranks have such files", _unique_of_few),
)


def strategies(columns: Mapping[str, Any]) -> NDArray[np.object_]:
    """The strategy of each run, by columns of `runs`; None: not enough is known."""
    seen = strategy_evidence(columns)
    names = np.full(seen.processes.shape, None, dtype=object)
    is_open = ~(np.isnan(seen.processes) | np.isnan(seen.moved_bytes))
    for strategy in STRATEGIES:
        is_named = is_open & strategy.holds(seen)  # a comparison with NaN does not hold
        names[is_named] = strategy.name
        is_open &= ~is_named
    return names


def strategy_of(run: Mapping[str, Any]) -> tuple[str | None, dict[str, float | None]]:
    """The strategy of one run by its row of `runs`, and the numbers behind it."""
    columns = {name: [value] for name, value in run.items() if not isinstance(value, str)}
    name = strategies(columns)[0]
    return name, strategy_evidence(columns).of_run()


def strategy_evidence(columns: Mapping[str, Any]) -> StrategyEvidence:
    """The numbers behind the names."""
    count = len(columns["processes"])

    def column(name: str) -> Floats:
        return float_column(columns.get(name), count)

    by_pattern = [column(f"{pattern}_read_bytes") + column(f"{pattern}_write_bytes") for pattern in PATTERNS]
    moved: Floats = np.sum(by_pattern, axis=0)
    unique, shared, partially_shared = (_percent(part, moved) for part in by_pattern)
    directions = [f"{name}_{direction}_bytes" for name in OVER_MPIIO for direction in ("read", "write")]
    over_mpiio = np.sum([np.nan_to_num(column(name)) for name in directions], axis=0)
    independent, collective = (np.nan_to_num(column(f"{kind}_ops")) for kind in ("independent", "collective"))
    return StrategyEvidence(
        processes=column("processes"),
        moved_bytes=moved,
        io_ranks=column("io_ranks"),
        busiest_rank_pct=np.minimum(_percent(column("busiest_rank_bytes"), moved), 100.0),
        unique_pct=unique,
        shared_pct=shared,
        partially_shared_pct=partially_shared,
        unique_files=column("unique_files"),
        mpiio_pct=_percent(over_mpiio, moved),
        collective_pct=_percent(collective, independent + collective),
    )


def _percent(part: Floats, whole: Floats) -> Floats:
    """100 · part ÷ whole; NaN where there is nothing to divide by."""
    shares: Floats = np.divide(100 * part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return shares
