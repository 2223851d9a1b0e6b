"""How a file system grows: bytes on a day without a purge, sudden changes of its level, and what purging by age
leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats, Integers
from iolens.units import DAY_US

# Daily growth of a file system (P2, DEFINITIONS "Growth") -------------------------------------------------------------
# How many bytes it gains on a day on which it gains any.
#
# Two methods: `paper`, change of the mean OST fullness times the capacity; `strict`, change of the bytes used between
# complete readings on neighbouring calendar days, per exact day. Days of net reduction are undefined in both.

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


# Sudden changes in a slowly moving level ------------------------------------------------------------------------------
# Where it fell or rose far beyond its usual pace (S9, Fig. 14 of paper S).
#
# The rule. The usual pace is the median change per day between neighbouring readings, its spread 1.4826 times the
# median absolute deviation. Neighbouring changes on the same side of the usual pace are a run, trimmed at both ends of
# changes within two spreads of it (or within half of the run's largest, if that is less). A run is an event when what
# it adds up to beyond the usual pace exceeds `SPREADS` spreads times the square root of its changes (as independent
# changes would), and when the level itself moved by at least `least`.

SPREADS: Final = 4.0
TRIM_SPREADS: Final = 2.0
LEAST_SHARE: Final = 0.01  # of the capacity: what counts as an event at all
MAD_TO_SIGMA: Final = 1.4826  # makes the median absolute deviation a standard deviation where values are normal
LEAST_CHANGES: Final = 3  # fewer have no usual pace

Kind = Literal["purge", "surge"]


class LevelStep(NamedTuple):
    """The level went from reading `first` to reading `last` by `change`."""

    kind: Kind
    first: int
    last: int
    change: float


class UsualChange(NamedTuple):
    """Usual change per day, and its spread."""

    median: float
    spread: float


def usual_pace(days: Floats, values: Floats) -> UsualChange | None:
    """Median and robust spread of the changes per day; None with fewer than `LEAST_CHANGES` changes."""
    if days.size <= LEAST_CHANGES:
        return None
    rates = np.diff(values) / np.diff(days)
    median = float(np.median(rates))
    return UsualChange(median, MAD_TO_SIGMA * float(np.median(np.abs(rates - median))))


def events(days: Floats, values: Floats, least: float, broken: NDArray[np.bool_] | None = None) -> list[LevelStep]:
    """All events in time order.

    `days` ascend strictly. `broken[i]` says that the change from reading i to i + 1 means nothing, since what is
    measured was another then; no run goes across it.
    """
    pace = usual_pace(days, values)
    if pace is None:
        return []
    apart = np.diff(days)
    beyond = np.diff(values) - pace.median * apart
    spread = pace.spread * apart
    sides = np.sign(beyond).astype(np.int64)
    if broken is not None:
        sides[broken] = 0
    level_steps = (_event(values, beyond, spread, *run, least) for run in _runs(sides))
    return [event for event in level_steps if event is not None]


def _runs(sides: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last place of every run of equal sides; zeros are in none."""
    begins = np.flatnonzero(np.diff(sides, prepend=0) != 0)
    for place, begin in enumerate(begins):
        end = int(begins[place + 1]) - 1 if place + 1 < len(begins) else len(sides) - 1
        if sides[begin]:
            yield int(begin), end


def _event(values: Floats, beyond: Floats, spread: Floats, begin: int, end: int, least: float) -> LevelStep | None:
    off = np.abs(beyond[begin : end + 1])
    large = np.flatnonzero(off > np.minimum(TRIM_SPREADS * spread[begin : end + 1], 0.5 * off.max()))
    first, last = begin + int(large[0]), begin + int(large[-1])
    excess = float(beyond[first : last + 1].sum())
    noise = SPREADS * float(np.sqrt((spread[first : last + 1] ** 2).sum()))
    change = float(values[last + 1] - values[first])
    if abs(excess) <= noise or abs(change) < least or change * excess <= 0:
        return None
    return LevelStep("purge" if change < 0 else "surge", first, last + 1, change)


# Purging by age -------------------------------------------------------------------------------------------------------
# What survives it, and the level a file system settles at (SPEC B10; paper P, section III).
#
# Ages are in days. A policy deletes, every `every_days`, what was not used for more than `keep_days`.

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
