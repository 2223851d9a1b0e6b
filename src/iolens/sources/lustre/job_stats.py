"""Lustre `job_stats`: what each job did to one target, as the server counted it, Lustre 2.3 to 2.17."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from iolens.records import CounterSet, Problem
from iolens.schema import DIRECTIONS, METADATA_OPERATIONS
from iolens.sources.lustre.clock import stamp_us, whole_number
from iolens.sources.lustre.histograms import bin_label
from iolens.sources.lustre.stats import MICROSECONDS

# Where the numbers of a job_stats entry stand -------------------------------------------------------------------------
# Lustre pads them, so entries of a text differ in their digits only.
#
# One entry of a kind is parsed line by line; others that are the same around their numbers are read by place: of ten
# thousand jobs all but a handful. Needs only the standard library.

MOST_LAYOUTS: Final = 200  # of one text: numbers that are wider than their padding make new ones
WIDEST: Final = 19  # characters of a number that is surely below 2**64
LATEST_S: Final = 1 << 37  # as of all times of Lustre
_WITHOUT_DIGITS: Final = bytes.maketrans(b"0123456789", b" " * 10)
_TIME: Final = re.compile(rb"  (snapshot|start|elapsed)_time:([ \d]*\d *)(?:\.([ \d]*\d *)secs\.nsecs)?")
_COUNTED: Final = re.compile(rb"  [a-z_]+: *\{ samples:([ \d]+), unit: *[a-z]+")
_NUMBER: Final = re.compile(rb"[ \d]+")
_SUM: Final = b", sum:"

CountersOf = Callable[[bytes], "Mapping[str, int] | None"]


class NumberPlace(NamedTuple):
    """Where a number stands in an entry, with its padding, and which counter it is; empty: part of a time."""

    begin: int
    end: int
    name: str = ""


class ReadEntry(NamedTuple):
    """What an entry says; times in microseconds since 1970, None where the version does not print them."""

    counters: dict[str, int]
    snapshot_us: int | None
    start_us: int | None


class EntryLayout:
    """The places of one kind of entry: its times come first."""

    def __init__(
        self, snapshot: Sequence[NumberPlace], start: Sequence[NumberPlace], counts: Sequence[NumberPlace]
    ) -> None:
        self.names = [place.name for place in counts]
        self.first = len(snapshot)
        self.second = self.first + len(start)
        parts, last = [], 0
        for place in (*snapshot, *start, *counts):
            parts.append(f"{place.begin - last}x{place.end - place.begin}s")
            last = place.end
        self.numbers = Struct("".join(parts))

    def read(self, text: bytes) -> ReadEntry | None:
        """An entry that has this layout; None where a place does not hold one number."""
        try:
            numbers = list(map(int, self.numbers.unpack_from(text)))
        except ValueError:
            return None
        snapshot, start = numbers[: self.first], numbers[self.first : self.second]
        if (snapshot and snapshot[0] >= LATEST_S) or (start and start[0] >= LATEST_S):
            return None
        counters = dict(zip(self.names, numbers[self.second :]))  # noqa: B905 (needs Python 3.10, the agent does not)
        return ReadEntry(counters, _time_us(snapshot), _time_us(start))


def _time_us(seconds_and_rest: Sequence[int]) -> int | None:
    """Seconds, and nanoseconds if there are any."""
    if not seconds_and_rest:
        return None
    return seconds_and_rest[0] * 1_000_000 + (seconds_and_rest[1] // 1000 if len(seconds_and_rest) > 1 else 0)


class EntryLayouts:
    """The layouts of one text. `counters_of` parses one line; None where it is more than counters."""

    def __init__(self, counters_of: CountersOf) -> None:
        self.counters_of = counters_of
        self.known: dict[bytes, EntryLayout | None] = {}  # by the entry without its digits; None: line by line

    def read(self, text: bytes) -> ReadEntry | None:
        """An entry of a known layout; None for any other."""
        layout = self.known.get(text.translate(_WITHOUT_DIGITS))
        return None if layout is None else layout.read(text)

    def learn(self, text: bytes) -> None:
        """The layout of an entry that was parsed without a problem."""
        around = text.translate(_WITHOUT_DIGITS)
        if len(self.known) < MOST_LAYOUTS and around not in self.known:
            self.known[around] = self._layout(text)

    def _layout(self, text: bytes) -> EntryLayout | None:
        times: dict[bytes, list[NumberPlace]] = {}
        counts: list[NumberPlace] = []
        begin = 0
        for line in text.split(b"\n"):
            time = _TIME.fullmatch(line)
            places = None if time else self._counts(line, begin)
            if time is not None and not counts and time[1] not in times:
                times[time[1]] = [NumberPlace(begin + time.start(n), begin + time.end(n)) for n in (2, 3) if time[n]]
            elif places is None:
                return None
            counts += places or ()
            begin += len(line) + 1
        snapshot, start = times.get(b"snapshot", []), times.get(b"start", [])
        is_wide = any(place.end - place.begin > WIDEST for place in (*snapshot, *start, *counts))
        in_order = sorted((*snapshot, *start)) == [*snapshot, *start]
        return EntryLayout(snapshot, start, counts) if counts and in_order and not is_wide else None

    def _counts(self, line: bytes, begin: int) -> list[NumberPlace] | None:
        """The counters of a line, found by parsing it with 1 for its samples and 2 for its sum."""
        if not line:
            return []
        places = _numbers(line)
        probe, last = b"", 0
        for number, (first, end) in enumerate(places, 1):
            probe += line[last:first] + b" %d " % number
            last = end
        counters = self.counters_of(probe + line[last:]) if places else None
        if counters is None:
            return None
        ends = {name: places[number - 1] for name, number in counters.items()}
        return sorted(NumberPlace(begin + first, begin + end, name) for name, (first, end) in ends.items())


def _numbers(line: bytes) -> list[tuple[int, int]]:
    """Where the samples of a line are and, if it has one, their sum; nothing where it is no such line."""
    head = _COUNTED.match(line)
    if head is None or not head[1].strip() or not line.endswith(b"}"):
        return []
    rest = line[head.end() : -1]
    place = line.find(_SUM, head.end())
    total = _NUMBER.match(line, place + len(_SUM)) if place >= 0 else None
    if b"{" in rest or b"}" in rest or (total is None and rest.strip(b" ")) or (total and not total[0].strip()):
        return []
    return [head.span(1), *([total.span()] if total else [])]


# Lustre `job_stats` ---------------------------------------------------------------------------------------------------
# What each job did to one target, as the server counted it, Lustre 2.3 to 2.16.
#
# It looks like YAML but is not always: a job id may hold blanks, colons, `@` or bytes that are not UTF-8. Read line by
# line; an entry that is damaged or cut is refused alone.

_BYTES_OF: Final = {"read_bytes": "read", "write_bytes": "write", "read": "read", "write": "write"}
_OPERATIONS: Final = frozenset(METADATA_OPERATIONS)
_NEW_ENTRY: Final = b"- job_id:"
_HEADER: Final = b"job_stats:"
_LITERAL_ESCAPE: Final = re.compile(rb"\\(?=x[0-9a-f]{2})")
_ESCAPE: Final = re.compile(rb"\\x([0-9a-f]{2})")
_QUOTED_ESCAPE: Final = re.compile(
    rb"\\x([0-9A-Fa-f]{2})"
)  # as Lustre writes in a quoted id what is no letter or digit
_size_label: Final = lru_cache(maxsize=1024)(bin_label)  # a text has a few, thousands of times
_SIZES: Final = re.compile(rb", hist: \{[^{}\n]*\}")
_SIZES_MARK: Final = b", hist"
_SIZED: Final = re.compile(
    rb"^  (read|write)(?:_bytes)?: *\{ samples:[ \d]+, unit: *bytes,[^\n{]*, hist: \{([^{}\n]*)\}", re.MULTILINE
)


@dataclass(slots=True)
class JobStats:
    """A parsed job_stats. `snapshot_us` is the last activity of any job, not when the file was read.

    The job id is empty where an entry has none: its I/O counts like that of any job.
    """

    place: str
    snapshot_us: int | None = None
    jobs: dict[str, CounterSet] = field(default_factory=dict)
    sizes: dict[str, CounterSet] = field(default_factory=dict)  # reads and writes by size, where the version has them
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class _JobEntry:
    job_id: str
    line: int
    counters: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] | None = None
    start_us: int | None = None
    snapshot_us: int | None = None


def parse_job_stats(data: bytes, place: str, first_line: int = 1) -> JobStats:
    """Read a job_stats text: one counter set per job."""
    stats = JobStats(place)
    begin = 0 if data.startswith(_NEW_ENTRY) else data.find(b"\n" + _NEW_ENTRY) + 1
    is_list = begin > 0 or data.startswith(_NEW_ENTRY)
    if not _is_headed(stats, data[:begin] if is_list else data, first_line, is_list):
        return stats
    layouts = EntryLayouts(_counters_of)
    number = first_line + data.count(b"\n", 0, begin)
    while is_list:
        end = data.find(b"\n" + _NEW_ENTRY, begin)
        lines = data[begin : end if end >= 0 else len(data)]
        _keep(stats, _entry(stats, lines, number, layouts))
        number += lines.count(b"\n") + 1
        begin, is_list = end + 1, end >= 0
    return stats


def _is_headed(stats: JobStats, before: bytes, first_line: int, is_list: bool) -> bool:
    """Whether what stands before the first entry is the beginning of a job_stats; a problem where it is not."""
    for number, line in enumerate(before.split(b"\n"), first_line):
        if line.rstrip() == _HEADER:
            return True
        if line.strip():
            stats.problems.append(Problem(stats.place, number, f"expected `job_stats:`, found {_shown(line)}"))
            return False
    if not is_list:
        stats.problems.append(Problem(stats.place, None, "empty file, expected `job_stats:`"))
    return is_list


def _entry(stats: JobStats, text: bytes, number: int, layouts: EntryLayouts) -> _JobEntry | None:
    """One entry; None where a line of it is not understood."""
    named, _, rest = text.partition(b"\n")
    entry = _JobEntry(_job_id(named), number)
    if _read_by_place(entry, rest, layouts):
        return entry
    problems = len(stats.problems)
    for line_number, line in enumerate(rest.split(b"\n"), number + 1):
        line = line.rstrip()
        if not line or line == _HEADER:
            continue
        if reason := _take(stats, entry, line, line_number):
            stats.problems.append(Problem(stats.place, line_number, f"job {entry.job_id!r} refused: {reason}"))
            return None
    if problems == len(stats.problems):
        layouts.learn(_SIZES.sub(_SIZES_MARK, rest) if b"hist:" in rest else rest)
    return entry


def _read_by_place(entry: _JobEntry, text: bytes, layouts: EntryLayouts) -> bool:
    """Fill in an entry of a known layout; histograms of sizes, which differ in length, are taken out of it first."""
    sizes = None
    if b"hist:" in text:
        for direction, rows in _SIZED.findall(text):
            counts = _size_counts(direction.decode(), rows.decode("ascii", "replace").replace(",", " ").split())
            if counts is None:
                return False
            sizes = {**(sizes or {}), **counts}
        text = _SIZES.sub(_SIZES_MARK, text)
    read = layouts.read(text)
    if read is not None:
        entry.counters, entry.snapshot_us, entry.start_us = read
        entry.sizes = sizes
    return read is not None


def _counters_of(line: bytes) -> dict[str, int] | None:
    """The counters of one line; None where it has a problem, or more than counters."""
    alone, entry = JobStats(""), _JobEntry("", 0)
    reason = _take(alone, entry, line, 0)
    return None if reason or alone.problems or entry.sizes is not None else entry.counters


def job_id_text(raw: bytes) -> str:
    r"""A job id as text; a byte that is not UTF-8 becomes `\xNN`. `job_id_bytes` takes it back."""
    if b"\\" in raw:
        raw = _LITERAL_ESCAPE.sub(rb"\\x5c", raw)
    return raw.decode("utf-8", "backslashreplace")


def job_id_bytes(text: str) -> bytes:
    """The bytes of the job id that `job_id_text` made `text` of."""
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode())


def _job_id(line: bytes) -> str:
    raw = line[len(_NEW_ENTRY) :].strip()
    if len(raw) >= 2 and raw[:1] == raw[-1:] and raw[:1] in (b'"', b"'"):
        is_escaped = raw[:1] == b'"' and b"\\" in raw
        raw = raw[1:-1]
        if is_escaped:
            raw = _QUOTED_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), raw)
    return job_id_text(raw)


def _keep(stats: JobStats, entry: _JobEntry | None) -> None:
    if entry is None:
        return
    earlier = stats.jobs.get(entry.job_id)
    counter_set = CounterSet(entry.counters, entry.start_us)
    if not entry.counters:
        reason = "entry without counters, may be cut"
    elif earlier is not None and earlier != counter_set:
        reason = "occurs twice with different counters, the first was kept"
    else:
        stats.jobs[entry.job_id] = counter_set
        if entry.sizes is not None:
            stats.sizes[entry.job_id] = CounterSet(entry.sizes, entry.start_us)
        if entry.snapshot_us and entry.snapshot_us > (stats.snapshot_us or 0):
            stats.snapshot_us = entry.snapshot_us
        return
    stats.problems.append(Problem(stats.place, entry.line, f"job {entry.job_id!r}: {reason}"))


def _take(stats: JobStats, entry: _JobEntry, line: bytes, number: int) -> str | None:
    """One indented line of an entry; a reason if it is not understood."""
    key, colon, value = line.decode("ascii", "replace").strip().partition(":")
    if not colon or line[:1] != b" ":
        return f"line not understood: {_shown(line)}"
    if key in ("snapshot_time", "start_time", "elapsed_time"):
        return _take_time(entry, key, value)
    words = value.replace(",", " ").replace("}", " } ").split()
    if len(words) < 6 or words[:2] != ["{", "samples:"] or words[3] != "unit:" or words[-1] != "}":
        return f"line not understood: {_shown(line)}"
    samples, unit, total = whole_number(words[2]), words[4], _total(words)
    if samples is None:
        return f"line not understood: {_shown(line)}"
    if key in _BYTES_OF and unit == "bytes":
        if total is None:
            return f"no sum in {_shown(line)}"
        return _count(entry, key, samples, total) or _take_sizes(entry, _BYTES_OF[key], words)
    if key not in _OPERATIONS and not (key in DIRECTIONS and unit in MICROSECONDS):
        stats.problems.append(Problem(stats.place, number, f"operation {key!r} is not known and was left out"))
        return None
    if unit in MICROSECONDS and total is None:
        stats.problems.append(Problem(stats.place, number, f"no sum of times in {_shown(line)}: left out"))
    timed = {f"{key}_us": total} if unit in MICROSECONDS and total is not None else {}
    # The number of reads and writes is that of their bytes.
    return _set(entry, timed if key in DIRECTIONS else {key: samples, **timed})


def _total(words: list[str]) -> int | None:
    return whole_number(words[words.index("sum:") + 1]) if "sum:" in words else None


def _count(entry: _JobEntry, key: str, samples: int, total: int) -> str | None:
    # Before 2.10 the line is called `read` or `write`; from 2.15 on that name is the time it took, in usecs.
    direction = _BYTES_OF[key]
    return _set(entry, {f"{direction}_bytes": total, f"{direction}_ops": samples})


def _take_sizes(entry: _JobEntry, direction: str, words: list[str]) -> str | None:
    """`hist: { 32: 2, 4K: 1 }`, from 2.16 on: labels are upper bounds."""
    if "hist:" not in words:
        return None
    rows = words[words.index("hist:") + 2 : -2]
    counts = _size_counts(direction, rows)
    if counts is None:
        return f"histogram not understood: {' '.join(rows)[:60]!r}"
    entry.sizes = {**(entry.sizes or {}), **counts}
    return None


def _size_counts(direction: str, rows: list[str]) -> dict[str, int] | None:
    """I/Os by direction and size from `32: 2 4K: 1`, as words."""
    labels, counts = [_size_label(word) for word in rows[::2]], [whole_number(word) for word in rows[1::2]]
    if len(labels) != len(counts) or None in labels or None in counts:
        return None
    return {f"{direction}:{label}": count or 0 for label, count in zip(labels, counts, strict=True)}


def _set(entry: _JobEntry, counters: dict[str, int]) -> str | None:
    twice = counters.keys() & entry.counters.keys()
    entry.counters.update(counters)
    return f"{min(twice)} occurs twice in one entry" if twice else None


def _take_time(entry: _JobEntry, key: str, value: str) -> str | None:
    stamp = stamp_us(value)
    if stamp is None:
        return f"{key} is not a time: {value.strip()[:60]!r}"
    if key == "snapshot_time":
        entry.snapshot_us = stamp
    elif key == "start_time":
        entry.start_us = stamp
    return None


def _shown(line: bytes) -> str:
    return repr(line.decode("ascii", "backslashreplace").strip()[:60])
