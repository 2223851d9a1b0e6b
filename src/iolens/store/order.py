"""In which order the samples of a capture were taken: the file's, or that of their clocks where the file was shuffled.

Counters only rise between resets, so they tell. Where the clocks go back within a file, the order in which the target's
counters fall less often is taken; the clocks' order when it makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from iolens.counters.differences import START_TOLERANCE_US, OrderEvidence
from iolens.records import Capture, CounterSet, Sample, Samples

Counted = Sample | Samples
_Target = tuple[str, str]  # file system, target


def as_taken(items: Sequence[Counted], *, trusted: bool = False) -> list[Counted]:
    """The samples of a capture, in its order, as they were taken. Of a `trusted` one the order is known to be right."""
    strayed = set() if trusted else _out_of_step(items)
    if not strayed:
        return list(items)
    arranged = [item for item in items if (item.filesystem, item.target) not in strayed]
    for target in sorted(strayed):
        arranged += _arranged([item for item in items if (item.filesystem, item.target) == target])
    return arranged


def order_in_stream(capture: Capture, batch: str) -> OrderEvidence:
    """What the numbers of two pieces of one stream tell of their order; nothing if they are of different streams.

    A piece is known by stream and number in its identity, or by the stream and a sequence of its own.
    """
    stream, _, number = capture.identity.rpartition("/")
    if not number.isdecimal():
        stream, number = capture.identity, str(capture.sequence)
    other_stream, _, other_number = batch.rpartition("/")
    if not capture.numbered or stream != other_stream or not other_number.isdecimal():
        return OrderEvidence.NONE
    return OrderEvidence.AFTER if int(other_number) < int(number) else OrderEvidence.BEFORE


def _out_of_step(items: Iterable[Counted]) -> set[_Target]:
    """Targets whose clock goes back somewhere."""
    last: dict[tuple[str, str, str], int] = {}
    strayed = set()
    for item in items:
        if isinstance(item, Samples) and not len(item):
            continue
        key = (item.filesystem, item.target, item.table)
        first = item.snapshot_us if isinstance(item, Sample) else int(item.snapshot_us[0])
        goes_on = isinstance(item, Sample) or bool((np.diff(item.snapshot_us) >= 0).all())
        if first < last.get(key, first) or not goes_on:
            strayed.add(key[:2])
        last[key] = item.snapshot_us if isinstance(item, Sample) else int(item.snapshot_us[-1])
    return strayed


def _arranged(items: Sequence[Counted]) -> list[Counted]:
    """All samples of one target, in one of the two orders: its clock is the same for all of its tables."""
    as_filed: list[Counted] = []
    by_clock: list[Counted] = []
    falls_as_filed = falls_by_clock = 0
    for table in dict.fromkeys(item.table for item in items):
        singles = [item for item in items if item.table == table and isinstance(item, Sample)]
        columns = [item for item in items if item.table == table and isinstance(item, Samples)]
        if singles:
            in_time = sorted(singles, key=lambda sample: sample.snapshot_us)
            as_filed, by_clock = [*as_filed, *singles], [*by_clock, *in_time]
            falls_as_filed, falls_by_clock = falls_as_filed + _falls(singles), falls_by_clock + _falls(in_time)
        if columns:
            series = joined(columns)
            ordered = _chosen(series, np.argsort(series.snapshot_us, kind="stable"))
            as_filed, by_clock = [*as_filed, series], [*by_clock, ordered]
            falls_as_filed += _falls_in_columns(series)
            falls_by_clock += _falls_in_columns(ordered)
    return as_filed if falls_as_filed < falls_by_clock else by_clock


def joined(pieces: Sequence[Samples]) -> Samples:
    """Several series of one target and table as one, in their order."""
    if len(pieces) == 1:
        return pieces[0]
    names = dict.fromkeys(name for piece in pieces for name in piece.counters)
    times, snapshots = (np.concatenate([getattr(piece, of) for piece in pieces]) for of in ("time_us", "snapshot_us"))
    counters = {}
    for name in names:
        parts = [piece.counters.get(name, np.ma.MaskedArray(np.zeros(len(piece), np.int64), True)) for piece in pieces]
        numbers = np.concatenate([np.ma.getdata(part) for part in parts])
        counters[name] = np.ma.MaskedArray(numbers, np.concatenate([np.ma.getmaskarray(part) for part in parts]))
    return replace(pieces[-1], time_us=times, snapshot_us=snapshots, counters=counters)


def _chosen(series: Samples, order: NDArray[np.intp]) -> Samples:
    counters = {name: column[order] for name, column in series.counters.items()}
    return replace(series, time_us=series.time_us[order], snapshot_us=series.snapshot_us[order], counters=counters)


def _falls(samples: Iterable[Sample]) -> int:
    return sum(
        _falls_between(before.sets[name], now)
        for before, after in pairwise(samples)
        for name, now in after.sets.items()
        if name in before.sets
    )


def _falls_between(before: CounterSet, now: CounterSet) -> int:
    """Whether counting began anew between two readings; twice so if it would have begun before it did."""
    began = 0 if before.start_us is None or now.start_us is None else now.start_us - before.start_us
    if abs(began) > START_TOLERANCE_US:
        return 1 + (began < 0)
    return any(value < before.counters.get(name, 0) for name, value in now.counters.items())


def _falls_in_columns(series: Samples) -> int:
    fallen = np.zeros(max(len(series) - 1, 0), bool)
    for column in series.counters.values():
        numbers, unknown = np.ma.getdata(column), np.ma.getmaskarray(column)
        fallen |= (numbers[1:] < numbers[:-1]) & ~unknown[1:] & ~unknown[:-1]
    return int(fallen.sum())
