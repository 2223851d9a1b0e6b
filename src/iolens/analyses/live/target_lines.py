"""Lines of a live view: what each target and server does now, out of matrices of measures by time."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from iolens.analyses.results import only_if_present
from iolens.arrays import Booleans, Floats, Integers
from iolens.histogram_names import IO_TIME
from iolens.models.transaction_time import SIZE_COLUMNS, added, time_terms
from iolens.schema import DIRECTIONS, DISK_KINDS, SIZE_BINS, SUMMED_OPERATIONS
from iolens.units import MIB

# Matrices of measures × targets by time -------------------------------------------------------------------------------
# The memory of a live view. NaN is "did not report", never zero.


@dataclass(slots=True)
class Frames:
    """One matrix per time, in time order; the number of targets may grow."""

    measures: int
    times: list[int] = field(default_factory=list)
    of: dict[int, Floats] = field(default_factory=dict)

    def put(self, time: Integers, target: Integers, measures: Mapping[int, Floats], targets: int) -> None:
        """Write rows: each has a time, the number of its target, and a value of every measure given."""
        order = np.argsort(time, kind="stable")
        starts = np.flatnonzero(np.diff(time[order], prepend=-1)).tolist()
        for begin, end in pairwise([*starts, len(order)]):
            rows = order[begin:end]
            matrix = self._matrix(int(time[rows[0]]), targets)
            for measure, values in measures.items():
                matrix[measure, target[rows]] = values[rows]

    def row(self, time_us: int, measure: int, targets: int) -> Floats:
        """One measure at one time, for all targets."""
        matrix = self.of[time_us]
        row = np.full(targets, np.nan)
        width = min(targets, matrix.shape[1])
        row[:width] = matrix[measure, :width]
        return row

    def before(self, time_us: int) -> Iterator[int]:
        """Times up to this one, the latest first."""
        return reversed(self.times[: bisect.bisect_right(self.times, time_us)])

    def last(self, time_us: int, count: int) -> list[int]:
        """The last times up to this one, in order."""
        return list(islice(self.before(time_us), count))[::-1]

    def forget(self, keep: int) -> int:
        """Drop all but the last so many; how many were dropped."""
        dropped, self.times = self.times[: max(0, len(self.times) - keep)], self.times[-keep:]
        for time_us in dropped:
            del self.of[time_us]
        return len(dropped)

    def forget_before(self, time_us: int) -> None:
        """Drop what is older than a time, but for the last of it: that may still hold then."""
        self.forget(len(self.times) - max(0, bisect.bisect_left(self.times, time_us) - 1))

    def _matrix(self, time_us: int, targets: int) -> Floats:
        values = self.of.get(time_us)
        if values is None:
            bisect.insort(self.times, time_us)
            values = np.full((self.measures, targets), np.nan)
        elif values.shape[1] < targets:
            wider = np.full((self.measures, targets), np.nan)
            wider[:, : values.shape[1]] = values
            values = wider
        self.of[time_us] = values
        return values


# What an interval's row says of its target ----------------------------------------------------------------------------
# FSU, rates, shares, latency. Columns of many rows in, arrays out.
#
# Doubles throughout; NaN where a row does not tell. The numbers are those of `utilization`, for single rows.

LATENCY_SHARE: Final = 0.95
_LABELS: Final = np.array(SIZE_BINS, np.float64)
_OF_DIRECTION: Final = {direction: [name == direction for name, _ in SIZE_COLUMNS.values()] for direction in DIRECTIONS}
_IS_SMALL: Final = np.array([size < MIB for _, size in SIZE_COLUMNS.values()])

Columns = Mapping[str, Any]


class Measures(NamedTuple):
    """Measures of rows, by name."""

    fsu_pct: Floats | None = None
    disk_iops: Floats | None = None
    small_io_pct: Floats | None = None
    read_bytes_per_s: Floats | None = None
    write_bytes_per_s: Floats | None = None
    ops_per_s: Floats | None = None
    wait_s: Floats | None = None
    util_pct: Floats | None = None
    fsu_bytes_pct: Floats | None = None
    metadata_ops_per_s: Floats | None = None


def size_counts(columns: Columns, count: int, seen: Booleans) -> Floats:
    """Rows × bins. A bin that no row ever had does not exist in this format; one that is missing here is unknown.

    `seen` remembers which bins there are.
    """
    counts = np.stack([numbers(columns, name, count) for name in SIZE_COLUMNS], axis=1)
    seen |= np.isfinite(counts).any(axis=0)
    counts[:, ~seen] = 0.0
    return counts


def of_sizes(columns: Columns, counts: Floats, seconds: Floats, costs: Floats) -> Measures:
    """Rows of `target_sizes`; `costs` has r0, r1, w0, w1 of each row's target."""
    ios = {direction: counts[:, of_direction] for direction, of_direction in _OF_DIRECTION.items()}
    ops, moved = (
        [ios[direction].sum(axis=1) for direction in DIRECTIONS],
        [ios[direction] @ _LABELS for direction in DIRECTIONS],
    )
    modelled = counts.sum(axis=1)
    outside = sum(np.nan_to_num(numbers(columns, f"{direction}_ios_outside", len(counts))) for direction in DIRECTIONS)
    with np.errstate(invalid="ignore", divide="ignore"):
        small = 100.0 * counts[:, _IS_SMALL].sum(axis=1) / modelled
        return Measures(
            fsu_pct=_fsu_pct(ops, moved, costs, seconds),
            disk_iops=(modelled + outside) / seconds,
            small_io_pct=np.where(modelled > 0, small, np.nan),
        )


