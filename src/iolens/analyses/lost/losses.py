"""Core-hours that each run of a window lost against the best quarter of its like (DEFINITIONS, Was it me).

Like runs are those of D8. Where there are fewer than five, runs of the same user, program and processes tell how fast
the best quarter of them was, and what the run's bytes would have taken at that rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.runs.asked import asked_runs
from iolens.analyses.runs.like_runs import like_groups
from iolens.analyses.runs.run_conditions import RunConditions
from iolens.arrays import Booleans, Floats, Integers
from iolens.store.selection import StoreSelection

FEWEST: Final = 5  # like runs, the run itself among them
BEST: Final = 0.25  # of the I/O times of like runs
HOUR_S: Final = 3600.0

_NUMBERS: Final = ("processes", "files", "read_bytes", "write_bytes", "rate_bytes", "rate_s", "cores")
_NAMES: Final = ("run_id", "owner", "executable", "project")


@dataclass(frozen=True, slots=True, eq=False)
class RunLosses:
    """Runs whose I/O time is known, one in each place; NaN is not known.

    `expected_s` is the I/O time of the best quarter; `is_relaxed`: by the rate of runs that moved something else.
    Runs of the same `history` were compared with each other; −1 has none.
    """

    runs: int  # of the window
    names: dict[str, list[str | None]]
    io_s: Floats
    cores: Floats
    expected_s: Floats
    is_relaxed: Booleans
    history: Integers

    @property
    def slowness(self) -> Floats:
        """I/O time, of the expected one; NaN without a history."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.io_s / self.expected_s

    @property
    def core_hours(self) -> Floats:
        """Of I/O time."""
        return self.cores * self.io_s / HOUR_S

    @property
    def lost(self) -> Floats:
        """Core-hours beyond the expected time; NaN without a history."""
        return self.cores * np.maximum(self.io_s - self.expected_s, 0.0) / HOUR_S


def run_losses(selection: StoreSelection, like: RunConditions) -> RunLosses:
    """Runs of the selection that are as `like` says."""
    owner = nw.coalesce(nw.col("user"), nw.col("uid").cast(nw.String)).alias("owner")
    frame = asked_runs(selection, like).with_columns(owner).select(*_NAMES, *_NUMBERS)
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    table = table.sort_by([("run_id", "ascending")])  # whichever engine
    numbers = {name: _numbers(table, name) for name in _NUMBERS}
    is_timed = numbers["rate_s"] >= 0
    timed = {name: values[is_timed] for name, values in numbers.items()}
    kept = table.filter(pa.array(is_timed))
    names = {name: kept.column(name).to_pylist() for name in _NAMES}
    cores = np.where(timed["cores"] > 0, timed["cores"], timed["processes"])
    return RunLosses(len(table), names, timed["rate_s"], cores, *_expected(names, timed))


def _expected(names: dict[str, list[str | None]], numbers: dict[str, Floats]) -> tuple[Floats, Booleans, Integers]:
    """I/O time of the best quarter of like runs, else what its bytes take at the best quarter's rate; the history."""
    io_s, rated = numbers["rate_s"], numbers["rate_bytes"]
    moved = numbers["read_bytes"] + numbers["write_bytes"]
    owners, programs = (codes(names[name]) for name in ("owner", "executable"))
    has_owner = (owners >= 0) & ~np.isnan(numbers["processes"])
    expected, history = np.full(len(io_s), np.nan), np.full(len(io_s), -1)
    is_whole = has_owner & ~np.isnan(numbers["files"] + moved)
    if is_whole.any():
        same = [owners[is_whole], *(_whole(numbers[name], is_whole) for name in ("processes", "files"))]
        groups = like_groups(same, [_whole(numbers[name], is_whole) for name in ("read_bytes", "write_bytes")])
        expected[is_whole], history[is_whole] = group_quantile(groups, io_s[is_whole], BEST), groups
    rates = np.full(len(io_s), np.nan)
    np.divide(rated, io_s, out=rates, where=(io_s > 0) & (rated > 0))
    is_open = has_owner & (programs >= 0) & ~np.isnan(rates)
    relaxed, wider = np.full(len(io_s), np.nan), np.full(len(io_s), -1)
    if is_open.any():
        groups = like_groups([owners[is_open], programs[is_open], _whole(numbers["processes"], is_open)], [])
        relaxed[is_open] = rated[is_open] / group_quantile(groups, rates[is_open], 1 - BEST)
        wider[is_open] = groups + len(io_s)  # numbers that no group of like runs has
    is_relaxed = np.isnan(expected) & ~np.isnan(relaxed)
    expected_s = np.where(is_relaxed, relaxed, expected)
    return expected_s, is_relaxed, np.where(np.isnan(expected_s), -1, np.where(is_relaxed, wider, history))


def group_quantile(groups: Integers, values: Floats, share: float) -> Floats:
    """For each place the quantile of its group, by linear interpolation; NaN of groups of fewer than five."""
    order = np.lexsort((values, groups))
    firsts = np.flatnonzero(np.append(True, groups[order][1:] != groups[order][:-1]))
    counts = np.diff(np.append(firsts, len(order)))
    at = (counts - 1) * share
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, counts - 1)
    ordered = values[order]
    levels = ordered[firsts + low] + (at - low) * (ordered[firsts + high] - ordered[firsts + low])
    result = np.empty(len(values))
    result[order] = np.repeat(np.where(counts >= FEWEST, levels, np.nan), counts)
    return result


def codes(names: Sequence[str | None]) -> Integers:
    """Equal names have equal numbers; −1 is not known."""
    places: dict[str | None, int] = {
        name: place for place, name in enumerate(sorted({n for n in names if n is not None}))
    }
    return np.array([places.get(name, -1) for name in names], np.int64)


def _whole(values: Floats, chosen: Booleans) -> Integers:
    whole: Integers = values[chosen].astype(np.int64)
    return whole


def _numbers(table: pa.Table, name: str) -> Floats:
    values: Any = table.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)
