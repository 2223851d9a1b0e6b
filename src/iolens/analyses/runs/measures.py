"""What is derived from one run, as expressions for the engine (DEFINITIONS: MiB/s/CN, Project table).

A quotient of something unknown, or by nothing, is NULL: never zero, never NaN.
"""

from __future__ import annotations

from typing import Any, Final

import narwhals as nw

from iolens.analyses.runs.rate import with_rate
from iolens.run_tables import RateMethod
from iolens.units import MIB

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
