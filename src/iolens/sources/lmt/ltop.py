"""Recordings of `ltop -r`: LMT metric strings of every Lustre server, as Cerebro delivered them, one per line.

A line is `<polled> <received> <node> <metric> <value>`; `ltop` polls more often than servers report, so that most
strings come several times. Strings are those of LMT 2 and 3: lmt_ost 1, 2; lmt_oss 1; lmt_mdt 1 to 3; lmt_mds 1, 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.lmt.days import METADATA_COLUMN
from iolens.sources.lustre.capacity import LOCK_LEAVES
from iolens.sources.reading.batches import ROWS_PER_BATCH, RowBatch, SampleBatch, within
from iolens.sources.reading.bounded_input import Line, numbered_lines, unpacked
from iolens.sources.reading.captures import FileSource, Lookahead, line_size
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_or_none, real, real_or_none, shown
from iolens.sources.reading.saved_text import supplied_identity
from iolens.sources.reading.served_targets import served_row
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT, Ticker, grid_of
from iolens.units import DAY_US, KIB, SECOND_US

NOT_READ: Final = frozenset({"lmt_osc", "lmt_router"})  # how an MDS sees its OSTs; LNET routers: no table of ours

# Fields of one OST in lmt_ost 2, which grew without a new version number: distinguished by how many there are.
_OST_BEGINNING: Final = (
    "name", "free_inodes", "total_inodes", "free_kib", "total_kib", "read_bytes", "write_bytes",
)  # fmt: skip
_LOCKS: Final = ("lock_count", "grant_rate", "cancel_rate")
OST_LAYOUTS: Final[Mapping[int, tuple[str, ...]]] = {
    len(layout): layout
    for layout in (
        (*_OST_BEGINNING, "exports"),
        (*_OST_BEGINNING, "exports", "recovery"),
        (*_OST_BEGINNING, "unsplit_ops", "exports", "recovery"),
        (*_OST_BEGINNING, "unsplit_ops", "exports", *_LOCKS, "recovery"),
        (*_OST_BEGINNING, "unsplit_ops", "exports", *_LOCKS, "connect", "reconnect", "recovery"),
    )
}
# The operations of an MDT by position, each as count, sum and sum of squares.
MDT_OPERATIONS: Final = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr", "process_config", "connect",
    "reconnect", "disconnect", "statfs", "create", "destroy", "setattr", "getattr", "llog_init", "notify", "quotactl",
)  # fmt: skip
MDS_OPERATIONS: Final = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr", "setxattr", "iocontrol",
    "get_info", "set_info_async", "attach", "detach", "setup", "precleanup", "cleanup", "process_config", "postrecov",
    "add_conn", "del_conn", "connect", "reconnect", "disconnect", "statfs", "statfs_async", "packmd", "unpackmd",
    "checkmd", "preallocate", "precreate", "create", "destroy", "setattr", "setattr_async", "getattr", "getattr_async",
    "brw", "brw_async", "prep_async_page", "reget_short_lock", "release_short_lock", "queue_async_io",
    "queue_group_io", "trigger_group_io", "set_async_flags", "teardown_async_page", "merge_lvb", "adjust_kms", "punch",
    "sync", "migrate", "copy", "iterate", "preprw", "commitrw", "enqueue", "match", "change_cbdata", "cancel",
    "cancel_unused", "join_lru", "init_export", "destroy_export", "extent_calc", "llog_init", "llog_finish", "pin",
    "unpin", "import_event", "notify", "health_check", "quotacheck", "quotactl", "quota_adjust_quint", "ping",
    "register_page_removal_cb", "unregister_page_removal_cb", "register_lock_cancel_cb", "unregister_lock_cancel_cb",
)  # fmt: skip
UNNAMED: Final = 2  # version 3 of lmt_mdt counts two more, whose names it does not tell

_RECORD: Final = re.compile(r"(\d{9,11}) (\d{9,11}) (\S+) (\w+) (.+)")
_RECORD_START: Final = re.compile(rb"\d{9,11} \d{9,11} \S+ lmt_\w+ \d+(?:\.\d+)?;")
_TARGET: Final = re.compile(r"(.+)-(OST|MDT)[0-9a-fA-F]{4}(?:_UUID)?")
_RECOVERY: Final = re.compile(r"([A-Za-z_]++)(?: ++(\d++)(?:/(\d++))?)?(?: ++(\d++)s remaining)?\s*+")


class MalformedMetric(ValueError):
    """A metric string that is not what its name and version promise."""


class ServerReading(NamedTuple):
    """What one server said of one target."""

    target: str
    capacity: Mapping[str, int]
    counters: Mapping[str, int]
    exports: int | None = None
    recovery: str | None = None
    locks: Mapping[str, int] = {}
    left_out: str | None = None  # what moved and has no column


class MetricString(NamedTuple):
    """One metric string, understood."""

    host: str
    cpu_pct: float | None
    memory_pct: float | None
    readings: tuple[ServerReading, ...]
    left_out: str | None = None


def parse_metric(name: str, value: str) -> MetricString | None:
    """One metric string; None for one that no table of ours holds; raises `MalformedMetric`."""
    if name in NOT_READ:
        return None
    version, *fields = value.strip().removesuffix(";").split(";")
    try:
        parse = _PARSERS[name, real(version, "version")]
    except (KeyError, ValueError):
        raise MalformedMetric(f"metric {name} version {shown(version)} is not known") from None
    return parse(fields)


def parse_recovery(text: str) -> dict[str, object]:
    """Columns of `target_state` from `COMPLETE 1862/1862` or `RECOVERING 172 43s remaining`."""
    match = _RECOVERY.fullmatch(text)
    if match is None:
        raise MalformedMetric(f"recovery status {shown(text)} not understood")
    status, completed, expected, remaining = match.groups()
    return {
        "recovery_status": status,
        "completed_clients": _count(completed) if completed else None,
        "expected_clients": _count(expected) if expected else None,
        # LMT prints 0 where the server names no remaining time
        "recovery_remaining_s": float(_count(remaining)) if remaining and status == "RECOVERING" else None,
    }


def _ost_2(fields: list[str]) -> MetricString:
    host, load, rest = _host(fields)
    readings = []
    for group in _groups(rest):
        layout = OST_LAYOUTS.get(len(group))
        if layout is None:
            known = ", ".join(map(str, OST_LAYOUTS))
            raise MalformedMetric(f"{shown(group[0])} has {len(group)} fields, expected one of {known}")
        readings.append(_ost_reading(dict(zip(layout, group, strict=True))))
    return MetricString(host, *load, tuple(readings))


def _ost_1(fields: list[str]) -> MetricString:
    if len(fields) != 1 + len(_OST_BEGINNING):
        raise MalformedMetric(f"{len(fields) + 1} fields, expected {2 + len(_OST_BEGINNING)}")
    return MetricString(fields[0], None, None, (_ost_reading(dict(zip(_OST_BEGINNING, fields[1:], strict=True))),))


def _oss_1(fields: list[str]) -> MetricString:
    host, load, rest = _host(fields)
    if rest:
        raise MalformedMetric(f"{len(fields) + 1} fields, expected 4")
    return MetricString(host, *load, ())


def _mdt(fields: list[str], *, recovery: bool, operations: Sequence[tuple[str, ...]], unnamed: int = 0) -> MetricString:
    host, load, rest = _host(fields)
    readings, left_out = [], None
    for group in _groups(rest):
        begin = 6 if recovery else 5
        names = next(
            (operation for operation in operations if begin + 3 * (len(operation) + unnamed) == len(group)), None
        )
        if names is None:
            raise MalformedMetric(f"{shown(group[0])} has {len(group)} fields, which is no list of operations known")
        readings.append(_mdt_reading(group, begin, names))
        extra = group[begin + 3 * len(names) :]
        if any(field != "0" for field in extra):
            left_out = f"the last {unnamed} operations of an MDT have no name in lmt_mdt 3: left out"
    return MetricString(host, *load, tuple(readings), left_out)


def _mds(fields: list[str]) -> MetricString:
    if len(fields) != 8 + 3 * len(MDS_OPERATIONS):
        raise MalformedMetric(f"{len(fields) + 1} fields, expected {9 + 3 * len(MDS_OPERATIONS)}")
    host, target, cpu, memory, *rest = fields
    return MetricString(host, _percent(cpu), _percent(memory), (_mdt_reading([target, *rest], 5, MDS_OPERATIONS),))


_PARSERS: Final[Mapping[tuple[str, float], Callable[[list[str]], MetricString]]] = {
    ("lmt_ost", 1.0): _ost_1,
    ("lmt_ost", 2.0): _ost_2,
    ("lmt_oss", 1.0): _oss_1,
    ("lmt_mdt", 1.0): partial(_mdt, recovery=False, operations=(MDT_OPERATIONS, MDS_OPERATIONS)),
    ("lmt_mdt", 2.0): partial(_mdt, recovery=True, operations=(MDT_OPERATIONS,)),
    ("lmt_mdt", 3.0): partial(_mdt, recovery=True, operations=(MDT_OPERATIONS,), unnamed=UNNAMED),
    ("lmt_mds", 1.0): _mds,
    ("lmt_mds", 2.0): _mds,
}


def _host(fields: list[str]) -> tuple[str, tuple[float, float], list[str]]:
    if len(fields) < 3:
        raise MalformedMetric(f"{len(fields) + 1} fields, expected at least 4")
    return fields[0], (_percent(fields[1]), _percent(fields[2])), fields[3:]


def _groups(fields: list[str]) -> list[list[str]]:
    """The fields of each target: a target's name begins them."""
    starts = [place for place, field in enumerate(fields) if _TARGET.fullmatch(field)]
    if not fields:  # a server whose targets are on its partner
        return []
    if not starts or starts[0] != 0:
        raise MalformedMetric(f"{shown(fields[0])} where the name of a target such as scratch-OST0000 was expected")
    return [fields[begin:end] for begin, end in zip(starts, [*starts[1:], len(fields)], strict=True)]


