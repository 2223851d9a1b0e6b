"""Text of many records, each of a few fields, taken apart column by column: numbers, times, words, beginnings of paths.

No record becomes a Python object, so that listings of a billion files can be read. The bytes need not be text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.records import Problem
from iolens.sources.reading.bounded_input import DAMAGED, blocks_of, opened

PIECE_BYTES: Final = 4 << 20
LONGEST_RECORD: Final = 1 << 20  # no path is that long: the terminator is another one, or this is no listing
WORD: Final = 8  # bytes compared at a time
LONGEST_WORD: Final = 1024  # bytes of a field that are compared in columns
MARGIN: Final = 64  # zeros after the text, so that a field may be looked at beyond its end: no number is longer
_FIRST_BYTES: Final = np.array([(1 << 64) - (1 << 8 * (WORD - count)) for count in range(WORD + 1)], np.uint64)

Places = NDArray[np.int64]
Truths = NDArray[np.bool_]


class Spans(NamedTuple):
    """A field of every record: where it begins, and where the byte after it is."""

    begin: Places
    end: Places

    @property
    def width(self) -> Places:
        """Its bytes."""
        return self.end - self.begin

    def of(self, chosen: Any) -> Spans:
        """The same field of some records."""
        return Spans(self.begin[chosen], self.end[chosen])


class Words(NamedTuple):
    """A field of few different values: the values, and the place among them of every record's."""

    values: list[bytes]
    places: Places


def record_pieces(path: Path, terminator: bytes, *, may_lack_end: bool = False) -> Iterator[bytes | Problem]:
    """A file, unpacked if it is gzip, in pieces of whole records; a problem where it ends within one.

    A too long record is skipped without being held, and reported in place of it. `may_lack_end`: the last record
    need not be terminated.
    """
    held: list[bytes] = []
    length = 0  # of the record that goes on in the next block
    try:
        with opened(path) as stream:
            for block in blocks_of(stream, PIECE_BYTES):
                begin = 0
                if length > LONGEST_RECORD:
                    begin = block.find(terminator) + 1
                    if not begin:
                        length += len(block)
                        continue
                    yield _too_long(path, length + begin)
                    length = 0
                end = block.rfind(terminator, begin) + 1
                if end:
                    yield b"".join((*held, block[begin:end]))
                    held, length = [block[end:]], len(block) - end
                else:
                    held.append(block[begin:])
                    length += len(block) - begin
                if length > LONGEST_RECORD:
                    held = []
    except DAMAGED as error:
        yield Problem(str(path), None, f"cannot be read to its end: {error}")
        return
    if length > LONGEST_RECORD:
        yield _too_long(path, length)
    elif length and may_lack_end:
        yield b"".join(held)
    elif length:
        yield Problem(str(path), None, "it ends in the middle of a record, which is left out")


def _too_long(path: Path, length: int) -> Problem:
    reason = f"a record of {length} bytes: longer than {LONGEST_RECORD >> 10} KiB, left out; is it ended by NUL?"
    return Problem(str(path), None, reason)


