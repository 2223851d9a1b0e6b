"""What targets did in the time of each of many runs, as few questions to the engine: sums by run and target.

Times of runs are cut into hours. Rows of tables are joined with them by the hour in which they start and kept where
they overlap, each with the share of it that does. Only days on which there was a run are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.disk_seconds import Applied, disk_times, job_disk_seconds, of_osts
from iolens.analyses.intervals.disk_time import number, total
from iolens.arrays import Floats
from iolens.models.transaction_time import SIZE_COLUMNS, added
from iolens.schema import DIRECTIONS, SUMMED_OPERATIONS
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, from_epoch_us

Frame = nw.LazyFrame[Any]

HOUR_US: Final = 3_600_000_000
LONGEST_US: Final = HOUR_US  # of an interval
BEFORE_US: Final = DAY_US  # a reading of fullness may be so much older than the run


@dataclass(frozen=True, slots=True)
class RunWindow:
    """The time of a run and its job; `targets` are the OSTs of its files, None: not known."""

    job_id: str | None
    start_us: int
    end_us: int
    targets: frozenset[str] | None = None

    def widened(self, step_us: int) -> RunWindow:
        """To whole steps of the clock."""
        first, last = self.start_us // step_us * step_us, -(-self.end_us // step_us) * step_us
        return RunWindow(self.job_id, first, max(last, first + step_us), self.targets)


@dataclass(frozen=True, slots=True, eq=False)
class TargetSums:
    """Sums by window (rows) and target (columns); NaN where nothing was reported."""

    targets: Sequence[str]
    sums: dict[str, Floats]

    def over(self, names: Sequence[str], measure: str) -> Floats:
        """A measure with the columns of those targets, NaN of one that did not report."""
        place = {name: column for column, name in enumerate(self.targets)}
        values = self.sums[measure]
        result = np.full((len(values), len(names)), np.nan)
        for column, name in enumerate(names):
            if name in place:
                result[:, column] = values[:, place[name]]
        return result


def disk_sums(selection: StoreSelection, windows: Sequence[RunWindow], applied: Applied) -> TargetSums:
    """Disk time of OSTs (`disk_s`, Eq. 7) in observed time (`seconds`)."""
    live = selection.live_columns("target_sizes", list(SIZE_COLUMNS))

    def measured(rows: Frame) -> Frame:
        both = [nw.col(f"{direction}_target_s") for direction in DIRECTIONS]
        return disk_times(of_osts(rows), applied, live).with_columns(added(both).alias("disk_s"))

    return _summed(selection, windows, "target_sizes", measured, ["disk_s"])


def byte_sums(selection: StoreSelection, windows: Sequence[RunWindow]) -> TargetSums:
    """Bytes that OSTs moved (`bytes`), in observed time."""

    def measured(rows: Frame) -> Frame:
        moved = [nw.coalesce(nw.col(f"{direction}_bytes").cast(nw.Float64), number(0)) for direction in DIRECTIONS]
        return _of_kind(rows, "ost").with_columns(added(moved).alias("bytes"))

    return _summed(selection, windows, "target_io", measured, ["bytes"])


def operation_sums(selection: StoreSelection, windows: Sequence[RunWindow]) -> TargetSums:
    """Metadata operations of MDTs (`ops`), in observed time."""
    live = selection.live_columns("metadata_ops", list(SUMMED_OPERATIONS))
    return _summed(selection, windows, "metadata_ops", lambda rows: _operations(rows, live), ["ops"])


def own_operation_sums(selection: StoreSelection, windows: Sequence[RunWindow]) -> TargetSums:
    """Those of the run's job, by job_stats."""
    live = selection.live_columns("job_io", list(SUMMED_OPERATIONS))

    def measured(rows: Frame) -> Frame:
        return _operations(rows.filter(nw.col("target_kind") == "mdt"), live)

    return _summed(selection, windows, "job_io", measured, ["ops"], of_job=True)