def _ost_reading(said: Mapping[str, str]) -> ServerReading:
    names = ("read_bytes", "write_bytes", "unsplit_ops")
    connects = [name for name in ("connect", "reconnect") if _count(said.get(name, "0"))]
    return ServerReading(
        said["name"].removesuffix("_UUID"),
        _capacity(said),
        {name: _count(said[name]) for name in names if name in said},
        _count(said["exports"]) if "exports" in said else None,
        said.get("recovery"),
        {column: _count(said[leaf]) for leaf, column in LOCK_LEAVES.items() if leaf in said},
        f"{' and '.join(connects)} of OSTs have no column in target_io: left out" if connects else None,
    )


def _mdt_reading(group: Sequence[str], begin: int, operations: Sequence[str]) -> ServerReading:
    fields = group[begin : begin + 3 * len(operations) : 3]
    counts = {name: _count(count) for name, count in zip(operations, fields, strict=True)}
    counters = {METADATA_COLUMN[name]: count for name, count in counts.items() if name in METADATA_COLUMN}
    others = [name for name, count in counts.items() if count and name not in METADATA_COLUMN]
    capacity = _capacity(dict(zip(_OST_BEGINNING[:5], group[:5], strict=True)))
    return ServerReading(
        group[0].removesuffix("_UUID"),
        capacity,
        counters,
        None,
        group[5] if begin == 6 else None,
        left_out=f"operations without a column, left out: {', '.join(others)}" if others else None,
    )


