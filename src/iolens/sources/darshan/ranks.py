"""Rows of `run_ranks`, and which ranks of a run moved bytes: from records of their own, or from the heat map.

A record that all ranks share names the slowest and the fastest: where one of these moved all its bytes, it is known who
did. Else the heat map of that module says it, where the log has one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.sources.darshan.grouping import Whole, grouped, joined, spread, total_by
from iolens.sources.darshan.heat import HEATED, HeatmapBuffer
from iolens.sources.darshan.runs import ModuleRecords, Modules

_COUNTED: Final = ("POSIX", "STDIO", "DFS")
_PART: Final = np.dtype([
    ("log", "i8"), ("rank", "i8"), ("id", "i8"), ("read", "i8"), ("write", "i8"), ("opens", "i8"), ("own", "?"),
    ("heat", "?"), ("metadata_s", "f8"), ("read_s", "f8"), ("write_s", "f8"), ("first_s", "f8"), ("last_s", "f8"),
])  # fmt: skip


def rank_columns(modules: Modules, heat: HeatmapBuffer, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of `run_ranks` with the log of each row, and those of `runs` that are about ranks."""
    parts, is_hidden = [], np.zeros(count, bool)
    bins = heat.bins
    for name in _COUNTED:
        if name not in modules:
            continue
        hidden = _hides_ranks(modules[name], count)
        number = HEATED.index(name)
        heated = np.array([(log, number) in heat.known for log in range(count)], bool)
        use_heat = hidden & heated
        is_hidden |= hidden & ~heated
        parts.append(_own_parts(modules[name], use_heat))
        parts.append(_heat_parts(bins[(bins["module"] == number) & use_heat[bins["log"]]]))
        parts.append(_sole_parts(modules[name], ~hidden))
    rows = np.concatenate((np.zeros(0, _PART), *parts))
    ranks = _by_rank(rows)
    return ranks, _of_runs(ranks, is_hidden, count)


def _hides_ranks(module: ModuleRecords, count: int) -> NDArray[np.bool_]:
    """Logs in which a file shared by all ranks moved bytes through the module, and not all of them by one rank."""
    is_hidden = (module.rank < 0) & ~module.is_stream & (_sole_rank(module) < 0)
    return np.asarray(module.by_log.total(np.where(is_hidden, _moved(module), 0)) > 0)


def _moved(module: ModuleRecords) -> Whole:
    return np.maximum(module.columns["read_bytes"], 0) + np.maximum(module.columns["write_bytes"], 0)


def _sole_rank(module: ModuleRecords) -> Whole:
    """The rank that moved all bytes of a shared record: its slowest or fastest; −1 where neither did."""
    sole, moved = np.full(len(module.logs), -1), _moved(module)
    for which in ("fastest", "slowest"):
        rank, own = (module.columns[f"{which}_{name}"] for name in ("rank", "rank_bytes"))
        sole = np.where((module.rank < 0) & (moved > 0) & (own == moved), rank, sole)
    return sole


def _sole_parts(module: ModuleRecords, is_wanted: NDArray[np.bool_]) -> NDArray[np.void]:
    """Bytes of shared records that one rank moved, in those logs that hide no other rank."""
    sole = _sole_rank(module)
    rows = np.flatnonzero((sole >= 0) & ~module.is_stream & is_wanted[module.logs])
    parts = np.zeros(len(rows), _PART)
    parts["log"], parts["rank"], parts["first_s"], parts["last_s"] = module.logs[rows], sole[rows], np.nan, np.nan
    for direction in ("read", "write"):
        parts[direction] = np.maximum(module.columns[f"{direction}_bytes"][rows], 0)
    return parts


def _own_parts(module: ModuleRecords, use_heat: NDArray[np.bool_]) -> NDArray[np.void]:
    rows = np.flatnonzero((module.rank >= 0) & ~module.is_stream)
    columns = {column: values[rows] for column, values in module.columns.items()}
    parts = np.zeros(len(rows), _PART)
    parts["log"], parts["rank"], parts["id"], parts["own"] = (
        module.logs[rows], columns["rank"], columns["record_id"], True)  # fmt: skip
    counts = ~use_heat[parts["log"]]  # the heat map has the bytes of these records too
    for direction in ("read", "write"):
        parts[direction] = np.where(counts, np.maximum(columns[f"{direction}_bytes"], 0), 0)
    parts["opens"] = np.maximum(columns["opens"], 0)
    for column in ("metadata_s", "read_s", "write_s"):
        parts[column] = np.nan_to_num(columns[column])
    parts["first_s"] = np.fmin.reduce([columns[f"{what}_start_s"] for what in ("open", "read", "write")])
    parts["last_s"] = np.fmax.reduce([columns[f"{what}_end_s"] for what in ("close", "read", "write")])
    return parts


def _heat_parts(bins: NDArray[np.void]) -> NDArray[np.void]:
    parts = np.zeros(len(bins), _PART)
    for name in ("log", "rank", "read", "write"):
        parts[name] = bins[name]
    parts["heat"] = True
    parts["first_s"], parts["last_s"] = bins["bin"] * bins["bin_s"], (bins["bin"] + 1) * bins["bin_s"]
    return parts


def _by_rank(rows: NDArray[np.void]) -> dict[str, Any]:
    groups = grouped(rows["log"], rows["rank"])
    numbers = groups.number()
    own = rows["own"]
    files = grouped(numbers[own], rows["id"][own])
    first, last = groups.smallest(rows["first_s"]), groups.largest(rows["last_s"])
    return {
        "log": groups.first(rows["log"]),
        "rank": groups.first(rows["rank"]),
        "read_bytes": groups.total(rows["read"]),
        "write_bytes": groups.total(rows["write"]),
        "metadata_s": groups.total(rows["metadata_s"]),
        "read_s": groups.total(rows["read_s"]),
        "write_s": groups.total(rows["write_s"]),
        "opens": groups.total(rows["opens"]),
        "files": np.bincount(files.first(numbers[own]), minlength=len(groups)),
        "first_s": first,
        "last_s": last,
        "bytes_from": np.where(groups.largest(rows["heat"]) > 0, "heatmap", "records").astype(object).tolist(),
    }


def _of_runs(ranks: dict[str, Any], is_hidden: NDArray[np.bool_], count: int) -> dict[str, Any]:
    moved = ranks["read_bytes"] + ranks["write_bytes"]
    columns: dict[str, Any] = {}
    for what, busiest, values in (
        ("io_ranks", "busiest_rank", moved),
        ("write_ranks", "busiest_writer", ranks["write_bytes"]),
    ):
        columns[what] = np.where(is_hidden, -1, total_by(ranks["log"], values > 0, count))
        rank, most = _busiest(ranks["log"], ranks["rank"], values, count)
        columns[busiest] = np.where(is_hidden, -1, rank)
        columns[f"{busiest}_bytes"] = np.where(is_hidden, -1, most)
    return columns


def _busiest(logs: Whole, rank: Whole, values: Whole, count: int) -> tuple[Whole, Whole]:
    """The rank with most bytes in each log, and how many; −1 where none has any. Of equal ones the lowest."""
    rows = np.flatnonzero(values > 0)
    order = rows[np.lexsort((-rank[rows], values[rows], logs[rows]))]
    best = order[np.flatnonzero(np.diff(logs[order], append=-1))] if len(order) else joined([])
    return spread(logs[best], rank[best], count, -1), spread(logs[best], values[best], count, -1)
