"""What a file system was asked for, tick by tick, and the bytes written to it day by day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.capacity.readings import gather
from iolens.analyses.intervals.buckets import (
    BIN_WIDTH,
    COMPLETE_PCT,
    Percentiles,
    covered_pct,
    day_of,
    is_complete,
    joined,
)
from iolens.analyses.intervals.coverage import notes_on_sources, sources_of
from iolens.analyses.intervals.fsu_sums import collect, data_targets, number, of_kinds, total
from iolens.analyses.intervals.target_rows import BucketSums
from iolens.analyses.results import not_in_json
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.errors import NotKnownError
from iolens.models.resampling import RESAMPLES, SEED, interval95, portions
from iolens.models.transaction_time import SIZE_COLUMNS
from iolens.part_form import PartForm
from iolens.schema import DATA_KINDS, DIRECTIONS, SIZE_BINS, SUM_KINDS, SUMMED_OPERATIONS, size_column
from iolens.store.frames import FrameSelection
from iolens.store.parts import Days, EngineParts
from iolens.store.selection import Selection
from iolens.units import DAY_S, DAY_US, from_epoch_us

# What `demand` keeps of some days -------------------------------------------------------------------------------------
# Their ticks, each with the sums of its targets' rates.

WHOLE: Final = ("bytes_per_s",)  # measures of which every part must be known

Terms = Mapping[str, tuple[str, ...]]  # measure → columns it adds up


@dataclass(slots=True)
class DemandTicks:
    """In time order: end, number of targets, their summed seconds, and every measure, NaN where nobody knew it."""

    columns: Columns

    def take(self, later: DemandTicks) -> None:
        """Later ticks."""
        self.columns = {name: np.concatenate([values, later.columns[name]]) for name, values in self.columns.items()}

    def at(self, places: Booleans) -> DemandTicks:
        """Only some of them."""
        return DemandTicks({name: values[places] for name, values in self.columns.items()})


FORM: Final = PartForm("demand", 1, (DemandTicks,))


def demand_part(days: Days, table: str, terms: Terms, kinds: tuple[str, ...]) -> DemandTicks:
    """Ticks of some days, over targets of these kinds."""
    rows = collect(_by_tick(days.frame(table), terms, kinds))
    order = np.argsort(rows["epoch_us"])
    columns = {name: rows[name][order] for name in ("epoch_us", "targets", "duration_s")}
    rates = {name: np.where(rows[f"{name}_known"] > 0, rows[name], np.nan)[order] for name in terms}
    return DemandTicks(columns | rates)


def _by_tick(frame: nw.LazyFrame[Any], terms: Terms, kinds: tuple[str, ...]) -> nw.LazyFrame[Any]:
    """Sums of rates over the targets of each tick, and how many of them knew each."""
    mine = of_kinds(frame, kinds) if kinds else data_targets(frame)
    rows = mine.select("epoch_us", "duration_s", *(_rate(name, columns) for name, columns in terms.items()))
    return rows.group_by("epoch_us").agg(
        nw.len().alias("targets"),
        nw.col("duration_s").sum(),
        *(nw.col(name).sum() for name in terms),
        *(nw.col(name).count().alias(f"{name}_known") for name in terms),
    )


def _rate(name: str, columns: Sequence[str]) -> nw.Expr:
    """NULL where a part of it is not known; but in a listing, what is not listed has not happened."""
    amounts = [nw.col(column).cast(nw.Float64).fill_null(0.0) for column in columns]
    known = [nw.when(nw.col(column).is_null()).then(number(0.0)).otherwise(number(1.0)) for column in columns]
    needed = len(columns) if name in WHOLE else 1
    rate = total(amounts) / nw.col("duration_s")
    return nw.when(total(known) >= number(float(needed))).then(rate).alias(name)


# What a file system was asked for, tick by tick -----------------------------------------------------------------------
# Bandwidth and operations as percentiles over its ticks (SPEC B10).
#
# Rates add up over the targets of a tick. A tick in which fewer than nine in ten of its day's targets report would make
# the demand look smaller than it was: it is left out and counted.

LEAST_TARGETS: Final = 0.9  # share of a day's targets that must be in a tick
PERCENTILES: Final = (50.0, 95.0, 99.0, 100.0)
LEAST_DAYS: Final = 2  # to say anything of how days differ

NO_RATE: Final = -(10**6)  # the bin of ticks without any
BINS: Final = 1 << 21  # more than there are between a tick without any and the largest number


@dataclass(frozen=True, slots=True)
class DemandMeasure:
    """One measure over the ticks of a file system on some UTC days; `complete_days` have 95 % of their ticks.

    `p95_ci95` and `p99_ci95` are over 2,000 resamples of days, each with the ticks it has.
    """

    measure: str
    unit: str
    ticks: int
    days: int
    complete_days: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    p95_ci95: tuple[float, float] | None
    p99_ci95: tuple[float, float] | None
    max_time: datetime
    error_pct: float
    days_apart: DayBins | None = not_in_json()

    def at(self, percentile: float) -> float:
        """The demand at one of the percentiles."""
        value: float = {50.0: self.p50, 95.0: self.p95, 99.0: self.p99, 100.0: self.max}[percentile]
        return value


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand on one file system over a window."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    tick_s: float | None
    ticks_left_out: int
    target_kinds: list[str]
    sources: list[str]
    measures: list[DemandMeasure]
    partial_days: list[date]
    notes: list[str]
    resolution: str = "raw"  # or the rollup that was read

    @property
    def complete_days(self) -> int:
        """Of the measure that has most of them."""
        return max((measure.complete_days for measure in self.measures), default=0)

    @property
    def origin(self) -> str:
        """In words."""
        partial = f" and {len(self.partial_days)} partial" if self.partial_days else ""
        days = f"{self.complete_days} complete{partial}"
        ends = " to ".join(f"{time:%Y-%m-%d}" for time in (self.window_start, self.window_end) if time)
        return f"{self.filesystem}: ticks of {days} days, {ends} ({', '.join(self.sources)})"


@dataclass(frozen=True, slots=True)
class DayBins:
    """Ticks by day and logarithmic bin of their rate, for resampling days and for figures."""

    rates: Floats  # of each bin, rising; the first is 0
    counts: Integers  # days × bins

    def resampled(self, percentile: float, random: np.random.Generator, count: int = RESAMPLES) -> Floats:
        """The percentile of `count` resamples of whole days."""
        days = self.counts.shape[0]
        parts = []
        for size in portions(count, max(self.counts.shape)):
            drawn = random.multinomial(days, np.full(days, 1.0 / days), size).astype(np.float64)
            reached = np.cumsum(drawn @ self.counts, axis=1)
            needed = percentile / 100.0 * (reached[:, -1:] - 1.0)
            parts.append(self.rates[np.argmax(reached > needed, axis=1)])
        return np.concatenate(parts)


def demand(selection: Selection, *, progress: Callable[[date], None] | None = None) -> Demand:
    """Bandwidth, operations, disk I/Os and metadata operations, as far as the store has them."""
    gathered = [_gathered(selection, table, progress) for table in ("target_io", "target_sizes", "metadata_ops")]
    ticks = [ticks for ticks in gathered if ticks is not None and ticks.measures]
    extents = [tick.extent_us for tick in ticks if tick.extent_us is not None]
    start, end = selection.window
    result = Demand(
        filesystem=selection.filesystem,
        window_start=start or (from_epoch_us(min(low for low, _ in extents)) if extents else None),
        window_end=end or (from_epoch_us(max(high for _, high in extents)) if extents else None),
        tick_s=next((tick.tick_s for tick in ticks if tick.tick_s is not None), None),
        ticks_left_out=sum(tick.left_out for tick in ticks),
        target_kinds=list(dict.fromkeys(kind for tick in ticks for kind in tick.kinds)),
        sources=sources_of(selection, [tick.table for tick in ticks]),
        measures=[
            measure.result(name, tick.tick_s)
            for tick in ticks
            for name, measure in tick.measures.items()
            if measure.ticks
        ],
        partial_days=_partial_days(ticks),
        notes=[*_notes(ticks), *notes_on_sources(selection, [tick.table for tick in ticks])],
    )
    if not result.measures:
        raise NotKnownError(f"{selection.filesystem}: no bytes or operations are known in this window")
    return result


def _partial_days(ticks: Sequence[_Ticks]) -> list[date]:
    """Those that no measure has whole."""
    kinds = [measure.days(tick.tick_s) for tick in ticks for measure in tick.measures.values()]
    complete = {day for days in kinds for day, is_complete in days.items() if is_complete}
    return [from_epoch_us(day * DAY_US).date() for day in sorted({day for days in kinds for day in days} - complete)]


def _notes(ticks: Sequence[_Ticks]) -> list[str]:
    notes = []
    left = sum(tick.left_out for tick in ticks)
    if left:
        notes.append(f"{left:,} ticks are left out: fewer than {LEAST_TARGETS:.0%} of the day's targets are in them")
    return notes


@dataclass(slots=True)
class _RateMeasure:
    """One rate over all ticks, and by day."""

    whole: Percentiles = field(default_factory=Percentiles)
    sum: float = 0.0
    peak: tuple[float, int] = (-1.0, 0)
    by_day: dict[int, dict[int, int]] = field(default_factory=dict)

    @property
    def ticks(self) -> int:
        return self.whole.count

    def add(self, time_us: Integers, days: Integers, rates: Floats) -> None:
        if not len(rates):
            return
        self.whole.add(rates)
        self.sum += float(rates.sum())
        place = int(rates.argmax())
        if rates[place] > self.peak[0]:
            self.peak = float(rates[place]), int(time_us[place])
        bins = np.where(rates > 0, np.rint(np.log(np.maximum(rates, 1e-300)) / np.log(BIN_WIDTH)), NO_RATE)
        keys, counts = np.unique(days * BINS + bins.astype(np.int64) - NO_RATE, return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            day, number_ = key // BINS, key % BINS + NO_RATE
            mine = self.by_day.setdefault(day, {})
            mine[number_] = mine.get(number_, 0) + count

    def days(self, tick_s: float | None) -> dict[int, bool]:
        """UTC days with ticks, by number, and whether each is complete."""
        needed = COMPLETE_PCT / 100 * DAY_US / (tick_s * 1e6) if tick_s else 1.0
        return {day: sum(bins.values()) >= needed for day, bins in self.by_day.items()}

    def result(self, name: str, tick_s: float | None) -> DemandMeasure:
        bins = self._day_bins()
        p50, p95, p99, largest = (self.whole.at(share / 100.0) or 0.0 for share in PERCENTILES)
        return DemandMeasure(
            measure=name,
            unit="bytes/s" if "bytes" in name else "1/s",
            ticks=self.ticks,
            days=len(self.by_day),
            complete_days=sum(self.days(tick_s).values()),
            mean=self.sum / self.ticks,
            p50=p50,
            p95=p95,
            p99=p99,
            max=largest,
            p95_ci95=_interval(bins, 95.0),
            p99_ci95=_interval(bins, 99.0),
            max_time=from_epoch_us(self.peak[1]),
            error_pct=self.whole.error_pct,
            days_apart=bins,
        )

    def _day_bins(self) -> DayBins:
        numbers = sorted({number_ for mine in self.by_day.values() for number_ in mine})
        places = {number_: place for place, number_ in enumerate(numbers)}
        counts = np.zeros((len(self.by_day), len(numbers)), np.int64)
        for row, day in enumerate(sorted(self.by_day)):
            for number_, count in self.by_day[day].items():
                counts[row, places[number_]] = count
        rates = np.array([0.0 if number_ <= NO_RATE else BIN_WIDTH**number_ for number_ in numbers])
        return DayBins(np.minimum(rates, self.whole.largest), counts)


def _interval(bins: DayBins, percentile: float) -> tuple[float, float] | None:
    if bins.counts.shape[0] < LEAST_DAYS:
        return None
    return interval95(bins.resampled(percentile, np.random.default_rng(SEED)))


@dataclass(slots=True)
class _Ticks:
    """One table's ticks, part by part; those of a day are judged when the next has begun."""

    table: str
    terms: Terms
    kinds: tuple[str, ...]
    measures: dict[str, _RateMeasure] = field(default_factory=dict)
    left_out: int = 0
    tick_s: float | None = None
    extent_us: tuple[int, int] | None = None
    _open: DemandTicks | None = None

    def add(self, part: DemandTicks) -> None:
        """The next ticks."""
        if self._open is None:
            self._open = part
        else:
            self._open.take(part)
        days = self._days(self._open)
        if len(days):
            is_over = days < days.max()
            self._judge(self._open.at(is_over))
            self._open = self._open.at(~is_over)

    def finish(self) -> None:
        """No more ticks follow."""
        if self._open is not None:
            self._judge(self._open)

    def _days(self, ticks: DemandTicks) -> Integers:
        """The UTC day in which each begins; all are as long as those of the first part."""
        time_us = ticks.columns["epoch_us"]
        if self.tick_s is None and len(time_us):
            seconds = ticks.columns["duration_s"] / ticks.columns["targets"]
            self.tick_s = float(np.median(np.diff(time_us))) / 1e6 if len(time_us) > 1 else float(seconds[0])
        days: Integers = (time_us - round((self.tick_s or 0.0) * 1e6)) // DAY_US
        return days

    def _judge(self, ticks: DemandTicks) -> None:
        """Take the ticks of whole days that enough of their day's targets are in."""
        time_us, targets, days = ticks.columns["epoch_us"], ticks.columns["targets"], self._days(ticks)
        if not len(time_us):
            return
        first_us = int(time_us[0]) - round((self.tick_s or 0.0) * 1e6)
        self.extent_us = joined(self.extent_us, (first_us, int(time_us[-1])))
        _, of_day = np.unique(days, return_inverse=True)
        most = np.zeros(of_day.max() + 1)
        np.maximum.at(most, of_day, targets)
        whole = targets >= LEAST_TARGETS * most[of_day]
        self.left_out += int((~whole).sum())
        for name in self.terms:
            take = whole & ~np.isnan(ticks.columns[name])
            self.measures.setdefault(name, _RateMeasure()).add(time_us[take], days[take], ticks.columns[name][take])


