"""Measures of a comparison as people read them, and what changed in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iolens.analyses.runs.compare import RunComparison

MEASURES: Final[Mapping[str, tuple[str, float, str]]] = {
    "mib_per_s_per_node": ("Rate per node, MiB/s", 1.0, ",.2f"),
    "mib_per_s": ("Rate, MiB/s", 1.0, ",.1f"),
    "runtime_s": ("Run time, s", 1.0, ",.4g"),
    "rate_s": ("I/O time of the slowest rank, s", 1.0, ",.4g"),
    "slowest_rank_s": ("The same by POSIX and STDIO alone, s", 1.0, ",.4g"),
    "io_time_pct": ("Time in I/O, %", 1.0, ",.3g"),
    "metadata_time_pct": ("of it metadata, %", 1.0, ",.3g"),
    "read_s": ("Time in reads, all ranks, s", 1.0, ",.4g"),
    "write_s": ("Time in writes, all ranks, s", 1.0, ",.4g"),
    "metadata_s": ("Time in metadata, all ranks, s", 1.0, ",.4g"),
    "io_core_hours": ("Core-hours in I/O", 1.0, ",.3g"),
    "read_bytes": ("Read, GB", 1e9, ",.4g"),
    "write_bytes": ("Written, GB", 1e9, ",.4g"),
    "nprocs": ("Processes", 1.0, ",.0f"),
    "nodes": ("Nodes", 1.0, ",.0f"),
    "files": ("Files", 1.0, ",.0f"),
    "files_per_process": ("Files per process", 1.0, ",.3g"),
    "opens": ("Opens", 1.0, ",.0f"),
    "mean_read_bytes": ("Mean read, KiB", 1024.0, ",.4g"),
    "mean_write_bytes": ("Mean write, KiB", 1024.0, ",.4g"),
    "sequential_pct": ("Sequential accesses, %", 1.0, ",.3g"),
    "aligned_pct": ("Aligned accesses, %", 1.0, ",.3g"),
}
"""What a measure is called, what it is divided by, and how it is shown."""


WORK: Final[Mapping[bool | None, str]] = {
    True: "the amount of data is the same",
    False: "the amount of data is not the same",
    None: "whether the amount of data is the same is not known",
}


def factor_text(factor: float) -> str:
    """Three digits, without powers of ten."""
    return f"{factor:,.0f}" if abs(factor) >= 100 else f"{factor:.3g}" if abs(factor) >= 0.001 else f"{factor:.1g}"


def verdict(result: RunComparison) -> str:
    """How much faster or slower the I/O is; by the rate where the two sides did not do the same work."""
    rate = next(line.factor for line in result.measures if line.name == "mib_per_s")
    if result.same_work and result.io_time_factor:
        pace = _pace(result.io_time_factor, "equally fast", "times faster", "times slower")
        return f"The I/O of the slowest rank is {pace} after, for the same amount of data."
    if rate:
        pace = _pace(rate, "the same", "times as high", "of what it was", "1/")
        return f"The rate of the I/O is {pace} after; {WORK[result.same_work]}."
    return "Times of the slowest rank are not known of both sides: no factor."


def _pace(factor: float, same: str, more: str, less: str, part: str = "") -> str:
    shown = factor_text(max(factor, 1 / factor))
    if shown == "1":
        return same
    return f"{shown} {more}" if factor > 1 else f"{part}{shown} {less}"
