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
from iolens.sources.saved_text import DAMAGED, opened, shown

CHUNK: Final = 1 << 20
LONGEST: Final = 1 << 26  # no document is longer

_BETWEEN: Final = re.compile(r"[\s,\[\]]*")
_NEXT: Final = re.compile(r"\n\s*[\[{]")


class Document(NamedTuple):
    """One JSON object, and the line it begins on."""

    line: int
    content: dict[str, Any]


def documents(path: Path) -> Iterator[Document | Problem]:
    """Every object of a file, plain or gzip; a problem for each stretch that is none."""
    with opened(path) as stream:
        yield from _Decoder(str(path), stream).documents()


class _Decoder:
    def __init__(self, place: str, stream: BinaryIO) -> None:
        self.place, self.stream = place, stream
        self.text, self.position, self.line = "", 0, 1
        self.ended: str | None = None  # why no more can be read; empty at the end of the file
        self.rest = b""
        self.open_lists = 0
        self.decode = json.JSONDecoder().raw_decode

    def documents(self) -> Iterator[Document | Problem]:
        cut = False
        while self._skip():
            found = self._object()
            cut = isinstance(found, Problem)
            yield found
        if self.ended:
            yield Problem(self.place, self.line, f"cannot be read to its end: {self.ended}")
        elif self.open_lists > 0 and not cut:
            yield Problem(self.place, self.line, "the list of documents is not closed: the file may be cut")

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

    def _object(self) -> Document | Problem:
        begin_line = self.line
        while True:
            try:
                if self.text[self.position] != "{":
                    raise ValueError("no object")
                content, end = self.decode(self.text, self.position)
            except (ValueError, RecursionError) as error:
                too_long = len(self.text) - self.position > LONGEST
                if self.text[self.position] == "{" and not too_long and self._read_more():
                    continue
                return self._damaged(begin_line, error)
            self._advance(end)
            return Document(begin_line, content)

    def _damaged(self, line: int, error: Exception) -> Problem:
        """Go on at the next line that begins an object or a list."""
        begin = self.text[self.position : self.position + 200]
        match = _NEXT.search(self.text, self.position + 1)
        while match is None and self._read_more():
            match = _NEXT.search(self.text, self.position + 1)
        at_end = match is None
        self._advance(match.start() if match else len(self.text))
        why = "the file ends within it" if at_end and begin.startswith("{") else type(error).__name__
        return Problem(
            self.place, line, f"not a JSON document ({why}): {shown(begin.splitlines()[0] if begin else '')}"
        )

    def _advance(self, end: int) -> None:
        self.line += self.text.count("\n", self.position, end)
        self.position = end

    def _read_more(self) -> bool:
        if self.ended is not None:
            return False
        remaining = len(self.text) - self.position
        try:
            data = self.stream.read(max(CHUNK, remaining))  # doubling, so that a long document is not read too often
        except DAMAGED as error:
            self.ended, data = str(error) or type(error).__name__, b""
        if not data:
            self.ended = self.ended or ""
        data = self.rest + data
        keep = _incomplete_tail(data) if self.ended is None else 0
        self.rest = data[len(data) - keep :]
        self.text = self.text[self.position :] + data[: len(data) - keep].decode("utf-8", "backslashreplace")
        self.position = 0
        return self.ended is None or bool(data)


def _incomplete_tail(data: bytes) -> int:
    """How many bytes at the end begin a character that the next piece ends."""
    for length in range(1, min(4, len(data)) + 1):
        byte = data[-length]
        if byte & 0xC0 != 0x80:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return length if needed > length else 0
    return 0