def _gathered(selection: Selection, table: str, progress: Callable[[date], None] | None) -> _Ticks | None:
    terms = _terms(selection, table)
    if not terms:
        return None
    kinds = () if table == "metadata_ops" else _kinds(selection, table)
    ticks = _Ticks(table, terms, kinds)
    for part in selection.parts(EngineParts(demand_part, FORM, (table,), (table, terms, kinds)), progress):
        ticks.add(part)
    ticks.finish()
    return ticks


def _kinds(selection: Selection, table: str) -> tuple[str, ...]:
    """The first kind of data targets there is; else rows that are sums; else anything but MDTs."""
    results = ((kind,) for kind in (*DATA_KINDS, *SUM_KINDS) if selection.holds(table, "target_kind", (kind,)))
    return next(results, ())


def _terms(selection: Selection, table: str) -> Terms:
    """What the table's live columns add up to."""
    wanted: dict[str, tuple[str, ...]] = {}
    if table == "target_io":
        wanted = {f"{direction}_bytes_per_s": (f"{direction}_bytes",) for direction in DIRECTIONS}
        wanted["bytes_per_s"] = tuple(f"{direction}_bytes" for direction in DIRECTIONS)
        wanted |= {f"{direction}_ops_per_s": (f"{direction}_ops",) for direction in DIRECTIONS}
        wanted["ops_per_s"] = (*(f"{direction}_ops" for direction in DIRECTIONS), "unsplit_ops")
    elif table == "target_sizes":
        for side in DIRECTIONS:
            wanted[f"disk_{side}_ios_per_s"] = tuple(name for name, (text, _) in SIZE_COLUMNS.items() if text == side)
        wanted["disk_ios_per_s"] = tuple(SIZE_COLUMNS)
    else:
        wanted["metadata_ops_per_s"] = SUMMED_OPERATIONS
    columns = list(dict.fromkeys(column for some in wanted.values() for column in some))
    live = set(selection.live_columns(table, columns)) if selection.holds(table) else set()
    kept = {name: tuple(column for column in some if column in live) for name, some in wanted.items()}
    return {name: some for name, some in kept.items() if some}


