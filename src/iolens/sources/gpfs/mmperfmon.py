"""Saved output of IBM Spectrum Scale's `mmperfmon query`: a legend, then one or more tables of its columns over time.

What NSD servers moved to and from disks becomes `target_io`, what clients moved `client_io`, processor and memory
`host_load`. A bucket holds what was counted within it; its stamp is its end. Text, gzip, or a tar archive of many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem, Rows
from iolens.schema import LARGEST
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.gpfs.mmperfmon_text import (
    CALLS,
    CLIENT,
    LOAD,
    NSD,
    SERVER,
    Numbers,
    Subject,
    Text,
    TextReader,
    Times,
)
from iolens.sources.reading.archives import TAR_HEAD, archive_members, is_tar, unpacked_member
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import DAMAGED, bounded_lines, opened, unpacked
from iolens.sources.reading.captures import Lookahead, content_identity, read_each, refuse_empty
from iolens.sources.reading.local_time import LocalClock, local_text
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import combined_identity, stated_zone, zone_name
from iolens.units import SECOND_US

SETTINGS: Final = ("timezone", "stamp", "filesystems")
TEXT_BYTES: Final = 10_000  # about what an output takes in memory
VALUE_BYTES: Final = 16  # and each value of it, with its time
REPEATED_COLUMNS: Final = 3  # so many equal counts in a row are no coincidence

_LEGEND_HEAD: Final = re.compile(rb"^Legend:[ \t]*+\n\s*+1:\s++[^|\s]++\|\w++\|", re.MULTILINE)


class Mmperfmon:
    """Saved output of `mmperfmon query`."""

    name = "mmperfmon"
    summary = "output of IBM Spectrum Scale's `mmperfmon query`: text, gzip or tar archives of many"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it holds a legend of metrics, itself or in the first files of an archive."""
        return _LEGEND_HEAD.search(unpacked(head).replace(b"\r\n", b"\n")) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file or archive; files that tell different columns of the same rows go together."""
        choices = _choices(options)
        files, refused = read_each(paths, partial(_scanned, choices=choices))
        yield from refused
        for group in _linked(files):
            identities = [content_identity(subject.path) for subject in group]
            identity = combined_identity(identities, **choices.said)
            origin = str(group[0].path) + (f" and {len(group) - 1} more" if len(group) > 1 else "")
            yield Capture(origin, identity, partial(_items, tuple(subject.texts for subject in group), choices))


SOURCE: Final = Mmperfmon()


@dataclass(frozen=True, slots=True)
class _Choices:
    """What the user said."""

    options: ReadOptions
    stamp_is_end: bool
    filesystems: Mapping[str, str]  # of NSDs and servers, by pattern of their names

    @property
    def said(self) -> dict[str, object]:
        options = self.options
        return {
            "filesystem": options.filesystem,
            "zone": zone_name(options, options.filesystem),
            "interval": options.interval_s,
            "since": options.since,
            "until": options.until,
            "stamp": None if self.stamp_is_end else "start",
            "filesystems": dict(self.filesystems) or None,
        }

    def filesystem_of(self, *names: str) -> str | None:
        for pattern, filesystem in self.filesystems.items():
            if any(fnmatchcase(name, pattern) for name in names):
                return filesystem
        return self.options.filesystem


def _choices(options: ReadOptions) -> _Choices:
    where = "[sources.mmperfmon]"
    refuse_settings(options, "mmperfmon", where, SETTINGS)
    stamp: Any = options.settings.get("stamp", "end")
    if stamp not in ("end", "start"):
        raise InputError(where, f"stamp = {stamp!r}", "end or start, of the bucket")
    filesystems = options.settings.get("filesystems", {})
    if not isinstance(filesystems, Mapping) or not all(
        isinstance(filesystem, str) for filesystem in filesystems.values()
    ):
        raise InputError(where, f"filesystems = {filesystems!r}", 'a section of `"pattern of NSDs" = "file system"`')
    return _Choices(options, stamp == "end", dict(filesystems))


class _SensorScan(NamedTuple):
    """Which columns of which subjects a file tells, and of what times."""

    path: Path
    texts: Lookahead[Text | Problem]
    reported: Mapping[Subject, frozenset[str]]
    begin_us: int
    end_us: int


def _scanned(path: Path, choices: _Choices) -> _SensorScan:
    refuse_empty(path, "output of `mmperfmon query`, or an archive of such")
    texts = Lookahead(path, partial(_texts, path, choices), _size)
    reported: dict[Subject, set[str]] = {}
    begin, end = LARGEST, 0
    for text in texts.look():
        for series in text.series if isinstance(text, Text) else ():
            if series.time_us.size:
                reported.setdefault(series.subject, set()).add(series.column)
                begin, end = min(begin, int(series.time_us.min())), max(end, int(series.time_us.max()))
    return _SensorScan(path, texts, {subject: frozenset(columns) for subject, columns in reported.items()}, begin, end)


def _clock(choices: _Choices, place: str) -> LocalClock:
    return LocalClock(stated_zone(choices.options, choices.options.filesystem, place))


def _linked(scans: Sequence[_SensorScan]) -> list[list[_SensorScan]]:
    """Files of the same time that complete each other's rows (reads in one, writes in another), together."""
    group_of = list(range(len(scans)))
    by_subject: dict[Subject, list[int]] = {}
    for number, scan in enumerate(scans):
        for subject in scan.reported:
            by_subject.setdefault(subject, []).append(number)
    for subject, numbers in by_subject.items():
        numbers.sort(key=lambda number: scans[number].begin_us)
        for value, other in pairwise(numbers):
            if (
                scans[other].begin_us <= scans[value].end_us
                and scans[value].reported[subject] != scans[other].reported[subject]
            ):
                old, new = group_of[other], group_of[value]
                group_of = [new if group == old else group for group in group_of]
    groups: dict[int, list[_SensorScan]] = {}
    for number, scan in sorted(enumerate(scans), key=lambda pair: pair[1].begin_us):
        groups.setdefault(group_of[number], []).append(scan)
    return list(groups.values())


