"""The rhythm of a week without a change in what is drawn from: hours differ, all of them together do not.

Every hour of the week shifts the normal scores that values are drawn by. The mixture of the shifted scores over the
window has a distribution function of its own, and it is through that one that scores become shares: so the marginal is
kept exactly, and the mean of every hour is what its factor says.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from iolens.arrays import Floats, Integers
from iolens.models.workload_model import Marginal
from iolens.units import from_epoch_us

QUARTER_US: Final = 900_000_000  # every zone's hours are made of these
HOURS: Final = 168
EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_WEEKDAY: Final = date(1970, 1, 1).weekday()
REACH: Final = 9.0  # scores beyond this do not occur
FURTHEST: Final = 3.0  # a shift; an hour whose factor is out of the marginal's reach comes as near as this
STEP: Final = 0.005
ROUNDS: Final = 200
TOLERANCE: Final = 1e-5  # of a shift
GRID: Final = np.arange(-2 * REACH, 2 * REACH + STEP / 2, STEP)  # scores with their shifts


def local_hours(end_us: Integers, timezone: str) -> Integers:
    """For every tick, by its end, the number of the local hour: 24 × days since 1970 + hour of the day."""
    zone = ZoneInfo(timezone)
    quarters, where = np.unique((end_us - 1) // QUARTER_US, return_inverse=True)
    local = [from_epoch_us(quarter * QUARTER_US).astimezone(zone) for quarter in quarters.tolist()]
    hours = np.array([(time.toordinal() - EPOCH) * 24 + time.hour for time in local], np.int64)
    values: Integers = hours[where]
    return values


def hour_of_week(local_hour: Integers) -> Integers:
    """0 is Monday's first."""
    return (local_hour // 24 + FIRST_WEEKDAY) % 7 * 24 + local_hour % 24


def factors_of_week(hours: Sequence[float], days: Sequence[float]) -> Floats:
    """One factor for every hour of the week."""
    return np.outer(days, hours).reshape(-1).astype(np.float64)


def normal_cdf(score: Floats) -> Floats:
    """The share of a normal distribution below, to full precision in both tails."""
    from scipy.special import ndtr

    values: Floats = ndtr(score)
    return values


def mixture_cdf(shifts: Floats, weights: Floats) -> Floats:
    """On the grid, the distribution function of scores that are shifted so with these weights."""
    distinct, where = np.unique(np.round(shifts, 9), return_inverse=True)
    share = np.bincount(where, weights=weights) / weights.sum()
    return sum(
        (part * normal_cdf(GRID - item) for item, part in zip(distinct, share, strict=True)), np.zeros(GRID.size)
    )


def mixture_survival(shifts: Floats, weights: Floats) -> Floats:
    """One less the distribution function, without loss in the upper tail."""
    return mixture_cdf(-shifts, weights)[::-1]


def week_shifts(marginal: Marginal, factors: Floats, weights: Floats) -> Floats:
    """For every hour of the week the shift that gives it its factor times the mean.

    `weights` say how much of the window each hour is; factors are taken relative to their mean over the window.
    """
    present = weights > 0
    usual = float(factors[present] @ weights[present] / weights.sum())
    wanted = np.where(present & (usual > 0), factors / max(usual, 1e-300), 1.0)
    shifts = np.zeros(factors.size)
    if np.ptp(wanted[present]) == 0.0:
        return shifts
    mean = marginal.mean()
    trial = np.arange(-2 * FURTHEST, 2 * FURTHEST + 1e-9, 0.02)
    kernel = np.exp(-0.5 * np.arange(-REACH, REACH + STEP / 2, STEP) ** 2)
    kernel /= kernel.sum()
    inner = GRID[kernel.size // 2 : GRID.size - kernel.size // 2]
    for _ in range(ROUNDS):
        values = marginal.quantile(mixture_cdf(shifts[present], weights[present]))
        means = np.interp(trial, inner, np.convolve(values, kernel, mode="valid"))
        result = np.interp(wanted * mean, means, trial)
        result -= float(result[present] @ weights[present] / weights.sum())  # only differences matter
        before, shifts = shifts, np.where(present, np.clip(result, -FURTHEST, FURTHEST), 0.0)
        if np.abs(shifts - before).max() < TOLERANCE:
            break
    return shifts
