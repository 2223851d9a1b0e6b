"""Segments that `iolens collect` spooled: checksummed lines, one or a few per tick, readable after a cut at any byte.

A line is the CRC-32 of its payload in hexadecimal, a blank, and the payload: plain JSON for the header, JSON deflated
and in base64 for a tick. Identity is per segment, `agent/<host>/<run>/<sequence>`, so segments may arrive in any
order and again: each adds its rows once, and what a later one already covered is refused by the counters' own rule.
"""

from __future__ import annotations

import binascii
import json
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, CounterSet, Item, Note, Problem, Row, Sample
from iolens.schema import LARGEST, TABLES
from iolens.sources.reading.bounded_input import LongLine, bounded_lines, opened_itself
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import LARGEST_UNSIGNED, count_in_json, count_or_none, number_in_json, shown

FORMAT: Final = "iolens-spool"
VERSION: Final = 1
OPEN, CLOSED, TAKEN = ".open", ".seg", ".taken"  # being written; finished; being shipped, no longer to be changed
STORED_AS: Final = "agent"  # the store's source name, whoever brings the segments
ABANDONED_S: Final = 3600.0
# Bounds of what is read back: a tick of a hundred thousand jobs has 23 MB, and a bracket every hundred bytes.
LONGEST_HEADER: Final = 1 << 16
LARGEST_TICK: Final = 32 << 20
LONGEST_LINE: Final = 48 << 20  # the same as base64, had it not deflated at all
FEWEST_BRACKETS, BYTES_PER_BRACKET = 1000, 8
SETS_PER_LINE: Final = 256  # counter sets: a target's jobs have one each
REFUSALS_KEPT: Final = 100  # of what is refused in a segment
LATEST_US: Final = 4_102_444_800 * 1_000_000  # the year 2100

_HEADER_START: Final = re.compile(rb'[0-9a-f]{8} \{"format":"iolens-spool"')
_NAME: Final = re.compile(r"(?P<host>[^~]+)~(?P<run>[^~]+)~(?P<sequence>[0-9]+)")
_SAMPLE, _ROW, _PROBLEM = 0, 1, 2
_WHOLE: Final = frozenset({int})
_HISTOGRAMS: Final = "target_histograms"
_BIN: Final = re.compile(r"(?:read|write):[0-9]{1,19}")
# What samplers make. The ledger, baselines, calibrations and records of a scheduler never come in a segment.
_COUNTED: Final = frozenset({
    "target_io", "target_sizes", "target_histograms", "metadata_ops", "server_ops", "job_io", "job_sizes",
    "client_io", "client_rpcs", "client_metadata", "client_histograms", "client_ops",
})  # fmt: skip
_ROWS_BY_SOURCE: Final = {
    STORED_AS: frozenset({"target_capacity", "target_state", "target_servers", "agent_health"}),
    "job-files": frozenset({"client_io", "client_rpcs", "client_metadata", "client_histograms", "client_ops", "jobs"}),
}

TargetName = tuple[str, str]  # file system, target


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """What a segment is called, wherever the file travels."""

    host: str
    run: str
    sequence: int
    thinned: int = 0  # how often every second sample was dropped

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return f"{self.host}~{self.run}~{self.sequence:08d}"

    @property
    def identity(self) -> str:
        """What makes a re-send harmless."""
        return f"agent/{self.host}/{self.run}/{self.sequence}"


@dataclass(frozen=True, slots=True)
class Admission:
    """What the receiver of a segment takes of it, of what a segment may hold, and what it notes beside it."""

    latest_us: int | None = None  # later times are no times that a clock shows
    refused: Mapping[TargetName, str] = field(default_factory=dict)  # targets that are another server's, and why
    notes: Sequence[Note] = ()

    def refusal(self, item: Item) -> str | None:
        """Why an item is not taken; None: it is."""
        time_us = time_of(item)
        if self.latest_us is not None and time_us is not None and time_us > self.latest_us:
            ahead_s = (time_us - self.latest_us) / 1e6
            return f"{_called(item)}: its time is {ahead_s:,.0f} s later than a clock may be ahead when it arrived"
        target = target_of(item)
        why = None if target is None else self.refused.get(target)
        return None if why is None else f"{_called(item)}: {why}"


EVERYTHING: Final = Admission()


