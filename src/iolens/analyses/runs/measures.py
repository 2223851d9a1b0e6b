"""What is derived from one run: measures, rates, accesses by size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw

from iolens.analyses.results import pct
from iolens.run_tables import ACCESS_BINS, LAYERED, SHORT_S, RateMethod, access_column
from iolens.units import MIB

# The bytes and the I/O time behind MiB/s/CN of many runs, for the engine ----------------------------------------------
# What `run_tables.rate_of` says of one.

_MAY_LACK: Final[Mapping[str, Any]] = {
    "rate_bytes": nw.Int64, "rate_s": nw.Float64, "rate_method": nw.String, "rate_files_overlap": nw.Boolean,
    "modules": nw.String, "shared_files_overlap": nw.Boolean,
}  # fmt: skip
COLUMNS: Final = (*_MAY_LACK, "read_bytes", "write_bytes", "slowest_rank_s", "slowest_rank_method")
"""What a rate is made of; somebody's own frame may lack some of them."""


def with_rate(frame: Frame, method: RateMethod = "layers") -> Frame:
    """Runs with `rate_bytes`, `rate_s` and `rate_files_overlap` by the method, and `is_rate_lost`."""
    names = frame.collect_schema().names()
    absent = [nw.lit(None).cast(kind).alias(name) for name, kind in _MAY_LACK.items() if name not in names]
    frame = frame.with_columns(*absent) if absent else frame
    is_layered = nw.coalesce(nw.col("modules").str.contains(LAYERED), nw.lit(value=False))
    is_before = nw.col("rate_method").is_null()
    by_posix = nw.lit(value=True) if method == "paper" else is_before & ~is_layered
    given = {
        "rate_bytes": nw.col("read_bytes") + nw.col("write_bytes"),
        "rate_s": nw.col("slowest_rank_s"),
        "rate_files_overlap": nw.col("shared_files_overlap"),
    }
    filled = [nw.when(by_posix).then(value).otherwise(nw.col(name)).alias(name) for name, value in given.items()]
    return frame.with_columns(*filled, (is_before & ~by_posix).alias("is_rate_lost"))


def is_short() -> nw.Expr:
    """Runs whose rate is of so little I/O time that it says little."""
    return (nw.col("rate_s") > 0) & (nw.col("rate_s") < SHORT_S)


# What is derived from one run, as expressions for the engine ----------------------------------------------------------
# DEFINITIONS: MiB/s/CN, Project table.
#
# A quotient of something unknown, or by nothing, is NULL: never zero, never NaN.

Frame = nw.LazyFrame[Any]

MEASURES: Final = (
    "mib_per_s_per_node", "mib_per_s", "mib_per_s_posix", "io_time_pct", "slowest_rank_io_time_pct",
    "metadata_time_pct", "sequential_pct", "aligned_pct", "files_per_proc", "creates_per_proc", "mib_per_proc",
)  # fmt: skip


def with_measures(frame: Frame, method: RateMethod = "layers") -> Frame:
    """A joined frame with a column for each of `MEASURES`, and the bytes and time of the rate by the method."""
    frame = with_rate(frame, method)
    processes, ranks_s = _number("processes"), _number("processes") * nw.col("duration_s")
    moved_mib, io_s = moved_bytes().cast(nw.Float64) / float(MIB), _io_s()
    operations = _sum("posix_reads", "posix_writes").cast(nw.Float64)
    mib_per_s = _quotient(_number("rate_bytes") / float(MIB), nw.col("rate_s"))
    return frame.with_columns(
        _quotient(mib_per_s, _number("nodes")).alias("mib_per_s_per_node"),
        mib_per_s.alias("mib_per_s"),
        _quotient(moved_mib, nw.col("slowest_rank_s")).alias("mib_per_s_posix"),
        _pct(io_s, ranks_s).alias("io_time_pct"),
        _pct(nw.col("slowest_rank_s"), nw.col("duration_s")).alias("slowest_rank_io_time_pct"),
        _pct(nw.col("metadata_s"), io_s).alias("metadata_time_pct"),
        _pct(_sum("sequential_reads", "sequential_writes").cast(nw.Float64), operations).alias("sequential_pct"),
        _pct(operations - _number("misaligned_ops"), operations).alias("aligned_pct"),
        _quotient(_number("files"), processes).alias("files_per_proc"),
        _quotient(_number("new_files"), processes).alias("creates_per_proc"),
        _quotient(moved_mib, processes).alias("mib_per_proc"),
    )


def moved_bytes() -> nw.Expr:
    """Bytes read and written; NULL where either is not known."""
    return _sum("read_bytes", "write_bytes")


def _sum(first: str, second: str) -> nw.Expr:
    return nw.col(first) + nw.col(second)


def _io_s() -> nw.Expr:
    """Time in reads, writes and metadata operations, summed over ranks."""
    return nw.col("read_s") + nw.col("write_s") + nw.col("metadata_s")


def _number(name: str) -> nw.Expr:
    return nw.col(name).cast(nw.Float64)


def _quotient(above: nw.Expr, below: nw.Expr) -> nw.Expr:
    return nw.when(below > 0).then(above / below)


def _pct(part: nw.Expr, whole: nw.Expr) -> nw.Expr:
    return nw.lit(100.0) * _quotient(part, whole)


# Accesses by size, as Darshan's histograms of POSIX have them ---------------------------------------------------------
# DEFINITIONS: Patterns, interfaces, sizes.

DIRECTIONS: Final = ("read", "write")
ENDS: Final = (*ACCESS_BINS, None)
STARTS: Final = (0, *ACCESS_BINS)
ACCESS_COLUMNS: Final = tuple(access_column(direction, upper) for direction in DIRECTIONS for upper in ENDS)


@dataclass(frozen=True, slots=True)
class AccessBin:
    """Accesses of more than `from_bytes` and at most `to_bytes` (None: no upper end), and their share of all."""

    from_bytes: int
    to_bytes: int | None
    reads: int
    writes: int
    read_pct: float | None
    write_pct: float | None


def access_bins(counts: Mapping[str, Any]) -> list[AccessBin]:
    """Bins of a line with the sums of all `COLUMNS`."""
    wholes = {
        direction: sum(counts[access_column(direction, upper)] or 0 for upper in ENDS) for direction in DIRECTIONS
    }
    bins = []
    for lower, upper in zip(STARTS, ENDS, strict=True):
        reads, writes = (int(counts[access_column(direction, upper)] or 0) for direction in DIRECTIONS)
        bins.append(AccessBin(lower, upper, reads, writes, pct(reads, wholes["read"]), pct(writes, wholes["write"])))
    return bins


def summed(lines: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """All columns of several lines added up."""
    totals = dict.fromkeys(ACCESS_COLUMNS, 0)
    for line in lines:
        for name in ACCESS_COLUMNS:
            totals[name] += line[name] or 0
    return totals
