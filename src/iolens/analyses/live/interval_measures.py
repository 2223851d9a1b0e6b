"""What an interval's row says of its target: FSU, rates, shares, latency. Columns of many rows in, arrays out.

Doubles throughout; NaN where a row does not tell. The numbers are those of `utilization`, for single rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from iolens.arrays import Booleans, Floats, Integers
from iolens.histogram_names import IO_TIME
from iolens.models.transaction_time import SIZE_COLUMNS, added, time_terms
from iolens.schema import DIRECTIONS, DISK_KINDS, SIZE_BINS, SUMMED_OPERATIONS
from iolens.units import MIB

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
