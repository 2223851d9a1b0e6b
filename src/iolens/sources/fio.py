"""Results of fio: JSON and json+ (one document or many, mixed with text and messages), terse version 3, normal text.

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
from iolens.sources import ReadOptions
from iolens.sources.benchmark_results import ResultFile, captures_of
from iolens.sources.fio_jobs import document_rows, is_earlier_status
from iolens.sources.fio_text import GROUP_LINE, TERSE, read_normal, read_terse
from iolens.sources.saved_text import shown, unpacked

_DOCUMENT: Final = re.compile(r"^\s*\{", re.MULTILINE)
_DOCUMENT_HEAD: Final = re.compile(rb'\{\s*"fio version"\s*:')
_MESSAGE: Final = re.compile(r"fio: .*(?:err|error)", re.IGNORECASE)
_MOST_MESSAGES: Final = 3
_LONGEST_MESSAGE: Final = 160


class Fio:
    """Results of the fio benchmark."""

    name = "fio"
    summary = "results of fio: JSON, json+, terse version 3 or normal text"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether there is a fio document, a terse line or a group of normal output in it."""
        text = unpacked(head)
        return bool(
            _DOCUMENT_HEAD.search(text) or TERSE.match(text) or GROUP_LINE.search(text.decode("utf-8", "replace"))
        )

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file."""
        return captures_of(paths, options, read_fio)


SOURCE: Final = Fio()


class _Piece(NamedTuple):
    """A document, or None and the text between documents; `line` is where it begins."""

    line: int
    text: str
    document: dict[str, Any] | None
    is_cut: bool = False


def read_fio(file: ResultFile) -> Iterator[Item]:
    """Rows of one file, and what was not understood."""
    text, trouble = file.text()
    yield from read_fio_text(file, text)
    if trouble:
        yield Problem(file.place, None, trouble)


def read_fio_text(file: ResultFile, text: str) -> Iterator[Item]:
    """The same of a text that is in memory already."""
    if TERSE.match(text.encode("utf-8", "replace")):
        yield from read_terse(file, text)
        return
    pieces = list(_pieces(text))
    documents = [piece for piece in pieces if piece.document is not None]
    yield from _messages(file, pieces)
    if documents:
        yield from _documents(file, documents)
        if any(GROUP_LINE.search(piece.text) for piece in pieces if piece.document is None):
            yield Note(file.place, None, "normal output beside the JSON: the same results, read once")
    elif GROUP_LINE.search(text):
        yield from read_normal(file, text)
    elif not any(piece.is_cut for piece in pieces):
        yield Problem(file.place, None, f"not a result of fio: it begins with {shown(text.partition(chr(10))[0])}")


def _documents(file: ResultFile, documents: list[_Piece]) -> Iterator[Item]:
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


def _pieces(text: str) -> Iterator[_Piece]:
    """Documents and the text between them."""
    decode = json.JSONDecoder().raw_decode
    position, line, between, start = 0, 1, 0, 1
    while (match := _DOCUMENT.search(text, position)) is not None:
        begin = match.end() - 1
        line += text.count("\n", position, begin)
        try:
            content, end = decode(text, begin)
        except (ValueError, RecursionError):
            content, end = None, begin + 1
        if content is None and not _DOCUMENT_HEAD.match(text[begin : begin + 200].encode("utf-8", "replace")):
            position = end
            continue
        yield _Piece(start, text[between:begin], None)
        if content is None:
            yield _Piece(line, text[begin:], None, is_cut=True)
            return
        yield _Piece(line, "", content if isinstance(content, dict) and "fio version" in content else None)
        line += text.count("\n", begin, end)
        position = between = end
        start = line
    yield _Piece(start, text[between:], None)


def _messages(file: ResultFile, pieces: list[_Piece]) -> Iterator[Item]:
    shown_so_far = 0
    for piece in pieces:
        if piece.is_cut:
            yield Problem(file.place, piece.line, "the file ends within a document: that run is left out")
        for offset, content in enumerate(piece.text.split("\n")):
            if piece.is_cut or not _MESSAGE.match(content) or shown_so_far >= _MOST_MESSAGES:
                continue
            shown_so_far += 1
            yield Problem(file.place, piece.line + offset, f"fio reported: {content[:_LONGEST_MESSAGE]}")
