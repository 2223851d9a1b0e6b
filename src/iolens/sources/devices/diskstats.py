"""`/proc/diskstats`: what the kernel counts per block device, live under any root or as saved copies with stamps.

Eleven counters since 2.6, four more for discards (4.18) and two for flushes (5.5); a sector is 512 bytes whatever the
disk. The millisecond counters are 32 bits wide in the kernel and wrap. Needs only the standard library, for the sampler
imports it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Capture, CounterSet, Item, Problem, Sample
from iolens.sources.devices.block_devices import (
    COUNTERS,
    KIND,
    TABLE,
    Choice,
    DeviceSeries,
    choose,
    devices_by_name,
    devices_by_sysfs,
    given_by_user,
    host_of,
    is_asked_for,
    left_out_notes,
    refuse_settings,
    system_disks,
    target_name,
)
from iolens.sources.reading.bounded_input import numbered_lines, parameter_bytes, unpacked
from iolens.sources.reading.captures import PIECE_BYTES, Lookahead, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import LARGEST_UNSIGNED, count
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT, Ticker, grid_of
from iolens.units import SECOND_US, epoch_us, parse_local_time

DISKSTATS: Final = "proc/diskstats"
SECTOR_BYTES: Final = 512

# Where in a line each counter is, and what one of it is worth in the unit of its name.
_FIELDS: Final = {
    "read_ops": (3, 1),
    "read_bytes": (5, SECTOR_BYTES),
    "read_wait_us": (6, 1000),
    "write_ops": (7, 1),
    "write_bytes": (9, SECTOR_BYTES),
    "write_wait_us": (10, 1000),
    "busy_us": (12, 1000),
    "queue_us": (13, 1000),
}
_FEWEST_FIELDS: Final = 14
_OLD_PARTITION_FIELDS: Final = 7  # 2.6.0 to 2.6.24: partitions have four counters
_LINE: Final = re.compile(rb"^ *+\d++ ++\d++ (?=[A-Za-z])\S++(?: \d++){11,24} *+\r?$", re.MULTILINE)
_EPOCH: Final = re.compile(r"\d{9,11}(?:\.\d+)?")
_MARKS: Final = re.compile(r"(?:BEGIN|[#=\-\s])*")


class DeviceLine(NamedTuple):
    """One device at one time."""

    number: str  # major:minor
    name: str
    counters: dict[str, int]


def parse_line(line: str) -> DeviceLine | None:
    """One line of the file; None for a partition of an old kernel, which has too few counters to be of use."""
    words = line.split()
    if len(words) == _OLD_PARTITION_FIELDS and all(word.isdecimal() for word in (*words[:2], *words[3:])):
        return None
    if len(words) < _FEWEST_FIELDS:
        raise ValueError(f"{len(words)} columns, expected at least {_FEWEST_FIELDS}")
    if not all(word.isdecimal() for word in (*words[:2], *words[3:])):
        raise ValueError("a counter that is not a whole number")
    counters = {name: count(words[place], name, LARGEST_UNSIGNED) * worth for name, (place, worth) in _FIELDS.items()}
    return DeviceLine(f"{words[0]}:{words[1]}", words[2], counters)


@dataclass(slots=True)
class BlockDevices:
    """The devices of one running machine, read again and again; chooses anew when the kernel's list changes."""

    root: Path
    rule: DeviceRule = field(default_factory=DeviceRule)
    filesystem: str | None = None
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000
    host: str = ""
    listed: list[tuple[str, str]] = field(default_factory=list)
    choice: Choice = field(default_factory=lambda: Choice({}, {}))

    def read(self, tick_us: int) -> Iterator[Item]:
        """One sample of every device that is measured."""
        path = self.root / DISKSTATS
        try:
            text = parameter_bytes(path).decode("utf-8", "replace")
        except OSError as error:
            yield Problem(str(path), None, f"cannot be read: {error.strerror}")
            return
        snapshot_us = self.now_us()
        lines: list[DeviceLine] = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                parsed = parse_line(line) if line.strip() else None
            except ValueError as error:
                yield Problem(str(path), number, str(error))
                continue
            if parsed is not None:
                lines.append(parsed)
        self._look(lines)
        for device_line in lines:
            if (shown := self.choice.kept.get(device_line.name)) is not None:
                yield self._sample(shown, device_line.counters, tick_us, snapshot_us)

    def _look(self, lines: Sequence[DeviceLine]) -> None:
        listed = [(line.number, line.name) for line in lines]
        if listed == self.listed and self.host:
            return
        devices = devices_by_sysfs(self.root, [name for _, name in listed])
        self.choice = choose(devices, self.rule, system_disks(self.root, devices, dict(listed)))
        self.listed, self.host = listed, host_of(self.root)

    def _sample(self, shown: str, counters: dict[str, int], tick_us: int, snapshot_us: int) -> Sample:
        sets = {"": CounterSet(counters)}
        target = target_name(self.host, shown)
        return Sample(TABLE, self.filesystem or self.host, target, tick_us, snapshot_us, sets, KIND)


