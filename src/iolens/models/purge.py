"""Purging by age: what survives it, and the level a file system settles at (SPEC B10; paper P, section III).

Ages are in days. A policy deletes, every `every_days`, what was not used for more than `keep_days`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from iolens.arrays import Floats

LONGEST_DAYS: Final = 36_525  # cohorts kept: a century


class OpenAmount(NamedTuple):
    """An amount that bins leave open: at least, likely, at most."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class AgeDistribution:
    """Bytes by age: bin i holds what is older than `starts[i]` and at most `ends[i]` days.

    Bins ascend and do not overlap; the last may have no end (infinite).
    """

    starts: Floats
    ends: Floats
    bytes: Floats

    @property
    def total(self) -> float:
        """All bytes."""
        return float(self.bytes.sum())

    def younger(self, days: float) -> OpenAmount:
        """Bytes of at most that age. Within a bin they are likely spread evenly; in an open one none are."""
        whole = float(self.bytes[self.ends <= days].sum())
        cut = (self.starts < days) & (self.ends > days)
        inside = float(self.bytes[cut].sum())
        widths = self.ends[cut] - self.starts[cut]
        shares = np.where(np.isfinite(widths), (days - self.starts[cut]) / widths, 0.0)
        return OpenAmount(whole, whole + float(self.bytes[cut] @ shares), whole + inside)

    def by_day(self) -> Floats:
        """Bytes by whole days of age, spread evenly within a bin; what is in an open bin is as young as it can be."""
        closed = self.ends[np.isfinite(self.ends)]
        longest = max((float(start.max()) for start in (closed, self.starts) if start.size), default=0.0)
        days = np.arange(min(int(np.ceil(longest)), LONGEST_DAYS) + 1, dtype=np.float64)
        cumulative = np.array([self.younger(day).likely for day in days])
        cohorts = np.append(np.diff(cumulative), self.total - cumulative[-1])
        cohorts[0] += cumulative[0]  # what was used at this very time
        return cohorts


class Policy(NamedTuple):
    """Every `every_days`, delete what was not used for more than `keep_days`."""

    keep_days: int
    every_days: int


@dataclass(frozen=True, slots=True)
class PurgeCourse:
    """Usage at the end of each day, before a purge of that day and after; day zero is the start."""

    before: Floats
    after: Floats


def simulate(start_by_day: Floats, daily_bytes: float, policy: Policy, days: int) -> PurgeCourse:
    """Day by day: everything ages, `daily_bytes` are added, and on every `every_days`-th day the policy is applied.

    Growth is net of what users delete themselves, and nothing is used again: bytes leave by purges alone.
    """
    cohorts = np.zeros(max(start_by_day.size, policy.keep_days + policy.every_days) + days + 1)
    cohorts[: start_by_day.size] = start_by_day
    before, after = np.empty(days + 1), np.empty(days + 1)
    before[0] = after[0] = cohorts.sum()
    for day in range(1, days + 1):
        cohorts[1:] = cohorts[:-1].copy()
        cohorts[0] = daily_bytes
        before[day] = cohorts.sum()
        if day % policy.every_days == 0:
            cohorts[policy.keep_days :] = 0.0
        after[day] = cohorts.sum()
    return PurgeCourse(before, after)


def steady_peak(daily_bytes: float, policy: Policy) -> float:
    """Usage just before a purge, once all that was there at the start is gone."""
    return daily_bytes * (policy.keep_days + policy.every_days)


def steady_trough(daily_bytes: float, policy: Policy) -> float:
    """Usage just after one."""
    return daily_bytes * policy.keep_days
