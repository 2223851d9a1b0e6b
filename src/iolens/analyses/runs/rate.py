"""How fast a run was: the bytes and the I/O time behind MiB/s/CN (DEFINITIONS), for the engine and for single rows.

A row that was loaded before `runs` had `rate_bytes` says the same by POSIX and STDIO, if the run used nothing else;
otherwise its rate is not known. The method `paper` is POSIX and STDIO (and DFS beside them) alone, whatever is above.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import narwhals as nw

from iolens.units import MIB

Frame = nw.LazyFrame[Any]
Method = Literal["layers", "paper"]

METHODS: Final[tuple[Method, ...]] = ("layers", "paper")
SHORT_S: Final = 0.1  # a rate of less I/O time says little
_LAYERED: Final = "MPI-IO|DFS|DAOS"  # modules beside which POSIX and STDIO do not tell the rate
_MAY_LACK: Final[Mapping[str, Any]] = {
    "rate_bytes": nw.Int64, "rate_s": nw.Float64, "rate_method": nw.String, "rate_files_overlap": nw.Boolean,
    "modules": nw.String, "shared_files_overlap": nw.Boolean,
}  # fmt: skip
COLUMNS: Final = (*_MAY_LACK, "read_bytes", "write_bytes", "slowest_rank_s", "slowest_rank_method")
"""What a rate is made of; somebody's own frame may lack some of them."""


@dataclass(frozen=True, slots=True)
class RunRate:
    """Bytes and I/O time of the slowest rank; None: not known. `overlap`: the time is too long, the rate too low."""

    bytes: int | None
    seconds: float | None
    method: str | None
    overlap: bool | None

    @property
    def mib_per_s(self) -> float | None:
        """Of all nodes together."""
        return self.bytes / MIB / self.seconds if self.bytes is not None and self.seconds else None

    @property
    def is_short(self) -> bool:
        """Whether there was so little I/O time that the rate says little."""
        return self.seconds is not None and 0 < self.seconds < SHORT_S


def rate_of(run: Mapping[str, Any], method: Method = "layers") -> RunRate:
    """Of a row of `runs`."""
    if method == "paper" or (run.get("rate_method") is None and not is_lost(run)):
        parts = run["read_bytes"], run["write_bytes"]
        moved = None if None in parts else sum(parts)
        return RunRate(moved, run["slowest_rank_s"], run.get("slowest_rank_method"), run.get("shared_files_overlap"))
    return RunRate(*(run.get(name) for name in ("rate_bytes", "rate_s", "rate_method", "rate_files_overlap")))


def is_lost(run: Mapping[str, Any]) -> bool:
    """Whether the rate is not known since the run was loaded before its times at MPI-IO or DFS were kept."""
    return run.get("rate_method") is None and bool(re.search(_LAYERED, run.get("modules") or ""))


def with_rate(frame: Frame, method: Method = "layers") -> Frame:
    """Runs with `rate_bytes`, `rate_s` and `rate_files_overlap` by the method, and `is_rate_lost` (`is_lost`)."""
    names = frame.collect_schema().names()
    absent = [nw.lit(None).cast(kind).alias(name) for name, kind in _MAY_LACK.items() if name not in names]
    frame = frame.with_columns(*absent) if absent else frame
    is_layered = nw.coalesce(nw.col("modules").str.contains(_LAYERED), nw.lit(value=False))
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
