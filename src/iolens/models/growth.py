"""Daily growth of a file system (P2, DEFINITIONS "Growth"): how many bytes it gains on a day on which it gains any.

Two methods: `paper`, change of the mean OST fullness times the capacity; `strict`, change of the bytes used between
complete readings on neighbouring calendar days, per exact day. Days of net reduction are undefined in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats, Integers
from iolens.units import DAY_US

Method = Literal["paper", "strict"]
METHODS: Final[tuple[Method, ...]] = ("paper", "strict")

KEPT, SHRANK, GAP, CHANGED = "kept", "shrank", "gap", "targets changed"  # what became of a change


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes from one reading to the next, each under the place of the later one."""

    places: Integers
    bytes_per_day: Floats  # NaN where it is undefined: a gap, other targets
    fates: tuple[str, ...]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which of them are growth."""
        return np.array([fate == KEPT for fate in self.fates], dtype=np.bool_)

    def count(self, fate: str) -> int:
        """How many met that fate."""
        return self.fates.count(fate)


def paper_changes(fullness_pct: Floats, capacity_bytes: float) -> Changes:
    """Change of the mean fullness from reading to reading times the capacity, as it stands; kept if not negative."""
    change = np.diff(fullness_pct) / 100.0 * capacity_bytes
    fates = tuple(KEPT if item >= 0 else SHRANK for item in change)
    return Changes(np.arange(1, fullness_pct.size), change, fates)


def strict_changes(time_us: Integers, used_bytes: Integers, days: Integers, target_set: Integers) -> Changes:
    """Change of the bytes used between readings on neighbouring calendar `days` with the same targets, per exact day.

    One reading a day, all of them complete; kept if positive.
    """
    exact_days = np.diff(time_us) / DAY_US
    growth = np.diff(used_bytes).astype(np.float64) / exact_days
    fates = tuple(
        GAP if apart != 1 else CHANGED if moved else KEPT if gain > 0 else SHRANK
        for apart, moved, gain in zip(np.diff(days), np.diff(target_set), growth, strict=True)
    )
    defined = np.array([fate in (KEPT, SHRANK) for fate in fates], dtype=np.bool_)
    return Changes(np.arange(1, time_us.size), np.where(defined, growth, np.nan), fates)