class RecordText:
    """Whole records, and the bytes of their fields."""

    def __init__(self, text: bytes, terminator: bytes) -> None:
        self.text = text
        self._size = len(text)
        self._known: dict[bytes, Places] = {}
        padded = text + bytes(MARGIN)
        self.bytes = np.frombuffer(padded, np.uint8)
        self._words: NDArray[np.uint64] = np.ndarray(self._size + MARGIN - WORD, ">u8", padded, strides=(1,))
        ends = self.positions(terminator)
        begins = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))[: len(ends)]
        if terminator == b"\n":  # a carriage return before it, if there is one, is no part of the record
            ends = ends - ((ends > begins) & (self.bytes[np.maximum(ends - 1, 0)] == ord("\r")))
        self.records = Spans(begins, ends)

    def positions(self, pattern: bytes) -> Places:
        """Where one byte, or several in a row, occur."""
        if pattern not in self._known:
            self._known[pattern] = self._places_of(pattern)
        return self._known[pattern]

    def _places_of(self, pattern: bytes) -> Places:
        size = max(self._size - len(pattern) + 1, 0)
        result = self.bytes[:size] == pattern[0]
        for place, byte in enumerate(pattern[1:], 1):
            result &= self.bytes[place : size + place] == byte
        return np.flatnonzero(result)

    def of(self, spans: Spans, place: int) -> bytes:
        """The bytes of one record's field."""
        return self.text[int(spans.begin[place]) : int(spans.end[place])]

    def first(self, positions: Places, spans: Spans, skipped: int = 0) -> Places:
        """The first of the positions in each span, some skipped; the span's end where it has no more of them."""
        if not len(positions):
            return spans.end
        at = np.searchsorted(positions, spans.begin) + skipped
        values = np.minimum(positions[np.minimum(at, len(positions) - 1)], spans.end)
        return np.where(at < len(positions), values, spans.end)

    def split(self, spans: Spans, separator: bytes, before: int, after: int, free: bool) -> tuple[list[Spans], Truths]:
        """Fields of each span, and which spans have as many.

        `before` fields are counted from the left and `after` from the right; with `free`, one between them may itself
        hold the separator.
        """
        byte = self.positions(separator)
        low, high = np.searchsorted(byte, spans.begin), np.searchsorted(byte, spans.end)
        wanted = before + after - (0 if free else 1)
        good = high - low >= wanted if free else high - low == wanted
        byte = np.concatenate((byte, np.zeros(wanted + 1, np.int64)))  # so that no place is beyond its end
        fields: list[Spans] = []
        begin = spans.begin
        for number in range(before):
            end = byte[low + number] if number < wanted else spans.end
            fields.append(Spans(begin, end))
            begin = end + 1
        if free:
            fields.append(Spans(begin, byte[high - after] if after else spans.end))
        for number in range(after, 0, -1):
            end = byte[high - number + 1] if number > 1 else spans.end
            fields.append(Spans(byte[high - number] + 1, end))
        nothing = np.zeros(len(good), np.int64)
        return [
            Spans(np.where(good, field.begin, nothing), np.where(good, field.end, nothing)) for field in fields
        ], good

    def numbers(self, spans: Spans, digits: int) -> tuple[NDArray[np.uint64], Truths]:
        """Whole numbers of at most so many digits, and which fields are such."""
        width = spans.width
        good = (width > 0) & (width <= digits)
        values = np.zeros(len(width), np.uint64)
        for place in range(int(width[good].max(initial=0))):
            digit = self.bytes[spans.begin + place] - np.uint8(ord("0"))  # what is below "0" becomes large
            within = place < width
            good &= ~within | (digit < 10)
            values = np.where(within, values * np.uint64(10) + digit, values)
        return values, good

    def seconds(self, spans: Spans) -> tuple[Places, Truths]:
        """Whole seconds since 1970 of times such as `1794770591.7147035380`, and which fields are such."""
        negative = self.letters(spans) == ord("-")
        begin = spans.begin + negative
        point = self.first(self.positions(b"."), Spans(begin, spans.end))
        values, good = self.numbers(Spans(begin, point), 12)
        _, fraction = self.numbers(Spans(point + 1, spans.end), MARGIN)
        good &= fraction | (point >= spans.end - 1)
        whole = values.astype(np.int64)
        return np.where(negative, -whole, whole), good

    def letters(self, spans: Spans) -> NDArray[np.uint8]:
        """The first byte of every field; 0 where it is empty."""
        return np.where(spans.width > 0, self.bytes[spans.begin], np.uint8(0))

    def words(self, spans: Spans) -> Words:
        """The different values of a field, exactly."""
        codes = spans.width
        for offset in range(0, min(int(codes.max(initial=0)), LONGEST_WORD), WORD):
            _, part = np.unique(self._word(spans, offset), return_inverse=True)
            _, codes = np.unique(codes * (len(codes) + 1) + part, return_inverse=True)
        if len(long := np.flatnonzero(spans.width > LONGEST_WORD)):  # one by one: all fields would pay for the longest
            known: dict[bytes, int] = {}
            rest = np.zeros(len(codes), np.int64)
            for place in long.tolist():
                rest[place] = known.setdefault(self.of(spans, place), len(known))
            codes = codes * (len(known) + 1) + rest
        _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
        return Words([self.of(spans, int(first)) for first in firsts], places)

    def _word(self, spans: Spans, offset: int) -> NDArray[np.uint64]:
        """Eight bytes of every field as a number, zeros after its end."""
        left = np.clip(spans.width - offset, 0, WORD)
        at = np.where(left > 0, spans.begin + offset, 0)
        return np.asarray(self._words[at] & _FIRST_BYTES[left])