def _size(text: Text | Problem) -> int:
    values = sum(len(series.time_us) for series in text.series) if isinstance(text, Text) else 0
    return TEXT_BYTES + VALUE_BYTES * values


def _texts(path: Path, choices: _Choices) -> Iterator[Text | Problem]:
    """Every output in a file or archive; a problem in place of what cannot be read."""
    clock = _clock(choices, str(path))
    try:
        with opened(path) as stream:
            is_archive = is_tar(stream.read(TAR_HEAD))
        with opened(path) as stream:
            if is_archive:
                yield from _members(stream, path, clock)
            else:
                yield TextReader(str(path), clock).read(bounded_lines(stream))
    except DAMAGED as error:
        yield Problem(str(path), None, f"cannot be read to its end: {error}")
    for hour in clock.once:
        yield Problem(str(path), None, f"around {local_text(hour)} clocks were set back: taken for the first hour")


def _members(stream: BinaryIO, path: Path, clock: LocalClock) -> Iterator[Text | Problem]:
    for member in archive_members(stream, str(path)):
        if isinstance(member, Problem):
            yield member
        else:
            yield TextReader(f"{path}:{member.info.name}", clock).read(bounded_lines(unpacked_member(member.stream)))


def _items(files: tuple[Lookahead[Text | Problem], ...], choices: _Choices) -> Iterator[Item]:
    """Rows of several texts at once: a target's reads and writes may stand in different ones."""
    gathered = _SensorColumns(choices)
    for texts in files:
        empty = True
        for text in texts:
            empty = False
            if isinstance(text, Problem):
                yield text
            else:
                yield from text.problems
                yield from gathered.take(text)
        if empty:
            yield Problem(str(texts.path), None, "an archive without any file, expected output of `mmperfmon query`")
    yield from within(gathered.rows(str(files[0].path)), choices.options)


