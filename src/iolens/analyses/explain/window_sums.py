"""What targets did in the time of each of many runs, as few questions to the engine: sums by run and target.

Times of runs are cut into hours. Rows of tables are joined with them by the hour in which they start and kept where
they overlap, each with the share of it that does. Only days on which there was a run are opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.interval_costs import interval_costs
from iolens.analyses.attribution.job_intervals import short_enough
from iolens.analyses.attribution.job_seconds import job_seconds
from iolens.analyses.attribution.work import operations
from iolens.analyses.explain.observed_system import HOUR_US, DaysOfRuns, ObservedSystem, with_hour
from iolens.analyses.intervals.disk_time import number
from iolens.arrays import Floats
from iolens.models.transaction_time import added
from iolens.schema import DIRECTIONS
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, from_epoch_us

Frame = nw.LazyFrame[Any]

BEFORE_US: Final = DAY_US  # a reading of fullness may be so much older than the run
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


def fullness_sums(system: ObservedSystem, windows: Sequence[RunWindow]) -> WindowTargetSums:
    """Bytes used and in all of OSTs, summed over the readings of the run's time and the day before."""
    earlier = [
        RunWindow(window.job_id, window.start_us - BEFORE_US, window.end_us, window.targets) for window in windows
    ]
    names = ["used_bytes", "total_bytes"]
    kind = nw.col("target_kind")
    parts = []
    for days, members in _batches(system.selection, earlier, "target_capacity"):
        rows = system.selection.rows_of_days("target_capacity", days.days)
        osts = rows.filter(kind.is_null() | (kind == "ost"), nw.col("total_bytes") > 0)
        at_time = osts.select("target", "epoch_us", *(nw.col(name).cast(nw.Float64) for name in names))
        both = with_hour(at_time, "epoch_us").join(days.beside(_members_table(members)), on="hour")
        within = (nw.col("epoch_us") >= nw.col("window_from_us")) & (nw.col("epoch_us") <= nw.col("window_until_us"))
        parts.append(_table(both.filter(within).group_by("window", "target").agg(*(nw.col(n).sum() for n in names))))
    return _matrices(parts, len(windows), names)


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