class Diskstats:
    """Saved copies of /proc/diskstats."""

    name = "diskstats"
    summary = "saved copies of /proc/diskstats, each after a line with its time (`iolens collect` samples it live)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a line has a device with its counters."""
        return _LINE.search(unpacked(head)) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file, the earliest first; ticks are common to all of them."""
        device_lines, refused = read_each(paths, partial(_scan, options=options))
        yield from refused
        scans = sorted(device_lines, key=lambda scan: scan.times[:1])
        series: dict[str, list[int]] = {}
        for scan in scans:
            series.setdefault(scan.text.host, []).extend(scan.times[:SAMPLES_LOOKED_AT])
        ticker = Ticker(grid_of(series, options.interval_s))
        for scan in scans:
            yield Capture(str(scan.text.path), scan.identity, partial(scan.text.items, scan.copies, ticker.copy()))
            for stamp in scan.times:
                ticker.tick(stamp, scan.text.host)


SOURCE: Final = Diskstats()


class _Snapshot(NamedTuple):
    """One copy within a file."""

    time_us: int | None
    line: int
    devices: list[DeviceLine]


_TimedCopy = tuple[_Snapshot, int] | Problem


@dataclass(frozen=True, slots=True)
class _DiskstatsText:
    """One file and what the user said about it."""

    path: Path
    host: str
    options: ReadOptions

    def snapshots(self) -> Iterator[_Snapshot | Problem]:
        """The copies in the file, in its order."""
        current: _Snapshot | None = None
        names: set[str] = set()  # of the devices of the current copy
        for numbered_line in numbered_lines(self.path):
            if isinstance(numbered_line, Problem):
                yield numbered_line
                break
            number, line = numbered_line.number, numbered_line.text.strip()
            if not line:
                continue
            stamp = _stamp_us(line, self.options, str(self.path))
            if stamp is not None:
                if current is not None:
                    yield current
                current, names = _Snapshot(stamp, number, []), set()
                continue
            if line.startswith("#"):
                continue
            current = current or _Snapshot(None, number, [])
            try:
                device = parse_line(line)
            except ValueError as error:
                yield Problem(str(self.path), number, f"not a line of diskstats: {error}")
                continue
            if device is None:
                continue
            if device.name in names:  # unstamped copies one after the other
                yield current
                current, names = _Snapshot(None, number, []), set()
            names.add(device.name)
            current.devices.append(device)
        if current is not None:
            yield current

    def times(self) -> Iterator[_TimedCopy]:
        """Each copy with its time: its stamp, or what the user said of the first."""
        unreported = 0
        for snapshot in self.snapshots():
            if isinstance(snapshot, Problem):
                yield snapshot
                continue
            if not snapshot.devices:
                continue
            if snapshot.time_us is not None:
                yield snapshot, snapshot.time_us
                continue
            at, interval = self.options.at, self.options.interval_s
            if at is None or (unreported and not interval):
                missing = "--at" if at is None else "--interval"
                yield Problem(str(self.path), snapshot.line, f"no line here tells the time: supply {missing}")
                continue
            yield snapshot, epoch_us(at) + unreported * round((interval or 0) * SECOND_US)
            unreported += 1

    def items(self, copies: Iterable[_TimedCopy], ticker: Ticker) -> Iterator[Item]:
        """Everything in the file."""
        ticker = ticker.copy()
        series = DeviceSeries(self.options.filesystem or self.host, self.host)
        choice, listed, reported = Choice({}, {}), [""], dict[str, str]()
        for copy in copies:
            if isinstance(copy, Problem):
                yield copy
                continue
            snapshot, time_us = copy
            if not is_asked_for(time_us, self.options):
                continue
            names = [device.name for device in snapshot.devices]
            if names != listed:
                choice, listed = choose(devices_by_name(names), self.options.devices), names
                reported |= choice.left_out
            tick = ticker.tick(time_us, self.host)
            for device_line in snapshot.devices:
                if device_line.name in choice.kept:
                    series.add(choice.kept[device_line.name], tick, time_us, device_line.counters)
            yield from series.take()
        yield from series.take(at_end=True)
        yield from left_out_notes(str(self.path), reported)


class _DiskstatsScan(NamedTuple):
    """What must be known of a file before it is read."""

    text: _DiskstatsText
    copies: Lookahead[_TimedCopy]
    times: list[int]
    identity: str


def _scan(path: Path, options: ReadOptions) -> _DiskstatsScan:
    from iolens.sources.reading.saved_text import supplied_identity

    refuse_settings(options, "diskstats", str(path))
    host = options.target or options.filesystem
    if not host:
        raise InputError(str(path), "a copy of diskstats does not tell its server", "--target SERVER or --filesystem")
    text = _DiskstatsText(path, host, options)
    copies = Lookahead(path, text.times, _size)
    problem: Problem | None = None
    times: list[int] = []
    for copy in copies.look():
        if isinstance(copy, Problem):
            problem = problem or copy
        else:
            times.append(copy[1])
    if not times:
        reason = problem.reason if problem else "empty file"
        raise InputError(str(path), reason, "lines of /proc/diskstats, each copy after a line with its time")
    return _DiskstatsScan(text, copies, times, supplied_identity(path, **given_by_user(options)))


def _size(copy: _TimedCopy) -> int:
    return PIECE_BYTES * (1 if isinstance(copy, Problem) else 1 + len(copy[0].devices))


def _stamp_us(line: str, options: ReadOptions, place: str) -> int | None:
    """The time a line tells: ISO-8601 or epoch seconds, alone or after `#`, `BEGIN`, `===`."""
    text = line[_MARKS.match(line).end() :].rstrip("#=- ")  # type: ignore[union-attr] # matches at least nothing
    if not (_EPOCH.fullmatch(text) or (text[4:5] == "-" and text[:4].isdecimal())):
        return None
    try:
        timestamp = parse_local_time(text)
    except ValueError:
        return None
    if timestamp.tzinfo is None:
        from iolens.sources.reading.saved_text import stated_zone

        timestamp = timestamp.replace(tzinfo=stated_zone(options, options.filesystem, place))
    return epoch_us(timestamp)


assert set(_FIELDS) == set(COUNTERS)