def own_disk_sums(selection: StoreSelection, windows: Sequence[RunWindow], applied: Applied) -> TargetSums:
    """Disk time of the run's job on OSTs (`disk_s`, B1), and how many of its rows lack a count (`unknown`)."""
    live = selection.live_columns("target_sizes", list(SIZE_COLUMNS))
    parts = []
    for days, members in _batches(selection, windows, "job_io"):
        hours = selection.beside(_hours_table(members))
        with_next = {*days, *(date.fromordinal(day.toordinal() + 1) for day in days)}

        def near(table: str, wanted: Collection[date], hours: Frame = hours) -> Frame:
            return _with_hour(selection.rows_of_days(table, wanted), "start_us").join(hours, on="hour", how="semi")

        rows = job_disk_seconds(
            near("job_io", days), near("target_sizes", with_next), near("target_io", with_next), applied, live
        )
        rows = rows.rename({"from_us": "start_us", "until_us": "epoch_us"}).with_columns(
            added([nw.col(f"{direction}_disk_s") for direction in DIRECTIONS]).alias("disk_s"),
            ((nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64) * number(1e-6)).alias("duration_s"),
        )
        rows = rows.with_columns(nw.when(nw.col("disk_s").is_null()).then(1.0).otherwise(0.0).alias("unknown"))
        parts.append(_grouped(selection, rows, members, ["disk_s", "unknown"], of_job=True))
    return _matrices(parts, len(windows), ["disk_s", "unknown", "seconds"])


def fullness_sums(selection: StoreSelection, windows: Sequence[RunWindow]) -> TargetSums:
    """Bytes used and in all of OSTs, summed over the readings of the run's time and the day before."""
    earlier = [
        RunWindow(window.job_id, window.start_us - BEFORE_US, window.end_us, window.targets) for window in windows
    ]
    names = ["used_bytes", "total_bytes"]
    parts = []
    for days, members in _batches(selection, earlier, "target_capacity"):
        rows = _of_kind(selection.rows_of_days("target_capacity", days), "ost").filter(nw.col("total_bytes") > 0)
        at_time = rows.select("target", "epoch_us", *(nw.col(name).cast(nw.Float64) for name in names))
        both = _with_hour(at_time, "epoch_us").join(selection.beside(_members_table(members)), on="hour")
        within = (nw.col("epoch_us") >= nw.col("window_from_us")) & (nw.col("epoch_us") <= nw.col("window_until_us"))
        parts.append(_table(both.filter(within).group_by("window", "target").agg(*(nw.col(n).sum() for n in names))))
    return _matrices(parts, len(windows), names)


def job_step_us(selection: StoreSelection, window: RunWindow) -> int | None:
    """How long intervals of job_stats are at that time; None: there are none of this job."""
    if window.job_id is None or not selection.holds("job_io"):
        return None
    days = _days_of(window)
    rows = selection.rows_of_days("job_io", days).filter(
        nw.col("job_id") == window.job_id,
        nw.col("start_us") < window.end_us + HOUR_US,
        nw.col("epoch_us") > window.start_us - HOUR_US,
    )
    lengths = rows.with_columns((nw.col("epoch_us") - nw.col("start_us")).alias("length_us"))
    counts = _table(lengths.group_by("length_us").agg(nw.len().alias("rows"))).to_pylist()
    usable = [(line["rows"], -line["length_us"]) for line in counts if 0 < line["length_us"] <= LONGEST_US]
    return -max(usable)[1] if usable else None


# Rows of tables in the time of runs


def _summed(
    selection: StoreSelection,
    windows: Sequence[RunWindow],
    table: str,
    measured: Callable[[Frame], Frame],
    names: Sequence[str],
    of_job: bool = False,
) -> TargetSums:
    parts = [
        _grouped(selection, measured(selection.rows_of_days(table, days)), members, names, of_job)
        for days, members in _batches(selection, windows, table)
    ]
    return _matrices(parts, len(windows), [*names, "seconds"])


Members = Sequence[tuple[int, RunWindow]]


def _grouped(selection: StoreSelection, rows: Frame, members: Members, names: Sequence[str], of_job: bool) -> pa.Table:
    """Sums by window and target, each row by the share of it that lies in the window; with `of_job` of its job only."""
    kept = [*(["job_id"] if of_job else []), "target", "start_us", "epoch_us", "duration_s"]
    timed = rows.select(*kept, *names).filter(nw.col("epoch_us") > nw.col("start_us"))
    beside = selection.beside(_members_table(members))
    hours = _with_hour(timed, "start_us")
    both = (
        hours.join(beside, left_on=["hour", "job_id"], right_on=["hour", "window_job"])
        if of_job
        else hours.join(beside, on="hour")
    )
    later = nw.col("start_us") > nw.col("window_from_us")
    earlier = nw.col("epoch_us") < nw.col("window_until_us")
    begin = nw.when(later).then(nw.col("start_us")).otherwise(nw.col("window_from_us"))
    end = nw.when(earlier).then(nw.col("epoch_us")).otherwise(nw.col("window_until_us"))
    both = both.with_columns((end - begin).alias("shared_us")).filter(nw.col("shared_us") > 0)
    length = (nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64)
    both = both.with_columns((nw.col("shared_us").cast(nw.Float64) / length).alias("share"))
    weighted = [(nw.col(name) * nw.col("share")).alias(name) for name in names]
    parts = both.select("window", "target", *weighted, (nw.col("duration_s") * nw.col("share")).alias("seconds"))
    return _table(parts.group_by("window", "target").agg(*(nw.col(name).sum() for name in (*names, "seconds"))))