# Bytes written to a file system day by day (SPEC P3, Fig. 3 of paper P) -----------------------------------------------
# And how much of each day was observed.
#
# A row belongs to the UTC day in which its interval starts. Data targets count (OSTs; else LUNs, controllers, devices);
# rows that already are a sum over the file system serve on days without them.

TABLE: Final = "target_io"
UNKNOWN: Final = "unknown"
KEYS: Final = ("target", "kind", "length_us", "bucket")
RANKED: Final = (*DATA_KINDS, UNKNOWN, *SUM_KINDS)  # the first there is that day


@dataclass(frozen=True, slots=True)
class DayWrites:
    """Bytes written on one UTC day; `covered_pct` is the share of its samples that its targets took."""

    date: date
    write_bytes: float
    covered_pct: float

    @property
    def complete(self) -> bool:
        """Whether it counts in means and medians."""
        return is_complete(self.covered_pct)


@dataclass(frozen=True, slots=True)
class DailyWrites:
    """Days with any report, in order. A day without one is not among them: it is unknown, not zero."""

    filesystem: str
    days: list[DayWrites]
    kinds: list[str]
    sources: list[str]

    @property
    def origin(self) -> str:
        """In words."""
        if not self.days:
            return f"{self.filesystem}: no bytes written are known"
        ends = f"{self.days[0].date} to {self.days[-1].date}"
        return f"{self.filesystem}: {len(self.days)} days with reports, {ends} ({', '.join(self.sources)})"