def of_io(columns: Columns, seconds: Floats, costs: Floats) -> Measures:
    """Rows of `target_io`. Client-side bytes of an OST never stand for disk bytes: it has no FSU by bytes."""
    count = len(seconds)
    ops, moved, waited = (
        [numbers(columns, f"{direction}_{what}", count) for direction in DIRECTIONS]
        for what in ("ops", "bytes", "wait_us")
    )
    is_disk = np.fromiter((kind in DISK_KINDS for kind in spread(columns.get("target_kind"), count)), bool, count)
    both = ops[0] + ops[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Measures(
            read_bytes_per_s=moved[0] / seconds,
            write_bytes_per_s=moved[1] / seconds,
            ops_per_s=both / seconds,
            wait_s=np.where(both > 0, (waited[0] + waited[1]) / 1e6 / both, np.nan),
            util_pct=numbers(columns, "busy_us", count) / 1e4 / seconds,
            fsu_bytes_pct=np.where(is_disk, _fsu_pct(ops, moved, costs, seconds), np.nan),
        )


def of_metadata(columns: Columns, seconds: Floats) -> Measures:
    """Rows of `metadata_ops`: each operation once. One that is not counted is left out; none at all is unknown."""
    counts = np.stack([numbers(columns, name, len(seconds)) for name in SUMMED_OPERATIONS])
    total = np.where(np.isfinite(counts).any(axis=0), np.nansum(counts, axis=0), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Measures(metadata_ops_per_s=total / seconds)


class Latencies(NamedTuple):
    """For each target and time of an I/O-time histogram: one of its rows, and the percentile in seconds."""

    row: Integers
    latency_s: Floats


def latencies(columns: Columns, time: Integers, target: Integers, good: Booleans) -> Latencies:
    """The percentile of reads and writes together: the upper edge of the first bin that reaches the share."""
    count = len(time)
    is_time = np.fromiter((name == IO_TIME for name in spread(columns["histogram"], count)), bool, count)
    upper, values = numbers(columns, "bin", count), np.nan_to_num(numbers(columns, "count", count))
    rows = np.flatnonzero(good & is_time & (values > 0))
    rows = rows[np.lexsort((upper[rows], target[rows], time[rows]))]
    if not len(rows):
        return Latencies(rows, np.empty(0))
    new = np.flatnonzero((np.diff(time[rows], prepend=-1) != 0) | (np.diff(target[rows], prepend=-1) != 0))
    group = np.repeat(np.arange(len(new)), np.diff(new, append=len(rows)))
    upto = np.cumsum(values[rows])
    upto -= (upto[new] - values[rows][new])[group]
    reached = upto >= LATENCY_SHARE * np.bincount(group, values[rows])[group]
    first = rows[reached][np.unique(group[reached], return_index=True)[1]]
    return Latencies(first, upper[first] / 1e3)


def used_pct(columns: Columns, count: int) -> Floats:
    """Fullness of rows of `target_capacity`."""
    used, total = numbers(columns, "used_bytes", count), numbers(columns, "total_bytes", count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, 100.0 * used / total, np.nan)


def spread(values: Any, count: int) -> Any:
    """A column as it is, or the one value that all rows have."""
    return [values] * count if values is None or isinstance(values, str | int | float) else values


def numbers(columns: Columns, name: str, count: int) -> Floats:
    """A column as doubles, NaN where it is not known."""
    values = columns.get(name)
    if values is None or isinstance(values, int | float):
        return np.full(count, np.nan if values is None else float(values))
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values).astype(np.float64))
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.float64)
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _fsu_pct(ops: Sequence[Floats], moved: Sequence[Floats], costs: Floats, seconds: Floats) -> Floats:
    """FSU of each row from its operations and bytes, read and written."""
    r0, r1, w0, w1 = costs.T
    busy_s = added((*time_terms(ops[0], moved[0], r0, r1), *time_terms(ops[1], moved[1], w0, w1)))
    return 100.0 * busy_s / seconds