def _capacity(said: Mapping[str, str]) -> dict[str, int]:
    total_kib, free_kib = _count(said["total_kib"]), _count(said["free_kib"])
    inodes, free_inodes = _count(said["total_inodes"]), _count(said["free_inodes"])
    if free_kib > total_kib or free_inodes > inodes:
        raise MalformedMetric(f"{shown(said['name'])} has more free than its size")
    if max(total_kib, free_kib) > LARGEST // KIB:
        raise MalformedMetric(f"{max(total_kib, free_kib)} KiB is more than any file system holds")
    return {
        "total_bytes": total_kib * KIB,
        "used_bytes": (total_kib - free_kib) * KIB,
        "free_bytes": free_kib * KIB,
        "total_inodes": inodes,
        "used_inodes": inodes - free_inodes,
        "free_inodes": free_inodes,
    }


def _count(text: str) -> int:
    number = count_or_none(text)
    if number is None:
        raise MalformedMetric(f"{shown(text)} where a count was expected")
    return number


def _percent(text: str) -> float:
    number = real_or_none(text, largest=100.0)
    if number is None:
        raise MalformedMetric(f"{shown(text)} where a percentage was expected")
    return number


class Ltop(FileSource):
    """Recordings of `ltop -r`."""

    name = "ltop"
    summary = "recordings of `ltop -r`: LMT metric strings of Lustre servers, plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether its first line is a recorded metric string."""
        return _RECORD_START.match(unpacked(head)) is not None

    def open(self, path: Path, options: ReadOptions) -> _LtopRecording:
        """Look at the first strings of each server for the interval between them."""
        times: dict[str, list[int]] = {}
        looked_at = 0
        lines = Lookahead(path, partial(numbered_lines, path), line_size)
        for line in lines.look():
            if isinstance(line, Problem) or (match := _RECORD.fullmatch(line.text)) is None:
                continue
            stamps = times.setdefault(f"{match[3]} {match[4]}", [])
            stamp = int(match[2]) * SECOND_US
            if not stamps or stamps[-1] != stamp:
                stamps.append(stamp)
                looked_at += 1
            if looked_at >= SAMPLES_LOOKED_AT * len(times):
                break
        if not times:
            problem = "empty file" if path.stat().st_size == 0 else "no metric string of LMT"
            raise InputError(str(path), problem, "lines such as `1285273690 1285273689 oss1 lmt_ost 2;oss1;…`")
        said = {"filesystem": options.filesystem, "interval": options.interval_s}
        identity = supplied_identity(path, **said, since=options.since, until=options.until)
        return _LtopRecording(path, options, lines, Ticker(grid_of(times, options.interval_s)), identity)

    def begin(self, file: _LtopRecording) -> float:
        """The earliest recording comes first."""
        return file.ticker.grid.origin_us


