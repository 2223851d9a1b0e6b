"""How full a file system was, reading by reading, and where that is heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.models.growth import LEAST_SHARE, LevelStep, UsualChange, events, usual_pace
from iolens.models.resampling import interval95
from iolens.models.trend import METHODS, Method, TrendLine, TrendLines, fit, resampled_lines
from iolens.schema import DATA_KINDS
from iolens.store.selection import Selection
from iolens.units import DAY_US, MIB, from_epoch_us
from iolens.visible_text import counted

# How full a file system was, reading by reading -----------------------------------------------------------------------
# The sum over its targets, where all of them answered.
#
# The rule. A target is expected from its first to its last reading, and at the ends of the window also when it is
# silent there for a day at most. A reading is complete when every expected target is in it. Bytes are those of the data
# targets (OSTs; else LUNs, controllers, devices), inodes those of the MDTs where there are any. Rows that already are a
# sum over a file system serve on days without readings of single targets. Where targets are read at times of their own,
# a reading is the last of each target in a day (in an hour, when the window is short).
#
# Fewer than `LEAST_DAYS` days of readings, or than `LEAST_READINGS`, give no date, growth per day or size (DEFINITIONS
# "Forecasts"): `too_little` decides, for capacity, growth, plans and alerts.

TABLE: Final = "target_capacity"
WHOLE: Final = ("filesystem",)  # sums over a server are no part of what is known of the whole
HOUR_US: Final = 3_600_000_000
DAYS_TO_THIN_DAILY: Final = 10
HOURS_TO_THIN_HOURLY: Final = 10
DAILY_SPACING_US: Final = DAY_US // 2  # readings this far apart come about daily, and are taken as they come
LEAST_COMPLETE: Final = 0.5  # share of readings: with fewer, targets are read at times of their own
LEAST_DAYS: Final = 7
LEAST_READINGS: Final = 20
_JITTER_DAYS: Final = 0.01  # by which the time between readings may vary

Unit = Literal["bytes", "inodes"]
Step = Literal["as read", "hourly", "daily"]
UNITS: Final[tuple[Unit, ...]] = ("bytes", "inodes")
_WHAT: Final = ("used", "total")


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings in time order; columns of equal length."""

    time_us: Integers
    used: Integers
    total: Integers
    has_total: Booleans
    mean_pct: Floats  # unweighted mean fullness over targets; NaN where no total is known
    min_pct: Floats
    max_pct: Floats
    targets: Integers  # that answered
    complete: Booleans
    target_set: Integers  # readings with the same number have the same expected targets

    def __len__(self) -> int:
        return len(self.time_us)

    def at(self, places: Integers | Booleans) -> Readings:
        """Only the readings at those places."""
        return Readings(*(getattr(self, column.name)[places] for column in fields(self)))

    @property
    def spacing_us(self) -> float:
        """The usual time between two readings; 0 with fewer than two."""
        return float(np.median(np.diff(self.time_us))) if len(self) > 1 else 0.0

    @property
    def come_daily(self) -> bool:
        """Whether they come about once a day or more rarely."""
        return len(self) > 1 and self.spacing_us >= DAILY_SPACING_US

    def last_of_each(self, numbers: Integers) -> Readings:
        """The last reading of each day or hour, a complete one where there is any; `numbers` are the readings' own."""
        chosen: dict[int, int] = {}
        for place, number in enumerate(numbers.tolist()):
            before = chosen.get(number)
            if before is None or self.complete[place] or not self.complete[before]:
                chosen[number] = place
        return self.at(np.array(sorted(chosen.values()), dtype=np.int64))

    def thinned(self) -> tuple[Readings, Step]:
        """What a trend is drawn through: the last of each UTC day or hour where readings come more often."""
        if len(self) < 2 or self.come_daily:
            return self, "as read"
        span_us = int(self.time_us[-1] - self.time_us[0])
        if span_us >= DAYS_TO_THIN_DAILY * DAY_US:
            return self.last_of_each(self.time_us // DAY_US), "daily"
        if span_us >= HOURS_TO_THIN_HOURLY * HOUR_US and self.spacing_us <= HOUR_US / 2:
            return self.last_of_each(self.time_us // HOUR_US), "hourly"
        return self, "as read"


def too_little(readings: Readings) -> str | None:
    """Why these readings allow no forecast: `too little data: 1 day of 7`; None where they do.

    A day counts from the first reading on, if a reading is in it and time has passed for it.
    """
    days = _days(readings)
    if days < LEAST_DAYS:
        return f"too little data: {counted(days, 'day')} of {LEAST_DAYS}"
    if len(readings) < LEAST_READINGS:
        return f"too little data: {counted(len(readings), 'reading')} of {LEAST_READINGS}"
    return None


def _days(readings: Readings) -> int:
    """Days of readings; each of them stands for the time until the next one."""
    if not len(readings):
        return 0
    since_us = readings.time_us - readings.time_us[0]
    passed = (float(since_us[-1]) + readings.spacing_us) / DAY_US + _JITTER_DAYS
    return min(int(passed), len(np.unique(since_us // DAY_US)))


@dataclass(frozen=True, slots=True)
class Usage:
    """All readings of one file system in bytes or inodes, and what they are."""

    unit: Unit
    kinds: tuple[str, ...]
    readings: Readings
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CapacityRows:
    """The rows of a selection, summed by time and by target; ask it for usage in one unit or the other."""

    frame: nw.LazyFrame[Any]
    times: Columns
    targets: Columns

    def usage(self, unit: Unit) -> Usage:
        """The readings in one of the units it was gathered for."""
        return _usage(self.frame, unit, self.times, self.targets)

    def latest(self) -> list[dict[str, Any]]:
        """The last row of each target, by name."""
        columns = ["target", "target_kind", "epoch_us", *(f"{what}_{unit}" for unit in UNITS for what in _WHAT)]
        last = dict(zip(self.targets["target"], self.targets["newest"].tolist(), strict=True))
        rows = self.frame.filter(nw.col("epoch_us").is_in(sorted(set(last.values())))).select(*columns)
        result = rows.collect(backend="pyarrow").to_native().to_pylist() if last else []
        return sorted(
            (row for row in result if row["epoch_us"] == last[row["target"]]), key=lambda row: str(row["target"])
        )


def gather(selection: Selection, *units: Unit) -> CapacityRows:
    """What there is to know of how full the targets of a selection were."""
    frame = _with_all_columns(selection.frame(TABLE), UNITS)
    return CapacityRows(frame, _arrays(_per_time(frame, units)), _arrays(_per_target(frame, units)))


def _usage(frame: nw.LazyFrame[Any], unit: Unit, times: Columns, targets: Columns) -> Usage:
    there = set(times["target_kind"][times[f"{unit}_answered"] > 0])
    wanted = ("mdt", *DATA_KINDS) if unit == "inodes" else DATA_KINDS
    kinds = next(((kind,) for kind in wanted if kind in there), ())
    extents = _extents(targets, unit, kinds)
    readings, notes = _readings(times, unit, kinds, extents, 1), []
    if len(readings) and readings.complete.mean() < LEAST_COMPLETE:
        width, word = (DAY_US, "day") if _span_us(readings) >= DAYS_TO_THIN_DAILY * DAY_US else (HOUR_US, "hour")
        again = _arrays(_per_time(_last_of_each_bucket(frame, unit, width), (unit,), width))
        readings = _readings(again, unit, kinds, extents, width)
        notes.append(f"targets are read at times of their own: a reading is the last of each target in its {word}")
    merged, left_out = _merged(readings, _readings(times, unit, WHOLE, extents, 1))
    if left_out:
        notes.append(f"{left_out} sums over the whole file system are left out: its targets tell those days")
    return Usage(unit, kinds or WHOLE, merged, tuple(notes))


def _span_us(readings: Readings) -> int:
    return int(readings.time_us[-1] - readings.time_us[0])


def _extents(targets: Columns, unit: Unit, kinds: Sequence[str]) -> tuple[Integers, Integers]:
    """First and last reading of every target of those kinds that reported its usage at all."""
    mine = np.isin(targets["target_kind"].astype(str), kinds) & (targets[f"{unit}_answered"] > 0)
    return targets[f"{unit}_first"][mine], targets[f"{unit}_last"][mine]


def _readings(
    times: Columns, unit: Unit, kinds: Sequence[str], extents: tuple[Integers, Integers], bucket_us: int
) -> Readings:
    """Readings from the sums over targets of those kinds, in time order."""
    mine = np.isin(times["target_kind"].astype(str), kinds) & (times[f"{unit}_answered"] > 0)
    columns = {name.removeprefix(f"{unit}_"): values[mine] for name, values in times.items()}
    order = np.argsort(columns["last_us"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    time_us = columns["last_us"]
    is_sum = tuple(kinds) == WHOLE
    counts = columns["added_up"] if is_sum else columns["answered"]
    if not len(time_us):
        expected = target_set = counts
    elif is_sum:
        expected, target_set = _expected_count(time_us, counts)
    else:
        keys, firsts, lasts = ((extent - 1) // bucket_us for extent in (time_us, *extents))
        expected, target_set = _expected_targets(keys, firsts, lasts, DAY_US // bucket_us)
    return Readings(
        time_us=time_us,
        used=columns["used"],
        total=columns["total"],
        has_total=columns["totals"] == columns["answered"],
        mean_pct=columns["mean_pct"],
        min_pct=columns["min_pct"],
        max_pct=columns["max_pct"],
        targets=counts,
        complete=counts == expected,
        target_set=target_set,
    )


def _grace(keys: Integers, a_day: int) -> int:
    """How long a target may be silent at an end of the window and still be expected there."""
    return max(a_day, round(1.5 * float(np.median(np.diff(keys)))) if len(keys) > 1 else 0)


def _expected_targets(keys: Integers, firsts: Integers, lasts: Integers, a_day: int) -> tuple[Integers, Integers]:
    """How many targets are expected in each reading, and which set of them it is."""
    start, end = int(keys[0]), int(keys[-1])
    grace = _grace(keys, a_day)
    first = np.sort(np.where(firsts <= start + grace, start, firsts))
    last = np.sort(np.where(lasts >= end - grace, end, lasts))
    come, gone = np.searchsorted(first, keys, "right"), np.searchsorted(last, keys, "left")
    return come - gone, come + gone


def _expected_count(time_us: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """The same where only numbers of targets are known: as many as were seen both before and after."""
    grace = _grace(time_us, DAY_US)
    before, after = np.maximum.accumulate(counts), np.maximum.accumulate(counts[::-1])[::-1]
    begins = np.searchsorted(time_us, time_us[0] + grace, "right") - 1
    ends = np.searchsorted(time_us, time_us[-1] - grace, "left")
    places = np.arange(len(counts))
    expected = np.minimum(before[np.maximum(places, begins)], after[np.minimum(places, ends)])
    return expected, -1 - expected


def _merged(parts: Readings, sums: Readings) -> tuple[Readings, int]:
    """Readings of single targets, and sums on the other days; how many sums were not needed."""
    if not len(sums) or not len(parts):
        return (parts if len(parts) else sums), 0
    needed = ~np.isin(sums.time_us // DAY_US, parts.time_us // DAY_US)
    both = [parts, sums.at(needed)]
    columns = (np.concatenate([getattr(readings, column.name) for readings in both]) for column in fields(Readings))
    merged = Readings(*columns)
    return merged.at(np.argsort(merged.time_us, kind="stable")), int((~needed).sum())


def _with_all_columns(frame: nw.LazyFrame[Any], units: Sequence[Unit]) -> nw.LazyFrame[Any]:
    """The frame with NULL in columns that it lacks: a frame of the user's, or a table of an older iolens."""
    needed = ("targets", *(f"{what}_{unit}" for unit in units for what in _WHAT))
    known = frame.collect_schema().names()
    lacking = [nw.lit(None, nw.Int64).alias(name) for name in needed if name not in known]
    return frame.with_columns(*lacking) if lacking else frame


def _per_time(frame: nw.LazyFrame[Any], units: Sequence[Unit], bucket_us: int = 1) -> nw.LazyFrame[Any]:
    """Sums over the targets of each kind at each time or in each bucket."""
    time = nw.col("epoch_us")
    key = ((time - 1) // bucket_us).alias("bucket")
    return (
        frame.with_columns(key, *(_share(unit) for unit in units))
        .group_by("bucket", "target_kind")
        .agg(
            time.max().alias("last_us"),
            nw.col("targets").max().alias("added_up"),
            *(column for unit in units for column in _sums(unit)),
        )
        .drop("bucket")
    )


def _share(unit: Unit) -> nw.Expr:
    used, total = _real(f"used_{unit}"), _real(f"total_{unit}")
    return nw.when(nw.col(f"total_{unit}") > 0).then(nw.lit(100.0, nw.Float64) * used / total).alias(f"pct_{unit}")


def _real(name: str) -> nw.Expr:
    """An integer as the nearest double, in two halves: Arrow refuses to cast what a double cannot hold exactly."""
    high, low = (nw.col(name) // MIB).cast(nw.Float64), (nw.col(name) % MIB).cast(nw.Float64)
    return high * nw.lit(float(MIB), nw.Float64) + low


def _sums(unit: Unit) -> tuple[nw.Expr, ...]:
    used, total, share = (nw.col(f"{what}_{unit}") for what in ("used", "total", "pct"))
    return (
        used.count().alias(f"{unit}_answered"),
        used.sum().alias(f"{unit}_used"),
        total.sum().alias(f"{unit}_total"),
        share.count().alias(f"{unit}_totals"),
        share.mean().alias(f"{unit}_mean_pct"),
        share.min().alias(f"{unit}_min_pct"),
        share.max().alias(f"{unit}_max_pct"),
    )


def _per_target(frame: nw.LazyFrame[Any], units: Sequence[Unit]) -> nw.LazyFrame[Any]:
    """First and last reading of each target."""
    reported = (
        nw.when(~nw.col(f"used_{unit}").is_null()).then(nw.col("epoch_us")).alias(f"reported_{unit}") for unit in units
    )
    ends = (nw.col("epoch_us").max().alias("newest"), *(column for unit in units for column in _ends(unit)))
    return frame.with_columns(*reported).group_by("target", "target_kind").agg(*ends)


def _ends(unit: Unit) -> tuple[nw.Expr, ...]:
    reported = nw.col(f"reported_{unit}")
    return (
        reported.count().alias(f"{unit}_answered"),
        reported.min().alias(f"{unit}_first"),
        reported.max().alias(f"{unit}_last"),
    )


def _last_of_each_bucket(frame: nw.LazyFrame[Any], unit: Unit, bucket_us: int) -> nw.LazyFrame[Any]:
    """The last reading of each target in each bucket."""
    keyed = frame.filter(~nw.col(f"used_{unit}").is_null())
    keyed = keyed.with_columns(((nw.col("epoch_us") - 1) // bucket_us).alias("its_bucket"))
    newest = keyed.group_by("target", "its_bucket").agg(nw.col("epoch_us").max())
    return keyed.join(newest, on=["target", "its_bucket", "epoch_us"], how="inner")


_TEXTS: Final = ("target", "target_kind")


def _arrays(frame: nw.LazyFrame[Any]) -> Columns:
    """NumPy columns: integers exact, 0 for NULL; percentages NaN for NULL."""
    table = frame.collect(backend="pyarrow").to_native()
    columns: Columns = {}
    for name in table.column_names:
        column = table.column(name)
        if name in _TEXTS:
            columns[name] = np.array(column.to_pylist(), dtype=object)
        elif name.endswith("_pct"):
            columns[name] = column.cast("float64").to_numpy()
        else:
            columns[name] = column.cast("int64").fill_null(0).to_numpy()
    return columns


# Where usage is heading -----------------------------------------------------------------------------------------------
# Lines through the readings, when they reach a threshold, and sudden changes (SPEC S9).
#
# Unit-free, so that bytes and inodes are treated alike.

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
