"""What every target of a file system is doing now: rows of the last intervals in, one line per target out (SPEC B2).

A `Board` keeps the last ticks of one file system, so that any of them can be looked at again; it computes and shows
nothing. A target that does not report has no numbers: unknown is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.calibration.state import RefutedCalibration, RestsOnCalibration, calibration_of_held
from iolens.analyses.live import target_lines as im
from iolens.analyses.live.target_lines import (
    Columns,
    Frames,
    Measures,
    Past,
    SizeRate,
    TargetLine,
    known_values,
    server_courses,
    server_lines,
)
from iolens.analyses.results import not_in_json, only_if_present
from iolens.arrays import Booleans, Floats, Integers
from iolens.models.transaction_time import COVERED_SHARE, GRACE_2012, REFUTED_OVER_S, SIZE_COLUMNS, Calibration
from iolens.records import Item, Row, Rows
from iolens.schema import DATA_KINDS, DIRECTIONS
from iolens.units import from_epoch_us
from iolens.visible_text import some_names

OVERDUE: Final = 1.5  # an interval's numbers hold until its successor is overdue by half its length
LOOK_BACK_S: Final = 90.0  # at least this far for intervals that still hold
LONGEST_HOLD_S: Final = 3600.0  # no interval says anything of now for longer than it and half of it, by the clock
LEAST_DELAY_US: Final = 15_000_000  # so late may rows come that were sampled in time
COMPLETE_SHARE: Final = 0.75  # a tick is complete enough with this share of the targets of its best neighbour
CAPACITY_HOLDS_US: Final = 3_600_000_000  # fullness changes slowly
MOST_CELLS: Final = 120_000  # ticks × targets that are kept: about 60 MB
FEWEST_TICKS: Final = 64
HISTORY_TICKS: Final = 60
NAMES_SHOWN: Final = 4

# Rows of a tick's matrix: the nominal length of each table's interval (NaN: it did not report), then what it says.
_LENGTHS: Final = {"target_sizes": 0, "target_io": 1, "metadata_ops": 2}
_PLACE: Final = {name: number for number, name in enumerate(Measures._fields, len(_LENGTHS))}
_RESET, _SECONDS = len(_LENGTHS) + len(_PLACE), len(_LENGTHS) + len(_PLACE) + 1
_REPORTED_BY: Final = {
    "target_sizes": ("fsu_pct", "disk_iops", "small_io_pct"),
    "target_io": ("read_bytes_per_s", "write_bytes_per_s", "ops_per_s", "wait_s", "util_pct", "fsu_bytes_pct"),
    "metadata_ops": ("metadata_ops_per_s",),
}
TABLES: Final = (*_LENGTHS, "target_histograms", "target_capacity")


@dataclass(frozen=True, slots=True)
class LiveReading(RestsOnCalibration):
    """A file system at one tick. Means are over the data targets that report, totals over the outermost kind.

    The data refute its calibration where the mean FSU of the last ten minutes is above 120 %.
    """

    time: datetime | None
    interval_s: float | None  # between the snapshots, by the servers' own clocks
    filesystem: str
    age_s: float | None
    stale: bool  # by the clock no target reports any more: the tick is too old to say anything of now
    calibration: str
    mean_fsu_pct: float | None
    mean_fsu_bytes_pct: float | None
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    iops: float | None
    metadata_ops_per_s: float | None
    targets_known: int
    targets_reporting: int
    missing_targets: list[str]
    resets: int  # in the ticks kept, up to this one
    gaps: int  # intervals that span missed samples, likewise
    targets: list[TargetLine]
    notes: list[str]
    servers: list[TargetLine] | None = only_if_present()  # sums and mean FSU of their targets, where two are known
    course: tuple[float | None, ...] = not_in_json()  # mean FSU of the last ticks, the oldest first
    courses: Floats = not_in_json()  # of each target: targets × ticks, NaN where it did not report

    def course_of(self, line: TargetLine, ticks: int) -> list[float | None]:
        """FSU of one target at the last ticks, the oldest first."""
        return known_values(self.courses[line.number, -ticks:]) if ticks > 0 else []


class Board:
    """The last ticks of one file system.

    `patience_us` is how long one waits for targets that report later than others: a tick counts as complete when it
    has nearly as many targets as the best tick of that last stretch. `calibration_of` gives targets their own.
    """

    def __init__(
        self,
        filesystem: str,
        calibration: Calibration | AppliedCalibration = GRACE_2012,
        notes: Sequence[str] = (),
        *,
        patience_us: int = 15_000_000,
        most_cells: int = MOST_CELLS,
        calibration_of: Callable[[str], AppliedCalibration] | None = None,
    ) -> None:
        general = AppliedCalibration.given(calibration) if isinstance(calibration, Calibration) else calibration
        self.filesystem, self.calibration, self.notes = filesystem, general.calibration, tuple(notes)
        self.patience_us, self.most_cells = patience_us, most_cells
        self.names: list[str] = []
        self.kinds: list[str | None] = []
        self._number: dict[str, int] = {}
        self._costs: list[tuple[float, ...]] = []  # r0, r1, w0, w1 of each target
        self._calibration_of = calibration_of or (lambda target: general)
        self._applied: list[AppliedCalibration] = []  # to each target
        self._ticks = Frames(_SECONDS + 1)
        self._sizes = Frames(len(SIZE_COLUMNS))  # I/Os per second
        self._latency = Frames(2)  # nominal length, value
        self._used = Frames(1)
        self.servers: dict[str, str] = {}  # by target, as far as they are known
        self._bins_seen = np.zeros(len(SIZE_COLUMNS), bool)
        self.version = 0  # grows with whatever is taken in

    @property
    def times(self) -> Sequence[int]:
        """The ticks kept, microseconds since 1970, in order."""
        return self._ticks.times

    def expect(self, targets: Iterable[str]) -> None:
        """Targets the file system is known to have, whether they report or not."""
        known = len(self.names)
        for name in sorted(targets):
            self._index(name, None)
        self.version += len(self.names) > known

    def take(self, items: Iterable[Item]) -> None:
        """Take rows of this file system in: intervals, and readings of fullness. The same row again changes nothing."""
        self.version += 1
        plain: dict[str, list[Mapping[str, object]]] = {}
        for item in items:
            if isinstance(item, Row) and item.table in TABLES:
                plain.setdefault(item.table, []).append(item.values)
            elif isinstance(item, Rows) and item.table == "target_servers":
                self.servers |= dict(
                    zip(*(im.spread(item.columns[name], len(item)) for name in ("target", "host")), strict=True)
                )
            elif isinstance(item, Rows) and item.table in TABLES and len(item):
                self._take_columns(item.table, item.columns, len(item))
        for table, rows in plain.items():
            names = {name for row in rows for name in row}
            self._take_columns(table, {name: [row.get(name) for row in rows] for name in names}, len(rows))
        self._forget()

    def newest(self) -> int | None:
        """The latest tick that is complete enough."""
        if not self.times:
            return None
        recent = [time for time in self._ticks.before(self.times[-1]) if time >= self.times[-1] - self.patience_us]
        counts = [int(self._reported(time).sum()) for time in recent]
        enough = COMPLETE_SHARE * max(counts)
        return next(time for time, count in zip(recent, counts, strict=True) if count >= enough)

    def reading(self, at_us: int | None = None, now_us: int | None = None, history: int = HISTORY_TICKS) -> LiveReading:
        """The file system at its last tick up to `at_us`, as it was then.

        Without `at_us` it is the newest that is complete, as it is now: an interval whose successor is overdue by the
        clock `now_us` does not hold, and rows may come as late as `patience_us`.
        """
        tick = self.newest() if at_us is None else next(self._ticks.before(at_us), None)
        if tick is None:
            return self._nothing()
        due_us = self._due(tick, now_us) if at_us is None and now_us is not None else tick
        values = self._values(tick, due_us)
        lines = self._lines(tick, tick if now_us is None else now_us, values)
        courses = self._courses(tick, history)
        servers = server_lines(lines, self._outermost(), len(self.names))
        data = values.reporting & self._is_data()
        moving = values.reporting & self._is_counted_once()
        by_sizes, by_bytes = (_mean(values.of(name)[data]) for name in ("fsu_pct", "fsu_bytes_pct"))
        return LiveReading(
            **self._calibrated(by_bytes if by_sizes is None else by_sizes, tick),
            time=from_epoch_us(tick),
            interval_s=_median(values.seconds[values.reporting]),
            filesystem=self.filesystem,
            age_s=None if now_us is None else max(0.0, (now_us - tick) / 1e6),
            stale=due_us > tick and not (values.reporting | values.late).any(),
            calibration=self.calibration.name,
            mean_fsu_pct=by_sizes,
            mean_fsu_bytes_pct=by_bytes,
            read_bytes_per_s=_sum(values.of("read_bytes_per_s")[moving]),
            write_bytes_per_s=_sum(values.of("write_bytes_per_s")[moving]),
            iops=_sum(values.iops[moving]),
            metadata_ops_per_s=_sum(values.of("metadata_ops_per_s")[values.reporting]),
            targets_known=len(self.names),
            targets_reporting=int(values.reporting.sum()),
            missing_targets=sorted(line.target for line in lines if line.state == "silent"),
            resets=self._resets(tick),
            gaps=self._gaps(tick),
            targets=lines,
            notes=[*self.notes, *_unknowns(lines)],
            servers=servers or None,
            course=self._mean_course(tick, history),
            courses=np.concatenate([courses, server_courses(courses, lines, self._outermost(), servers)]),
        )

    def _calibrated(self, mean_pct: float | None, tick: int | None) -> dict[str, Any]:
        """What the reading says of its calibrations: those of the data targets, of all where there is none."""
        data = [item for item, is_data in zip(self._applied, self._is_data(), strict=True) if is_data]
        held = {(item.calibration, item.state, item.evidence): item for item in data or self._applied}
        refuted = None if tick is None else RefutedCalibration.by(self._recent_mean(tick), from_epoch_us(tick))
        return calibration_of_held([*held.values()] or [self._calibration_of("")], mean_pct, None, refuted)

    def _recent_mean(self, tick: int) -> float | None:
        """Mean FSU of the last ten minutes; None where fewer were kept."""
        since_us = tick - round(REFUTED_OVER_S * 1e6)
        recent = [time for time in self._ticks.before(tick) if time > since_us]
        means = [mean for mean in self._mean_course(tick, len(recent)) if mean is not None]
        is_covered = len(means) > 1 and (recent[0] - recent[-1]) / 1e6 >= COVERED_SHARE * REFUTED_OVER_S
        return sum(means) / len(means) if is_covered else None

    def _due(self, tick: int, now_us: int) -> int:
        """The time at which the intervals of a tick must hold: rows of later ones may still be on their way."""
        return max(tick, now_us - max(self.patience_us, LEAST_DELAY_US))

    def sizes_of(self, target: str, at_us: int) -> list[SizeRate]:
        """Disk I/Os by size in the interval of a target that ends at a tick; empty when it has none."""
        if at_us not in self._sizes.of:
            return []
        number, count = self._number[target], len(self.names)
        rates = [self._sizes.row(at_us, place, count)[number] for place in range(len(SIZE_COLUMNS))]
        pairs = zip(SIZE_COLUMNS.values(), rates, strict=True)
        return [SizeRate(direction, size, float(rate)) for (direction, size), rate in pairs if np.isfinite(rate)]

    def history_of(self, target: str, at_us: int, ticks: int) -> list[Past]:
        """One target over the ticks up to one, the oldest first."""
        number, result = self._number[target], []
        for time in self._ticks.last(at_us, ticks):
            fsu, by_bytes, read, write = (
                self._ticks.row(time, _PLACE[name], len(self.names))[number]
                for name in ("fsu_pct", "fsu_bytes_pct", "read_bytes_per_s", "write_bytes_per_s")
            )
            result.append(Past(time, _maybe(by_bytes if np.isnan(fsu) else fsu), _maybe(read + write)))
        return result

    def _take_columns(self, table: str, columns: Columns, count: int) -> None:
        target = self._indexes(columns, count, "mdt" if table == "metadata_ops" else None)
        time = np.asarray(im.spread(columns["time"], count), np.int64)
        if table == "target_capacity":
            self._used.put(time, target, {0: im.used_pct(columns, count)}, len(self.names))
            return
        length = (time - np.asarray(im.spread(columns["start"], count), np.int64)) / 1e6
        seconds = im.numbers(columns, "duration_s", count)
        with np.errstate(invalid="ignore"):
            good = (seconds > 0) & (length > 0)
        if table == "target_histograms":
            latencies = im.latencies(columns, time, target, good)
            values = {0: length[latencies.row], 1: latencies.latency_s}
            self._latency.put(time[latencies.row], target[latencies.row], values, len(self.names))
            return
        measures = self._measures(table, columns, time, target, seconds, good)
        known = {_PLACE[name]: getattr(measures, name)[good] for name in _REPORTED_BY[table]}
        known |= {_LENGTHS[table]: length[good], _SECONDS: seconds[good]}
        self._ticks.put(time[good], target[good], known, len(self.names))
        reset = good & np.fromiter((bool(item) for item in im.spread(columns.get("after_reset"), count)), bool, count)
        self._ticks.put(time[reset], target[reset], {_RESET: np.ones(int(reset.sum()))}, len(self.names))

    def _measures(
        self, table: str, columns: Columns, time: Integers, target: Integers, seconds: Floats, good: Booleans
    ) -> Measures:
        if table == "metadata_ops":
            return im.of_metadata(columns, seconds)
        costs = np.array(self._costs)[target]
        if table == "target_io":
            return im.of_io(columns, seconds, costs)
        counts = im.size_counts(columns, len(time), self._bins_seen)
        rates = dict(enumerate((counts[good] / seconds[good, None]).T))
        self._sizes.put(time[good], target[good], rates, len(self.names))
        return im.of_sizes(columns, counts, seconds, costs)

    def _indexes(self, columns: Columns, count: int, kind: str | None) -> Integers:
        pairs = zip(im.spread(columns["target"], count), im.spread(columns.get("target_kind"), count), strict=True)
        return np.fromiter((self._index(str(name), item or kind) for name, item in pairs), np.int64, count)

    def _index(self, name: str, kind: str | None) -> int:
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = len(self.names)
            self.names.append(name)
            self.kinds.append(kind)
            held = self._calibration_of(name)
            self._applied.append(held)
            costs = (astuple(held.calibration.of(direction)) for direction in DIRECTIONS)
            self._costs.append(tuple(cost for pair in costs for cost in pair))
        elif self.kinds[number] is None:
            self.kinds[number] = kind
        return number

    def _forget(self) -> None:
        if self._ticks.forget(max(FEWEST_TICKS, self.most_cells // max(1, len(self.names)))):
            for frames in (self._latency, self._used, self._sizes):
                frames.forget_before(self.times[0])

    def _reported(self, tick: int) -> Booleans:
        matrix = self._ticks.of[tick][: len(_LENGTHS)]
        values = np.zeros(len(self.names), bool)
        values[: matrix.shape[1]] = np.isfinite(matrix).any(axis=0)
        return values

    def _lengths(self, frames: Frames, tick: int, place: int) -> Iterator[tuple[int, Floats]]:
        """Lengths of the intervals before a tick, back to where none would hold any more."""
        longest = LOOK_BACK_S
        for time in frames.before(tick):
            if (tick - time) / 1e6 >= longest:
                return
            lengths = frames.row(time, place, len(self.names))
            longest = max(longest, OVERDUE * float(np.fmax.reduce(lengths, initial=0.0)))
            yield time, lengths

    def _values(self, tick: int, due_us: int) -> _Values:
        count = len(self.names)
        measures = np.full((_SECONDS + 1, count), np.nan)
        reporting, late = np.zeros(count, bool), np.zeros(count, bool)
        for table, place in _LENGTHS.items():
            before = list(self._lengths(self._ticks, tick, place))
            usual = self._usual([lengths for _, lengths in before])
            usual = np.fmin(usual, LONGEST_HOLD_S) if due_us > tick else usual
            values = np.zeros(count, bool)
            for time, lengths in before:
                ago = (due_us - time) / 1e6
                with np.errstate(invalid="ignore"):
                    holds = ~values & np.isfinite(lengths) & (ago < OVERDUE * usual)
                    late |= holds & (ago >= usual)
                    reporting |= holds & (ago < usual)
                values |= holds
                if holds.any():
                    self._copy(time, table, holds, measures)
        return _Values(measures, reporting, late & ~reporting, self._latencies(tick, due_us), self._used_at(tick))

    def _usual(self, lengths: Sequence[Floats]) -> Floats:
        """How often each target reports: its shortest interval, or that of its kind if its own all span gaps."""
        shortest = np.asarray(np.fmin.reduce(lengths))
        kinds = np.array([kind or "" for kind in self.kinds])
        for kind in set(kinds.tolist()):
            of_kind = kinds == kind
            typical = _median(shortest[of_kind])
            if typical is not None:
                shortest[of_kind] = np.fmin(shortest[of_kind], typical)
        return shortest

    def _copy(self, time: int, table: str, which: Booleans, measures: Floats) -> None:
        """What one table said of some targets at a time."""
        for name in _REPORTED_BY[table]:
            measures[_PLACE[name], which] = self._ticks.row(time, _PLACE[name], len(which))[which]
        reset, seconds = (self._ticks.row(time, row, len(which)) for row in (_RESET, _SECONDS))
        measures[_RESET, which] = np.fmax(measures[_RESET], reset)[which]
        measures[_SECONDS, which] = np.fmin(measures[_SECONDS], seconds)[which]

    def _latencies(self, tick: int, due_us: int) -> Floats:
        values = np.full(len(self.names), np.nan)
        for time, lengths in self._lengths(self._latency, tick, 0):
            with np.errstate(invalid="ignore"):
                holds = np.isnan(values) & ((due_us - time) / 1e6 < OVERDUE * lengths)
            values[holds] = self._latency.row(time, 1, len(self.names))[holds]
        return values

    def _used_at(self, tick: int) -> Floats:
        values = np.full(len(self.names), np.nan)
        for time in self._used.before(tick):
            if tick - time > CAPACITY_HOLDS_US or not np.isnan(values).any():
                break
            values = np.where(np.isnan(values), self._used.row(time, 0, len(self.names)), values)
        return values

    def _lines(self, tick: int, now_us: int, values: _Values) -> list[TargetLine]:
        ages = [
            None if last_report < 0 else max(0.0, (now_us - last_report) / 1e6)
            for last_report in self._last_reports(tick).tolist()
        ]
        latency, kinds = values.latencies
        columns: dict[str, list[Any]] = {name: known_values(values.of(name)) for name in _LINE_MEASURES}
        columns |= {"iops": known_values(values.iops), "latency_s": known_values(latency), "latency_kind": kinds}
        columns |= {"used_pct": known_values(values.used), "after_reset": (values.measures[_RESET] > 0).tolist()}
        columns |= {"age_s": ages, "number": list(range(len(self.names)))}
        columns |= {"server": [self.servers.get(name) for name in self.names]}
        reported = list(zip(*(columns[name] for name in _LINE_FIELDS), strict=True))
        reporting, late = values.reporting.tolist(), values.late.tolist()
        lines = []
        for n, name in enumerate(self.names):
            if reporting[n] or late[n]:
                state = "reporting" if reporting[n] else "late"
                lines.append(TargetLine(name, self.kinds[n], state, *reported[n]))
            else:
                server = self.servers.get(name)
                lines.append(TargetLine(name, self.kinds[n], "silent", age_s=ages[n], number=n, server=server))
        return sorted(lines, key=lambda line: line.target)

    def _courses(self, tick: int, ticks: int) -> Floats:
        """FSU (of sizes, else of bytes) of each target at the last ticks, the oldest first."""
        count, columns = len(self.names), []
        for time in self._ticks.last(tick, ticks):
            fsu, by_bytes = (self._ticks.row(time, _PLACE[name], count) for name in ("fsu_pct", "fsu_bytes_pct"))
            columns.append(np.where(np.isnan(fsu), by_bytes, fsu))
        return np.stack(columns, axis=1)

    def _mean_course(self, tick: int, ticks: int) -> tuple[float | None, ...]:
        """Mean FSU at the last ticks, by sizes; of devices that count only operations and bytes, by those."""
        times, data = self._ticks.last(tick, ticks), self._is_data()
        for name in ("fsu_pct", "fsu_bytes_pct"):
            means = tuple(_mean(self._ticks.row(time, _PLACE[name], len(self.names))[data]) for time in times)
            if any(mean is not None for mean in means):
                return means
        return (None,) * len(times)

    def _last_reports(self, tick: int) -> Integers:
        last = np.full(len(self.names), -1, np.int64)
        for time in self._ticks.before(tick):
            last[(last < 0) & self._reported(time)] = time
            if (last >= 0).all():
                break
        return last

    def _is_data(self) -> Booleans:
        return np.fromiter((kind != "mdt" for kind in self.kinds), bool, len(self.kinds))

    def _is_counted_once(self) -> Booleans:
        """The outermost kind of data target there is: what an OST moves, its devices move again."""
        outermost = self._outermost()
        return np.fromiter((kind == outermost for kind in self.kinds), bool, len(self.kinds))

    def _outermost(self) -> str | None:
        return next((kind for kind in DATA_KINDS if kind in self.kinds), None)

    def _resets(self, tick: int) -> int:
        return sum(int(np.isfinite(self._ticks.of[time][_RESET]).sum()) for time in self._ticks.before(tick))

    def _gaps(self, tick: int) -> int:
        """Intervals much longer than usual; the usual length is the median of all."""
        longest = [np.fmax.reduce(self._ticks.of[time][: len(_LENGTHS)], axis=0) for time in self._ticks.before(tick)]
        known = np.concatenate(longest)
        known = known[np.isfinite(known)]
        return int((known > OVERDUE * np.median(known)).sum()) if len(known) else 0

    def _nothing(self) -> LiveReading:
        lines = [TargetLine(name, kind, "waiting") for name, kind in sorted(zip(self.names, self.kinds, strict=True))]
        unknown = (None,) * 6
        return LiveReading(
            None, None, self.filesystem, None, False, self.calibration.name, *unknown, len(lines), 0, [], 0, 0,
            lines, list(self.notes), course=(), courses=np.empty((len(lines), 0)), **self._calibrated(None, None),
        )  # fmt: skip


class _Values(NamedTuple):
    """Everything known at a tick, by target."""

    measures: Floats
    reporting: Booleans
    late: Booleans
    latency: Floats  # by the I/O-time histogram
    used: Floats

    def of(self, name: str) -> Floats:
        """One measure."""
        return np.asarray(self.measures[_PLACE[name]])

    @property
    def seconds(self) -> Floats:
        """Lengths of the intervals by the servers' clocks."""
        return np.asarray(self.measures[_SECONDS])

    @property
    def iops(self) -> Floats:
        """Disk I/Os where their sizes are counted, else the operations of the target."""
        return np.where(np.isnan(self.of("disk_iops")), self.of("ops_per_s"), self.of("disk_iops"))

    @property
    def latencies(self) -> tuple[Floats, list[str | None]]:
        """Seconds, and what they are: the histogram's percentile where there is one, else the mean wait."""
        seconds = np.where(np.isnan(self.latency), self.of("wait_s"), self.latency)
        kinds = np.where(np.isnan(seconds), None, np.where(np.isnan(self.latency), "mean_wait", "p95_io_time"))  # type: ignore[call-overload]
        return seconds, kinds.tolist()


_LINE_MEASURES: Final = (
    "fsu_pct", "fsu_bytes_pct", "util_pct", "read_bytes_per_s", "write_bytes_per_s", "small_io_pct",
    "metadata_ops_per_s",
)  # fmt: skip
_LINE_FIELDS: Final = tuple(field.name for field in fields(TargetLine))[3:]


def _unknowns(lines: Sequence[TargetLine]) -> list[str]:
    shown = [line for line in lines if line.state != "silent" and line.target_kind != "mdt"]
    blind = [line.target for line in shown if line.busy_pct is None]
    return [f"FSU is not known for {some_names(blind, NAMES_SHOWN)}: no disk I/O sizes"] if blind else []


def _maybe(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _median(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else None


def _sum(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.sum()) if len(known) else None
