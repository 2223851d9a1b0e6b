"""What targets did in the time of each of many runs, by the file system's rows and what its disk I/Os cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.job_sums import job_seconds
from iolens.analyses.attribution.whose import JobIdParts, guessed_parts
from iolens.analyses.attribution.work import DiskWork, interval_costs, operations, short_enough
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.intervals.fsu_sums import number
from iolens.analyses.latency.part import HISTOGRAM
from iolens.analyses.utilization.targets import ModelRows
from iolens.arrays import Floats
from iolens.models.transaction_time import added
from iolens.schema import DIRECTIONS
from iolens.store.parts import ALL_TIME, Days, Ends
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, SECOND_US, from_epoch_us

# The file system of a run ---------------------------------------------------------------------------------------------
# Its rows, what disk I/Os cost there, and how it names jobs.

HOUR_US: Final = 3600 * SECOND_US


@dataclass(frozen=True, slots=True, eq=False)
class ObservedSystem:
    """`targets` are the OSTs of runs whose logs name none; `parts_of` takes an id of job_stats apart."""

    selection: StoreSelection
    applied: Sequence[AppliedCalibration]
    rows: ModelRows
    parts_of: Callable[[str], JobIdParts] = guessed_parts
    targets: frozenset[str] | None = None

    @property
    def work(self) -> DiskWork:
        """What disks did, in seconds."""
        return DiskWork(tuple(self.applied), self.rows)

    @property
    def calibrations(self) -> list[str]:
        """Their names."""
        return sorted({item.calibration.name for item in self.applied})

    def ids_of(self, jobs: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
        """Of the known ids of job_stats those of each job."""
        by_job: dict[str, list[str]] = {}
        for text in sorted(known):
            parts = self.parts_of(text)
            job = text if text in jobs else parts.job_id if parts.is_whole else None
            if job is not None and job in jobs:
                by_job.setdefault(job, []).append(text)
        return by_job


@dataclass(frozen=True, slots=True, eq=False)
class DaysOfRuns:
    """Some days, which need not follow each other, and of them the hours of runs with one more on both sides."""

    selection: StoreSelection
    days: frozenset[date]
    hours: pa.Table
    looks_around: bool = True
    end_us: int | None = None
    ends: Ends = ALL_TIME

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """Rows that start on these days, in these hours."""
        return self._rows(table, self.days)

    def around(self, table: str) -> nw.LazyFrame[Any]:
        """Those of the day after, too, unless it does not look around: an interval may go on after midnight."""
        if not self.looks_around:
            return self.frame(table)
        return self._rows(table, self.days | {date.fromordinal(day.toordinal() + 1) for day in self.days})

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """By the engine of the selection."""
        return self.selection.beside(rows)

    def slices(self, table: str, tick_us: int) -> Iterator[Days]:
        """All at once: sums are the engine's."""
        yield self

    def columns(self, table: str, names: Sequence[str], kind: str) -> None:
        """The engine is asked."""

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """Not known without asking."""
        return None

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """Of all days."""
        return self.selection.live_columns(table, names)

    def _rows(self, table: str, days: Collection[date]) -> nw.LazyFrame[Any]:
        rows = self.selection.rows_of_days(table, days)
        return with_hour(rows, "start_us").join(self.selection.beside(self.hours), on="hour", how="semi")