def _batches(
    selection: StoreSelection, windows: Sequence[RunWindow], table: str
) -> Iterator[tuple[set[date], Members]]:
    """Days on which rows of the table are in the time of windows, as many as may be asked for together."""
    counts = selection.snapshot(table).days()
    wanted: dict[date, list[int]] = {}
    for place, window in enumerate(windows):
        for day in _days_of(window):
            if day in counts:
                wanted.setdefault(day, []).append(place)
    days: set[date] = set()
    rows = 0
    for day in sorted(wanted):
        if days and rows + counts[day] > selection.engine.rows_per_chunk:
            yield days, _members(windows, wanted, days)
            days, rows = set(), 0
        days, rows = {*days, day}, rows + counts[day]
    if days:
        yield days, _members(windows, wanted, days)


def _members(windows: Sequence[RunWindow], wanted: dict[date, list[int]], days: set[date]) -> Members:
    places = sorted({place for day in days for place in wanted[day]})
    return [(place, windows[place]) for place in places]


def _days_of(window: RunWindow) -> set[date]:
    first, last = (from_epoch_us(us).date().toordinal() for us in (window.start_us - LONGEST_US, window.end_us))
    return {date.fromordinal(number_) for number_ in range(first, last + 1)}


def _hours(window: RunWindow, after: int = 0) -> range:
    return range((window.start_us - LONGEST_US) // HOUR_US, window.end_us // HOUR_US + 1 + after)


def _members_table(members: Members) -> pa.Table:
    """One row for each window and hour in which a row may start that overlaps it."""
    lines = [(place, window, hour) for place, window in members for hour in _hours(window)]
    return pa.table(
        {
            "window": pa.array([place for place, _, _ in lines], pa.int64()),
            "hour": pa.array([hour for _, _, hour in lines], pa.int64()),
            "window_from_us": pa.array([window.start_us for _, window, _ in lines], pa.int64()),
            "window_until_us": pa.array([window.end_us for _, window, _ in lines], pa.int64()),
            "window_job": pa.array([window.job_id for _, window, _ in lines], pa.string()),
        }
    )


def _hours_table(members: Members) -> pa.Table:
    hours = sorted({hour for _, window in members for hour in _hours(window, after=1)})
    return pa.table({"hour": pa.array(hours, pa.int64())})


def _with_hour(rows: Frame, column: str) -> Frame:
    return rows.with_columns((nw.col(column) // HOUR_US).alias("hour"))


def _operations(rows: Frame, live: Sequence[str]) -> Frame:
    counts = [nw.coalesce(nw.col(name).cast(nw.Float64), number(0)) for name in live]
    return rows.with_columns(total(counts).alias("ops"))


def _of_kind(rows: Frame, kind: str) -> Frame:
    return rows.filter(nw.col("target_kind").is_null() | (nw.col("target_kind") == kind))


# Answers as matrices


def _matrices(parts: Sequence[pa.Table], windows: int, names: Sequence[str]) -> TargetSums:
    """Windows × targets; a window that two batches have parts of is added up."""
    targets = sorted({target for part in parts for target in part.column("target").to_pylist()})
    place = {target: column for column, target in enumerate(targets)}
    sums = {name: np.full((windows, len(targets)), np.nan) for name in names}
    for part in parts:
        rows = part.column("window").to_numpy().astype(np.int64)
        columns = np.array([place[target] for target in part.column("target").to_pylist()], np.int64)
        for name in names:
            values = part.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
            before = sums[name][rows, columns]
            sums[name][rows, columns] = np.where(np.isnan(before), values, before + np.nan_to_num(values))
    return TargetSums(targets, sums)


def _table(frame: Frame) -> pa.Table:
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    return table
