"""One process's share of a scan: walks directories, counts what they hold, and tells after each step what is left.

A directory is opened without following links, counted itself by what `fstat` says of it, and listed; its other entries
are looked at by name below its descriptor, so that paths of any length work and lookups are short.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from iolens.config import ProjectRule
from iolens.scan.batch_stat import (
    ATIME,
    BLOCK_BYTES,
    BLOCKS,
    DEVICE,
    INODE,
    LINKS,
    MODE,
    MTIME,
    PROJECT,
    ROWS,
    SIZE,
    UID,
    BatchStat,
    EntryStats,
    Numbers,
    usable,
)
from iolens.scan.findings import TYPES, FaultyPlace, Findings
from iolens.scan.owners import owner_name, project_id, storable
from iolens.scan.pace import LARGEST_CHUNK, ScanPace
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import InodeCounts
from iolens.sources.contents.projects import Projects

ROOT: Final = ""  # the relative path of the directory a scan begins with
SNAPSHOTS: Final = frozenset((".snapshot", ".snapshots", ".zfs"))
GONE: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE))
STATS_HELD: Final = ROWS
ROWS_HELD: Final = 16384
_PATH_BYTES: Final = 4000  # safely below PATH_MAX
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIR: Final = stat.S_IFDIR >> 12
_UID_BITS: Final = 32

_ENCODING: Final = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())  # as os.fsencode has it


class ScanPart(NamedTuple):
    """Which directories are ours when several nodes share a scan: those at most `depth` deep are dealt out by a hash
    of their path, deeper ones go with the one they are in.
    """

    number: int = 1
    of: int = 1
    depth: int = 2

    def is_ours(self, directory: str) -> bool:
        """Whether a directory that is at most `depth` deep is counted here."""
        return self.of == 1 or zlib.crc32(os.fsencode(directory)) % self.of == self.number - 1

    def is_dealt_out(self, directory: str) -> bool:
        """Whether a directory is dealt out by itself."""
        return self.of > 1 and _depth(directory) <= self.depth


@dataclass(frozen=True, slots=True)
class WalkRule:
    """What is counted, and how."""

    root: str  # absolute
    time_us: int  # ages count back from here
    device: int  # st_dev of the root
    cross_filesystems: bool = False
    mount_points: frozenset[str] = frozenset()  # below the root, relative to it
    exclude: tuple[str, ...] = ()
    projects: ProjectRule = field(default_factory=ProjectRule)
    project_ids: bool = False
    part: ScanPart = ScanPart()
    pieces: Path | None = None  # where entries with their paths are kept


@dataclass(slots=True)
class WalkStep:
    """What one process did since its last step. Directories are relative to the root.

    What is unfinished is now what was, without `done`, with `found`; a process keeps all of it but what it has `given`
    away. Steps are whole: what is in `findings` belongs to directories that are finished with. After its last step a
    process waits for more.
    """

    done: list[str]
    found: list[str]
    given: list[str]
    findings: Findings
    piece: str | None
    is_last: bool


class Signals(NamedTuple):
    """What the processes of a scan tell each other without messages; arrays that all of them see."""

    flags: Any  # [how many processes have nothing to do, whether to stop]
    progress: Any  # entries looked at, by process

    @property
    def idle(self) -> int:
        """Processes without work."""
        return int(self.flags[0])

    @property
    def must_stop(self) -> bool:
        """Whether the scan is to be broken off."""
        return bool(self.flags[1])


class TreeWalk:
    """Directories still to be looked at, and what was found since the last step."""

    def __init__(
        self,
        rule: WalkRule,
        signals: Signals,
        place: int = 0,
        *,
        pace: ScanPace | None = None,
        step_s: float = 5.0,
        share_s: float = 0.005,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rule, self.signals, self.place, self.pace = rule, signals, place, pace
        self.step_s, self.share_s, self.now = step_s, share_s, now
        self.chunk = min(ROWS, LARGEST_CHUNK if pace is None else pace.chunk)
        self.walked = 0
        self._projects = Projects(rule.projects)
        self._excluded = _excluding(rule.exclude)
        self._no_atime = os.O_NOATIME
        self._root = os.open(rule.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # Entries that are kept need what only Python's own stat tells.
        self._batch = BatchStat() if rule.pieces is None and usable(self._root) else None
        self._stack: list[str] = []
        self._known: list[str] = []  # the stack as of the last step
        self._common = 0  # how much of the beginning of both is still the same
        self._project_names: list[str | None] = [None]
        self._project_codes: dict[str | None, int] = {None: 0}
        self._begin_step()

    def close(self) -> None:
        """Let go of the root."""
        os.close(self._root)

    def steps(self, directories: Sequence[str]) -> Iterator[WalkStep]:
        """Walk these directories and all below them. The last step leaves nothing, unless the scan must stop."""
        self._stack += directories
        self._known += directories
        self._common = len(self._stack)
        began = self.now()
        while self._stack and not self.signals.must_stop:
            directory = self._stack.pop()
            self._common = min(self._common, len(self._stack))
            self._visit(directory)
            self.signals.progress[self.place] = self.walked
            passed = self.now() - began
            is_wanted = self.signals.idle and len(self._stack) > 1 and passed >= self.share_s
            if is_wanted or (self._stack and passed >= self.step_s):
                yield self._end_step(is_sharing=bool(is_wanted))
                began = self.now()
        yield self._end_step(is_last=True)

    def _begin_step(self) -> None:
        self._found = Findings(InodeCounts(self.rule.time_us))
        self._others = EntryStats()
        self._directories = EntryStats()
        self._columns: list[Numbers] = []
        self._held = 0
        self._codes: dict[int, int] = {}
        self._widths: tuple[list[int], list[int]] = ([], [])
        self._kept: Any = None

    def _end_step(self, *, is_sharing: bool = False, is_last: bool = False) -> WalkStep:
        """Everything since the last step. Who shares gives away every other directory: large and small ones alike."""
        self._take_stats()
        self._count_columns()
        self._found.counts.add_widths(*self._widths)
        piece = None if self._kept is None else self._kept.close()
        done, found = self._known[self._common :], self._stack[self._common :]
        given = self._stack[::2] if is_sharing else []
        if is_sharing:
            del self._stack[::2]
        step = WalkStep(done, found, given, self._found, piece, is_last)
        self._known = self._stack.copy()
        self._common = len(self._stack)
        self._begin_step()
        return step

    def _visit(self, directory: str) -> None:
        part = self.rule.part
        is_ours = not part.is_dealt_out(directory) or part.is_ours(directory)
        if self.pace is not None:
            self.pace.take(1)
        try:
            descriptor = self._open(directory)
        except OSError as error:
            if is_ours:
                self._note_unopened(directory, error)
            elif error.errno not in GONE and error.errno != errno.EACCES:  # that, whose directory it is will say
                self._found.cannot_read(self._path(directory), error.strerror or str(error))
            return
        try:
            about = os.fstat(descriptor)
            if about.st_dev != self.rule.device and not self.rule.cross_filesystems:
                self._note_mount(directory)
                return
            if is_ours:
                self._look(directory, descriptor, about)
            else:
                self._look_for_directories(directory, descriptor)
        except OSError as error:  # the listing broke off: what was listed until then is counted
            if error.errno in GONE:
                self._found.vanished += 1
            else:
                self._found.cannot_read(self._path(directory), f"not listed to its end: {error.strerror}")
        finally:
            os.close(descriptor)

    def _look(self, directory: str, descriptor: int, about: os.stat_result) -> None:
        """Count a directory and its entries."""
        project = self._project_code(self._project_of(directory, descriptor))
        self._count_directory(directory, about, project)
        width = 0
        with os.scandir(descriptor) as listing:
            while batch := list(islice(listing, self.chunk)):
                width += len(batch)
                if self.pace is not None:
                    self.pace.take(len(batch))
                self._take_entries(directory, descriptor, batch, project)
        codes, widths = self._widths
        codes.append(self._group_code(_key(project, about.st_uid, _DIR)))
        widths.append(width)

    def _look_for_directories(self, directory: str, descriptor: int) -> None:
        """Another node counts this directory; below it there may be some of ours."""
        if _depth(directory) >= self.rule.part.depth:
            return
        with os.scandir(descriptor) as listing:
            names = [one.name for one in listing if one.is_dir(follow_symlinks=False)]
        self._push(directory, [name for name in names if not self._is_excluded(directory, name)])

    def _take_entries(self, directory: str, descriptor: int, batch: list[os.DirEntry[str]], project: int) -> None:
        if self._excluded is not None:
            kept = [one for one in batch if not self._is_excluded(directory, one.name)]
            self._found.excluded += len(batch) - len(kept)
            batch = kept
        try:
            inner = [one for one in batch if one.is_dir(follow_symlinks=False)]
            others = [one for one in batch if not one.is_dir(follow_symlinks=False)] if inner else batch
            if self._batch is not None and self._take_batch(descriptor, _names(others), project):
                self._push(directory, [one.name for one in inner])
                return
            stats = [one.stat(follow_symlinks=False) for one in others]
        except OSError:
            inner, others, stats = self._one_by_one(directory, batch)
        self._push(directory, [one.name for one in inner])
        self.walked += len(stats)
        self._others.add(stats, project)
        if self.rule.pieces is not None:
            self._keep([self._join(directory, one.name) for one in others], stats, project)
        if len(self._others.stats) >= STATS_HELD:
            self._take_stats()

    def _take_batch(self, descriptor: int, names: list[bytes], project: int) -> bool:
        """Look at many names at once; False where one of them cannot be looked at."""
        assert self._batch is not None
        if self._batch.held + len(names) > ROWS:
            self._take_columns(self._batch.columns(), are_directories=False)
        if not self._batch.take(descriptor, names, project):
            return False
        self.walked += len(names)
        return True

    def _one_by_one(
        self, directory: str, batch: list[os.DirEntry[str]]
    ) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]], list[os.stat_result]]:
        """The same where an entry went away or cannot be read: what can be looked at is."""
        inner: list[os.DirEntry[str]] = []
        others: list[os.DirEntry[str]] = []
        stats: list[os.stat_result] = []
        refused: dict[str, int] = {}
        for one in batch:
            try:
                if one.is_dir(follow_symlinks=False):
                    inner.append(one)
                    continue
                about = one.stat(follow_symlinks=False)
            except OSError as error:
                if error.errno in GONE:
                    self._found.vanished += 1
                else:
                    reason = error.strerror or str(error)
                    refused[reason] = refused.get(reason, 0) + 1
                continue
            others.append(one)
            stats.append(about)
        for reason, count in refused.items():
            what = "one of its entries" if count == 1 else f"{count} of its entries"
            self._found.cannot_read(self._path(directory), f"{what}: {reason}", count)
        return inner, others, stats

    def _push(self, directory: str, names: list[str]) -> None:
        part = self.rule.part
        for name in names:
            inner = self._join(directory, name)
            if inner in self.rule.mount_points and not self.rule.cross_filesystems:
                self._note_mount(inner)
                continue
            if name in SNAPSHOTS:
                self._found.snapshots.append(FaultyPlace(self._path(inner), "looks like snapshots"))
            if part.of == 1 or _depth(inner) != part.depth or part.is_ours(inner):
                self._stack.append(inner)

    def _count_directory(self, directory: str, about: os.stat_result, project: int) -> None:
        self.walked += 1
        self._directories.add([about], project)
        if self.rule.pieces is not None:
            self._keep([directory], [about], project)
        if len(self._directories.stats) >= STATS_HELD:
            self._take_stats()

    def _note_unopened(self, directory: str, error: OSError) -> None:
        """A directory that cannot be opened is counted itself where it can be looked at, and named."""
        if error.errno in GONE:
            self._found.vanished += 1
            return
        self._found.cannot_read(self._path(directory), error.strerror or str(error))
        try:
            about = self._stat_unopened(directory)
        except OSError:
            return
        if stat.S_ISDIR(about.st_mode) and (about.st_dev == self.rule.device or self.rule.cross_filesystems):
            self._count_directory(directory, about, self._project_code(self._project_of(directory, None)))

    def _stat_unopened(self, directory: str) -> os.stat_result:
        above, _, name = directory.rpartition("/")
        if not name:
            return os.fstat(self._root)
        descriptor = self._open(above)
        try:
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        finally:
            os.close(descriptor)

    def _note_mount(self, directory: str) -> None:
        part = self.rule.part
        if not part.is_dealt_out(directory) or part.is_ours(directory):
            self._found.other_filesystems.append(FaultyPlace(self._path(directory), "another file system"))

    def _open(self, directory: str) -> int:
        try:
            return self._open_from(self._root, directory or ".")
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
        return self._open_far(directory)

    def _open_far(self, directory: str) -> int:
        """A path that is longer than the kernel takes, in pieces."""
        descriptor = os.dup(self._root)
        for piece in _pieces(directory):
            try:
                inner = self._open_from(descriptor, piece)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor

    def _open_from(self, descriptor: int, path: str) -> int:
        """Open without changing the directory's access time, where that is ours to ask."""
        try:
            return os.open(path, _OPEN | self._no_atime, dir_fd=descriptor)
        except PermissionError as error:
            if error.errno != errno.EPERM or not self._no_atime:
                raise
            self._no_atime = 0
            return os.open(path, _OPEN, dir_fd=descriptor)

    def _path(self, directory: str) -> str:
        return storable(f"{self.rule.root.rstrip('/')}/{directory}".rstrip("/") or "/")

    @staticmethod
    def _join(directory: str, name: str) -> str:
        return f"{directory}/{name}" if directory else name

    def _is_excluded(self, directory: str, name: str) -> bool:
        if self._excluded is None:
            return False
        names, paths = self._excluded
        return bool(names.fullmatch(name) or paths.fullmatch("/" + self._join(directory, name)))

    def _project_of(self, directory: str, descriptor: int | None) -> str | None:
        """By its id where that is asked for and set, else by where it is."""
        if self.rule.project_ids and descriptor is not None:
            found = self._projects.of_id(project_id(descriptor))
            if found is not None:
                return found
        return self._projects.of_path(self._path(directory)) if self._projects.has_directories else None

    def _project_code(self, project: str | None) -> int:
        code = self._project_codes.get(project)
        if code is None:
            code = self._project_codes[project] = len(self._project_names)
            self._project_names.append(project)
        return code

    def _take_stats(self) -> None:
        """What was looked at becomes columns of numbers."""
        if self._batch is not None and self._batch.held:
            self._take_columns(self._batch.columns(), are_directories=False)
        for held, are_directories in ((self._directories, True), (self._others, False)):
            if held.stats:
                self._take_columns(held.columns(), are_directories=are_directories)

    def _take_columns(self, columns: Numbers, *, are_directories: bool) -> None:
        self._found.names += columns.shape[1]
        if not are_directories:
            columns = self._without_special(columns)
        self._columns.append(columns)
        self._held += columns.shape[1]
        if self._held >= ROWS_HELD:
            self._count_columns()

    def _without_special(self, columns: Numbers) -> Numbers:
        """All but the hard-linked, which are set apart, and what was no directory when it was listed and is one now."""
        is_directory = columns[MODE] >> 12 == _DIR
        if is_directory.any():
            self._found.vanished += int(is_directory.sum())
            columns = columns[:, ~is_directory]
        is_linked = columns[LINKS] > 1
        if is_linked.any():
            self._take_linked(columns[:, is_linked])
            columns = columns[:, ~is_linked]
        return columns

    def _take_linked(self, columns: Numbers) -> None:
        columns, codes = self._of_known_type(columns)
        linked = {
            "device": columns[DEVICE] if self.rule.cross_filesystems else 0,
            "inode": columns[INODE].view(np.uint64),
            "links": columns[LINKS],
            "code": codes,
            "size": columns[SIZE],
            "allocated": columns[BLOCKS] * BLOCK_BYTES,
            "atime": columns[ATIME],
            "mtime": columns[MTIME],
        }
        self._found.links.add(linked, self._found.counts.groups)

    def _count_columns(self) -> None:
        if not self._held:
            return
        columns, codes = self._of_known_type(np.concatenate(self._columns, axis=1))
        self._columns, self._held = [], 0
        room = columns[BLOCKS] * BLOCK_BYTES
        self._found.counts.add(codes, columns[SIZE], room, atimes_s=columns[ATIME], mtimes_s=columns[MTIME])

    def _of_known_type(self, columns: Numbers) -> tuple[Numbers, Numbers]:
        """The inodes whose type has a name and whose size can be, and the code of each one's group."""
        columns = self._of_possible_size(columns)
        keys = _key(columns[PROJECT], columns[UID], columns[MODE] >> 12)
        found, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        of_key = [self._group_code(key) for key in found.tolist()]
        codes = np.array(of_key, np.int64)[places]
        if min(of_key, default=0) >= 0:
            return columns, codes
        for key, code, count in zip(found.tolist(), of_key, counts.tolist(), strict=True):
            if code < 0:
                self._found.cannot_read(self.rule.root, f"{count} inodes of unknown type {key & 0xF:#o}", count)
        return columns[:, codes >= 0], codes[codes >= 0]

    def _of_possible_size(self, columns: Numbers) -> Numbers:
        """Those whose size and allocation a file system can have; the others are counted as not readable."""
        blocks = columns[BLOCKS]
        impossible = (columns[SIZE] < 0) | (blocks < 0) | (blocks > LARGEST // BLOCK_BYTES)
        if not impossible.any():
            return columns
        count, size = int(impossible.sum()), int(columns[SIZE][impossible][0])
        self._found.cannot_read(self.rule.root, f"{count} inodes of an impossible size, such as {size} bytes", count)
        return columns[:, ~impossible]

    def _group_code(self, key: int) -> int:
        """The code of a group; −1 where its type is none we know."""
        if key not in self._codes:
            inode_type = TYPES.get(key & 0xF)
            owner, project = owner_name(key >> 4 & (1 << _UID_BITS) - 1), self._project_names[key >> 4 + _UID_BITS]
            self._codes[key] = -1 if inode_type is None else self._found.counts.code(owner, project, inode_type)
        return self._codes[key]

    def _keep(self, paths: list[str], stats: list[os.stat_result], project: int) -> None:
        if self._kept is None:
            from iolens.scan.kept_entries import EntriesPiece

            assert self.rule.pieces is not None
            self._kept = EntriesPiece(self.rule.pieces)
        self._kept.add([self._path(one) for one in paths], stats, self._project_names[project])


def _key(project: Any, uid: Any, kind: Any) -> Any:
    """One number for a group: numbers or arrays alike."""
    return (project << _UID_BITS | uid) << 4 | kind


def _names(entries: list[os.DirEntry[str]]) -> list[bytes]:
    encoding, errors = _ENCODING
    return [one.name.encode(encoding, errors) for one in entries]


def _depth(directory: str) -> int:
    return directory.count("/") + 1 if directory else 0


def _pieces(directory: str) -> Iterator[str]:
    """A long path in pieces the kernel takes one by one."""
    piece: list[str] = []
    length = 0
    for name in directory.split("/"):
        size = len(os.fsencode(name)) + 1
        if length + size > _PATH_BYTES:
            yield "/".join(piece)
            piece, length = [], 0
        piece.append(name)
        length += size
    yield "/".join(piece)


def _excluding(patterns: Sequence[str]) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """What excludes a name, and what a path below the root: a pattern with a slash is one of paths."""
    if not patterns:
        return None
    names = [fnmatch.translate(one) for one in patterns if "/" not in one]
    paths = [fnmatch.translate("/" + one.strip("/")) for one in patterns if "/" in one]
    nothing = r"(?!)"
    return re.compile("|".join(names) or nothing), re.compile("|".join(paths) or nothing)
