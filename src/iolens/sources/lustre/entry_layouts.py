"""Where the numbers of a job_stats entry stand: Lustre pads them, so entries of a text differ in their digits only.

One entry of a kind is parsed line by line; others that are the same around their numbers are read by place: of ten
thousand jobs all but a handful. Needs only the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

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
