"""The short-lived child that ships: finished segments into the store, each deleted once it is there."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from iolens.agent.sampling.sampler import rss_bytes
from iolens.agent.sampling.spool import (
    BAD,
    CHANGE_LOCK,
    LATE,
    SHIP_LOCK,
    locked,
    make_private_directory,
    refuse_foreign,
    replace_private,
    sync_directory,
    waiting,
)
from iolens.errors import InputError, IolensError, StoreError
from iolens.messages import set_log
from iolens.records import Capture, Problem
from iolens.sources.reading.bounded_input import opened_itself
from iolens.sources.spool import CLOSED, EVERYTHING, STORED_AS, TAKEN, Admission, Segment, SegmentCheck, check

if TYPE_CHECKING:
    from iolens.store.ingest import Tally as StoreTally
    from iolens.store.store import Store
    from iolens.store.tally import Tally


# Segments on their way into the store ---------------------------------------------------------------------------------
# What each brings, and where it goes once the store has it.
#
# Shared by an agent's shipper, which loads one after the other, and by the hub's writer, which loads many at once.

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


# The short-lived child that ships -------------------------------------------------------------------------------------
# Finished segments into the store, each deleted once the store has it.
#
# `python -m iolens.agent.sampling.shipper SPOOL STORE` prints one line of JSON. It may be killed at any time and run
# again.

SEGMENTS_PER_RUN: Final = 20  # a child that writes for long grows
REASONS_KEPT: Final = 20
UNREACHABLE: Final = 75  # exit code: try again later


@dataclass(slots=True)
class Shipment:
    """What one run of the shipper did."""

    shipped: int = 0
    late: int = 0
    bad: int = 0
    left: int = 0
    samples: int = 0
    rows: int = 0
    older: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)
    error: str = ""
    wait_s: float = 0.0  # before the next run, as a hub asks
    rss_bytes: int = 0

    def count(self, tally: StoreTally) -> None:
        """Add what the store said of one segment."""
        self.samples += tally.samples
        self.rows += sum(tally.rows.values())
        self.older += tally.older
        self.refused += tally.refused
        self.tell(*(str(problem) for problem in tally.problems))

    def tell(self, *reasons: str) -> None:
        """Keep the first reasons."""
        self.reasons += reasons[: REASONS_KEPT - len(self.reasons)]


def ship(directory: Path, url: str, most: int = SEGMENTS_PER_RUN) -> Shipment:
    """Ship the oldest finished segments; StoreError when the store cannot be reached."""
    from iolens.store.store import Store

    done = Shipment()
    refuse_foreign(directory)
    with locked(directory, SHIP_LOCK, wait=False) as mine:
        if not mine:
            done.left = len(waiting(directory))
            return done
        store = Store(url)
        refuse_another_store(directory, store)
        for path in take(directory, most):
            _ship_one(path, store, done)
            remember_store(directory, url)
        done.left = len(waiting(directory))
    return done


def take(directory: Path, most: int) -> list[Path]:
    """Segments of this run. From here on they are not thinned: the store may soon have a part of each."""
    with locked(directory, CHANGE_LOCK):
        taken = []
        for path in waiting(directory)[:most]:
            frozen = path.with_suffix(TAKEN)
            if path.suffix == CLOSED and frozen.exists():
                path.unlink()  # thinned while it was being taken: the whole one is there
                continue
            taken.append(path if path == frozen else path.rename(frozen))
        sync_directory(directory)
    return taken


def _ship_one(path: Path, store: Store, done: Shipment) -> None:
    """One segment into the store; then it goes, or aside when the store did not take all of it."""
    try:
        segment = OfferedSegment.open(path)
        capture = segment.capture()
        tally = store.ingest([capture], STORED_AS)
    except (InputError, *WRONG_CONTENT) as error:
        done.bad += 1
        done.tell(f"{path}: moved to {BAD}/: {error}")
        put_aside(path, BAD, str(error))
        return
    done.count(tally)
    fate = segment.settle(booked_tally(store, capture) if tally.already_present else tally)
    if fate in ("bad", "damaged"):
        done.bad += 1
        done.tell(f"{path}: moved to {BAD}/; what could be read is in the store")
    done.late += fate == "late"
    done.shipped += fate != "bad"


def main(arguments: list[str]) -> int:
    """Ship once; 0 done, 3 something put aside, 75 the store cannot be reached."""
    directory, url = arguments
    set_log(True)  # what the store says goes into the agent's log
    code = 0
    try:
        done = ship(Path(directory), url)
    except (IolensError, OSError) as error:
        done, code = Shipment(left=len(waiting(Path(directory))), error=str(error)), UNREACHABLE
    done.rss_bytes = rss_bytes()
    tell(done)
    return code or (3 if done.bad or done.late else 0)


def tell(done: Shipment) -> None:
    """One line of JSON to the agent that started us; where it was killed meanwhile, nobody listens."""
    try:
        sys.stdout.write(json.dumps(asdict(done)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed once more at the end


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # before the engines' bindings are torn down
