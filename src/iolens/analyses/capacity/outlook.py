"""Where usage is heading: lines through the readings, when they reach a threshold, and sudden changes (SPEC S9).

Unit-free, so that bytes and inodes are treated alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np

from iolens.analyses.capacity.readings import Readings
from iolens.arrays import Floats, Integers
from iolens.models.growth import LEAST_SHARE, LevelStep, UsualChange, events, usual_pace
from iolens.models.resampling import interval95
from iolens.models.trend import METHODS, Method, TrendLine, TrendLines, fit, resampled_lines
from iolens.units import DAY_US, from_epoch_us

HORIZONS_DAYS: Final = (30, 90, 180, 365)
FURTHEST_OF_WINDOW: Final = 2.0  # times the length of the readings: further ahead they say little
FURTHEST_DAYS: Final = 36_525.0  # a century: what lies beyond is no date to plan with

PROJECTED, REACHED = "projected", "reached"
NOT_GROWING, FAR_OFF, UNKNOWN = "not growing", "more than a century away", "unknown"
TOO_LITTLE: Final = "too little data"

Interval = tuple[float, float]
DateInterval = tuple[date | None, date | None]


@dataclass(frozen=True, slots=True)
class Expected:
    """Usage on a day to come, with the middle 95 % of resampled lines."""

    day: date
    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class ProjectedUsage:
    """One line through the readings and where usage goes with its slope."""

    method: Method
    line: TrendLine  # day zero is the last reading, and its level is what was read then
    slope_interval: Interval | None
    threshold_state: str
    threshold_date: date | None
    threshold_interval: DateInterval | None
    expected: list[Expected]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the readings say of the time to come, and what stood out in the past."""

    courses: list[ProjectedUsage]
    events: list[LevelStep]
    pace: UsualChange | None
    least_event: float

    def course(self, method: Method) -> ProjectedUsage | None:
        """The line by one method."""
        return next((course for course in self.courses if course.method == method), None)


def outlook(readings: Readings, threshold: float | None, *, forecasts: bool = True) -> Outlook:
    """`threshold` is the usage to look out for, in the unit of the readings; None where no capacity is known.

    Without `forecasts`, where there are too few readings for any, only what stood out in the past.
    """
    days = (readings.time_us - readings.time_us[-1]) / DAY_US if len(readings) else np.empty(0)
    values = readings.used.astype(np.float64)
    known = np.flatnonzero(readings.has_total)
    size = float(readings.total[known[-1]]) if len(known) else float(values.max(initial=0.0))
    least = LEAST_SHARE * size
    broken = np.diff(readings.target_set) != 0
    fitted = [(method, fit(method, days, values)) for method in METHODS] if forecasts else []
    return Outlook(
        [_course(readings, days, values, method, line, threshold) for method, line in fitted if line is not None],
        events(days, values, least, broken),
        usual_pace(days, values) if forecasts else None,
        least,
    )


def _course(
    readings: Readings, days: Floats, values: Floats, method: Method, line: TrendLine, threshold: float | None
) -> ProjectedUsage:
    lines = resampled_lines(method, days, values, line)
    if lines is not None:
        lines = TrendLines(lines.slopes, lines.levels + (float(values[-1]) - line.level))
    line = TrendLine(line.slope, float(values[-1]))
    state, when, between = _threshold(readings, values, line, lines, threshold)
    return ProjectedUsage(
        method=method,
        line=line,
        slope_interval=interval95(lines.slopes) if lines is not None else None,
        threshold_state=state,
        threshold_date=when,
        threshold_interval=between,
        expected=[_expected(readings, line, lines, float(ahead)) for ahead in _horizons(days)],
    )


def _horizons(days: Floats) -> list[int]:
    """Days ahead on which the readings may have a say."""
    return [ahead for ahead in HORIZONS_DAYS if ahead <= FURTHEST_OF_WINDOW * (days[-1] - days[0])]


def _expected(readings: Readings, line: TrendLine, lines: TrendLines | None, ahead: float) -> Expected:
    """The line some days ahead; nothing is emptier than empty."""
    if lines is None:
        return Expected(_day(readings, ahead), max(line.at(ahead), 0.0), None)
    return Expected(_day(readings, ahead), max(line.at(ahead), 0.0), interval95(np.maximum(lines.at(ahead), 0.0)))


def _threshold(
    readings: Readings, values: Floats, line: TrendLine, lines: TrendLines | None, threshold: float | None
) -> tuple[str, date | None, DateInterval | None]:
    """Whether and when the threshold is reached.

    Once usage is there: the first reading of the present stretch. Else from the last reading with the line's slope.
    """
    if threshold is None:
        return UNKNOWN, None, None
    if has_reached(values, threshold):
        below = np.flatnonzero(values < threshold)
        first = int(below[-1]) + 1 if len(below) else 0
        return REACHED, from_epoch_us(int(readings.time_us[first])).date(), None
    ahead = line.reaches(threshold) if line.slope > 0 else None
    if ahead is None:
        return NOT_GROWING, None, None
    state, when = (PROJECTED, _day(readings, ahead)) if ahead <= FURTHEST_DAYS else (FAR_OFF, None)
    return state, when, None if lines is None else _dates(readings, lines.reach(threshold))


def has_reached(used: Floats | Integers, threshold: float) -> bool:
    """Whether usage is there at the last reading."""
    return bool(used[-1] >= threshold)


def _dates(readings: Readings, ahead: Floats) -> DateInterval:
    """The middle 95 % of the days; None at an end where the line may never get there.

    What begins and ends within one day is a day wide.
    """
    low, high = np.percentile(ahead, (2.5, 97.5), method="nearest")
    early, late = (_day(readings, max(float(end), 0.0)) if end <= FURTHEST_DAYS else None for end in (low, high))
    return early, late + timedelta(days=1) if late is not None and late == early else late


def _day(readings: Readings, ahead_days: float) -> date:
    return (from_epoch_us(int(readings.time_us[-1])) + timedelta(days=ahead_days)).date()