def fit_for_file(host: str) -> str:
    """The name of a host as segments carry it."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", host) or "unknown"


def is_same_host(name: object, host: str) -> bool:
    """Whether a name is that of the host, with or without its domain."""
    own, other = fit_for_file(str(name)), fit_for_file(host)
    return own == other or own.startswith(f"{other}.") or other.startswith(f"{own}.")


def foreign(item: Item, host: str) -> str | None:
    """Why an item cannot be what a sampler made on this host; None: it can."""
    if isinstance(item, Problem):
        return None
    if not _is_known(item):
        return f"table {getattr(item, 'table', '')!r} is not known"
    if isinstance(item, Sample):
        if item.table not in _COUNTED:
            return f"{_called(item)}: no sampler counts it"
        if TABLES[item.table].subject == "node" and not is_same_host(item.target, host):
            return f"{_called(item)}: it is of another host than the segment, {host}"
        return None
    return _foreign_row(item.values, item.table, host) if isinstance(item, Row) else f"{_called(item)}: not sampled"


def _is_known(item: Item) -> bool:
    return isinstance(item, Problem) or item.table in TABLES


def _foreign_row(values: Mapping[str, object], table: str, host: str) -> str | None:
    source = str(values.get("source", STORED_AS))
    if table not in _ROWS_BY_SOURCE.get(source, ()):
        return f"row of {table} from {shown(source)}: no sampler makes it"
    for name in ("host", "node"):
        if values.get(name) is not None and not is_same_host(values[name], host):
            return f"row of {table}: {name} is {shown(str(values[name]))}, the segment is of {host}"
    if table == "jobs" and values.get("ended") is not None:
        return "row of jobs: only a scheduler knows that a job has ended"
    return None


def time_of(item: Item) -> int | None:
    """The tick of a sample or the time of a row, microseconds since 1970."""
    time_us = item.time_us if isinstance(item, Sample) else item.values.get("time") if isinstance(item, Row) else None
    return time_us if isinstance(time_us, int) else None


def target_of(item: Item) -> TargetName | None:
    """The target that an item tells something of; None: it is of a node, a job or the agent."""
    if isinstance(item, Sample):
        return (item.filesystem, item.target) if TABLES[item.table].subject == "target" else None
    if isinstance(item, Row) and item.table in _ROWS_BY_SOURCE[STORED_AS] and "target" in item.values:
        return str(item.values.get("filesystem")), str(item.values["target"])
    return None


def _called(item: Item) -> str:
    target = getattr(item, "target", None) or getattr(item, "values", {}).get("target")
    return f"{getattr(item, 'table', '')}{f' of {shown(str(target))}' if target else ''}"


class Tick(NamedTuple):
    """Everything that was sampled at one tick."""

    time_us: int
    items: Sequence[Item]


class SegmentLine(NamedTuple):
    """One good line, or a stretch of bytes that is none (`payload` None); of one that is too long only its length."""

    offset: int
    number: int
    raw: bytes
    payload: bytes | None
    skipped: int = 0

    @property
    def length(self) -> int:
        """Its bytes in the file."""
        return self.skipped or len(self.raw)

    @property
    def is_torn(self) -> bool:
        """A last line that was cut."""
        return self.payload is None and not self.skipped and not self.raw.endswith(b"\n")


class SegmentCheck(NamedTuple):
    """What the checksums say of a segment: good ticks, damaged stretches, and whether the end was cut."""

    good: int
    damaged: int
    torn: bool


def encode_header(header: SegmentHeader) -> bytes:
    """The first line of a segment."""
    text = {"format": FORMAT, "version": VERSION, "host": header.host, "run": header.run, "sequence": header.sequence}
    return encoded_line(compact_json(text | ({"thinned": header.thinned} if header.thinned else {})))


def encode_tick(tick: Tick) -> bytes:
    """One line with everything of a tick."""
    items = [_plain(item, tick.time_us) for item in tick.items]
    return encoded_line(
        binascii.b2a_base64(zlib.compress(compact_json({"t": tick.time_us, "i": items}), 1), newline=False)
    )


def in_lines(items: Iterable[Item]) -> Iterator[Sequence[Item]]:
    """A tick of many targets is several lines: holding one with all its jobs would take memory for the whole."""
    part: list[Item] = []
    weight = 0
    for item in items:
        part.append(item)
        weight += len(item.sets) if isinstance(item, Sample) else 1
        if weight >= SETS_PER_LINE:
            yield part
            part, weight = [], 0
    if part:
        yield part


def decode_tick(payload: bytes) -> Tick:
    """The inverse of `encode_tick`; ValueError when the payload is not a tick, or not within its bounds."""
    try:
        plain = json.loads(_inflated(payload))
        return Tick(_time(plain["t"]), [_item(item, plain["t"]) for item in plain["i"]])
    except (zlib.error, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a tick: {type(error).__name__}: {str(error)[:200]}") from error


def _inflated(payload: bytes) -> bytes:
    inflater = zlib.decompressobj()
    text = inflater.decompress(binascii.a2b_base64(payload), LARGEST_TICK + 1)
    if len(text) > LARGEST_TICK:
        raise ValueError(f"not a tick: it inflates beyond {LARGEST_TICK >> 20} MiB")
    if not inflater.eof:
        raise ValueError("not a tick: its deflated data is cut")
    if text.count(b"[") + text.count(b"{") > FEWEST_BRACKETS + len(text) // BYTES_PER_BRACKET:
        raise ValueError("not a tick: nothing but brackets")
    return text


def lines(path: Path, begin: int = 0) -> Iterator[SegmentLine]:
    """Every line of a segment from byte `begin` on; a damaged newline costs the byte, not the lines beside it."""
    offset = begin
    with opened_itself(path) as stream:
        stream.seek(begin)
        for number, raw in enumerate(bounded_lines(stream, LONGEST_LINE, padded=False), 1):
            if isinstance(raw, LongLine):
                yield SegmentLine(offset, number, b"", None, raw.length)
                offset += raw.length
                continue
            payload = checked_payload(raw.removesuffix(b"\n"))
            if payload is not None:
                yield SegmentLine(offset, number, raw, payload)
            else:
                yield from _salvaged(offset, number, raw)
            offset += len(raw)


def check(path: Path) -> SegmentCheck:
    """The state of a segment by its checksums alone."""
    good = damaged = 0
    torn = False
    for line in lines_without_header(path):
        good += line.payload is not None
        damaged += line.payload is None and not line.is_torn
        torn = torn or line.is_torn
    return SegmentCheck(good, damaged, torn)


def lines_without_header(path: Path) -> Iterator[SegmentLine]:
    """The ticks' lines, and damaged ones."""
    return (line for line in lines(path) if line.payload is None or not line.payload.startswith(b"{"))


