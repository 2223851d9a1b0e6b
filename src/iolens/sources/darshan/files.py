"""Counters of Darshan's modules as columns of `run_files`: whole columns for all records of many logs at once.

In these arrays a whole number that is not known is −1 and a time that is not known is NaN; `nullable` makes NULLs
of them where they leave for the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import NullableArray
from iolens.run_tables import ACCESS_BINS, access_column
from iolens.sources.darshan.log import RecordLayout

Columns = dict[str, NDArray[Any]]

_BINS: Final = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")
_OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "read_bytes": ("BYTES_READ",),
    "write_bytes": ("BYTES_WRITTEN",),
    "opens": ("OPENS",),
    "reads": ("READS",),
    "writes": ("WRITES",),
    "seeks": ("SEEKS",),
    "stats": ("STATS",),
    "syncs": ("SYNCS",),
    "sequential_reads": ("SEQ_READS",),
    "sequential_writes": ("SEQ_WRITES",),
    "consecutive_reads": ("CONSEC_READS",),
    "consecutive_writes": ("CONSEC_WRITES",),
    "read_write_switches": ("RW_SWITCHES",),
    "misaligned_ops": ("FILE_NOT_ALIGNED",),
    "alignment_bytes": ("FILE_ALIGNMENT",),
    "hints": ("HINTS",),
}
"""Columns and the counters, without their module's prefix, that add up to each."""
_OF_MODULE: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "POSIX": {"syncs": ("FSYNCS", "FDSYNCS")},
    "STDIO": {"syncs": ("FLUSHES",)},
    "H5F": {"syncs": ("FLUSHES",)},
    "H5D": {"syncs": ("FLUSHES",)},
    "MPI-IO": {
        "opens": ("INDEP_OPENS", "COLL_OPENS"),
        "reads": ("INDEP_READS", "NB_READS", "COLL_READS", "SPLIT_READS"),
        "writes": ("INDEP_WRITES", "NB_WRITES", "COLL_WRITES", "SPLIT_WRITES"),
        "independent_opens": ("INDEP_OPENS",),
        "independent_reads": ("INDEP_READS", "NB_READS"),
        "independent_writes": ("INDEP_WRITES", "NB_WRITES"),
        "collective_opens": ("COLL_OPENS",),
        "collective_reads": ("COLL_READS", "SPLIT_READS"),
        "collective_writes": ("COLL_WRITES", "SPLIT_WRITES"),
    },
    "PNETCDF_FILE": {"opens": ("OPENS", "CREATES")},
    "PNETCDF_VAR": {
        "reads": ("INDEP_READS", "COLL_READS", "NB_READS"),
        "writes": ("INDEP_WRITES", "COLL_WRITES", "NB_WRITES"),
    },
    "DFS": {
        "opens": ("OPENS", "GLOBAL_OPENS"),
        "reads": ("READS", "READXS"),
        "writes": ("WRITES", "WRITEXS"),
    },
    "DAOS": {
        "opens": ("OBJ_OPENS", "ARRAY_OPENS", "KV_OPENS"),
        "reads": ("OBJ_FETCHES", "ARRAY_READS", "KV_GETS"),
        "writes": ("OBJ_UPDATES", "ARRAY_WRITES", "KV_PUTS"),
        "stats": ("ARRAY_STATS",),
    },
}
_DURATIONS: Final = {"read_s": "READ_TIME", "write_s": "WRITE_TIME", "metadata_s": "META_TIME"}
_TIMESTAMPS: Final = {
    f"{what}_{end}_s": f"{what.upper()}_{end.upper()}_TIMESTAMP"
    for what in ("open", "read", "write", "close")
    for end in ("start", "end")
}


def file_columns(layout: RecordLayout, records: NDArray[np.void], processes: NDArray[np.int64]) -> Columns:
    """Columns of all records of a module; `processes` of the run each record is of."""
    rank = records["rank"]
    is_shared = rank < 0
    columns: Columns = {
        "record_id": records["id"].view(np.int64),
        "rank": np.where(is_shared, -1, rank),
        "ranks": np.where(is_shared, processes, 1),
    }
    for name, parts in {**_OPERATIONS, **_OF_MODULE.get(layout.module, {})}.items():
        _set(columns, name, _sum_known([layout.counter(records, part) for part in parts]))
    for name, time in _DURATIONS.items():
        _set(columns, name, _known_times(layout.time(records, time), zero_is_known=True))
    for name, time in _TIMESTAMPS.items():
        _set(columns, name, _known_times(layout.time(records, time), zero_is_known=False))
    for direction in ("read", "write"):
        _set(columns, f"longest_{direction}_s", _known_times(
            layout.time(records, f"MAX_{direction.upper()}_TIME"), zero_is_known=False))  # fmt: skip
    _add_histograms(columns, layout, records)
    _add_extents(columns, layout, records)
    _add_rank_extremes(columns, layout, records, is_shared)
    if "file_id" in (records.dtype.names or ()):
        columns["file_record_id"] = records["file_id"].view(np.int64)
    return columns