@dataclass(frozen=True, slots=True)
class SystemCapacity:
    """Capacity of a file system, and where that is known from."""

    bytes: int
    origin: str


@dataclass(frozen=True, slots=True)
class SystemUsage:
    """Bytes used and in all at the last complete reading of a file system."""

    filesystem: str
    time: datetime
    used_bytes: int
    total_bytes: int | None


def daily_writes(selection: Selection) -> DailyWrites:
    """Bytes written by day."""
    columns = _whole(selection, writes_part, WRITES_FORM, TABLE)
    columns["tick_s"] = columns["length_us"] / 1e6
    days: dict[int, DayWrites] = {}
    used = []
    for name in RANKED:
        mine = columns["kind"] == name
        writes = _days({column: values[mine] for column, values in columns.items()})
        if writes.keys() - days.keys():
            used.append(name)
        days = writes | days
    return DailyWrites(selection.filesystem, [days[day] for day in sorted(days)], used, selection.sources(TABLE))


def system_capacity(selection: Selection) -> SystemCapacity | None:
    """The sum over all data targets at the last complete reading of the window."""
    readings = gather(selection, "bytes").usage("bytes").readings
    known = np.flatnonzero(readings.complete & readings.has_total & (readings.total > 0))
    if not len(known):
        return None
    last = int(known[-1])
    when = from_epoch_us(int(readings.time_us[last]))
    return SystemCapacity(
        int(readings.total[last]),
        f"{selection.filesystem}: reading of {when:%Y-%m-%d} ({', '.join(selection.sources('target_capacity'))})",
    )