class SegmentExtent(NamedTuple):
    """Which targets a segment tells of and when, first and last tick, microseconds since 1970."""

    host: str
    targets: dict[TargetName, tuple[int, int]]
    last_us: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file and what it is called."""

    path: Path
    header: SegmentHeader

    @classmethod
    def open(cls, path: Path) -> Segment:
        """Read the header; where it is damaged the file's name says the same."""
        try:
            with opened_itself(path) as stream:
                first = checked_payload(stream.readline(LONGEST_HEADER).removesuffix(b"\n"))
        except OSError as error:
            raise InputError(str(path), error.strerror or "cannot be read", "a spool segment") from error
        plain = _header_of(first)
        if plain is None:
            named = _NAME.fullmatch(path.stem)
            number = None if named is None else count_or_none(named["sequence"])
            if named is None or number is None:
                raise InputError(str(path), "neither its first line nor its name tells the segment", "a spool segment")
            return cls(path, SegmentHeader(named["host"], named["run"], number))
        if plain.get("version") != VERSION:
            raise InputError(str(path), f"spool format {shown(str(plain.get('version')))}", f"format {VERSION}", 1)
        host, run = plain.get("host"), plain.get("run")
        sequence, thinned_so_often = count_in_json(plain.get("sequence")), count_in_json(plain.get("thinned", 0))
        if not isinstance(host, str) or not isinstance(run, str) or sequence is None or thinned_so_often is None:
            raise InputError(str(path), "header not understood", "host, run and sequence", 1)
        return cls(path, SegmentHeader(host, run, sequence, thinned_so_often))

    @property
    def identity(self) -> str:
        """A segment that may still grow is known by its content, so that the finished one is not taken for it."""
        if self.path.suffix == OPEN:
            return content_identity(self.path)
        return self.header.identity

    def capture(self) -> Capture:
        """The segment as the store takes it; the segments of one run are numbered as they were sampled."""
        return Capture(str(self.path), self.identity, self.items, numbered=self.path.suffix != OPEN)

    def items(self, unread: list[Problem] | None = None, admission: Admission = EVERYTHING) -> Iterator[Item]:
        """Everything sampled, and a problem with file, line and byte for each stretch that is damaged.

        What is no tick although its checksum is right, and items that are refused, are put into `unread` too.
        """
        unread = [] if unread is None else unread
        unread.clear()
        for line in lines_without_header(self.path):
            if line.payload is None:
                what = "torn last line" if line.is_torn else "damaged line"
                yield self._problem(line, f"{what}, {line.length} bytes skipped")
                continue
            try:
                tick = decode_tick(line.payload)
            except ValueError as error:
                unread.append(self._problem(line, str(error)))
                yield unread[-1]
                continue
            for item in tick.items:
                reason = foreign(item, self.header.host) or admission.refusal(item)
                if reason is None:
                    yield item
                    continue
                problem = self._problem(line, reason)
                if len(unread) < REFUSALS_KEPT and _is_known(item):  # tables of later versions are only counted
                    unread.append(problem)
                yield problem
        yield from admission.notes

    def extent(self) -> SegmentExtent:
        """The first and the last tick of each target, and the last of all; what cannot be read is left out."""
        targets: dict[TargetName, tuple[int, int]] = {}
        last_us = 0
        for item in self.items():
            time_us, target = time_of(item), target_of(item)
            if time_us is None:
                continue
            last_us = max(last_us, time_us)
            if target is not None:
                first, last = targets.get(target, (time_us, time_us))
                targets[target] = (min(first, time_us), max(last, time_us))
        return SegmentExtent(self.header.host, targets, last_us)

    def _problem(self, line: SegmentLine, reason: str) -> Problem:
        return Problem(str(self.path), line.number, f"byte {line.offset}: {reason}")