# What a live view shows of one target ---------------------------------------------------------------------------------
# Its line at a tick, its I/Os by size, its past. None: not known.


@dataclass(frozen=True, slots=True)
class TargetLine:
    """One target at one tick; its field names are the keys of the JSON. None: not known."""

    target: str
    target_kind: str | None
    state: (
        str  # reporting; late: its next interval is overdue; silent: none holds, no number is given; waiting: none yet
    )
    fsu_pct: float | None = None
    fsu_bytes_pct: float | None = None
    util_pct: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    iops: float | None = None
    small_io_pct: float | None = None
    latency_s: float | None = None
    latency_kind: str | None = None
    used_pct: float | None = None
    metadata_ops_per_s: float | None = None
    after_reset: bool = False
    age_s: float | None = None  # of its last interval
    number: int = field(default=0, metadata={"json": False})  # its row in the reading's courses
    server: str | None = only_if_present()

    @property
    def busy_pct(self) -> float | None:
        """FSU from sizes; where a device counts only operations and bytes, from those."""
        return self.fsu_pct if self.fsu_pct is not None else self.fsu_bytes_pct


class SizeRate(NamedTuple):
    """Disk I/Os per second of one direction and size (upper bound)."""

    direction: str
    size_bytes: int
    per_s: float


class Past(NamedTuple):
    """One tick of one target."""

    time_us: int
    busy_pct: float | None
    bytes_per_s: float | None


def known_values(values: Floats) -> list[float | None]:
    """The numbers, None for NaN."""
    return [None if value != value else value for value in values.tolist()]


# A line for each server of a live view --------------------------------------------------------------------------------
# What its targets move together, and how busy they are on average.

KIND: Final = "server"
_STATES: Final = ("reporting", "late", "silent", "waiting")
_SUMS: Final = ("read_bytes_per_s", "write_bytes_per_s", "iops", "metadata_ops_per_s")
_MEANS: Final = ("fsu_pct", "fsu_bytes_pct", "util_pct")


def server_lines(lines: Sequence[TargetLine], outermost: str | None, first_number: int) -> list[TargetLine]:
    """By server, where at least two are known; numbers of their courses begin with `first_number`.

    Of data targets only those of the outermost kind are added up: what an OST moves, its devices move again.
    """
    counted = sorted(_counted(lines, outermost), key=lambda line: line.server or "")
    groups = [(server or "", list(members)) for server, members in groupby(counted, key=lambda line: line.server)]
    if len(groups) < 2:
        return []
    return [_server_line(server, members, first_number + place) for place, (server, members) in enumerate(groups)]


def server_courses(
    courses: Floats, lines: Sequence[TargetLine], outermost: str | None, servers: Sequence[TargetLine]
) -> Floats:
    """Mean FSU of the targets of each server at the last ticks: servers × ticks, NaN where none reported."""
    means = np.full((len(servers), courses.shape[1]), np.nan)
    for place, server in enumerate(servers):
        own = courses[[line.number for line in _counted(lines, outermost) if line.server == server.target]]
        known = ~np.isnan(own)
        np.divide(np.where(known, own, 0.0).sum(axis=0), known.sum(axis=0), out=means[place], where=known.any(axis=0))
    return means


def _counted(lines: Iterable[TargetLine], outermost: str | None) -> list[TargetLine]:
    return [line for line in lines if line.server is not None and line.target_kind in (outermost, "mdt")]


def _server_line(server: str, members: Sequence[TargetLine], number: int) -> TargetLine:
    numbers: dict[str, Any] = {name: float(sum(own)) for name in _SUMS if (own := _known(members, name))}
    numbers |= {name: float(np.mean(own)) for name in _MEANS if (own := _known(members, name))}
    return TargetLine(
        server,
        KIND,
        next(state for state in _STATES if any(line.state == state for line in members)),
        **numbers,
        after_reset=any(line.after_reset for line in members),
        age_s=min(_known(members, "age_s"), default=None),
        number=number,
    )


def _known(lines: Iterable[TargetLine], name: str) -> list[float]:
    return [value for line in lines if (value := getattr(line, name)) is not None]
