"""Parsed files whose beginning is looked at, for the interval or what they tell, before they are read: one parse.

What was looked at is kept, within a bound for all files, while the file is under way; else it is parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Generic, TypeVar

from iolens.open_files import is_under_way, may_keep
from iolens.records import Problem
from iolens.sources.reading.bounded_input import Line

PIECE_BYTES: Final = 500  # about what a small piece takes in memory

Piece = TypeVar("Piece")


def small(piece: object) -> int:
    """About how many bytes a piece of a few numbers takes."""
    return PIECE_BYTES


def line_size(line: Line | Problem) -> int:
    """About how many bytes a line takes."""
    return PIECE_BYTES + (len(line.text) if isinstance(line, Line) else 0)


class Lookahead(Generic[Piece]):
    """The pieces that `parse` makes of a file, the same ones each time; `size` is about how many bytes one takes."""

    def __init__(self, path: Path, parse: Callable[[], Iterator[Piece]], size: Callable[[Piece], int]) -> None:
        self.path, self.parse, self.size = path, parse, size
        self._kept: list[Piece] | None = None
        self._kept_bytes = 0
        self._rest: Iterator[Piece] | None = None  # what follows those that are kept; None: nothing

    def look(self) -> Iterator[Piece]:
        """The pieces from the first on, to be looked at no further than needed."""
        self._rest = rest = self.parse()
        self._kept = [] if is_under_way(self.path) else None
        for piece in rest:
            if self._kept is not None:
                size = self.size(piece)
                if may_keep(size):
                    self._kept.append(piece)
                    self._kept_bytes += size
                else:
                    self._forget()
            yield piece
        self._rest = None

    def _forget(self) -> None:
        may_keep(-self._kept_bytes)
        self._kept, self._kept_bytes, self._rest = None, 0, None

    def __iter__(self) -> Iterator[Piece]:
        """All pieces: those that were looked at, and those that follow. A second call parses anew."""
        kept, rest = self._kept, self._rest
        self._forget()
        if kept is None:
            yield from self.parse()
            return
        yield from kept
        yield from rest or ()

    def __reduce__(self) -> tuple[object, ...]:
        """For another process: what was looked at, if it is the whole file."""
        kept = self._kept if self._rest is None else None
        return type(self), (self.path, self.parse, self.size), {"_kept": kept}
