"""Who made a file system busy: seconds of jobs shared out over the window, or over its busiest part (B1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.analyses.attribution.job_sums import JobSums, Method
from iolens.analyses.attribution.whose import Kind, Whose
from iolens.analyses.attribution.work import MetadataWork
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.calibration.state import NO_FSU, HoldsDiskTime, RefutedCalibration, calibration_of_result
from iolens.analyses.intervals.fsu_sums import collect
from iolens.analyses.intervals.target_rows import codes
from iolens.analyses.results import ratio
from iolens.analyses.utilization.part import WIDEST_BUCKET_S, UtilizationParts
from iolens.analyses.utilization.targets import model_rows
from iolens.arrays import Columns, Floats, Integers
from iolens.errors import NotKnownError
from iolens.models.transaction_time import GRACE_2012, REFUTED_OVER_S
from iolens.store.selection import Selection
from iolens.units import from_epoch_us

# Who made a file system busy, in shares of what its disks or metadata servers did (B1) --------------------------------

Basis = Literal["disk", "metadata"]


@dataclass(frozen=True, slots=True)
class WhoShare:
    """One name. `is_known` is false where no record says whose an id is: the name is the id itself, or why it is
    nobody's by user and project, with all such ids together.
    """

    name: str
    jobs: int
    disk_seconds: float | None  # null where operations have no known cost
    share_pct: float
    read_bytes: int | None
    write_bytes: int | None
    operations: int | None
    metadata_operations: int | None
    user: str | None  # of a job
    executable: str | None  # of a job
    is_known: bool


@dataclass(frozen=True, slots=True)
class BusyTick:
    """A stretch of time: how busy, and whose share of it; what is no one's is the rest to 100 %."""

    time: datetime
    fsu_pct: float | None
    shares: Mapping[str, float]
    unattributed_pct: float


@dataclass(frozen=True, slots=True)
class BusyTarget:
    """One target, and whose share of its time."""

    target: str
    disk_seconds: float | None  # null where operations have no known cost
    metadata_operations: int | None  # where they have none: what the shares are of
    shares: Mapping[str, float]
    unattributed_pct: float


@dataclass(frozen=True, slots=True)
class BlameCoverage:
    """What the answer rests on. Percentages are of the attributed seconds."""

    targets_known: int
    targets_with_job_stats: int
    targets_without_job_stats: list[str]
    intervals: int
    assumed_pct: float | None  # disk I/Os for each RPC not known, one taken
    unmeasured_pct: float | None  # sizes of disk I/Os not known: taken as what the jobs asked for
    job_ids: int
    ids_without_record: int
    incomplete_ids: int  # cut short, or without a field
    contradictory_ids: int  # records of several users or projects
    sources: list[str]
    overlapping_rows: int
    calibrations: list[str]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Blame(HoldsDiskTime):
    """Shares of `who`, of `others` and what is unattributed add up to 100 %. Of metadata it holds no FSU."""

    filesystem: str
    window_start: datetime
    window_end: datetime
    by: Kind
    method: Method
    basis: Basis
    disk_seconds: float | None
    metadata_operations: int | None  # of all, where they have no known cost: what the shares are of
    fsu_pct: float | None
    unattributed_pct: float
    scale_factor: float | None  # what jobs asked for × this = what is attributed; null: they asked for nothing
    saturation_fsu_pct: float | None
    bucket_s: int
    who: Sequence[WhoShare]
    others: WhoShare | None  # further down the list
    series: Sequence[BusyTick]
    targets: Sequence[BusyTarget]
    coverage: BlameCoverage


# Which part of a window was busiest -----------------------------------------------------------------------------------
# By disk time of OSTs, or by what the operations of MDTs cost (B1).


@dataclass(frozen=True, slots=True, eq=False)
class LoadOfTicks:
    """What all targets did in each tick, in seconds or operations, in the order of time."""

    ends_us: Integers
    done: Floats
    tick_us: int


