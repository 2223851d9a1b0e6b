"""JSON documents out of a long text: lists of lists, one per line, or one after another, a piece at a time.

Brackets and commas between documents are skipped, so that pages of hits and plain arrays look alike. A document that is
damaged costs itself: reading goes on at the next line that begins one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from iolens.records import Problem
from iolens.sources.reading.bounded_input import DAMAGED, blocks_of, opened
from iolens.sources.reading.parsed_numbers import shown

CHUNK: Final = 1 << 20
LONGEST: Final = 1 << 26  # no document is longer
_NEAR_END: Final = 16  # an error this close to the end of what was read may be nothing but that end

_BETWEEN: Final = re.compile(r"[\s,\[\]]*+")
_COMMAS: Final = re.compile(r"[\s,]*+")
_LONGEST_NAME: Final = 256  # characters that a list's name and what follows it may take
_NEXT: Final = re.compile(r"\n[ \t\r]*+[\[{]")


class JsonDocument(NamedTuple):
    """One JSON object, and the line it begins on."""

    line: int
    content: dict[str, Any]


def documents(path: Path) -> Iterator[JsonDocument | Problem]:
    """Every object of a file, plain or gzip; a problem for each stretch that is none."""
    with opened(path) as stream:
        yield from _Decoder(str(path), stream).documents()


def members(path: Path, name: str) -> Iterator[JsonDocument | Problem]:
    """Every object in the list called `name` of one long object; a problem for each stretch that is none."""
    with opened(path) as stream:
        yield from _Decoder(str(path), stream).members(name)


class _Decoder:
    def __init__(self, place: str, stream: BinaryIO) -> None:
        self.place, self.blocks = place, blocks_of(stream, CHUNK)
        self.text, self.position, self.line = "", 0, 1
        self.ended: str | None = None  # why no more can be read; empty at the end of the file
        self.rest = b""
        self.open_lists = 0
        self.decode = json.JSONDecoder().raw_decode

    def documents(self) -> Iterator[JsonDocument | Problem]:
        cut = False
        while self._skip():
            json_document = self._object()
            cut = isinstance(json_document, Problem)
            yield json_document
        if self.ended:
            yield Problem(self.place, self.line, f"cannot be read to its end: {self.ended}")
        elif self.open_lists > 0 and not cut:
            yield Problem(self.place, self.line, "the list of documents is not closed: the file may be cut")

    def members(self, name: str) -> Iterator[JsonDocument | Problem]:
        if not self._find(re.compile(rf'"{re.escape(name)}"\s*+:\s*+\[')):
            yield Problem(self.place, None, f"no list called {name!r} in it{self.ended and ': ' + self.ended}")
            return
        while True:
            match = _COMMAS.match(self.text, self.position)
            self._advance(match.end() if match is not None else self.position)
            if self.position >= len(self.text) and self._read_more():
                continue
            if self.position >= len(self.text):
                why = f"cannot be read to its end: {self.ended}" if self.ended else "it is not closed: may be cut"
                yield Problem(self.place, self.line, f"the list {name!r}: {why}")
                return
            if self.text[self.position] == "]":
                return
            yield self._object()

    def _find(self, pattern: re.Pattern[str]) -> bool:
        """Move behind the first match; what was read before may hold the beginning of one."""
        while (match := pattern.search(self.text, self.position)) is None:
            self._advance(max(self.position, len(self.text) - _LONGEST_NAME))
            if not self._read_more():
                return False
        self._advance(match.end())
        return True

    def _skip(self) -> bool:
        """Move to the next object; False where there is none."""
        while True:
            match = _BETWEEN.match(self.text, self.position)
            if match is not None:
                self.open_lists += match[0].count("[") - match[0].count("]")
                self._advance(match.end())
            if self.position < len(self.text):
                return True
            if not self._read_more():
                return False

    def _object(self) -> JsonDocument | Problem:
        begin_line = self.line
        while True:
            try:
                if self.text[self.position] != "{":
                    raise ValueError("no object")
                content, end = self.decode(self.text, self.position)
            except (ValueError, RecursionError) as error:
                if self._may_be_cut(error) and len(self.text) - self.position <= LONGEST and self._read_more():
                    continue
                return self._damaged(begin_line, error)
            self._advance(end)
            return JsonDocument(begin_line, content)

    def _may_be_cut(self, error: Exception) -> bool:
        """Whether the document may go on in what was not read yet."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.pos >= len(self.text) - _NEAR_END or error.msg.startswith("Unterminated string")

    def _damaged(self, line: int, error: Exception) -> Problem:
        """Go on at the next line that begins an object or a list."""
        begin = self.text[self.position : self.position + 200]
        match = _NEXT.search(self.text, self.position + 1)
        while match is None:
            self._advance(self._last_blank_line())  # what cannot begin a document is not held
            if not self._read_more():
                break
            match = _NEXT.search(self.text, self.position)
        at_end = match is None
        self._advance(match.start() if match else len(self.text))
        why = "the file ends within it" if at_end and begin.startswith("{") else type(error).__name__
        return Problem(
            self.place, line, f"not a JSON document ({why}): {shown(begin.splitlines()[0] if begin else '')}"
        )

    def _last_blank_line(self) -> int:
        """Where the last line begins, if it is blank so far: a document may follow. Else the end of the text."""
        newline = self.text.rfind("\n", max(self.position, len(self.text) - CHUNK))
        return newline if newline >= 0 and not self.text[newline:].strip() else len(self.text)

    def _advance(self, end: int) -> None:
        self.line += self.text.count("\n", self.position, end)
        self.position = end

    def _read_more(self) -> bool:
        if self.ended is not None:
            return False
        data = self.rest + b"".join(self._blocks(max(CHUNK, len(self.text) - self.position)))
        keep = _incomplete_tail(data) if self.ended is None else 0
        self.rest = data[len(data) - keep :]
        self.text = self.text[self.position :] + data[: len(data) - keep].decode("utf-8", "backslashreplace")
        self.position = 0
        return self.ended is None or bool(data)

    def _blocks(self, size: int) -> Iterator[bytes]:
        """As many bytes at least: doubling, so that a long document is not decoded too often."""
        length = 0
        while length < size:
            try:
                block = next(self.blocks, None)
            except DAMAGED as error:
                self.ended = str(error) or type(error).__name__
                return
            if block is None:
                self.ended = ""
                return
            length += len(block)
            yield block


def _incomplete_tail(data: bytes) -> int:
    """How many bytes at the end begin a character that the next piece ends."""
    for length in range(1, min(4, len(data)) + 1):
        byte = data[-length]
        if byte & 0xC0 != 0x80:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return length if needed > length else 0
    return 0
