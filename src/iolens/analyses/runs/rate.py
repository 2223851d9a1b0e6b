"""The bytes and the I/O time behind MiB/s/CN of many runs, for the engine: what `run_tables.rate_of` says of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import narwhals as nw

from iolens.run_tables import LAYERED, SHORT_S, RateMethod

Frame = nw.LazyFrame[Any]
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