def _set(columns: Columns, name: str, values: NDArray[Any] | None) -> None:
    if values is not None:
        columns[name] = values


def _sum_known(parts: list[NDArray[np.int64] | None]) -> NDArray[np.int64] | None:
    """Sum of those counters that are known; −1 where none is."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) == 1:
        return np.maximum(present[0], -1)
    is_unknown = np.all([part < 0 for part in present], axis=0)
    total: NDArray[np.int64] = np.sum([np.maximum(part, 0) for part in present], axis=0, dtype=np.int64)
    return np.where(is_unknown, -1, total)


def _known_times(values: NDArray[np.float64] | None, *, zero_is_known: bool) -> NDArray[np.float64] | None:
    if values is None:
        return None
    is_known = (values >= 0) if zero_is_known else (values > 0)
    return np.where(is_known & np.isfinite(values), values, np.nan)


def _add_histograms(columns: Columns, layout: RecordLayout, records: NDArray[np.void]) -> None:
    for direction in ("read", "write"):
        for name, upper in zip(_BINS, (*ACCESS_BINS, None), strict=True):
            for spelled in ("SIZE_{}_{}", "SIZE_{}_AGG_{}"):
                values = layout.counter(records, spelled.format(direction.upper(), name))
                if values is not None:
                    columns[access_column(direction, upper)] = np.maximum(values, -1)
    for name, counter in (("access", "ACCESS"), ("stride", "STRIDE")):
        for place in range(1, 5):
            _add_frequent(columns, f"{name}{place}", layout, records, f"{counter}{place}", counter)


def _add_frequent(
    columns: Columns, name: str, layout: RecordLayout, records: NDArray[np.void], counter: str, what: str
) -> None:
    """One of the four most frequent sizes or gaps, and how often it occurred."""
    size, count = (layout.counter(records, f"{counter}_{part}") for part in (what, "COUNT"))
    if size is not None and count is not None:
        is_known = (count > 0) & (size >= 0)
        columns[f"{name}_bytes"] = np.where(is_known, size, -1)
        columns[f"{name}_count"] = np.where(is_known, count, -1)


def _add_extents(columns: Columns, layout: RecordLayout, records: NDArray[np.void]) -> None:
    highest_read, highest_written = (layout.counter(records, f"MAX_BYTE_{name}") for name in ("READ", "WRITTEN"))
    if highest_read is None or highest_written is None:
        return
    read = np.where((columns["read_bytes"] > 0) & (highest_read >= 0), highest_read + 1, -1)
    written = np.where((columns["write_bytes"] > 0) & (highest_written >= 0), highest_written + 1, -1)
    columns["extent_bytes"], columns["written_extent_bytes"] = np.maximum(read, written), written


def _add_rank_extremes(
    columns: Columns, layout: RecordLayout, records: NDArray[np.void], is_shared: NDArray[np.bool_]
) -> None:
    """Fastest and slowest rank, of records that all ranks share; others have zeros there."""
    for which in ("fastest", "slowest"):
        time = layout.time(records, f"{which.upper()}_RANK_TIME")
        if time is None:
            continue
        is_known = is_shared & (time > 0) & np.isfinite(time)
        columns[f"{which}_rank_s"] = np.where(is_known, time, np.nan)
        for name in ("rank", "rank_bytes"):
            values = layout.counter(records, f"{which}_{name}".upper())
            if values is not None:
                columns[f"{which}_{name}"] = np.where(is_known, np.maximum(values, -1), -1)


def nullable(values: NDArray[Any], least: int = 0) -> NDArray[Any] | NullableArray:
    """The values with NULL for those that are not known; times are left as they are, NaN is NULL there."""
    return values if values.dtype.kind == "f" else NullableArray(values, values < least)
