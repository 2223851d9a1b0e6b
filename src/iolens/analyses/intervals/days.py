"""How much of each day was observed: one with less than 95 % of its samples is listed, and left out of means.

A row belongs to the day in which its interval starts. An interval that is longer than a target's others (samples were
missed in it) counts as one sample: its bytes are known, when they moved is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats, Integers
from iolens.units import DAY_US, from_epoch_us

DAY_S: Final = 86_400.0
FIRST_DAY: Final = date(1970, 1, 1)
QUARTER_S: Final = 900  # clocks change on quarter-hours: days of every zone are made of these
QUARTER_US: Final = QUARTER_S * 1_000_000
COMPLETE_PCT: Final = 95.0
OBSERVED: Final = ("bucket", "target", "tick_s", "rows", "duration_s")  # columns of days


def is_complete(covered_pct: float) -> bool:
    """Whether a day counts in means and medians."""
    return covered_pct >= COMPLETE_PCT


def day_of(number: int) -> date:
    """The date of a day counted from 1970."""
    return FIRST_DAY + timedelta(days=number)


def local_days(time_us: Integers, zone: str | None) -> Integers:
    """The calendar day of each time in a time zone (UTC without one), as days since 1970."""
    if is_utc(zone) or not len(time_us):
        return time_us // DAY_US
    there = ZoneInfo(zone or "UTC")
    quarters, where = np.unique(time_us // QUARTER_US, return_inverse=True)
    dates = [from_epoch_us(quarter * QUARTER_US).astimezone(there).date() for quarter in quarters.tolist()]
    return np.array([(day - FIRST_DAY).days for day in dates], dtype=np.int64)[where]


def day_seconds(days: Integers, zone: str | None) -> Floats:
    """How long each day lasts in a time zone: 23 or 25 hours where clocks change."""
    if is_utc(zone):
        return np.full(len(days), DAY_S)
    there = ZoneInfo(zone or "UTC")
    starts, ends = (
        [datetime.combine(day_of(day), time(), there).timestamp() for day in numbers.tolist()]
        for numbers in (days, days + 1)
    )
    return np.subtract(ends, starts, dtype=np.float64)


def is_utc(zone: str | None) -> bool:
    """Whether days are those of the store."""
    return zone is None or zone == "UTC"


def joined(*extents_us: tuple[int, int] | None) -> tuple[int, int] | None:
    """From the first start to the last end; None where there is nothing."""
    known = [extent for extent in extents_us if extent is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def tick_length() -> nw.Expr:
    """Seconds of a row by its ticks, as `tick_s`."""
    return ((nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64) / nw.lit(1e6, nw.Float64)).alias("tick_s")


def covered_pct(parts: Sequence[Mapping[str, NDArray[Any]]], zone: str | None = None) -> dict[int, float]:
    """By day: samples taken ÷ samples expected, from rows and seconds by target, day (`bucket`) and length of a row.

    A sample is as long as the median row of its target and day. A target is expected from its first to its last day.
    Days are numbers of `local_days`.
    """
    if not parts:
        return {}
    day, target, tick_s, rows, seconds = (np.concatenate([part[name] for part in parts]) for name in OBSERVED)
    days, of_day = np.unique(day, return_inverse=True)
    code = {name: number for number, name in enumerate(dict.fromkeys(target.tolist()))}
    number = np.fromiter((code[name] for name in target), np.int64, len(target))
    order = np.lexsort((tick_s, number, of_day))
    pairs, pair = np.unique((of_day * len(code) + number)[order], return_inverse=True)
    sampled = np.minimum(
        np.bincount(pair, seconds[order]), np.bincount(pair, rows[order]) * _medians(tick_s[order], rows[order], pair)
    )
    seconds_of, place = day_seconds(days, zone), pairs // len(code)
    covered = np.bincount(place, np.minimum(sampled, seconds_of[place]), len(days))
    shares = 100.0 * covered / (seconds_of * _expected(days, day, target.tolist()))
    return dict(zip(days.tolist(), np.minimum(shares, 100.0).tolist(), strict=True))


def _medians(values: NDArray[Any], weights: NDArray[Any], group: NDArray[Any]) -> Floats:
    """Of each group the first value that half of its weight has reached; values rise within a group."""
    total = np.bincount(group, weights)
    before = np.concatenate([[0.0], np.cumsum(total)[:-1]])
    reached = np.flatnonzero(2 * (np.cumsum(weights) - before[group]) >= total[group])
    _, first = np.unique(group[reached], return_index=True)
    medians: Floats = values[reached[first]]
    return medians


def _expected(days: Integers, buckets: Integers, targets: Sequence[str]) -> Integers:
    """How many targets there were on each day."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for day, target in zip(buckets.tolist(), targets, strict=True):
        first[target] = min(day, first.get(target, day))
        last[target] = max(day, last.get(target, day))
    begins, ends = np.sort(list(first.values())), np.sort(list(last.values()))
    return np.asarray(np.searchsorted(begins, days, "right") - np.searchsorted(ends, days, "left"))
