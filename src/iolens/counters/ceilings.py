"""What a target could move at most in an interval, and how long that may be at most.

More is a broken counter, not traffic: it is refused. Configured per file system (`target_ceiling`,
`target_ops_ceiling`), else far above what any interface moves. What moved in a longer time (`longest_interval`) has no
place in time: it is reported, and in no interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from iolens.config import FileSystemConfig
from iolens.schema import LARGEST, SUM_KINDS

BYTES_PER_S: Final = 10**12
OPERATIONS_PER_S: Final = 10**9
WAITING: Final = 10**6  # requests of one target that wait at the same time, for summed waiting times
TARGETS_IN_SUM: Final = 1000  # a row of `SUM_KINDS` adds up at most about so many
_SUMMED: Final = ("_us", ":us", "total")  # what the names of summed times and queue lengths end with
SHORTEST_S: Final = 1.0  # over less, jitter of the clock would decide
LONGEST_S: Final = 86_400.0  # between two samples of a store


@dataclass(frozen=True)
class RateCeiling:
    """Per second, for one target or one sum over targets."""

    bytes_per_s: int = BYTES_PER_S
    operations_per_s: int = OPERATIONS_PER_S
    wait_us_per_s: int = WAITING * 1_000_000
    longest_s: float = math.inf

    def per_second(self, counter: str) -> int:
        """The ceiling of a counter, by the unit its name carries."""
        if counter.endswith("_bytes"):
            return self.bytes_per_s
        return self.wait_us_per_s if counter.endswith(_SUMMED) else self.operations_per_s

    def over(self, counter: str, seconds: float) -> int:
        """The most that a counter can move in so many seconds."""
        return min(int(self.per_second(counter) * max(seconds, SHORTEST_S)), LARGEST)

    def exceeded(self, moved: Mapping[str, int], seconds: float) -> dict[str, int]:
        """Those of the counters that moved more than could be."""
        if not moved or max(moved.values()) <= self.smallest:
            return {}
        least = self.smallest
        return {name: value for name, value in moved.items() if value > least and value > self.over(name, seconds)}

    @cached_property
    def smallest(self) -> int:
        """A movement up to this can be, whatever the counter and however short the time."""
        return min(self.bytes_per_s, self.operations_per_s, self.wait_us_per_s)

    def shown(self, counter: str) -> str:
        """The ceiling of a counter, as a message names it."""
        units = {"_bytes": "bytes/s", "_us": "µs/s", ":us": "µs/s", "total": "in sum/s"}
        unit = next((unit for end, unit in units.items() if counter.endswith(end)), "operations/s")
        return f"{self.per_second(counter):,} {unit}"

    @cached_property
    def of_sums(self) -> RateCeiling:
        """The ceiling of what adds up many targets."""
        limits = (self.bytes_per_s, self.operations_per_s, self.wait_us_per_s)
        moved_bytes, operations, wait_us = (min(limit * TARGETS_IN_SUM, LARGEST) for limit in limits)
        return RateCeiling(moved_bytes, operations, wait_us, self.longest_s)


DEFAULT: Final = RateCeiling()


@dataclass(frozen=True)
class RateCeilings:
    """The ceilings of every file system."""

    configured: Mapping[str, RateCeiling] = field(default_factory=dict)
    default: RateCeiling = RateCeiling(longest_s=LONGEST_S)

    @classmethod
    def of_config(cls, filesystems: Mapping[str, FileSystemConfig]) -> RateCeilings:
        """Those the configuration names."""
        return cls(
            {
                name: RateCeiling(
                    int(config.target_ceiling_bytes_per_s or BYTES_PER_S),
                    math.ceil(config.target_ceiling_ops_per_s or OPERATIONS_PER_S),
                    longest_s=config.longest_interval_s or LONGEST_S,
                )
                for name, config in filesystems.items()
            }
        )

    def of(self, filesystem: object, target_kind: object) -> RateCeiling:
        """The ceiling of one row or sample."""
        ceiling = self.configured.get(str(filesystem), self.default)
        return ceiling.of_sums if target_kind in SUM_KINDS else ceiling

    @cached_property
    def smallest(self) -> int:
        """A movement up to this can be, whatever the row."""
        return min(ceiling.smallest for ceiling in (self.default, *self.configured.values()))


NO_CEILINGS: Final = RateCeilings(default=RateCeiling(LARGEST, LARGEST, LARGEST))