class SpoolSource:
    """Segments of `iolens collect`, in its spool directory or copied from there."""

    name = "spool"
    whole_directories = True
    stored_as = STORED_AS
    summary = "segments spooled by `iolens collect`: a spool directory, or files copied from one, in any order"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins as a segment does, or is a directory of such."""
        if path.is_dir():
            return any(item.suffix in (CLOSED, TAKEN, OPEN) and _NAME.fullmatch(item.stem) for item in path.iterdir())
        return _HEADER_START.match(head) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per segment, in the order they were written."""
        files = [file for path in paths for file in (segment_files(path) if path.is_dir() else [path])]
        segments, refused = read_each(files, Segment.open)
        yield from refused
        for path in paths:
            yield from _abandoned(path)
        for segment in sorted(segments, key=lambda item: (item.header.host, item.header.run, item.header.sequence)):
            yield segment.capture()


SOURCE: Final = SpoolSource()


def segment_files(directory: Path) -> list[Path]:
    """The finished segments of a directory, oldest first."""
    return sorted((path for path in directory.iterdir() if path.suffix in (CLOSED, TAKEN)), key=lambda item: item.stem)


def _abandoned(directory: Path) -> Iterator[Capture]:
    """Unfinished segments of a directory are left to their agent; one that nobody writes any more is pointed out."""
    if not directory.is_dir():
        return
    for path in sorted(directory.glob(f"*{OPEN}")):
        if time.time() - path.lstat().st_mtime > ABANDONED_S:
            problem = Problem(str(path), None, "unfinished and no longer written: name this file itself to load it")
            yield Capture(str(path), f"refused/{path.name}", partial(iter, [problem]))


def encoded_line(payload: bytes) -> bytes:
    """A payload with its checksum."""
    return b"%08x %b\n" % (zlib.crc32(payload), payload)


def checked_payload(raw: bytes) -> bytes | None:
    """The payload of a line whose checksum is right."""
    if len(raw) < 10 or raw[8:9] != b" ":
        return None
    payload = raw[9:]
    return payload if raw[:8] == b"%08x" % zlib.crc32(payload) else None


