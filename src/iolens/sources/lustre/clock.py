"""Lustre's own times: `snapshot_time` and `start_time` as every version writes them, in microseconds since 1970.

The fraction is a count of its unit: old servers print 9,667 µs as `.9667`, some pad nanoseconds with blanks.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from iolens.sources.reading.parsed_numbers import LARGEST_UNSIGNED, count_or_none

LATEST_S: Final = 1 << 37  # the year 6325: anything later is no time
_TIME_NAME: Final = b"snapshot_time"


whole_number: Final = partial(count_or_none, largest=LARGEST_UNSIGNED)
"""A plain unsigned number of 64 bits, else None."""


def stamp_us(text: str) -> int | None:
    """Microseconds from `1284241188.775657 secs.usecs`, `1510780958.796675432 (secs.nsecs)` or `1537070542`."""
    seconds_word, point, rest = text.strip().partition(".")
    seconds = whole_number(seconds_word)
    words = rest.split()
    if seconds is None or seconds >= LATEST_S:
        return None
    if not words:
        return None if point else seconds * 1_000_000
    fraction = whole_number(words[0])
    if fraction is None:
        return None
    unit = words[1].strip("()") if len(words) > 1 else _unit_by_digits(words[0])
    micros = _fraction_us(fraction, unit, words[0])
    return None if micros is None else seconds * 1_000_000 + micros


def snapshot_of(data: bytes) -> int | None:
    """The `snapshot_time` near the beginning of a statistics text, without reading the rest."""
    value = data.find(_TIME_NAME, 0, 512)
    if value < 0:
        return None
    end = data.find(b"\n", value)
    line = data[value + len(_TIME_NAME) : end if end >= 0 else len(data)]
    return stamp_us(line.decode("ascii", "replace").strip().lstrip(":"))


def _unit_by_digits(fraction: str) -> str:
    return "secs.nsecs" if len(fraction) == 9 else "secs"


def _fraction_us(fraction: int, unit: str, word: str) -> int | None:
    if unit == "secs.nsecs":
        return fraction // 1000 if fraction < 1_000_000_000 else None
    if unit == "secs.usecs":
        return fraction if fraction < 1_000_000 else None
    return int(f"{word:0<6}"[:6]) if unit == "secs" else None
