"""The one process that brings segments of all agents into the store, many with each commit."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from threading import Thread
from typing import Final

import duckdb
from deltalake.exceptions import DeltaError

from iolens.agent.sampling.sampler import rss_bytes
from iolens.agent.sampling.shipper import OfferedSegment, booked_tally, put_aside, refuse_another_store, remember_store
from iolens.agent.sampling.spool import BAD, LATE, locked, replace_private
from iolens.errors import InputError, StoreError, unexpected
from iolens.hub.hub_config import TakeoverRules
from iolens.hub.hub_state import WRITER_LOCK
from iolens.hub.inbox import Inbox, StreamMarks
from iolens.hub.takeovers import StoredCounts, Takeovers, UploadCounts, WriterRecord, read_uploads
from iolens.messages import TroubleLog, cause, set_log
from iolens.records import Capture
from iolens.sources.reading.bounded_input import opened_itself
from iolens.sources.spool import STORED_AS, Admission, SegmentExtent
from iolens.store.gate import AHEAD_US
from iolens.store.store import Store
from iolens.store.tally import Tally

# What is written next -------------------------------------------------------------------------------------------------
# Segments of all agents, the oldest of each first, so that none waits for another's backlog.


@dataclass(frozen=True, slots=True)
class Batch:
    """Segments in the order of host, run and sequence; `is_full`: more waits, or as much as a batch may hold."""

    paths: tuple[Path, ...]
    is_full: bool
    oldest: float | None = None  # when the first of them arrived, seconds since 1970


def waiting_batch(inbox: Inbox, most_bytes: int, most_segments: int, without: Container[str] = ()) -> Batch:
    """The next batch, `without` segments of some hosts; at least one segment where one waits, however large."""
    paths: list[Path] = []
    total, oldest = 0, None
    for path in _in_turn(inbox, without):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if paths and (total + status.st_size > most_bytes or len(paths) == most_segments):
                return Batch(tuple(sorted(paths)), True, oldest)
            paths.append(path)
            total += status.st_size
            oldest = status.st_mtime if oldest is None else min(oldest, status.st_mtime)
    return Batch(tuple(sorted(paths)), total >= most_bytes or len(paths) >= most_segments, oldest)


def _in_turn(inbox: Inbox, without: Container[str]) -> Iterator[Path]:
    """The first segment of each agent, then the second of each, and so on."""
    for turn in zip_longest(*(inbox.waiting(host) for host in inbox.hosts() if host not in without)):
        yield from (path for path in turn if path is not None)


# Which segments the writer is loading, on disk ------------------------------------------------------------------------
# A segment that takes the process down is found and put aside.
#
# A writer that died three times takes ever fewer of those segments at once; one that takes it down four times alone is
# the cause. Deaths that have nothing to do with the segments cost time, nothing else.

ATTEMPT_FILE: Final = "attempt.json"
LARGEST_FILE: Final = 16 << 20
DEATHS_UNTIL_FEWER: Final = 3
DEATHS_ALONE: Final = 4
FEWER: Final = 4  # a quarter of what it was


@dataclass(slots=True)
class LoadAttempts:
    """Segments during which a writer died (`suspects`), and how often in a row."""

    directory: Path  # STATE/hub
    suspects: set[str] = field(default_factory=set)  # paths below the directory
    loading: list[str] = field(default_factory=list)
    limit: int | None = None  # segments of a batch while there are suspects
    deaths: int = 0
    deaths_alone: int = 0

    @classmethod
    def after_start(cls, directory: Path) -> LoadAttempts:
        """What the writer before this one left: where it left a list, it died over that."""
        before = cls._read(directory)
        if not before.loading:
            return before
        before.deaths += 1
        before.deaths_alone = before.deaths_alone + 1 if len(before.loading) == 1 else 0
        before.suspects.update(before.loading)
        if before.deaths >= DEATHS_UNTIL_FEWER:
            before.limit = max(len(before.loading) // FEWER, 1)
        before._write()
        return before

    def deadly(self) -> Path | None:
        """The segment that takes the writer down, if there is one."""
        if self.deaths_alone < DEATHS_ALONE:
            return None
        return self.directory / self.loading[0]

    def next_suspects(self) -> list[Path]:
        """Those that are loaded before all others, the first ones of each agent; none where all are above suspicion."""
        if self.limit is None:
            return []
        left = sorted(path for name in self.suspects if (path := self.directory / name).exists())
        self.suspects = {str(path.relative_to(self.directory)) for path in left}
        if not left:
            self.end(done=False)
        return left[: self.limit]

    def begin(self, paths: Iterable[Path]) -> None:
        """These are loaded now."""
        self.loading = [str(path.relative_to(self.directory)) for path in paths]
        self._write()

    def end(self, *, done: bool) -> None:
        """Nothing is loaded any more; `done`: those that were are no suspects."""
        if done:
            self.suspects.difference_update(self.loading)
            self.deaths_alone = 0
            self.limit = None if self.limit is None else self.limit * FEWER
        self.loading = []
        if self.suspects:
            self._write()
        else:
            self.limit, self.deaths, self.deaths_alone = None, 0, 0
            (self.directory / ATTEMPT_FILE).unlink(missing_ok=True)

    @classmethod
    def forget(cls, directory: Path) -> None:
        """The writer is stopped: nothing that it was loading made it die."""
        state = cls._read(directory)
        if state.loading:
            state.end(done=False)

    def _write(self) -> None:
        counts = {"limit": self.limit, "deaths": self.deaths, "deaths_alone": self.deaths_alone}
        lists = {"suspects": sorted(self.suspects), "loading": self.loading}
        with suppress(OSError):  # a full disk must not keep the writer from emptying it
            replace_private(self.directory / ATTEMPT_FILE, json.dumps({**counts, **lists}).encode())

    @classmethod
    def _read(cls, directory: Path) -> LoadAttempts:
        try:
            with opened_itself(directory / ATTEMPT_FILE) as stream:
                plain = json.loads(stream.read(LARGEST_FILE))
            suspects, loading = _names(plain["suspects"]), _names(plain["loading"])
            limit = None if plain["limit"] is None else max(int(plain["limit"]), 1)
            return cls(directory, set(suspects), loading, limit, int(plain["deaths"]), int(plain["deaths_alone"]))
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return cls(directory)


def _names(values: Sequence[object]) -> list[str]:
    return [str(value) for value in values]


# The one process that brings segments of all agents into the store, many with each commit -----------------------------
# `python -m iolens.hub.writer HUB STORE BATCH_BYTES BATCH_SEGMENTS COMMIT_EVERY_S MEMORY_BYTES ASIDE_BYTES RULES`
# (JSON) runs until its standard input ends, which it does when the server that started it stops or dies. It may be
# killed at any time and run again: a segment is removed only after the store has it, and one that the store has adds
# nothing.

LOOK_EVERY_S: Final = 1.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
NOTE_EVERY_S: Final = 30.0
UNREACHABLE: Final = (OSError, StoreError, DeltaError, duckdb.Error)  # the store's trouble, not the segments'
STORE_TROUBLE: Final = "store"
HELD, TAKEN_OVER, DROPPED = "held", "taken over", "dropped"
HELD_S: Final = 30.0  # until segments that wait are looked at again

Offer = tuple[OfferedSegment, Capture]  # a segment, and what the store takes of it


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """How much is written at once, how long it may wait for more, and how large the process may grow."""

    batch_bytes: int = 32 << 20
    batch_segments: int = 500
    commit_every_s: float = 30.0
    memory_bytes: int = 300 << 20
    aside_bytes: int = 512 << 20  # of one agent, in `late/` and `bad/`


@dataclass(slots=True)
class BatchWriter:
    """Loads batches; `record` says what it did."""

    inbox: Inbox
    store: Store
    limits: WriterLimits
    record: WriterRecord
    attempts: LoadAttempts
    rules: TakeoverRules = field(default_factory=TakeoverRules)
    now: Callable[[], float] = time.time
    held: dict[str, float] = field(default_factory=dict)  # hosts whose segments wait, until when, by the clock
    troubles: TroubleLog = field(default_factory=TroubleLog)
    pause_s: float = FIRST_PAUSE_S

    @classmethod
    def open(cls, directory: Path, url: str, limits: WriterLimits, rules: TakeoverRules | None = None) -> BatchWriter:
        """Go on from what an earlier writer left; a segment that took it down is put aside."""
        record = WriterRecord.read(directory)
        record.pid, record.started_us = os.getpid(), _now_us()
        writer = cls(Inbox(directory), Store(url), limits, record, LoadAttempts.after_start(directory))
        writer.rules = rules or writer.rules
        if (deadly := writer.attempts.deadly()) is not None:
            if deadly.exists():
                writer.refuse(deadly, "the writer died each time it loaded this segment")
            writer.attempts.end(done=True)
        writer.note()
        return writer

    def run(self) -> None:
        """Load what waits, until the process has grown too large."""
        waiting_since: float | None = None
        while rss_bytes() <= self.limits.memory_bytes:
            batch, now = self.next_batch(), time.monotonic()
            waiting_since = None if not batch.paths else now if waiting_since is None else waiting_since
            waited_s = 0.0 if waiting_since is None else now - waiting_since
            if batch.oldest is not None:  # also before this process began
                waited_s = max(waited_s, time.time() - batch.oldest)
            if batch.is_full or (batch.paths and waited_s >= self.limits.commit_every_s):
                self.try_to_load(batch)
                waiting_since = None
            else:
                self.note_now_and_then()
                time.sleep(min(LOOK_EVERY_S, self.limits.commit_every_s))

    def next_batch(self) -> Batch:
        """What is loaded next."""
        if suspects := self.attempts.next_suspects():
            return Batch(tuple(suspects), True)
        self.held = {host: until for host, until in self.held.items() if until > self.now()}
        return waiting_batch(self.inbox, self.limits.batch_bytes, self.limits.batch_segments, self.held)

    def try_to_load(self, batch: Batch) -> None:
        """Load a batch, or say why not and pause: nothing goes before the store has it."""
        try:
            self.load(batch.paths)
        except UNREACHABLE as error:
            self.record.trouble = str(error)
            self.troubles.tell(STORE_TROUBLE, f"{self.store.url}: not stored, samples wait in the hub: {cause(error)}")
            self.note()
            time.sleep(self.pause_s)
            self.pause_s = min(self.pause_s * 2, LONGEST_PAUSE_S)
        else:
            self.record.trouble = ""
            self.troubles.over(STORE_TROUBLE, f"{self.store.url}: samples are stored again")
            self.pause_s = FIRST_PAUSE_S
            self.note()

    def drain(self) -> None:
        """Load everything that waits now."""
        while paths := self.next_batch().paths:
            self.load(paths)
        self.note()

    def load(self, paths: Sequence[Path]) -> None:
        """Bring segments into the store with as few commits as it takes; then they go, or aside."""
        segments: list[tuple[OfferedSegment, SegmentExtent]] = []
        for path in paths:
            try:
                segment = replace(OfferedSegment.open(path), admission=_arrived(path))
                segments.append((segment, segment.segment.extent()))
            except InputError as error:
                self.refuse(path, str(error))
            except OSError:
                raise
            except Exception as error:  # whatever it holds, the others are stored
                self.refuse(path, unexpected(error))
        if segments:
            refuse_another_store(self.inbox.directory, self.store)
        if ready := self._judged(segments):
            marks = StreamMarks.of(self.store)
            self._load([(segment, marks.capture(segment)) for segment in ready])
            self.record.batches += 1
            self.record.commit_us = _now_us()

    def _judged(self, segments: Sequence[tuple[OfferedSegment, SegmentExtent]]) -> list[OfferedSegment]:
        """Those that are loaded now: whose targets are their servers', as far as is known."""
        uploads = read_uploads(self.inbox.directory)

        def last_arrival_us(host: str) -> int:
            return uploads.get(host, UploadCounts()).last_seen_us

        judged = Takeovers(self.store, self.rules, int(self.now() * 1e6), last_arrival_us).judge(segments)
        for host, why in judged.waiting.items():
            self.held[host] = self.now() + HELD_S
            self.troubles.tell((HELD, host), f"segments of {host} wait: {why}")
        for segment in judged.ready:
            host = segment.segment.header.host
            self.troubles.over((HELD, host), f"segments of {host} wait no more")
            for note in segment.admission.notes:
                self.troubles.tell((TAKEN_OVER, host, note.reason), note.reason)
        return judged.ready

    def _load(self, offered: Sequence[Offer]) -> None:
        """Segments that cannot be loaded together are loaded in halves; the one that fails alone is put aside."""
        tallies: dict[str, Tally] = {}

        def note_stored(capture: Capture, tally: Tally) -> None:
            tallies.setdefault(capture.origin, Tally()).add(tally)

        self.attempts.begin(segment.path for segment, _ in offered)
        try:
            self.store.ingest([capture for _, capture in offered], STORED_AS, stored=note_stored)
            with suppress(OSError):  # a full disk must not keep the writer from emptying it
                remember_store(self.inbox.directory, self.store.url)
            for segment, capture in offered:
                self._settle(segment, capture, tallies.get(capture.origin))
        except UNREACHABLE:
            self.attempts.end(done=False)
            raise
        except Exception as error:  # whatever a segment holds, the others are stored
            self.attempts.end(done=True)
            if len(offered) == 1:
                self.refuse(offered[0][0].path, unexpected(error))
                return
            middle = len(offered) // 2
            self._load(offered[:middle])
            self._load(offered[middle:])
        else:
            self.attempts.end(done=True)

    def _settle(self, segment: OfferedSegment, capture: Capture, tally: Tally | None) -> None:
        """Remove what is stored; of what the store had before the books say whether all of it was taken."""
        known = booked_tally(self.store, capture) if tally is None else tally
        if tally is not None:
            self.record.samples += tally.samples
            self.record.rows += sum(tally.rows.values())
        fate, counts = segment.settle(known), self._counts(segment.path)
        counts.taken_over += len(segment.admission.notes)
        if fate != "stored":
            first = f": {cause(str(segment.unread[0]))}" if segment.unread else ""
            self._note_aside(segment.path, LATE if fate == "late" else BAD, first)
        counts.stored += fate != "bad"
        counts.late += fate == "late"
        counts.bad += fate in ("bad", "damaged")
        self.record.segments += fate != "bad"

    def refuse(self, path: Path, reason: str) -> None:
        """Put a segment aside that cannot be loaded."""
        put_aside(path, BAD, reason)
        self._counts(path).bad += 1
        self._note_aside(path, BAD, f": {cause(reason)}")

    def _note_aside(self, path: Path, folder: str, why: str) -> None:
        """Say that a segment was put aside, and let go of the oldest ones where they have grown too many."""
        what = why or ": older than what is stored; `iolens ingest spool --rebuild` fits it in"
        self.troubles.tell((folder, path.parent.name), f"{path}: moved to {folder}/{what}")
        dropped = self.inbox.drop_aside(path.parent.name, self.limits.aside_bytes)
        if dropped:
            self._counts(path).dropped += dropped
            text = f"{path.parent}: {LATE}/ and {BAD}/ are full: the oldest {dropped} segments there are removed"
            self.troubles.tell((DROPPED, path.parent.name), text)

    def _counts(self, path: Path) -> StoredCounts:
        return self.record.agents.setdefault(path.parent.name, StoredCounts())

    def note(self) -> None:
        """Write the record; a full disk must not stop the writing."""
        self.record.time_us, self.record.rss_bytes = _now_us(), rss_bytes()
        self.record.cpu_s = round(time.process_time(), 3)
        try:
            self.record.write(self.inbox.directory)
        except OSError as error:
            self.troubles.tell("record", f"{self.inbox.directory}: {error.strerror}")

    def note_now_and_then(self) -> None:
        """So that the record shows that the writer is well while nothing waits."""
        if _now_us() - self.record.time_us >= NOTE_EVERY_S * 1e6:
            self.note()


def _arrived(path: Path) -> Admission:
    """No sample is later than its arrival, but for what a clock may be ahead. The same whenever it is loaded."""
    try:
        return Admission(latest_us=path.lstat().st_mtime_ns // 1000 + AHEAD_US)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error


def _now_us() -> int:
    return time.time_ns() // 1000


def _end_with_parent(directory: Path) -> None:
    """Wait for the end of standard input; what is being loaded is not to blame for this end."""
    sys.stdin.buffer.read()
    LoadAttempts.forget(directory)
    os._exit(0)


def main(arguments: Sequence[str]) -> int:
    """Write until the parent ends or this process is too large; 0: start another."""
    directory, url, batch_bytes, batch_segments, commit_every_s, memory_bytes, aside_bytes, rules = arguments
    place = Path(directory)
    set_log(True)
    Thread(target=_end_with_parent, args=(place,), daemon=True).start()
    with locked(place, WRITER_LOCK):
        limits = WriterLimits(
            int(batch_bytes), int(batch_segments), float(commit_every_s), int(memory_bytes), int(aside_bytes)
        )
        BatchWriter.open(place, url, limits, TakeoverRules.from_json(rules)).run()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # before the engines' bindings are torn down
