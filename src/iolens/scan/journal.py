"""How far a scan has come, on disk: a journal of finished steps, so that an interrupted scan goes on where it was.

One line of JSON per step, each synced before the next: which directories are finished with, which were found instead,
and what was counted. A line that was cut by a crash is dropped, with all it counted: its directories are walked again.
Lines are numbered, so that one that is there twice counts once and one that is missing is noticed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.errors import InputError, IolensError
from iolens.scan.findings import Findings, from_plain
from iolens.scan.walk import WalkStep
from iolens.sources.contents.inode_counts import InodeCounts

FORMAT: Final = 2
JOURNAL, LOCK = "journal", "lock"
COMPACT_BYTES: Final = 64 << 20  # a journal this large is written anew as one step, if that makes it much smaller
DIRECTORIES_PER_LINE: Final = 20_000


class NoPlaceError(IolensError):
    """Progress cannot be kept there."""


@dataclass(slots=True)
class Progress:
    """Where a scan stands."""

    findings: Findings
    unfinished: dict[str, None]  # directories found and not looked at, relative to the root, in order
    pieces: list[str] = field(default_factory=list)  # kept entries
    scan: str = ""  # the scan's name

    def take(self, step: WalkStep) -> None:
        """Add one step."""
        self.findings.add(step.findings)
        for name in step.done:
            self.unfinished.pop(name, None)
        self.unfinished.update(dict.fromkeys(step.discovered))
        if step.piece is not None:
            self.pieces.append(step.piece)


class Journal:
    """The state directory of one scan, held by one process at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it names directories: nobody else's business
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NoPlaceError(f"{folder}: no place to keep the scan's progress: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            if isinstance(error, BlockingIOError):
                raise IolensError(f"{folder}: another scan keeps its progress here and is running") from None
            raise NoPlaceError(f"{folder}: cannot be locked: {error.strerror}") from error
        self._stream = -1
        self._size = self._least = self._next = 0

    @property
    def path(self) -> Path:
        """The journal itself."""
        return self.folder / JOURNAL

    @property
    def descriptors(self) -> list[int]:
        """What is open. A forked process must close these, or the place stays taken as long as it lives."""
        return [value for value in (self._stream, self._lock) if value >= 0]

    def close(self) -> None:
        """Let go; what is written stays."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self._stream = self._lock = -1

    def discard(self) -> None:
        """The scan is over: remove all of it."""
        for name in (JOURNAL, LOCK):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else keeps something here
            self.folder.rmdir()
        self.close()

    def begin(self, order: dict[str, Any], progress: Progress) -> None:
        """A new journal that says what is scanned, and how far that has come."""
        beside = self.path.with_suffix(".new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            self._next = 0
            for record in _records(order, progress):
                stream.write(_line(record, self._next))
                self._next += 1
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(self.path)
        _sync(self.folder)
        if self._stream >= 0:
            os.close(self._stream)
        self._stream = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = self._least = self.path.stat().st_size

    def append(self, step: WalkStep) -> None:
        """One step, on disk when this returns."""
        first, *links = step.findings.plain()
        record = {"done": step.done, "found": step.discovered, "findings": [first, *links], "piece": step.piece}
        line = _line(record, self._next)
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._stream, rest) :]
        os.fdatasync(self._stream)
        self._size += len(line)
        self._next += 1

    @property
    def is_long(self) -> bool:
        """Whether it should begin anew."""
        return self._size > max(COMPACT_BYTES, 4 * self._least)

    def order(self) -> dict[str, Any] | None:
        """What the scan that is kept here was asked to do; None where there is none."""
        first = next((record for _, record in self._lines()), None)
        if first is None:
            return None
        order = first.get("order")
        if first.get("iolens_scan_journal") != FORMAT or not isinstance(order, dict):
            raise InputError(str(self.path), "not a journal of this version", "one begun by the same iolens", 1)
        return order

    def progress(self) -> Progress:
        """How far that scan has come."""
        lines = self._lines()
        _, first = next(lines)
        progress = Progress(
            Findings(InodeCounts(first["order"]["time_us"])), dict.fromkeys(first["unfinished"]), scan=first["scan"]
        )
        for number, record in lines:
            try:
                self._take(progress, record)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(str(self.path), f"not a step of a scan: {error}", line=number) from error
        return progress

    @staticmethod
    def _take(progress: Progress, record: dict[str, Any]) -> None:
        time_us = progress.findings.counts.time_us
        findings = Findings(InodeCounts(time_us))
        for piece in record["findings"]:
            findings.add(from_plain(time_us, piece))
        progress.take(WalkStep(record["done"], record["found"], [], findings, record["piece"], False))

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every whole line once, with its place in the file; one that is there twice is taken the first time."""
        seen: list[bytes] = []  # by the lines' own numbers
        for place, line, record in self._records():
            number = record.get("number") if seen else 0  # the first may be of another version
            digest = hashlib.blake2b(line, digest_size=16).digest()
            if number == len(seen):
                seen.append(digest)
                yield place, record
            elif type(number) is not int or not 0 <= number < len(seen) or seen[number] != digest:
                raise InputError(str(self.path), f"a line with the number {number!r}", str(len(seen)), place)

    def _records(self) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Every whole line. Only the last can be cut, for a line is begun when the one before it is on disk."""
        try:
            with self.path.open("rb") as stream:
                for place, line in enumerate(stream, 1):
                    if not line.endswith(b"\n"):
                        return
                    try:
                        record = json.loads(line)
                    except ValueError:
                        record = None
                    if not isinstance(record, dict):
                        if not stream.read(1):  # blocks of the last line that never reached the disk
                            return
                        raise InputError(str(self.path), "damaged", "a line of JSON", place)
                    yield place, line, record
        except FileNotFoundError:
            return


def _records(order: dict[str, Any], progress: Progress) -> Iterator[dict[str, Any]]:
    unfinished = list(progress.unfinished)
    yield {
        "iolens_scan_journal": FORMAT,
        "order": order,
        "scan": progress.scan,
        "unfinished": unfinished[:DIRECTORIES_PER_LINE],
    }
    for begin in range(DIRECTORIES_PER_LINE, len(unfinished), DIRECTORIES_PER_LINE):
        yield _record(names=unfinished[begin : begin + DIRECTORIES_PER_LINE])
    for piece in progress.findings.plain():
        yield _record(findings=[piece])
    for name in progress.pieces:
        yield _record(piece=name)


def _record(names: Sequence[str] = (), findings: Sequence[Any] = (), piece: str | None = None) -> dict[str, Any]:
    return {"done": [], "found": list(names), "findings": list(findings), "piece": piece}


def _line(record: dict[str, Any], number: int) -> bytes:
    """One line; names that are no text keep their bytes (as lone surrogates, which JSON escapes)."""
    return json.dumps(record | {"number": number}, separators=(",", ":")).encode("ascii") + b"\n"


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
