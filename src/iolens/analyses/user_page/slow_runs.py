"""Which runs of a user may have been slow: below the first quartile of the same program on as many processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from iolens.run_tables import rate_of

FEWEST: Final = 6  # a run and five to compare it with

Row = Mapping[str, Any]


def slow_candidates(rows: Sequence[Row], most: int) -> list[Row]:
    """Those with most I/O time first; `rows` have bytes and the I/O time of the slowest rank."""
    groups: dict[tuple[Any, Any], list[tuple[float, Row]]] = {}
    for row in rows:
        if (rate := rate_of(row).mib_per_s) is not None:
            groups.setdefault((row["executable"], row["processes"]), []).append((rate, row))
    slow = [row for members in groups.values() for row in _slow(members)]
    return sorted(slow, key=lambda row: -(rate_of(row).seconds or 0.0) * (row["processes"] or 1))[:most]


def _slow(members: Sequence[tuple[float, Row]]) -> list[Row]:
    if len(members) < FEWEST:
        return []
    quartile = float(np.percentile([rate for rate, _ in members], 25))
    return [row for rate, row in members if rate < quartile]