def disk_load(selection: Selection, applied: Sequence[AppliedCalibration]) -> LoadOfTicks:
    """Disk-seconds of the OSTs."""
    maker = UtilizationParts(model_rows(selection, "auto"), tuple(applied), WIDEST_BUCKET_S, per_target=False)
    ticks = [part.sizes for part in selection.parts(maker)]
    ends = np.concatenate([tick["epoch_us"] for tick in ticks]) if ticks else np.empty(0, np.int64)
    if not len(ends):
        raise NotKnownError(f"{selection.filesystem}: FSU is not known in this window, so its busiest part is not")
    fsu, seconds, targets = (np.concatenate([tick[name] for tick in ticks]) for name in ("fsu", "seconds", "targets"))
    return LoadOfTicks(ends, fsu * seconds * targets, round(float(seconds[0]) * 1e6))


def metadata_load(selection: Selection, work: MetadataWork) -> LoadOfTicks:
    """Seconds of the metadata servers, or their operations where it is not known what one costs."""
    rows = selection.frame("metadata_ops")
    counted = rows.filter(nw.col("duration_s") > 0).select("epoch_us", "duration_s", work.cost(rows).alias("done"))
    ticks = collect(counted.group_by("epoch_us").agg(nw.col("done").sum(), nw.col("duration_s").max()))
    if not len(ticks["epoch_us"]):
        raise NotKnownError(
            f"{selection.filesystem}: no operations of its metadata servers are known in this window, so its busiest"
            " part is not"
        )
    order = np.argsort(ticks["epoch_us"])
    tick_us = round(float(ticks["duration_s"][order[0]]) * 1e6)
    return LoadOfTicks(ticks["epoch_us"][order], ticks["done"][order], tick_us)


def busiest_us(load: LoadOfTicks, length_us: int) -> tuple[int, int]:
    """Start and end of the stretch of that length in which most was done; it begins and ends with a tick.

    By sums over ticks that end within the length; gaps count as idle.
    """
    summed = np.concatenate([[0.0], np.cumsum(load.done)])
    first = np.searchsorted(load.ends_us, load.ends_us - length_us, side="right")
    last = int((summed[1:] - summed[first]).argmax())
    end_us = int(load.ends_us[last])
    return max(end_us - length_us, int(load.ends_us[0]) - load.tick_us), end_us


# Who made a file system busy: seconds of jobs shared out by name (B1) -------------------------------------------------
# From job_stats every share is of what the disks did by their own count; the rest to 100 % is nobody's. Where no
# job_stats are stored, bytes of jobs are set beside the bytes the targets moved at the same time (`overlap`): that is
# association, not cause.

TOP: Final = 20
DRAWN: Final = 8  # names with shares of their own over time and by target
OTHERS: Final = "others"
LAST_DIGITS_PCT: Final = 1e-9
COUNTED: Final = ("read_bytes", "write_bytes", "operations", "metadata_operations")


@dataclass(frozen=True, slots=True)
class BlameQuestion:
    """What is asked: about disks or metadata servers, by which names, and how many of them."""

    filesystem: str
    window: tuple[datetime, datetime]
    by: Kind = "job"
    basis: Basis = "disk"
    top: int = TOP
    is_calibrated: bool = True  # seconds are seconds; else operations
    saturation_fsu_pct: float | None = None
    applied: Sequence[AppliedCalibration] = ()  # to the disks


