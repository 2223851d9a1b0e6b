"""Results of fio: JSON and json+ (one document or many, mixed with text and messages), terse 3 to 5, normal text.

One row per group of like jobs and direction, as fio's own group totals. `disk_util` is what the device saw meanwhile;
fio looks at it four times a second, so that its counts miss up to the last quarter of a second of a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.records import Capture, Item, Note, Problem
from iolens.sources.benchmarks.fio_text import (
    GROUP_HEAD,
    OLD_TERSE,
    TERSE,
    document_rows,
    is_earlier_status,
    read_normal,
    read_terse,
)
from iolens.sources.benchmarks.results import ResultFile, captures_of
from iolens.sources.reading.bounded_input import unpacked
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown

_DOCUMENT: Final = re.compile(r'^[ \t]*+\{\s*+"fio version"\s*+:', re.MULTILINE)
_DOCUMENT_HEAD: Final = re.compile(rb'\{\s*+"fio version"\s*+:')
_MESSAGE: Final = re.compile(r"fio: .*(?:err|error)", re.IGNORECASE)
MOST_DAMAGED: Final = 100  # documents; with more of them the rest is not looked at
_MOST_MESSAGES: Final = 3
_LONGEST_MESSAGE: Final = 160


class Fio:
    """Results of the fio benchmark."""

    name = "fio"
    summary = "results of fio: JSON, json+, terse versions 3 to 5 or normal text"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether there is a fio document, a terse line or a group of normal output in it."""
        text = unpacked(head)  # most files have none of the words, which is found in a fraction of the time
        return bool(
            (b'"fio version"' in text and _DOCUMENT_HEAD.search(text))
            or (b";fio-" in text and TERSE.search(text.decode("utf-8", "replace")))
            or (b": (groupid=" in text and GROUP_HEAD.search(text.decode("utf-8", "replace")))
        )

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file."""
        return captures_of(paths, options, read_fio)


SOURCE: Final = Fio()


class _FioPiece(NamedTuple):
    """A document, or None and the text between documents; `line` is where it begins."""

    line: int
    text: str
    document: dict[str, Any] | None
    damage: str = ""  # of a document that cannot be read


def read_fio(file: ResultFile) -> Iterator[Item]:
    """Rows of one file, and what was not understood."""
    text, trouble = file.text()
    yield from read_fio_text(file, text)
    if trouble:
        yield Problem(file.place, None, trouble)


def read_fio_text(file: ResultFile, text: str) -> Iterator[Item]:
    """The same of a text that is in memory already."""
    pieces = list(_pieces(text))
    documents = [piece for piece in pieces if piece.document is not None]
    yield from _messages(file, pieces)
    if documents:
        yield from _documents(file, documents)
        between = [piece.text for piece in pieces if piece.document is None]
        for what, pattern in (("normal", GROUP_HEAD), ("terse", TERSE)):
            if any(pattern.search(name) for name in between):
                yield Note(file.place, None, f"{what} output beside the JSON: the same results, read once")
    elif TERSE.search(text):
        yield from read_terse(file, text)
    elif GROUP_HEAD.search(text):
        yield from read_normal(file, text)
    elif OLD_TERSE.search(text):
        reason = "terse version 2 is not supported; versions 3, 4 and 5 are, and --output-format=json"
        yield Problem(file.place, None, reason)
    elif not any(piece.damage for piece in pieces):
        yield Problem(file.place, None, f"not a result of fio: it begins with {shown(text.partition(chr(10))[0])}")


def _documents(file: ResultFile, documents: list[_FioPiece]) -> Iterator[Item]:
    """The rows of every document but those that a later one of the same run replaces (`--status-interval`)."""
    replaced = 0
    for number, (piece, following) in enumerate(zip(documents, [*documents[1:], None], strict=True)):
        document = piece.document or {}
        if following is not None and is_earlier_status(document, following.document or {}):
            replaced += 1
            continue
        yield from document_rows(file, number, piece.line, document)
    if replaced:
        yield Note(file.place, None, f"{replaced} documents tell how far a run had come: the last one of it counts")


def _pieces(text: str) -> Iterator[_FioPiece]:
    """Documents and the text between them. One that is damaged costs itself: reading goes on at the next."""
    decode = json.JSONDecoder().raw_decode
    end, line, damaged = 0, 1, 0
    while (match := _DOCUMENT.search(text, end)) is not None and damaged < MOST_DAMAGED:
        begin = text.index("{", match.start())
        yield _FioPiece(line, text[end:begin], None)
        line += text.count("\n", end, begin)
        try:
            content, end = decode(text, begin)
            yield _FioPiece(line, "", content)
        except (ValueError, RecursionError):
            damaged += 1
            following = _DOCUMENT.search(text, begin + 1)
            end = len(text) if following is None else following.start()
            damage = "the file ends within a document" if following is None else "a document that is cut or damaged"
            yield _FioPiece(line, text[begin:end], None, damage)
        line += text.count("\n", begin, end)
    yield _FioPiece(line, text[end:], None)


def _messages(file: ResultFile, pieces: list[_FioPiece]) -> Iterator[Item]:
    shown_so_far = 0
    for piece in pieces:
        if piece.damage:
            yield Problem(file.place, piece.line, f"{piece.damage}: that run is left out")
        for offset, content in enumerate(piece.text.split("\n")):
            if piece.damage or not _MESSAGE.match(content) or shown_so_far >= _MOST_MESSAGES:
                continue
            shown_so_far += 1
            yield Problem(file.place, piece.line + offset, f"fio reported: {content[:_LONGEST_MESSAGE]}")
