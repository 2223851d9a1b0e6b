"""The spool directory: append-only segments in private files, each tick on disk before the next, thinned when full."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import secrets
import shutil
import stat
import time
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError, IolensError
from iolens.records import CounterSet, Item, Row, Sample
from iolens.schema import TABLES
from iolens.sources.spool import (
    CLOSED,
    OPEN,
    TAKEN,
    Segment,
    SegmentHeader,
    Tick,
    check,
    decode_tick,
    encode_header,
    encode_tick,
    fit_for_file,
    in_lines,
    lines,
    thinned,
)

# Files that are the agent's own ---------------------------------------------------------------------------------------
# 0600 in directories of 0700, and no symbolic link is ever followed to them.
#
# An agent often runs as root, and its spool may lie where others can write: what they put there must not make it read
# or write anything else. Standard library only, for the sampler imports it.


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a file of our own; OSError (ELOOP) where a symbolic link has its name."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def replace_private(path: Path, content: bytes) -> None:
    """Write a file anew in one step, so that a reader sees the old one or the new one."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
        stream.write(content)
    beside.replace(path)


def make_private_directory(directory: Path) -> None:
    """The directory, made with no rights for others if it is not there; refused if it is not our own."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_foreign(directory)


def refuse_foreign(directory: Path) -> None:
    """IolensError unless the directory belongs to this user, and nobody else can write there."""
    me = os.geteuid()
    link = directory.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, me):
        raise IolensError(f"{directory}: a symbolic link made by {_user(link.st_uid)}: name the directory itself")
    about = directory.stat()
    if about.st_uid != me:
        remedy = f"chown {_user(me)} {directory}, or name another directory"
        raise IolensError(f"{directory}: belongs to {_user(about.st_uid)}, and this runs as {_user(me)}: {remedy}")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(about.st_mode)
        raise IolensError(f"{directory}: others can write there (mode {mode:o}): chmod go-w {directory}")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


# Thin a spooled segment -----------------------------------------------------------------------------------------------
# Drop every second sample without losing a byte that the counters carried.
#
# A sample may go only if the one kept before it and the one after it tell the same story without it: same sets, same
# start of counting, no counter that fell. So resets, glitches, jobs that end and targets that move stay visible, and
# differences over what remains add up to what they were. The first two and the last sample of a target always stay.

START_TOLERANCE_US: Final = 1_000  # as the store's


class ItemPlace(NamedTuple):
    """Which item of which tick."""

    tick: int
    item: int


class Thinned(NamedTuple):
    """What a thinning did."""

    samples: int
    bytes_freed: int


@dataclass(slots=True)
class _Series:
    """The samples of one target and table, as they pass. After a break two stay before one may go again."""

    staying: int = 2
    kept: Item | None = None
    candidate: tuple[ItemPlace, Item] | None = None
    dropped: list[ItemPlace] = field(default_factory=list)

    def take(self, place: ItemPlace, item: Item) -> None:
        if self.staying:
            self.staying -= 1
            self.kept = item
        elif self.candidate is None:
            self.candidate = (place, item)
        elif self.kept is not None and _may_go(self.kept, self.candidate[1], item):
            self.dropped.append(self.candidate[0])
            self.kept, self.candidate = item, None
        else:
            self.staying, self.candidate = 1, None


def droppable(ticks: Iterable[Tick]) -> set[ItemPlace]:
    """Every second sample of each target and table, as far as it may go."""
    series: dict[Hashable, _Series] = {}
    for number, tick in enumerate(ticks):
        for position, item in enumerate(tick.items):
            key = _key(item)
            if key is not None:
                series.setdefault(key, _Series()).take(ItemPlace(number, position), item)
    return {place for item in series.values() for place in item.dropped}


def thin_segment(path: Path) -> Thinned:
    """Rewrite a closed segment with fewer samples; in one step, so that a crash leaves the one or the other."""
    segment = Segment.open(path)
    dropped = droppable(_ticks(path))
    if not dropped:
        return Thinned(0, 0)
    before = path.stat().st_size
    beside = path.with_suffix(".thin")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
            stream.writelines(_rewritten(segment, dropped))
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return Thinned(len(dropped), before - path.stat().st_size)


def _rewritten(segment: Segment, dropped: set[ItemPlace]) -> Iterator[bytes]:
    """The lines of the thinned segment; what is damaged stays as it is."""
    yield encode_header(thinned(segment.header))
    number = -1
    for line in lines(segment.path):
        tick = _tick(line.payload)
        if tick is None:
            if line.payload is None or not line.payload.startswith(b"{"):
                yield line.raw
            continue
        number += 1
        items = [item for position, item in enumerate(tick.items) if ItemPlace(number, position) not in dropped]
        if len(items) == len(tick.items):
            yield line.raw
        elif items:
            yield encode_tick(Tick(tick.time_us, items))


def _ticks(path: Path) -> Iterator[Tick]:
    return (tick for line in lines(path) if (tick := _tick(line.payload)) is not None)


def _tick(payload: bytes | None) -> Tick | None:
    if payload is None or payload.startswith(b"{"):
        return None
    try:
        return decode_tick(payload)
    except ValueError:
        return None


def _key(item: Item) -> Hashable | None:
    if isinstance(item, Sample):
        return (item.table, item.filesystem, item.target)
    if isinstance(item, Row) and item.table in TABLES and TABLES[item.table].kind == "reading":
        names = (name for name in TABLES[item.table].key if name not in ("source", "time"))
        return (item.table, *(str(item.values.get(name)) for name in names))
    return None


def _may_go(kept: Item, candidate: Item, following: Item) -> bool:
    if not (isinstance(kept, Sample) and isinstance(candidate, Sample) and isinstance(following, Sample)):
        return True  # times, not counters
    in_order = kept.snapshot_us < candidate.snapshot_us < following.snapshot_us
    return (
        in_order
        and _leads_to(kept, candidate)
        and _leads_to(candidate, following)
        and _leads_to(kept, following)
        and _new_sets_are_new(kept, candidate)
    )


def _leads_to(before: Sample, after: Sample) -> bool:
    """Whether every set of `before` went on in `after` without a reset or a step back."""
    return before.labels == after.labels and all(
        name in after.sets and _went_on(counter_set, after.sets[name]) for name, counter_set in before.sets.items()
    )


def _went_on(before: CounterSet, after: CounterSet) -> bool:
    if (before.start_us is None) != (after.start_us is None):
        return False
    if abs((before.start_us or 0) - (after.start_us or 0)) > START_TOLERANCE_US:
        return False
    return all(after.counters.get(name, -1) >= value for name, value in before.counters.items())


def _new_sets_are_new(kept: Sample, candidate: Sample) -> bool:
    """A set that first shows in the candidate would be measured from there; only a job that began since is whole."""
    form = TABLES[candidate.table].form
    if not form.sets_come_and_go:  # nor may a counter show anew: it may have been there before the one that was kept
        return all(
            name in kept.sets and counter_set.counters.keys() <= kept.sets[name].counters.keys()
            for name, counter_set in candidate.sets.items()
        )
    fresh = [counter_set for name, counter_set in candidate.sets.items() if name not in kept.sets]
    known = [(counter_set, kept.sets[name]) for name, counter_set in candidate.sets.items() if name in kept.sets]
    shows_all = not form.sets_show_all or all(new.counters.keys() <= old.counters.keys() for new, old in known)
    return shows_all and all(
        counter_set.start_us is None or counter_set.start_us >= kept.snapshot_us for counter_set in fresh
    )


# The spool directory --------------------------------------------------------------------------------------------------
# Append-only segments, each tick on disk before the next, thinned when full.
#
# `HOST~RUN~SEQUENCE.open` is being written, `.seg` is finished, `.taken` is being shipped and is never changed again:
# the store may have a part of it. `late/` and `bad/` hold what the store would not take.

SEGMENT_BYTES: Final = 4 << 20
RESERVE: Final = "reserve"  # space to thin in when the disk is full
LATE, BAD = "late", "bad"
SAMPLER_LOCK, SHIP_LOCK, CHANGE_LOCK = "sampler.lock", "ship.lock", "change.lock"
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def new_run() -> str:
    """A name no other start of any agent has; sorts by time, so that segments are shipped as they were written."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    timestamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    return f"{timestamp}.{nanoseconds // 1000:06d}-{secrets.token_hex(4)}"


def host_name() -> str:
    """The machine's name, fit for a file name."""
    return fit_for_file(os.uname().nodename)


@contextmanager
def locked(directory: Path, name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock of the spool; False when another process has it and `wait` is not set."""
    descriptor = open_private(directory / name, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make new and changed names in a directory outlive a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def waiting(directory: Path) -> list[Path]:
    """Finished segments that are not in the store yet, oldest first."""
    return sorted((path for path in directory.iterdir() if path.suffix in (CLOSED, TAKEN)), key=lambda item: item.stem)


@dataclass(slots=True)
class SegmentWriter:
    """One open segment."""

    path: Path
    descriptor: int
    began: float
    size: int = 0
    ticks: int = 0

    @classmethod
    def begin(cls, directory: Path, header: SegmentHeader) -> SegmentWriter:
        """A new segment with its header on disk."""
        path = directory / f"{header.stem}{OPEN}"
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        writer = cls(path, descriptor, time.monotonic())
        try:
            writer.write(encode_header(header))
            sync_directory(directory)
        except OSError:
            os.close(writer.descriptor)
            path.unlink(missing_ok=True)
            raise
        return writer

    def write(self, line: bytes) -> None:
        """Append one line and have it on disk; a line that does not fit leaves no trace."""
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
            os.fsync(self.descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self.descriptor, self.size)
            raise
        self.size += len(line)

    def close(self) -> Path | None:
        """Finish the segment; its new name, or None when it held nothing."""
        os.close(self.descriptor)
        return finish(self.path, empty=self.ticks == 0)


def finish(path: Path, *, empty: bool) -> Path | None:
    """Give an open segment its final name; one without a tick goes."""
    if empty:
        path.unlink(missing_ok=True)
        return None
    closed = path.with_suffix(CLOSED)
    path.rename(closed)
    sync_directory(path.parent)
    return closed


@dataclass(slots=True)
class Spool:
    """The directory as its one writer sees it."""

    directory: Path
    host: str
    run: str
    limit_bytes: int
    segment_bytes: int = SEGMENT_BYTES
    sequence: int = 0
    thinned_samples: int = 0
    lost_ticks: int = 0
    trouble: str = ""  # the last reason a tick was lost
    writer: SegmentWriter | None = None
    _exhausted: set[str] = field(default_factory=set)  # segments that cannot be thinned further
    _levels: dict[str, int] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def open(cls, directory: Path, limit_bytes: int, host: str | None = None) -> Iterator[Spool]:
        """The spool for its only writer; what an earlier one left open is finished first."""
        make_private_directory(directory)
        with locked(directory, SAMPLER_LOCK, wait=False) as mine:
            if not mine:
                raise IolensError(f"{directory}: another `iolens collect` writes here; give each its own --spool")
            spool = cls(directory, host or host_name(), new_run(), limit_bytes)
            spool.fit()
            spool.recover()
            try:
                yield spool
            finally:
                spool.close_segment()

    def fit(self) -> None:
        """Stay within the disk as it is now, and cut segments small enough that thinning one makes a difference."""
        space = self.size() + shutil.disk_usage(self.directory).free * 9 // 10
        self.limit_bytes = min(self.limit_bytes, space)
        self.segment_bytes = max(min(SEGMENT_BYTES, self.limit_bytes // 16), 4096)

    def recover(self) -> None:
        """Finish what a killed writer left."""
        for beside in self.directory.glob("*.thin"):
            beside.unlink()
        for path in self.directory.glob(f"*{OPEN}"):
            with suppress(OSError):  # a symbolic link is left where it is
                finish(path, empty=check(path).good == 0)
        self._keep_reserve()

    def append(self, time_us: int, items: Iterable[Item]) -> bool:
        """Spool one tick; False when there was no space for it, which costs resolution, not bytes."""
        line = b"".join(encode_tick(Tick(time_us, part)) for part in in_lines(items))
        if not line:
            return True
        if self.size() + len(line) > self.limit_bytes and not self._thin_somehow():
            return self._lose(f"{self.directory} has reached its limit of {self.limit_bytes} bytes")
        for last_try in (False, True):
            try:
                self._write(line)
            except OSError as error:
                if last_try or error.errno not in _NO_SPACE or not self._thin_in_reserve():
                    return self._lose(f"{self.directory}: {error.strerror}")
            else:
                return True
        return False

    def close_segment(self) -> Path | None:
        """Finish the open segment so that it can be shipped."""
        writer, self.writer = self.writer, None
        return writer.close() if writer is not None else None

    def size(self) -> int:
        """Bytes of everything spooled, the reserve included."""
        total = 0
        for folder in (self.directory, self.directory / LATE, self.directory / BAD):
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        is_file = entry.is_file(follow_symlinks=False)
                        total += entry.stat(follow_symlinks=False).st_size if is_file else 0
        return total

    def thin(self) -> bool:
        """Thin the oldest of the least thinned segments that nobody ships; False when none can be thinned."""
        with locked(self.directory, CHANGE_LOCK):
            for path in self._thinnable():
                try:
                    done = thin_segment(path)
                except (InputError, FileNotFoundError):
                    done = None
                self._levels.pop(path.name, None)
                if done is not None and done.samples:
                    self.thinned_samples += done.samples
                    return True
                self._exhausted.add(path.name)
        return False

    def _thinnable(self) -> list[Path]:
        paths = [*self.directory.glob(f"*{CLOSED}"), *(self.directory / LATE).glob(f"*{CLOSED}")]
        names = {path.name for path in paths}
        self._exhausted &= names
        left = [path for path in paths if path.name not in self._exhausted]
        return sorted(left, key=lambda path: (self._level(path), path.name))

    def _level(self, path: Path) -> int:
        if path.name not in self._levels:
            try:
                self._levels[path.name] = Segment.open(path).header.thinned
            except InputError:
                return 0
        return self._levels[path.name]

    def _thin_somehow(self) -> bool:
        try:
            return self.thin()
        except OSError:  # not even space for the thinned copy
            return self._thin_in_reserve()

    def _thin_in_reserve(self) -> bool:
        """Thin with the space the reserve held, then hold it again."""
        (self.directory / RESERVE).unlink(missing_ok=True)
        try:
            return self.thin()
        except OSError:
            return False
        finally:
            self._keep_reserve()

    def _keep_reserve(self) -> None:
        path = self.directory / RESERVE
        try:
            if not os.path.lexists(path) or path.lstat().st_size != self.segment_bytes:
                path.unlink(missing_ok=True)
                descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    os.posix_fallocate(descriptor, 0, self.segment_bytes)
                finally:
                    os.close(descriptor)
        except OSError:
            path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        if self.writer is not None and self.writer.ticks and self.writer.size + len(line) > self.segment_bytes:
            self.close_segment()
        if self.writer is None:
            self.sequence += 1
            self.writer = SegmentWriter.begin(self.directory, SegmentHeader(self.host, self.run, self.sequence))
        self.writer.write(line)
        self.writer.ticks += 1

    def _lose(self, reason: str) -> bool:
        self.lost_ticks += 1
        self.trouble = reason
        return False