def blame(
    question: BlameQuestion, sums: JobSums, beside: JobSums | None, whose: Whose, coverage: BlameCoverage
) -> Blame:
    """The answer; `beside` are sums of the same jobs on other targets, for their counts alone."""
    counted = [sums.jobs, *([beside.jobs] if beside else [])]
    names = _Names.of(question.by, whose, {text for rows in counted for text in rows["job_id"].tolist()})
    took_s = float(sums.targets["seconds"].sum())
    seconds = names.summed(sums.jobs, "seconds")
    order = np.argsort(-seconds, kind="stable")
    drawn = order[:DRAWN]
    lines = _lines(question, names, seconds, took_s, counted, whose)
    ranked = [lines[place] for place in order.tolist()]
    attributed_s = float(seconds.sum())
    fsu_pct = _pct(took_s, float(sums.targets["duration_s"].sum())) if question.is_calibrated else None
    series = _series(question, sums, names, drawn)
    calibrated = _calibrated(question, sums, fsu_pct, series)
    result = Blame(
        **calibrated,
        filesystem=question.filesystem,
        window_start=question.window[0],
        window_end=question.window[1],
        by=question.by,
        method=sums.method,
        basis=question.basis,
        disk_seconds=took_s if question.is_calibrated else None,
        metadata_operations=None if question.is_calibrated else round(took_s),
        fsu_pct=fsu_pct,
        unattributed_pct=_rest(attributed_s, took_s),
        scale_factor=ratio(attributed_s, sums.wanted_s),
        saturation_fsu_pct=question.saturation_fsu_pct,
        bucket_s=sums.bucket_s,
        who=ranked[: question.top],
        others=_together(ranked[question.top :]),
        series=series,
        targets=_targets(question, sums, names, drawn),
        coverage=coverage,
    )
    return result if result.is_calibrated else replace(result, saturation_fsu_pct=None)


def _calibrated(
    question: BlameQuestion, sums: JobSums, fsu_pct: float | None, series: Sequence[BusyTick]
) -> dict[str, Any]:
    """What the answer says of the calibrations of the disks; buckets of ten minutes or more may refute them."""
    if question.basis != "disk":
        return NO_FSU
    means = [tick for tick in series if tick.fsu_pct is not None and sums.bucket_s >= REFUTED_OVER_S]
    largest = max(means, key=lambda tick: tick.fsu_pct or 0.0, default=None)
    whole_s = (question.window[1] - question.window[0]).total_seconds()
    refuted = None if largest is None else RefutedCalibration.by(largest.fsu_pct)
    if refuted is None and whole_s >= REFUTED_OVER_S:
        refuted = RefutedCalibration.by(fsu_pct)
    applied = question.applied or [AppliedCalibration.given(GRACE_2012)]
    return calibration_of_result(applied, set(sums.targets["target"].tolist()), fsu_pct, None, refuted)


@dataclass(slots=True)
class _Names:
    """Who is behind each job id: `place` among `names`."""

    names: list[str]
    is_known: list[bool]
    ids: list[list[str]]  # by name
    place: dict[str, int] = field(default_factory=dict)  # by job id

    @classmethod
    def of(cls, by: Kind, whose: Whose, ids: Collection[str]) -> _Names:
        result = cls([], [], [])
        places: dict[tuple[str, bool], int] = {}
        for text in sorted(ids):
            who = whose.who(text, by)
            place = places.setdefault(who, len(places))
            if place == len(result.names):
                result.names.append(who.name)
                result.is_known.append(who.is_known)
                result.ids.append([])
            result.ids[place].append(text)
            result.place[text] = place
        return result

    def places(self, rows: Columns) -> Integers:
        """Of the rows' job ids."""
        ids, code = codes(rows["job_id"])
        return np.array([self.place[text] for text in ids], np.int64)[code]

    def summed(self, rows: Columns, column: str) -> Floats:
        """One sum for each name."""
        return np.bincount(self.places(rows), rows[column], len(self.names)).astype(np.float64)

    def table(self, rows: Columns, columns: Integers, width: int) -> Floats:
        """Seconds by name and column."""
        key = self.places(rows) * width + columns
        summed = np.bincount(key, rows["seconds"], len(self.names) * width).astype(np.float64)
        return summed.reshape(len(self.names), width)