SOURCE: Final = Ltop()


@dataclass(frozen=True, slots=True)
class _LtopRecording:
    """One file, and the grid of ticks its beginning tells."""

    path: Path
    options: ReadOptions
    lines: Lookahead[Line | Problem]
    ticker: Ticker
    identity: str

    def items(self) -> Iterator[Item]:
        player = _Player(str(self.path), self.options.filesystem, self.ticker.copy())
        return within(player.items(iter(self.lines)), self.options)


class _Player:
    """Plays a recording back: each string once, with the tick of its server."""

    def __init__(self, place: str, filesystem: str | None, ticker: Ticker) -> None:
        self.place, self.filesystem, self.ticker = place, filesystem, ticker
        self.rows, self.samples = RowBatch(), SampleBatch()
        self.last: dict[tuple[str, str], tuple[int, set[str]]] = {}  # by node and metric: when, and what was said then
        self.served: dict[str, set[str]] = {}  # file systems by host, for strings that name no target
        self.server_of: dict[str, tuple[str, int]] = {}  # host and day, by target
        self.noted: set[str] = set()

    def items(self, lines: Iterator[Line | Problem]) -> Iterator[Item]:
        for line in lines:
            if isinstance(line, Problem):
                yield line
                continue
            yield from self._line(line)
            if self.rows.count + self.samples.count >= ROWS_PER_BATCH:
                yield from self._flush()
        yield from self._flush()

    def _flush(self) -> Iterator[Item]:
        yield from self.samples.flush()
        yield from self.rows.flush()

    def _line(self, line: Line) -> Iterator[Item]:
        match = _RECORD.fullmatch(line.text)
        if match is None:
            if line.text.strip():
                yield Problem(self.place, line.number, f"not a recorded metric string: {shown(line.text)}")
            return
        _, received, node, name, value = match.groups()
        stamp_us = int(received) * SECOND_US
        if not self._is_new(node, name, stamp_us, value):
            return
        try:
            report = parse_metric(name, value)
            if report is not None:
                self._take(report, stamp_us, self.ticker.tick(stamp_us, f"{node} {name}"))
                yield from self._notes(report, line.number)
        except MalformedMetric as error:
            yield Problem(self.place, line.number, f"{name} of {node}: {error}")

    def _is_new(self, node: str, name: str, stamp_us: int, value: str) -> bool:
        """Several strings of one time are new as long as they differ: version 1 has one per OST."""
        last_us, said = self.last.get((node, name), (0, set()))
        if last_us != stamp_us:
            said = set()
            self.last[node, name] = (stamp_us, said)
        if value in said:
            return False
        said.add(value)
        return True

    def _notes(self, report: MetricString, number: int) -> Iterator[Item]:
        for reason in (report.left_out, *(reading.left_out for reading in report.readings)):
            if reason and reason not in self.noted:
                self.noted.add(reason)
                yield Note(self.place, number, reason)

    def _take(self, report: MetricString, stamp_us: int, tick_us: int) -> None:
        states = [
            (reading, parse_recovery(reading.recovery) if reading.recovery is not None else {})
            for reading in report.readings
        ]
        filesystems = set()
        for reading, recovery in states:
            filesystem, kind = self._named(reading.target)
            filesystems.add(filesystem)
            self._take_target(reading, recovery, filesystem, kind, stamp_us, tick_us)
            self._take_server(report.host, filesystem, reading.target, tick_us)
        self.served.setdefault(report.host, set()).update(filesystems)
        self._take_load(report, filesystems, tick_us)

    def _named(self, target: str) -> tuple[str, str]:
        match = _TARGET.fullmatch(target)
        if match is None:
            raise MalformedMetric(f"{shown(target)} is not the name of a target such as scratch-OST0000")
        return match[1], match[2].lower()

    def _take_target(
        self,
        reading: ServerReading,
        recovery: Mapping[str, object],
        filesystem: str,
        kind: str,
        stamp_us: int,
        tick_us: int,
    ) -> None:
        labels = {"target_kind": kind}
        common = {"time": tick_us, "filesystem": filesystem, "target": reading.target, **labels}
        self.samples.add(
            "target_io" if kind == "ost" else "metadata_ops",
            filesystem,
            reading.target,
            time_us=tick_us,
            snapshot_us=stamp_us,
            counters=reading.counters,
            labels=labels if kind == "ost" else {},
        )
        self.rows.add("target_capacity", {**common, **reading.capacity})
        if recovery or reading.exports is not None:
            self.rows.add("target_state", {**common, **recovery, "exports": reading.exports, **reading.locks})

    def _take_server(self, host: str, filesystem: str, target: str, tick_us: int) -> None:
        """Said when it is another, and once a day."""
        if self.server_of.get(target) != (host, tick_us // DAY_US):
            self.server_of[target] = host, tick_us // DAY_US
            self.rows.add("target_servers", dict(served_row(tick_us, filesystem, target, host).values))

    def _take_load(self, report: MetricString, filesystems: set[str], tick_us: int) -> None:
        if report.cpu_pct is None:
            return
        if not report.readings:
            filesystems = self.served.get(report.host) or ({self.filesystem} if self.filesystem else set())
            if not filesystems:
                raise MalformedMetric(
                    "nothing reported yet which file system this server is of: supply it with --filesystem"
                )
        load = {"host": report.host, "cpu_pct": report.cpu_pct, "memory_pct": report.memory_pct}
        for filesystem in sorted(filesystems):
            self.rows.add("host_load", {"time": tick_us, "filesystem": filesystem, **load})
