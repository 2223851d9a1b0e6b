"""Usage of a file system over time, where it is heading, and purges and surges on the way (SPEC S9, Fig. 14 of S)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import numpy as np

from iolens.analyses import Analysis
from iolens.analyses.capacity.readings import (
    FURTHEST_OF_WINDOW,
    PROJECTED,
    REACHED,
    TOO_LITTLE,
    UNKNOWN,
    DateInterval,
    Interval,
    Outlook,
    ProjectedUsage,
    Readings,
    Step,
    Usage,
    gather,
    has_reached,
    outlook,
    too_little,
)
from iolens.analyses.intervals.coverage import notes_on_sources
from iolens.analyses.results import not_in_json, pct
from iolens.arrays import Floats, Integers
from iolens.errors import UsageError
from iolens.models.growth import LevelStep
from iolens.models.trend import LEAST_FOR_INTERVAL, METHODS, Method, is_exact
from iolens.store.selection import Selection
from iolens.units import from_epoch_us

THRESHOLD_PCT: Final = 90.0
SUM_KIND: Final = "filesystem"


@dataclass(frozen=True, slots=True)
class UsedBytes:
    """Bytes used at a time."""

    time: datetime
    bytes: int


@dataclass(frozen=True, slots=True)
class ByteEvent:
    """A sudden change: usage went by `bytes` (negative: fell) between two readings."""

    kind: str
    start: datetime
    end: datetime
    bytes: int


@dataclass(frozen=True, slots=True)
class ExpectedBytes:
    """Usage to expect on a day; the ends hold 95 % of the resampled lines."""

    date: date
    bytes: float
    low_bytes: float | None
    high_bytes: float | None


@dataclass(frozen=True, slots=True)
class ByteProjection:
    """One line through the readings."""

    method: Method
    slope_bytes_per_day: float
    slope_ci95: Interval | None
    threshold_state: str
    threshold_date: date | None
    threshold_ci95: DateInterval | None
    expected: list[ExpectedBytes]


@dataclass(frozen=True, slots=True)
class UsedInodes:
    """Inodes used at a time."""

    time: datetime
    inodes: int


@dataclass(frozen=True, slots=True)
class InodeEvent:
    """A sudden change of the number of inodes."""

    kind: str
    start: datetime
    end: datetime
    inodes: int


@dataclass(frozen=True, slots=True)
class InodeUsage:
    """The same for inodes: those of the MDTs, where there are any."""

    target_kinds: list[str]
    used: list[UsedInodes]
    total_inodes: int | None
    used_inodes: int | None
    fullness_pct: float | None
    slope_inodes_per_day: float | None
    slope_ci95: Interval | None
    threshold_state: str
    threshold_date: date | None
    threshold_ci95: DateInterval | None
    events: list[InodeEvent]
    readings: int
    incomplete_readings: int
    too_little_data: str | None
    outlook: Outlook | None = not_in_json()


@dataclass(frozen=True, slots=True)
class TargetFullness:
    """One target at its last reading."""

    target: str
    target_kind: str | None
    time: datetime
    total_bytes: int | None
    used_bytes: int | None
    fullness_pct: float | None
    total_inodes: int | None
    used_inodes: int | None
    inodes_pct: float | None


@dataclass(frozen=True, slots=True)
class FullnessSpread:
    """How evenly the data targets are filled, at their last readings."""

    targets: int
    mean_pct: float
    min_pct: float
    median_pct: float
    max_pct: float
    stddev_pct: float | None
    emptiest: str
    fullest: str
    above_threshold: list[str]


@dataclass(frozen=True, slots=True)
class TargetChange:
    """From one reading to the next, other targets were expected."""

    time: datetime
    targets_before: int
    targets_after: int


@dataclass(frozen=True, slots=True)
class FullnessSeries:
    """Fullness of the emptiest, the mean and the fullest target over time, in per cent: for figures."""

    time_us: Integers
    min_pct: Floats
    mean_pct: Floats
    max_pct: Floats


@dataclass(frozen=True, slots=True)
class Capacity:
    """All of SPEC S9 for one file system and window. The headline follows `method`; both lines are in `projections`.

    `too_little_data` says why there is no forecast: dates, growth per day and lines are null then.
    """

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    samples: int
    readings: int
    incomplete_readings: int
    step: Step
    target_kinds: list[str]
    used: list[UsedBytes]
    capacity_bytes: int | None
    used_bytes: int | None
    fullness_pct: float | None
    threshold_pct: float
    threshold_bytes: int | None
    method: Method
    slope_bytes_per_day: float | None
    slope_ci95: Interval | None
    threshold_state: str
    threshold_date: date | None
    threshold_ci95: DateInterval | None
    projections: list[ByteProjection]
    events: list[ByteEvent]
    usual_bytes_per_day: float | None
    usual_spread_bytes_per_day: float | None
    least_event_bytes: float
    target_changes: list[TargetChange]
    fullness: FullnessSpread | None
    per_target: list[TargetFullness]
    inodes: InodeUsage | None
    sources: list[str]
    overlapping_rows: int
    too_little_data: str | None
    warnings: list[str]
    notes: list[str]
    fullness_series: FullnessSeries | None = not_in_json()
    outlook: Outlook | None = not_in_json()


def capacity(selection: Selection, *, threshold_pct: float = THRESHOLD_PCT, method: Method = "linear") -> Capacity:
    """Usage, projection and events of one file system over a window."""
    if not 0 < threshold_pct <= 100:
        raise UsageError(f"a threshold is between 0 and 100 %, not {threshold_pct:g}")
    if method not in METHODS:
        raise UsageError(f"no method is called {method!r}; there are: {', '.join(METHODS)}")
    rows = gather(selection, "bytes", "inodes")
    usage, inodes = rows.usage("bytes"), rows.usage("inodes")
    whole = usage.readings.at(usage.readings.complete)
    thinned, step = whole.thinned()
    total, threshold = _size(thinned, threshold_pct)
    lacking = too_little(whole)
    result = outlook(thinned, threshold, forecasts=lacking is None)
    per_target = [_target(row) for row in rows.latest()]
    course = result.course(method)
    inode_usage = _inodes(inodes, threshold_pct, method)
    start, end = selection.window
    time_us = usage.readings.time_us
    return Capacity(
        filesystem=selection.filesystem,
        window_start=start or (from_epoch_us(int(time_us[0])) if len(time_us) else None),
        window_end=end or (from_epoch_us(int(time_us[-1])) if len(time_us) else None),
        samples=len(whole),
        readings=len(usage.readings),
        incomplete_readings=len(usage.readings) - len(whole),
        step=step,
        target_kinds=list(usage.kinds),
        used=[UsedBytes(from_epoch_us(at), used) for at, used in _pairs(thinned)],
        capacity_bytes=total,
        used_bytes=int(thinned.used[-1]) if len(thinned) else None,
        fullness_pct=pct(int(thinned.used[-1]), total) if len(thinned) else None,
        threshold_pct=threshold_pct,
        threshold_bytes=None if threshold is None else round(threshold),
        method=method,
        slope_bytes_per_day=course.line.slope if course else None,
        slope_ci95=course.slope_interval if course else None,
        threshold_state=course.threshold_state if course else _state(thinned, threshold),
        threshold_date=course.threshold_date if course else None,
        threshold_ci95=course.threshold_interval if course else None,
        projections=[_projection(course) for course in result.courses],
        events=[ByteEvent(event.kind, *_times(thinned, event), _exact(thinned, event)) for event in result.events],
        usual_bytes_per_day=result.pace.median if result.pace else None,
        usual_spread_bytes_per_day=result.pace.spread if result.pace else None,
        least_event_bytes=result.least_event,
        target_changes=_changes(thinned),
        fullness=_spread(per_target, usage.kinds, threshold_pct),
        per_target=per_target,
        inodes=inode_usage,
        sources=selection.sources("target_capacity"),
        overlapping_rows=selection.overlapping_rows,
        too_little_data=lacking if len(usage.readings) else None,
        warnings=_warnings(lacking if len(usage.readings) else None, thinned, course, inode_usage),
        notes=[
            *_notes(usage, inodes, whole, thinned),
            *_without_interval(thinned, course),
            *notes_on_sources(selection, ["target_capacity"]),
        ],
        fullness_series=FullnessSeries(thinned.time_us, thinned.min_pct, thinned.mean_pct, thinned.max_pct),
        outlook=result,
    )


def _size(readings: Readings, threshold_pct: float) -> tuple[int | None, float | None]:
    """Capacity at the last reading that tells one, and the usage the threshold means."""
    known = np.flatnonzero(readings.has_total)
    if not len(known):
        return None, None
    total = int(readings.total[known[-1]])
    return total, total * threshold_pct / 100.0


def _pairs(readings: Readings) -> list[tuple[int, int]]:
    return list(zip(readings.time_us.tolist(), readings.used.tolist(), strict=True))


def _times(readings: Readings, event: LevelStep) -> tuple[datetime, datetime]:
    start, end = (from_epoch_us(int(readings.time_us[place])) for place in (event.first, event.last))
    return start, end


def _exact(readings: Readings, event: LevelStep) -> int:
    return int(readings.used[event.last]) - int(readings.used[event.first])


def _projection(course: ProjectedUsage) -> ByteProjection:
    expected = [
        ExpectedBytes(
            expected.day, expected.value, *(expected.interval if expected.interval is not None else (None, None))
        )
        for expected in course.expected
    ]
    return ByteProjection(
        course.method,
        course.line.slope,
        course.slope_interval,
        course.threshold_state,
        course.threshold_date,
        course.threshold_interval,
        expected,
    )


def _changes(readings: Readings) -> list[TargetChange]:
    places = np.flatnonzero(np.diff(readings.target_set))
    return [
        TargetChange(
            from_epoch_us(int(readings.time_us[place + 1])),
            int(readings.targets[place]),
            int(readings.targets[place + 1]),
        )
        for place in places
    ]


def _target(row: dict[str, Any]) -> TargetFullness:
    return TargetFullness(
        row["target"],
        row["target_kind"],
        from_epoch_us(int(row["epoch_us"])),
        row["total_bytes"],
        row["used_bytes"],
        pct(row["used_bytes"], row["total_bytes"]),
        row["total_inodes"],
        row["used_inodes"],
        pct(row["used_inodes"], row["total_inodes"]),
    )


def _spread(per_target: list[TargetFullness], kinds: tuple[str, ...], threshold_pct: float) -> FullnessSpread | None:
    known = [
        (fullness.fullness_pct, fullness.target)
        for fullness in per_target
        if fullness.target_kind in kinds and fullness.target_kind != SUM_KIND and fullness.fullness_pct is not None
    ]
    if not known:
        return None
    shares = np.array([share for share, _ in known])
    return FullnessSpread(
        targets=len(known),
        mean_pct=float(shares.mean()),
        min_pct=float(shares.min()),
        median_pct=float(np.median(shares)),
        max_pct=float(shares.max()),
        stddev_pct=float(shares.std(ddof=1)) if len(known) > 1 else None,
        emptiest=min(known)[1],
        fullest=max(known)[1],
        above_threshold=[target for share, target in known if share >= threshold_pct],
    )


def _inodes(usage: Usage, threshold_pct: float, method: Method) -> InodeUsage | None:
    whole = usage.readings.at(usage.readings.complete)
    if not len(whole):
        return None
    thinned, _ = whole.thinned()
    total, threshold = _size(thinned, threshold_pct)
    lacking = too_little(whole)
    result = outlook(thinned, threshold, forecasts=lacking is None)
    course = result.course(method)
    return InodeUsage(
        target_kinds=list(usage.kinds),
        used=[UsedInodes(from_epoch_us(at), used) for at, used in _pairs(thinned)],
        total_inodes=total,
        used_inodes=int(thinned.used[-1]),
        fullness_pct=pct(int(thinned.used[-1]), total),
        slope_inodes_per_day=course.line.slope if course else None,
        slope_ci95=course.slope_interval if course else None,
        threshold_state=course.threshold_state if course else _state(thinned, threshold),
        threshold_date=course.threshold_date if course else None,
        threshold_ci95=course.threshold_interval if course else None,
        events=[InodeEvent(event.kind, *_times(thinned, event), _exact(thinned, event)) for event in result.events],
        readings=len(usage.readings),
        incomplete_readings=len(usage.readings) - len(whole),
        too_little_data=lacking,
        outlook=result,
    )


def _notes(usage: Usage, inodes: Usage, whole: Readings, thinned: Readings) -> list[str]:
    notes = list(dict.fromkeys((*usage.notes, *inodes.notes)))
    left_out = len(usage.readings) - len(whole)
    if left_out:
        least = int(usage.readings.targets[~usage.readings.complete].min())
        most = int(usage.readings.targets.max())
        others = "1 reading is" if left_out == 1 else f"{left_out} readings are"
        notes.append(f"{others} left out: not all targets answered (as few as {least} of {most})")
    if len(thinned) < len(whole):
        notes.append(f"trend and events rest on the last of each day or hour: {len(thinned)} of {len(whole)} readings")
    if not is_exact(len(thinned)):
        notes.append("Theil–Sen: the median of two million pairs of readings drawn with a fixed seed")
    if np.diff(thinned.target_set).any():
        notes.append("targets came or went: usage moved with them, and no event is looked for across such a change")
    return notes


def _without_interval(readings: Readings, course: ProjectedUsage | None) -> list[str]:
    if course is None or course.slope_interval is not None or len(readings) < LEAST_FOR_INTERVAL:
        return []
    return ["no interval: the readings lie on a straight line, and do not show how far it may be wrong"]


def _state(readings: Readings, threshold: float | None) -> str:
    """Of a threshold that no line is drawn to."""
    if not len(readings) or threshold is None:
        return UNKNOWN
    return REACHED if has_reached(readings.used, threshold) else TOO_LITTLE


def _warnings(
    lacking: str | None, readings: Readings, course: ProjectedUsage | None, inodes: InodeUsage | None
) -> list[str]:
    """What to know before a date, or the lack of one, is believed."""
    said = [lacking] if lacking is not None else []
    if inodes is not None and inodes.too_little_data is not None and inodes.too_little_data != lacking:
        said.append(f"inodes: {inodes.too_little_data}")
    return [*said, *_far(readings, course)]


def _far(readings: Readings, course: ProjectedUsage | None) -> list[str]:
    if course is None or course.threshold_state != PROJECTED or course.threshold_date is None:
        return []
    first, last = (from_epoch_us(int(readings.time_us[end])).date() for end in (0, -1))
    if (course.threshold_date - last).days <= FURTHEST_OF_WINDOW * (last - first).days:
        return []
    return ["the threshold lies further ahead than twice the time there are readings of: a guess more than a forecast"]


ANALYSIS = Analysis("capacity", "Usage over time, projection to a threshold, purges and surges", capacity)