def _lines(
    question: BlameQuestion, names: _Names, seconds: Floats, took_s: float, counted: Sequence[Columns], whose: Whose
) -> list[WhoShare]:
    counts = {
        name: sum((names.summed(rows, name) for rows in counted if name in rows), np.zeros(len(names.names)))
        for name in COUNTED
        if any(name in rows for rows in counted)
    }
    lines = []
    for place, name in enumerate(names.names):
        ids = names.ids[place]
        details = whose.details(ids[0]) if question.by == "job" else None
        lines.append(
            WhoShare(
                name=name,
                jobs=len(ids),
                disk_seconds=float(seconds[place]) if question.is_calibrated else None,
                share_pct=_pct(float(seconds[place]), took_s) or 0.0,
                **{what: round(float(counts[what][place])) if what in counts else None for what in COUNTED},
                user=details.user if details else None,
                executable=details.executable if details else None,
                is_known=names.is_known[place],
            )
        )
    return lines


def _together(lines: Sequence[WhoShare]) -> WhoShare | None:
    """Those further down the list as one."""
    if not lines:
        return None

    def total(what: str) -> int | None:
        known = [value for line in lines if (value := getattr(line, what)) is not None]
        return sum(known) if known else None

    seconds = [line.disk_seconds for line in lines if line.disk_seconds is not None]
    return WhoShare(
        name=f"{len(lines)} {OTHERS}",
        jobs=sum(line.jobs for line in lines),
        disk_seconds=sum(seconds) if seconds else None,
        share_pct=sum(line.share_pct for line in lines),
        **{what: total(what) for what in COUNTED},
        user=None,
        executable=None,
        is_known=any(line.is_known for line in lines),
    )


def _series(question: BlameQuestion, sums: JobSums, names: _Names, drawn: Integers) -> list[BusyTick]:
    """Buckets in which any target reports."""
    buckets, place = np.unique(sums.targets["bucket"], return_inverse=True)
    took = np.bincount(place, sums.targets["seconds"], len(buckets))
    covered = np.bincount(place, sums.targets["duration_s"], len(buckets))
    table = names.table(sums.jobs, np.searchsorted(buckets, sums.jobs["bucket"]), len(buckets))
    return [
        BusyTick(
            from_epoch_us(int(bucket) * sums.bucket_s * 1_000_000),
            _pct(float(took[number]), float(covered[number])) if question.is_calibrated else None,
            _shares(names, table[:, number], drawn, float(took[number])),
            _rest(float(table[:, number].sum()), float(took[number])),
        )
        for number, bucket in enumerate(buckets.tolist())
    ]


def _targets(question: BlameQuestion, sums: JobSums, names: _Names, drawn: Integers) -> list[BusyTarget]:
    """In the order of their names; none where jobs are not known by target."""
    if not len(sums.places["target"]):
        return []
    targets, place = codes(sums.targets["target"])
    took = np.bincount(place, sums.targets["seconds"], len(targets))
    number = {target: number for number, target in enumerate(targets)}
    columns = np.array([number[target] for target in sums.places["target"].tolist()], np.int64)
    table = names.table(sums.places, columns, len(targets))
    return [
        BusyTarget(
            target,
            float(took[column]) if question.is_calibrated else None,
            None if question.is_calibrated else round(float(took[column])),
            _shares(names, table[:, column], drawn, float(took[column])),
            _rest(float(table[:, column].sum()), float(took[column])),
        )
        for column, target in enumerate(targets)
    ]


def _shares(names: _Names, seconds: Floats, drawn: Integers, took_s: float) -> Mapping[str, float]:
    """Of the names that are drawn, and of all others together."""
    shares = dict.fromkeys((names.names[place] for place in drawn.tolist()), 0.0)
    for place in drawn.tolist():  # an id may look like a name
        shares[names.names[place]] += _pct(float(seconds[place]), took_s) or 0.0
    rest = float(seconds.sum() - seconds[drawn].sum())
    return shares | ({OTHERS: _pct(max(rest, 0.0), took_s) or 0.0} if len(names.names) > len(drawn) else {})


def _pct(part: float, whole: float) -> float | None:
    return 100.0 * part / whole if whole > 0 else None


def _rest(part: float, whole: float) -> float:
    """What is left to 100 %, but for the last digits; nothing of nothing."""
    rest = 100.0 - 100.0 * part / whole if whole > 0 else 0.0
    return rest if rest > LAST_DIGITS_PCT else 0.0