def _salvaged(offset: int, number: int, raw: bytes) -> Iterator[SegmentLine]:
    """Good lines inside a stretch that is not one as a whole: their newline was hit, or a cut line came before."""
    begin = 0
    for blank in (place for place, byte in enumerate(raw) if byte == 0x20 and place >= 8):
        start = blank - 8
        if start < begin:
            continue
        following = raw.find(b" ", blank + 1)
        end = following - 8 if following >= 0 else len(raw)
        for stop in (end, end - 1):
            payload = checked_payload(raw[start:stop])
            if payload is not None:
                if start > begin:
                    yield SegmentLine(offset + begin, number, raw[begin:start] + b"\n", None)
                yield SegmentLine(offset + start, number, raw[start:stop] + b"\n", payload)
                begin = stop
                break
    rest = raw[begin:]
    if rest.strip(b"\n") and not (begin and len(rest) == 1):
        yield SegmentLine(offset + begin, number, rest, None)


def _header_of(payload: bytes | None) -> dict[str, Any] | None:
    if payload is None or not payload.startswith(b"{"):
        return None
    try:
        plain = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return plain if isinstance(plain, dict) and plain.get("format") == FORMAT else None


def compact_json(plain: object) -> bytes:
    """JSON without blanks."""
    return json.dumps(plain, separators=(",", ":")).encode()


def _plain(item: Item, tick_us: int) -> list[object]:
    if isinstance(item, Sample):
        sets = {
            name: [start_us, counters if type(counters) is dict else dict(counters)]
            for name, (counters, start_us, *_) in item.sets.items()
        }
        times = (item.time_us - tick_us, item.snapshot_us - tick_us)
        return [_SAMPLE, item.table, item.filesystem, item.target, *times, sets, dict(item.labels)]
    if isinstance(item, Row):
        return [_ROW, item.table, dict(item.values)]
    if isinstance(item, Problem):
        return [_PROBLEM, item.place, item.line, item.reason]
    raise TypeError(f"a tick holds single samples and rows, not {type(item).__name__}")


def _item(plain: Sequence[Any], tick_us: int) -> Item:
    if plain[0] == _SAMPLE:
        _, table, filesystem, target, time_us, snapshot_us, sets, labels = plain
        _check_counters(table, [item[1] for item in sets.values()])
        counters = {_text(name): CounterSet(item[1], _start(item[0])) for name, item in sets.items()}
        times = (_time(tick_us + time_us), _time(tick_us + snapshot_us))
        named = {_text(name): _text(value) for name, value in labels.items()}
        return Sample(_text(table), _text(filesystem), _text(target), *times, counters, named)
    if plain[0] == _ROW:
        return Row(_text(plain[1]), {_text(name): _value(value) for name, value in plain[2].items()})
    if plain[0] == _PROBLEM:
        line = None if plain[2] is None else count_in_json(plain[2])
        return Problem(_text(plain[1]), line, _text(plain[3]))
    raise ValueError(f"not an item: {shown(str(plain[0]))}")


def _time(value: object) -> int:
    """A time, microseconds since 1970, that a calendar has."""
    number = count_in_json(value, LATEST_US)
    if number is None:
        raise ValueError("not a tick: a time that no clock shows")
    return number


def _start(value: object) -> int | None:
    return None if value is None else _time(value)


def _check_counters(table: object, sets: Sequence[Mapping[str, Any]]) -> None:
    """Raw counters are unsigned numbers of 64 bits, and in histograms they have a direction and a bin for a name."""
    values = [value for counters in sets for value in counters.values()]
    if not {*map(type, values)} <= _WHOLE or min(values, default=0) < 0:
        raise ValueError("not a tick: a counter that is no count")
    if max(values, default=0) > LARGEST_UNSIGNED:
        raise ValueError("not a tick: a counter of more than 64 bits")
    if table == _HISTOGRAMS and not all(_BIN.fullmatch(name) for counters in sets for name in counters):
        raise ValueError("not a tick: a bin without direction or number")


def _value(value: object) -> object:
    """A value of a finished row that a column can hold."""
    if value is None or isinstance(value, str | bool) or number_in_json(value, least=-LARGEST) is not None:
        return value
    raise ValueError("not a tick: a value that no column holds")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a tick: a name that is no text")
    return value


def thinned(header: SegmentHeader) -> SegmentHeader:
    """The header after one more thinning."""
    return replace(header, thinned=header.thinned + 1)
