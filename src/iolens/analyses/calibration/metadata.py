"""Which mdtest results say what metadata operations cost: those of the file system, or the ones asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolens.errors import UsageError
from iolens.models.metadata_time import (
    BenchmarkRate,
    MetadataCalibration,
    metadata_calibration,
    phase_name,
    unsaturated,
)

TOOL: Final = "mdtest"
NONE: Final = "none"
NOT_CALIBRATED: Final = (
    "no mdtest result is stored for {filesystem}, so there is no metadata utilization: ingest one"
    " (`iolens ingest mdtest FILE`), or name one with --calibration mdtest:NAME"
)


def find_metadata_calibration(
    stored: Sequence[Mapping[str, Any]], wanted: str | None, filesystem: str
) -> tuple[MetadataCalibration | None, tuple[str, ...]]:
    """The calibration from stored benchmark runs, and what the reader must know about it.

    `wanted`: `mdtest` (or nothing) for all results of the file system, `mdtest:NAME` for those of one run or of another
    file system, `none` for no calibration.
    """
    if wanted == NONE:
        return None, ()
    tool, _, name = (wanted or TOOL).partition(":")
    if tool != TOOL:
        raise UsageError(f"no metadata calibration is called {wanted!r}; write mdtest, mdtest:NAME or none")
    rows = [row for row in stored if row["tool"] == TOOL]
    mine = [
        row for row in rows if (name in (row["run_id"], row["filesystem"]) if name else row["filesystem"] == filesystem)
    ]
    if not mine:
        if wanted is None:
            return None, (NOT_CALIBRATED.format(filesystem=filesystem),)
        raise UsageError(f"no mdtest result is stored for {name or filesystem!r}; there are: {_names(rows)}")
    rates = [rate for row in mine if (rate := _rate(row)) is not None]
    try:
        calibration = metadata_calibration(f"{TOOL}:{name or filesystem}", rates)
    except ValueError as error:
        raise UsageError(f"{name or filesystem}: {error}") from None
    rising = unsaturated(rates)
    if not rising:
        return calibration, ()
    faster = f"with more tasks mdtest still became faster at {', '.join(rising)}"
    return calibration, (f"{faster}: the server was not saturated, and metadata utilization is overstated",)


def _rate(row: Mapping[str, Any]) -> BenchmarkRate | None:
    """Of a complete result; by the printed rate where operations are unknown (stopped by time, or a summary)."""
    if row.get("complete") is False or not row["direction"]:
        return None
    phase = phase_name(row["direction"])
    if row["operations"] and row["duration_s"]:
        return BenchmarkRate(phase, row["operations"], row["duration_s"], row["tasks"])
    printed = row.get("reported_ops_per_s")
    return BenchmarkRate(phase, printed, 1.0, row["tasks"]) if printed else None


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    names = {str(row[key]) for row in rows for key in ("filesystem", "run_id") if row[key] is not None}
    return ", ".join(sorted(names)) or "none"
