"""What a run itself did: how much, in how many opens, in which sizes, in which order, by which strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from iolens.analyses.explain.history import RunAndHistory
from iolens.analyses.explain.results import OWN
from iolens.analyses.explain.verdict import FactorValues
from iolens.analyses.runs.columns import RunColumns
from iolens.analyses.runs.strategy import strategies
from iolens.arrays import Floats
from iolens.run_tables import ACCESS_BINS, access_column

SMALL_BYTES: Final = 100 << 10  # an access of at most so much is small (DEFINITIONS, Findings)
DIFFERENCE: Final = 0.01  # like runs are taken to be equal within 1 %; of shares, one point of a hundred
_DIRECTIONS: Final = ("read", "write")

WHY_UNKNOWN: Final[Mapping[str, str]] = {
    "bytes": "the log has no bytes",
    "opens": "the log has no opens",
    "mean_access_bytes": "the log counts no reads and writes",
    "small_access_pct": "the log has no histogram of POSIX accesses",
    "sequential_pct": "the log counts no POSIX reads and writes",
    "strategy": "the log does not say how ranks share files",
}


def own_factors(compared: RunAndHistory) -> list[FactorValues]:
    """All of `OWN`, related to performance over runs of the same program, whatever they moved."""
    runs, place = compared.runs, compared.place
    strategy = strategies(runs.values)
    columns = {**own_columns(runs), "strategy": _is_same(strategy, place)}
    performance = compared.performance[compared.program]
    result = []
    for name in OWN:
        values = columns[name]
        is_share = name.endswith("_pct")
        result.append(
            FactorValues(
                name=name,
                value=float(values[place]),
                history=values[compared.like],
                related=values[compared.program],
                performance=performance,
                least_difference=100 * DIFFERENCE if is_share else DIFFERENCE * abs(float(values[place])),
                shown=strategy[place] if name == "strategy" else None,
            )
        )
    return result


def own_columns(runs: RunColumns) -> dict[str, Floats]:
    """Factors that are numbers, one for each run; NaN where a log does not tell."""
    moved = runs.numbers("read_bytes") + runs.numbers("write_bytes")
    accesses = [
        (upper, runs.numbers(access_column(direction, upper)))
        for direction in _DIRECTIONS
        for upper in (*ACCESS_BINS, None)
    ]
    small = np.sum([counts for upper, counts in accesses if upper is not None and upper <= SMALL_BYTES], axis=0)
    sequential = runs.numbers("sequential_reads") + runs.numbers("sequential_writes")
    return {
        "bytes": moved,
        "opens": runs.numbers("opens"),
        "mean_access_bytes": _quotient(moved, runs.numbers("reads") + runs.numbers("writes")),
        "small_access_pct": 100 * _quotient(small, np.sum([counts for _, counts in accesses], axis=0)),
        "sequential_pct": 100 * _quotient(sequential, runs.numbers("posix_reads") + runs.numbers("posix_writes")),
    }


def _is_same(names: np.ndarray[tuple[int, ...], np.dtype[np.object_]], place: int) -> Floats:
    """1 where a run has the strategy of this one, 0 where another; NaN where one of the two is not known."""
    if names[place] is None:
        return np.full(len(names), np.nan)
    return np.array([np.nan if name is None else float(name == names[place]) for name in names])


def _quotient(above: Floats, below: Floats) -> Floats:
    result = np.full(len(above), np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result
