"""Inputs that become captures: what identifies a file, what is looked at before, refusals that stand for inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from iolens.errors import InputError, IolensError, unexpected
from iolens.open_files import is_under_way, may_keep
from iolens.records import Capture, Item, Problem
from iolens.sources.reading.bounded_input import Line, regular_file
from iolens.sources.reading.options import ReadOptions

# Parsed files whose beginning is looked at, for the interval or what they tell ----------------------------------------
# Before they are read: one parse.
#
# What was looked at is kept, within a bound for all files, while the file is under way; else it is parsed again.

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


# Inputs that become captures ------------------------------------------------------------------------------------------
# What identifies a file, and refusals that stand for inputs that cannot be read.

Input = TypeVar("Input")
Opened = TypeVar("Opened")


def content_identity(path: Path) -> str:
    """Identity of a file: the hash of its content, so that the same file twice adds nothing."""
    return f"file/{regular_file(path).sha256()}"


def refuse_empty(path: Path, expected: str) -> None:
    """Say why a file cannot be read, or that there is nothing in it."""
    try:
        size = regular_file(path).size
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from error
    if size == 0:
        raise InputError(str(path), "empty file", expected)


def read_each(
    inputs: Sequence[Input], read: Callable[[Input], Opened], name: Callable[[Input], str] = str
) -> tuple[list[Opened], list[Capture]]:
    """Open each path or database; one that cannot be read becomes a capture that says so, and the others go on.

    `name` is what an input is called in messages.
    """
    opened: list[Opened] = []
    refused: list[Capture] = []
    for parameter in inputs:
        try:
            opened.append(read(parameter))
        except InputError as error:
            refused.append(refusal(name(parameter), error))
        except IolensError:
            raise  # the question itself was wrong
        except OSError as error:
            refused.append(
                refusal(name(parameter), InputError(name(parameter), f"cannot be read: {error.strerror or error}"))
            )
        except Exception as error:
            refused.append(refusal(name(parameter), InputError(name(parameter), f"not read; {unexpected(error)}")))
    return opened, refused


class SavedFile(Protocol):
    """One file that was opened, with what the user said about it."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def identity(self) -> str:
        """What makes it the same capture again."""

    def items(self) -> Iterator[Item]:
        """Everything in it; called again, the same."""


class FileSource(ABC):
    """What sources have in common whose files are a capture each: they say how to open one, and their order."""

    @abstractmethod
    def open(self, path: Path, options: ReadOptions) -> SavedFile:
        """The file; InputError or OSError where it cannot be read."""

    def begin(self, file: Any) -> float:
        """What files are sorted by; those that are equal stay as they were named."""
        return 0

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file, after those that say why a file cannot be read."""
        files, refused = read_each(paths, partial(self.open, options=options))
        yield from refused
        for file in sorted(files, key=self.begin):
            yield Capture(str(file.path), file.identity, file.items)


def refusal(origin: str, error: InputError) -> Capture:
    """A capture that only says why it cannot be read."""
    import uuid  # seven milliseconds, of a sampler that refuses nothing

    return Capture(origin, f"refused/{uuid.uuid4()}", partial(_refusal, error))


def _refusal(error: InputError) -> Iterator[Item]:
    raise error
    yield  # makes this an iterator that fails when it is read