def system_usage(selection: Selection) -> SystemUsage | None:
    """What its data targets held at the last complete reading of the window."""
    readings = gather(selection, "bytes").usage("bytes").readings
    known = np.flatnonzero(readings.complete)
    if not len(known):
        return None
    last = int(known[-1])
    total = int(readings.total[last]) if readings.has_total[last] else None
    return SystemUsage(
        selection.filesystem, from_epoch_us(int(readings.time_us[last])), int(readings.used[last]), total
    )


def write_sizes(selection: Selection) -> dict[int, float]:
    """Disk writes by size (upper end of the bin, bytes), where servers keep a histogram."""
    columns = {size_column("write", size): size for size in SIZE_BINS}
    if not selection.live_columns("target_sizes", list(columns)):
        return {}
    sums = _whole(selection, write_sizes_part, SIZES_FORM, "target_sizes")
    counts = {size: float(sums[name].sum()) for name, size in columns.items() if name in sums}
    return {size: count for size, count in sorted(counts.items()) if count}


def _whole(selection: Selection, make: Callable[[Days], BucketSums], form: PartForm, table: str) -> Columns:
    """Sums by day of the whole window."""
    parts = list(selection.parts(EngineParts(make, form, (table,))))
    whole = parts[0] if parts else make(FrameSelection({}))
    for part in parts[1:]:
        whole.take(part)
    return whole.rows()