def with_hour(rows: nw.LazyFrame[Any], column: str) -> nw.LazyFrame[Any]:
    """Rows with the hour since 1970 in which they are."""
    return rows.with_columns((nw.col(column) // HOUR_US).alias("hour"))


# What targets did in the time of each of many runs, as few questions to the engine ------------------------------------
# Sums by run and target.
#
# Times of runs are cut into hours. Rows of tables are joined with them by the hour in which they start and kept where
# they overlap, each with the share of it that does. Only days on which there was a run are opened.

Frame = nw.LazyFrame[Any]

NEAR_US: Final = (HOUR_US, DAY_US)  # how far from a run's middle a reading of fullness is looked for, in turn
MOST_JOB_ROWS: Final = 3_000_000  # of job_stats at once: their intervals come to this process


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
class WindowTargetSums:
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


def disk_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Disk time of targets (`disk_s`, Eq. 7) in observed time (`seconds`)."""
    work = system.work
    table = "target_io" if work.rows.model == "counters" else "target_sizes"
    parts = []
    for days, members in _batches(system.selection, windows, table):
        alone = replace(days, looks_around=False)  # the day after may be of the next batch
        rows = work.done(alone).with_columns(added([nw.col(f"{d}_s") for d in DIRECTIONS]).alias("disk_s"))
        parts.append(_grouped(days, rows, _members_table(members), ["disk_s"]))
    return _matrices(parts, len(windows), ["disk_s", "seconds"])


def byte_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Bytes that OSTs moved (`bytes`), in observed time; where only disks are known, those."""
    parts = []
    for days, members in _batches(system.selection, windows, "target_io"):
        moved = [nw.col(f"{direction}_bytes").cast(nw.Float64).fill_null(0.0) for direction in DIRECTIONS]
        rows = system.rows.io(days.frame("target_io")).with_columns(added(moved).alias("bytes"))
        parts.append(_grouped(days, rows, _members_table(members), ["bytes"]))
    return _matrices(parts, len(windows), ["bytes", "seconds"])


def operation_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Metadata operations of MDTs (`ops`), in observed time."""
    parts = []
    for days, members in _batches(system.selection, windows, "metadata_ops"):
        rows = days.frame("metadata_ops")
        counted = rows.with_columns(operations(rows).alias("ops"))
        parts.append(_grouped(days, counted, _members_table(members), ["ops"]))
    return _matrices(parts, len(windows), ["ops", "seconds"])


def own_operation_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Those of the run's job, by job_stats."""
    parts = []
    for days, members in _batches(system.selection, windows, "job_io", most_rows=MOST_JOB_ROWS):
        rows = days.frame("job_io").filter(nw.col("target_kind") == "mdt")
        counted = rows.with_columns(operations(rows).alias("ops"))
        parts.append(_grouped(days, counted, _jobs_table(system, days, members), ["ops"], of_job=True))
    return _matrices(parts, len(windows), ["ops", "seconds"])


def own_disk_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Disk time of the run's job on OSTs (`disk_s`, B1), and how many of its rows lack a count (`unknown`)."""
    work = system.work
    parts = []
    for days, members in _batches(system.selection, windows, "job_io", most_rows=MOST_JOB_ROWS):
        rows = job_seconds(days, work, interval_costs(days, work, DAY_US))
        rows = rows.with_columns(
            added([nw.col(f"{direction}_s") for direction in DIRECTIONS]).alias("disk_s"),
            ((nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64) * number(1e-6)).alias("duration_s"),
        )
        lacks = nw.when(nw.col("disk_s").is_null()).then(number(1.0)).otherwise(number(0.0))
        counted = rows.with_columns(lacks.alias("unknown"))
        jobs = _jobs_table(system, days, members)
        parts.append(_grouped(days, counted, jobs, ["disk_s", "unknown"], of_job=True))
    return _matrices(parts, len(windows), ["disk_s", "unknown", "seconds"])


def io_time_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Disk I/Os of OSTs (`ios`) and their summed time (`io_us`), by its sum where it is counted, else by `brw_stats`.

    Of a histogram an I/O takes the upper edge of its bin, so that times are right up to a factor of two.
    """
    counted = _timed_sums(system, windows, "target_io", _waits)
    return counted if counted.targets else _timed_sums(system, windows, "target_histograms", _binned_times)


def _timed_sums(
    system: ObservedSystem, windows: Sequence[RunWindow], table: str, timed: Callable[[Frame], Frame]
) -> WindowTargetSums:
    kind = nw.col("target_kind")
    parts = []
    for days, members in _batches(system.selection, windows, table):
        rows = timed(days.frame(table).filter(kind.is_null() | (kind == "ost")))
        parts.append(_grouped(days, rows, _members_table(members), ["ios", "io_us"]))
    return _matrices(parts, len(windows), ["ios", "io_us"])


def _waits(rows: Frame) -> Frame:
    """Of rows that know the time of their I/Os."""
    known = {d: ~nw.col(f"{d}_wait_us").is_null() & ~nw.col(f"{d}_ops").is_null() for d in DIRECTIONS}
    nothing = nw.lit(0.0)

    def both(what: str) -> nw.Expr:
        values = {d: nw.col(f"{d}_{what}").cast(nw.Float64) for d in DIRECTIONS}
        return added([nw.when(known[d]).then(value).otherwise(nothing) for d, value in values.items()])

    some = rows.filter(known["read"] | known["write"])
    return some.with_columns(both("ops").alias("ios"), both("wait_us").alias("io_us"))


def _binned_times(rows: Frame) -> Frame:
    """The bins are milliseconds."""
    ios = nw.col("count").cast(nw.Float64)
    io_us = ios * nw.col("bin").cast(nw.Float64) * nw.lit(1000.0)
    return rows.filter(nw.col("histogram") == HISTOGRAM).with_columns(ios.alias("ios"), io_us.alias("io_us"))


def fullness_at_middle(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """How full OSTs were (`full_pct`) by the reading nearest to the middle of each run, at most a day away."""
    parts: list[pa.Table] = []
    wanted = [*enumerate(windows)]
    for near_us in NEAR_US:
        parts += _readings_near(system, wanted, near_us)
        nearest = _nearest(parts, len(windows))
        place = {target: column for column, target in enumerate(nearest.targets)}
        is_known = ~np.isnan(nearest.sums["full_pct"])
        wanted = [
            (row, window)
            for row, window in wanted
            if not all(name in place and is_known[row, place[name]] for name in window.targets or place)
            or not is_known[row].any()
        ]
    return nearest


def _readings_near(system: ObservedSystem, wanted: Sequence[tuple[int, RunWindow]], near_us: int) -> list[pa.Table]:
    """Of each OST and window the nearest reading: how full, and how far from the middle of the window."""
    around = []
    for _, window in wanted:
        middle_us = (window.start_us + window.end_us) // 2
        around.append(RunWindow(window.job_id, middle_us - near_us, middle_us + near_us, window.targets))
    numbers = np.array([row for row, _ in wanted], np.int64)
    kind, away = nw.col("target_kind"), nw.col("epoch_us") - nw.col("window_from_us") - near_us
    full_pct = number(100.0) * nw.col("used_bytes").cast(nw.Float64) / nw.col("total_bytes").cast(nw.Float64)
    keys: list[str] = ["window", "target", "apart_us"]
    parts = []
    for days, members in _batches(system.selection, around, "target_capacity"):
        rows = system.selection.rows_of_days("target_capacity", days.days)
        osts = rows.filter(kind.is_null() | (kind == "ost"), nw.col("total_bytes") > 0, ~nw.col("used_bytes").is_null())
        at_time = osts.select("target", "epoch_us", full_pct.alias("full_pct"))
        both = with_hour(at_time, "epoch_us").join(days.beside(_members_table(members)), on="hour")
        near = both.with_columns(away.abs().alias("apart_us")).filter(nw.col("apart_us") <= near_us)
        nearest = near.group_by("window", "target").agg(nw.col("apart_us").min())
        table = _table(near.join(nearest, on=keys, how="semi").group_by(*keys).agg(nw.col("full_pct").max()))
        rows_of = numbers[table.column("window").to_numpy().astype(np.int64)]
        parts.append(table.set_column(table.column_names.index("window"), "window", pa.array(rows_of, pa.int64())))
    return parts


def _nearest(parts: Sequence[pa.Table], windows: int) -> WindowTargetSums:
    """Of several answers about a window and OST the nearest reading."""
    targets = sorted({target for part in parts for target in part.column("target").to_pylist()})
    place = {target: column for column, target in enumerate(targets)}
    full_pct, apart = (np.full((windows, len(targets)), value) for value in (np.nan, np.inf))
    for part in parts:
        for line in part.to_pylist():
            at = line["window"], place[line["target"]]
            if line["apart_us"] < apart[at]:
                full_pct[at], apart[at] = line["full_pct"], line["apart_us"]
    return WindowTargetSums(targets, {"full_pct": full_pct})


def job_step_us(system: ObservedSystem, window: RunWindow) -> int | None:
    """How long intervals of job_stats are at that time; None: there are none of this job."""
    if window.job_id is None:
        return None
    counts: dict[int, int] = {}
    for days, members in _batches(system.selection, [window], "job_io"):
        length = (nw.col("epoch_us") - nw.col("start_us")).alias("length_us")
        rows = short_enough(days.frame("job_io")).filter(nw.col("epoch_us") > nw.col("start_us"))
        jobs = days.beside(_jobs_table(system, days, members).select(["window_job"]))
        own = rows.join(jobs, left_on="job_id", right_on="window_job", how="semi").with_columns(length)
        for line in _table(own.group_by("length_us").agg(nw.len().alias("rows"))).to_pylist():
            counts[line["length_us"]] = counts.get(line["length_us"], 0) + line["rows"]
    return min(counts, key=lambda length: (-counts[length], length)) if counts else None


# Rows of tables in the time of runs


Members = Sequence[tuple[int, RunWindow]]


def _grouped(days: DaysOfRuns, rows: Frame, windows: pa.Table, names: Sequence[str], of_job: bool = False) -> pa.Table:
    """Sums by window and target, each row by the share of it that lies in the window; with `of_job` of its job only."""
    kept = [*(["job_id"] if of_job else []), "target", "start_us", "epoch_us", "duration_s"]
    timed = rows.select(*kept, *names).filter(nw.col("epoch_us") > nw.col("start_us"))
    keys = ["hour", "job_id"] if of_job else ["hour"]
    right = ["hour", "window_job"] if of_job else ["hour"]
    both = with_hour(timed, "start_us").join(days.beside(windows), left_on=keys, right_on=right)
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
    selection: StoreSelection, windows: Sequence[RunWindow], table: str, most_rows: int | None = None
) -> Iterator[tuple[DaysOfRuns, Members]]:
    """Days on which rows of the table are in the time of windows, as many as may be asked for together."""
    counts = selection.snapshot(table).days()
    wanted: dict[date, list[int]] = {}
    for place, window in enumerate(windows):
        for day in _days_of(window):
            if day in counts:
                wanted.setdefault(day, []).append(place)
    most = min(selection.engine.rows_per_chunk, most_rows or selection.engine.rows_per_chunk)
    days: set[date] = set()
    rows = 0
    for day in sorted(wanted):
        if days and rows + counts[day] > most:
            yield _batch(selection, windows, wanted, days)
            days, rows = set(), 0
        days, rows = {*days, day}, rows + counts[day]
    if days:
        yield _batch(selection, windows, wanted, days)


def _batch(
    selection: StoreSelection, windows: Sequence[RunWindow], wanted: dict[date, list[int]], days: set[date]
) -> tuple[DaysOfRuns, Members]:
    members = [(place, windows[place]) for place in sorted({place for day in days for place in wanted[day]})]
    hours = sorted({hour for _, window in members for hour in _hours(window, around=1)})
    return DaysOfRuns(selection, frozenset(days), pa.table({"hour": pa.array(hours, pa.int64())})), members


def _days_of(window: RunWindow) -> set[date]:
    first, last = (from_epoch_us(us).date().toordinal() for us in (window.start_us - HOUR_US, window.end_us))
    return {date.fromordinal(number_) for number_ in range(first, last + 1)}


def _hours(window: RunWindow, around: int = 0) -> range:
    """Hours in which a row may start that overlaps the window: an interval has at most an hour."""
    return range(window.start_us // HOUR_US - 1 - around, window.end_us // HOUR_US + 1 + around)


def _members_table(members: Members) -> pa.Table:
    """One row for each window and hour in which a row may start that overlaps it."""
    return _windows_table([(place, window, hour, None) for place, window in members for hour in _hours(window)])


def _jobs_table(system: ObservedSystem, days: DaysOfRuns, members: Members) -> pa.Table:
    """The same for each id that job_stats have of the window's job."""
    texts = _table(days.frame("job_io").select("job_id").unique()).column("job_id").to_pylist()
    jobs = {window.job_id for _, window in members if window.job_id is not None}
    ids = system.ids_of(jobs, texts)
    return _windows_table(
        [
            (place, window, hour, text)
            for place, window in members
            for text in ids.get(window.job_id or "", ())
            for hour in _hours(window)
        ]
    )


def _windows_table(lines: Sequence[tuple[int, RunWindow, int, str | None]]) -> pa.Table:
    return pa.table(
        {
            "window": pa.array([place for place, _, _, _ in lines], pa.int64()),
            "hour": pa.array([hour for _, _, hour, _ in lines], pa.int64()),
            "window_from_us": pa.array([window.start_us for _, window, _, _ in lines], pa.int64()),
            "window_until_us": pa.array([window.end_us for _, window, _, _ in lines], pa.int64()),
            "window_job": pa.array([text for _, _, _, text in lines], pa.string()),
        }
    )


# Answers as matrices


def _matrices(parts: Sequence[pa.Table], windows: int, names: Sequence[str]) -> WindowTargetSums:
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
    return WindowTargetSums(targets, sums)


def _table(frame: Frame) -> pa.Table:
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    return table
