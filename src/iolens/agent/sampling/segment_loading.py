"""Segments on their way into the store: what each brings, and where it goes once the store has it.

Shared by an agent's shipper, which loads one after the other, and by the hub's writer, which loads many at once.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from iolens.agent.sampling.private_files import make_private_directory, replace_private
from iolens.agent.sampling.spool import BAD, LATE, sync_directory
from iolens.errors import InputError, StoreError
from iolens.records import Capture, Problem
from iolens.sources.reading.bounded_input import opened_itself
from iolens.sources.spool import CLOSED, EVERYTHING, Admission, Segment, SegmentCheck, check

if TYPE_CHECKING:
    from iolens.store.store import Store
    from iolens.store.tally import Tally

SEEN_STORE: Final = "store.json"  # which store has been written to from here
REASON: Final = ".reason"  # of the file that says why a segment was put aside
LONGEST_NOTE: Final = 1 << 16
WRONG_CONTENT: Final = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError)

Fate = Literal["stored", "late", "bad", "damaged"]  # damaged: what could be read of it is stored


@dataclass(frozen=True, slots=True)
class OfferedSegment:
    """A finished segment that is loaded next."""

    segment: Segment
    state: SegmentCheck
    admission: Admission = EVERYTHING
    unread: list[Problem] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> OfferedSegment:
        """InputError when nothing of it can be read."""
        segment, state = Segment.open(path), _checked(path)
        if not state.good:
            raise InputError(str(path), "not one readable tick")
        return cls(segment, state)

    @property
    def path(self) -> Path:
        """The file."""
        return self.segment.path

    def capture(self) -> Capture:
        """The segment as the store takes it."""
        return replace(self.segment.capture(), items=partial(self.segment.items, self.unread, self.admission))

    def settle(self, tally: Tally) -> Fate:
        """The store has it: remove it, or put it aside when the store did not take all of it."""
        if self.state.damaged or self.unread:
            put_aside(self.path, BAD, *dict.fromkeys(map(str, (*self.unread, *tally.problems))))
            return "damaged" if tally.samples or sum(tally.rows.values()) else "bad"
        if tally.older:  # only `iolens ingest spool --rebuild` can take these
            put_aside(self.path, LATE)
            return "late"
        self.path.unlink()
        return "stored"


def _checked(path: Path) -> SegmentCheck:
    try:
        return check(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error


def put_aside(path: Path, folder: str, *reasons: str) -> None:
    """Put a segment into a folder beside the others, and why into a file beside it."""
    aside = path.parent / folder
    make_private_directory(aside)
    there = (aside / path.name).with_suffix(CLOSED)
    path.rename(there)
    if reasons:
        replace_private(there.with_suffix(REASON), "".join(f"{reason}\n" for reason in reasons).encode())
    sync_directory(aside)


def booked_tally(store: Store, capture: Capture) -> Tally:
    """What became of a segment that the store has already: whoever loaded it was cut off before it was removed."""
    from iolens.store.duckdb_engine import query
    from iolens.store.tables import PARTS_PER_SEQUENCE
    from iolens.store.tally import Tally

    handle = store.tables.load("batches")
    sums = "coalesce(sum(older), 0), coalesce(sum(samples), 0), coalesce(sum(rows), 0)"
    sql = f"SELECT {sums} FROM stored WHERE batch = ? AND part // ? = ?"  # noqa: S608 (no names from outside)
    values = [capture.identity, PARTS_PER_SEQUENCE, capture.sequence]
    rows = [] if handle is None else query(store.tables, handle, "batches", sql, values)
    older, samples, stored = map(int, rows[0] if rows else (0, 0, 0))
    return Tally(older=older, samples=samples, rows=Counter(rows=stored))


def refuse_another_store(directory: Path, store: Store) -> None:
    """A store that has gone is waited for: a new one in its place would begin without a past."""
    if _seen_store(directory) == store.url and store.tables.load("batches") is None:
        seen = directory / SEEN_STORE
        raise StoreError(f"{store.url}: the store that was here is gone; remove {seen} to begin a new one")


def _seen_store(directory: Path) -> str | None:
    try:
        with opened_itself(directory / SEEN_STORE) as stream:
            url: str = json.loads(stream.read(LONGEST_NOTE))["url"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return url


def remember_store(directory: Path, url: str) -> None:
    """Note that this store has been written to from here."""
    if _seen_store(directory) != url:
        replace_private(directory / SEEN_STORE, (json.dumps({"url": url}) + "\n").encode())