def write_sizes_part(days: Days) -> BucketSums:
    """Disk writes of some days by size and UTC day."""
    frame = days.frame("target_sizes")
    known = frame.collect_schema().names()
    names = [name for name in (size_column("write", size) for size in SIZE_BINS) if name in known]
    rows = frame.select(_day(), *(nw.col(name).cast(nw.Float64) for name in names))
    return BucketSums.of(
        collect(rows.group_by("bucket").agg(*(nw.col(name).sum() for name in names))), DAY_S, ("bucket",), names
    )


def writes_part(days: Days) -> BucketSums:
    """Bytes written on some days, by target, its kind, length of its rows and UTC day."""
    frame = days.frame(TABLE)
    has_kind = "target_kind" in frame.collect_schema().names()
    kind = nw.col("target_kind") if has_kind else nw.lit(None, nw.String)
    rows = frame.filter(nw.col("duration_s") > 0, ~nw.col("write_bytes").is_null()).select(
        _day(),
        "target",
        kind.fill_null(UNKNOWN).alias("kind"),
        nw.col("write_bytes").cast(nw.Float64),
        "duration_s",
        (nw.col("epoch_us") - nw.col("start_us")).alias("length_us"),
    )
    sums = rows.group_by(*KEYS).agg(
        *(nw.col(name).sum() for name in ("write_bytes", "duration_s")), nw.len().alias("rows")
    )
    return BucketSums.of(collect(sums), DAY_S, KEYS, ("write_bytes", "duration_s", "rows"))


def _day() -> nw.Expr:
    return (nw.col("start_us") // DAY_US).alias("bucket")


WRITES_FORM: Final = PartForm("daily-writes", 1, (BucketSums,))
SIZES_FORM: Final = PartForm("write-sizes", 1, (BucketSums,))


def _days(columns: Columns) -> dict[int, DayWrites]:
    """Sums over targets."""
    if not len(columns["bucket"]):
        return {}
    days, where = np.unique(columns["bucket"], return_inverse=True)
    written = np.bincount(where, weights=columns["write_bytes"])
    covered = covered_pct([columns])
    return {
        day: DayWrites(day_of(day), float(amount), covered[day])
        for day, amount in zip(days.tolist(), written, strict=True)
    }
