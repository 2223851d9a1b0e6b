"""In which order samples were taken: that of their clocks, or the file's or files' where a clock was set back.

Counters only rise between resets, so they tell. Where the clocks go back within a file, the order in which the target's
counters fall less often is taken; the clocks' order when it makes no difference. Of files of one call the same is asked
of the orders of their names, of their times of change and of the call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.counters.differences import START_TOLERANCE_US, Fall, OrderEvidence, fall
from iolens.records import Capture, CounterSet, Sample, Samples

Counted = Sample | Samples
_Target = tuple[str, str]  # file system, target
_Counters = tuple[str, str, str]  # file system, target, table

HALF: Final = 2  # between files a fall by less than half is rather an earlier sample than a reset
_COST: Final = {Fall.NONE: 0, Fall.RESET: 1, Fall.TINY: 2, Fall.EARLIER: 2}
RETURN_COST: Final = 2
_DIGITS: Final = re.compile(r"(\d+)")


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


class FileOfCall(NamedTuple):
    """What one file of a call brings of counters."""

    path: str
    place: int  # in the call
    samples: Sequence[Sample]


@dataclass(slots=True)
class FileOrder:
    """The order of the files of a call, as their numbers."""

    files: list[int]
    after: dict[int, int] = field(default_factory=dict)  # place among the files of the same targets, by other evidence
    unordered: dict[int, set[_Counters]] = field(default_factory=dict)  # counters of files that fit nowhere


def order_of_files(files: Sequence[FileOfCall]) -> FileOrder:
    """Files that share targets in the order in which the counters of those fall the least, by the clock or by names,
    times of change, or the call; by the clock if it makes no difference.
    """
    done = FileOrder(list(range(len(files))))
    for series in _of_same_targets(files):
        by_clock = sorted(series, key=lambda number: min(sample.snapshot_us for sample in files[number].samples))
        best, cost = by_clock, _falls_and_steps(files, by_clock)
        orders = _other_orders(files, by_clock) if cost else []
        for order in orders:
            if (other := _falls_and_steps(files, order)) < cost:
                best, cost = order, other
        for slot, number in zip(sorted(series), best, strict=True):
            done.files[slot] = number
        if best is not by_clock:
            done.after |= {number: place for place, number in enumerate(best)}
        elif cost and by_clock not in orders[:2]:
            for number, key in _strays(files, by_clock):
                done.unordered.setdefault(number, set()).add(key)
    return done


def _of_same_targets(files: Sequence[FileOfCall]) -> list[list[int]]:
    """Files that are tied together by targets that they share."""
    series: dict[_Target, list[int]] = {}
    for number, file in enumerate(files):
        targets = {(sample.filesystem, sample.target) for sample in file.samples}
        tied = list({id(series[target]): series[target] for target in targets if target in series}.values())
        members = tied[0] if tied else []
        for other in tied[1:]:
            members += other
            series |= {target: members for target, known in series.items() if known is other}
        members.append(number)
        series |= dict.fromkeys(targets, members)
    return list({id(members): members for members in series.values()}.values())


def _other_orders(files: Sequence[FileOfCall], by_clock: Sequence[int]) -> list[list[int]]:
    """By name with numbers as numbers, by the call, and by time of change where that is known."""

    def natural(number: int) -> list[str | int]:
        return [int(part) if part.isdecimal() else part for part in _DIGITS.split(files[number].path)]

    orders = [sorted(by_clock, key=natural), sorted(by_clock, key=lambda number: files[number].place)]
    try:
        changed = {number: os.stat(files[number].path).st_mtime_ns for number in by_clock}  # noqa: PTH116
    except OSError:
        return orders
    return [*orders, sorted(by_clock, key=changed.__getitem__)]


def _falls_and_steps(files: Sequence[FileOfCall], order: Iterable[int]) -> int:
    """How much is odd in an order: steps back of the clock; falls of counters, more so if too small for a reset; and
    returns to where they fell from, as if there had been none.
    """
    last: dict[_Counters, Sample] = {}
    fallen: dict[_Counters, Sample] = {}  # the last one before a fall
    total = 0
    for number in order:
        cost = 0
        for sample in files[number].samples:
            before = last.get(key := (sample.filesystem, sample.target, sample.table))
            if before is not None:
                how = fall(before.sets, sample.sets, HALF)
                cost = max(cost, sample.snapshot_us < before.snapshot_us, _COST[how])
                if how is not Fall.NONE:
                    fallen[key] = before
                elif key in fallen and fall(fallen[key].sets, sample.sets) is not Fall.RESET:
                    cost = max(cost, RETURN_COST)
                    del fallen[key]
            last[key] = sample
        total += cost
    return total


def _strays(files: Sequence[FileOfCall], order: Sequence[int]) -> Iterable[tuple[int, _Counters]]:
    """Samples with lower counters than one of an earlier clock, but not as after a reset: others lie below them, or a
    later one returns to where they fell from. Asked where nothing but the clock tells the order.
    """
    by_key: dict[_Counters, list[tuple[int, Sample]]] = {}
    for number in order:
        for sample in files[number].samples:
            by_key.setdefault((sample.filesystem, sample.target, sample.table), []).append((number, sample))
    for key, samples in by_key.items():
        if len({number for number, _ in samples}) < len(samples):
            continue  # a file with several: which of them strayed, the baseline tells
        first = last = samples[0][1]
        for place, (number, sample) in enumerate(samples):
            how = fall(last.sets, sample.sets)
            later = (other.sets for _, other in samples[place + 1 :])
            if how is Fall.NONE or _has_restarted(last, sample):
                last = sample
            elif (
                how is not Fall.RESET
                or fall(first.sets, sample.sets) is Fall.NONE
                or any(fall(last.sets, sets) is not Fall.RESET for sets in later)
            ):
                yield number, key
            else:
                first = last = sample


def _has_restarted(before: Sample, now: Sample) -> bool:
    """By the start of counting."""
    return any(
        (began := now.sets[name].start_us) is not None
        and known.start_us is not None
        and began - known.start_us > START_TOLERANCE_US
        for name, known in before.sets.items()
        if name in now.sets
    )


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