class _SensorColumns:
    """Columns by what they tell of."""

    def __init__(self, choices: _Choices) -> None:
        self.choices = choices
        self.columns: dict[Subject, dict[str, list[tuple[Times, Numbers]]]] = {}
        self.buckets: dict[Subject, int] = {}
        self.noted: set[str] = set()

    def take(self, text: Text) -> Iterator[Item]:
        for metric, number in text.left_out.items():
            if metric not in self.noted:
                self.noted.add(metric)
                yield Note(text.place, number, f"{metric} is not among the metrics that are kept")
        interval = self.choices.options.interval_s
        bucket = round(interval * SECOND_US) if interval else text.bucket_us
        dropped = _repeated_end(text)
        if dropped is not None:
            yield Problem(text.place, None, "the last row repeats the one before in every column: left out")
        for series in text.series:
            keep = slice(None) if dropped is None else series.time_us != dropped
            self.columns.setdefault(series.subject, {}).setdefault(series.column, []).append(
                (series.time_us[keep], series.values[keep])
            )
            if bucket is not None:
                self.buckets[series.subject] = bucket

    def rows(self, place: str) -> Iterator[Item]:
        disks = {subject.host for subject in self.columns if subject.kind == NSD}
        called = {(subject.host, subject.names) for subject in self.columns if subject.kind == CALLS}
        homeless: dict[str, int] = {}
        for subject, columns in sorted(self.columns.items()):
            if subject.kind == SERVER and subject.host in disks:
                continue  # the same bytes as the disks behind it
            if subject.kind == CLIENT and (subject.host, subject.names) in called:
                continue  # the applications' own calls are there
            filesystem = self._filesystem(subject)
            if filesystem is None:
                homeless[subject.kind] = homeless.get(subject.kind, 0) + 1
            elif subject.kind == LOAD:
                yield from _load_rows(subject, filesystem, *_merged(columns))
            else:
                yield from self._moved_rows(subject, filesystem, *_merged(columns), place=place)
        for kind, count in homeless.items():
            what = "NSDs" if kind == NSD else "servers"
            reason = f"nothing here tells the file system of {count} {what}: supply it with --filesystem"
            yield Problem(place, None, reason)

    def _filesystem(self, subject: Subject) -> str | None:
        if subject.kind in (SERVER, CLIENT, CALLS):
            return subject.names[-1]
        return self.choices.filesystem_of(*subject.names, subject.host)

    def _moved_rows(
        self, subject: Subject, filesystem: str, time_us: Times, columns: Mapping[str, Numbers], *, place: str
    ) -> Iterator[Item]:
        bucket = self.buckets.get(subject)
        if bucket is None:
            yield Problem(place, None, f"one row of {subject.host} does not tell the bucket size: supply --interval")
            return
        end = time_us if self.choices.stamp_is_end else time_us + bucket
        common = {
            "time": end,
            "start": end - bucket,
            "duration_s": bucket / SECOND_US,
            "filesystem": filesystem,
            **{name: _counts(values) for name, values in columns.items()},
        }
        if subject.kind in (CLIENT, CALLS):
            yield Rows("client_io", {**common, "node": subject.host, "job_id": None}, len(end))
        else:
            is_nsd = subject.kind == NSD
            target = f"{subject.host}:{subject.names[0]}" if is_nsd else subject.host
            kind = "lun" if is_nsd else "server"
            yield Rows("target_io", {**common, "target": target, "target_kind": kind}, len(end))


def _merged(columns: Mapping[str, list[tuple[Times, Numbers]]]) -> tuple[Times, dict[str, Numbers]]:
    """All columns of a subject over all its times; of two values for one time the first counts."""
    times = np.unique(np.concatenate([time_us for parts in columns.values() for time_us, _ in parts]))
    merged: dict[str, Numbers] = {}
    for name, parts in columns.items():
        column = np.full(len(times), np.nan)
        for time_us, values in reversed(parts):
            column[np.searchsorted(times, time_us[::-1])] = values[::-1]
        merged[name] = column
    return times, merged


def _counts(values: Numbers) -> np.ma.MaskedArray[tuple[int], np.dtype[np.int64]]:
    unknown = np.isnan(values)
    return np.ma.MaskedArray(np.rint(np.where(unknown, 0.0, values)).astype(np.int64), unknown)


def _load_rows(subject: Subject, filesystem: str, time_us: Times, columns: Mapping[str, Numbers]) -> Iterator[Item]:
    """Processor time in per cent of all cores, as Spectrum Scale counts it, and memory that is not free."""
    nothing = np.full(len(time_us), np.nan)
    cpu = columns.get("cpu_user", nothing) + columns.get("cpu_system", nothing)
    total = columns.get("memory_total", nothing)
    free = columns.get("memory_free", nothing)
    memory = 100 * (1 - free / np.where((total > 0) & (free <= total), total, np.nan))
    reported = ~(np.isnan(cpu) & np.isnan(memory))
    if reported.any():
        values = {"time": time_us[reported], "filesystem": filesystem, "host": subject.host}
        yield Rows(
            "host_load", {**values, "cpu_pct": cpu[reported], "memory_pct": memory[reported]}, int(reported.sum())
        )


def _repeated_end(text: Text) -> int | None:
    """The last stamp, if its row repeats the one before in every count: no coincidence, and counted twice."""
    counts = [subject for subject in text.series if subject.subject.kind != LOAD and len(subject.time_us) > 1]
    last = [(float(count.values[-2]), float(count.values[-1])) for count in counts]
    moved = [before for before, after in last if before == after and before > 0]
    if len(moved) < REPEATED_COLUMNS or any(before != after for before, after in last):
        return None
    return int(counts[0].time_us[-1])
