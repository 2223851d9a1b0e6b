"""Accesses by size, as Darshan's histograms of POSIX have them (DEFINITIONS: Patterns, interfaces, sizes)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from iolens.analyses.quotients import pct
from iolens.run_tables import ACCESS_BINS, access_column

DIRECTIONS: Final = ("read", "write")
ENDS: Final = (*ACCESS_BINS, None)
STARTS: Final = (0, *ACCESS_BINS)
COLUMNS: Final = tuple(access_column(direction, upper) for direction in DIRECTIONS for upper in ENDS)


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
    totals = dict.fromkeys(COLUMNS, 0)
    for line in lines:
        for name in COLUMNS:
            totals[name] += line[name] or 0
    return totals
