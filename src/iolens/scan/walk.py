"""The throttle of a scan: so many entries a second over all its processes, to spare a metadata server."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from iolens.scan.findings import ROOT, Exclusion, FaultyPlace, Findings, InodeTally, ScanPart, WalkRule, depth, inside
from iolens.scan.inodes import ROWS, BatchStat, EntryStats, Lookups, OpenedTree, usable
from iolens.scan.mounts import project_id, storable
from iolens.sources.contents.inode_counts import Projects

LARGEST_CHUNK: Final = 4096
SMOOTHNESS_S: Final = 0.05  # entries are asked for in pieces that take about this long


class SharedTime(Protocol):
    """A number all processes see."""

    value: float


class ScanPace:
    """Hands out entries no faster than `rate` a second; what was not used is not saved up for a burst.

    `free_at` is the time from which the next entry may be had, shared with `lock` by all who take.
    """

    def __init__(
        self,
        rate: float,
        free_at: SharedTime,
        lock: AbstractContextManager[object],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rate = rate
        self.chunk = max(1, min(LARGEST_CHUNK, int(rate * SMOOTHNESS_S)))
        self._free_at, self._lock, self._now, self._sleep = free_at, lock, now, sleep

    def take(self, entries: int) -> None:
        """Wait until so many entries may be looked at."""
        with self._lock:
            now = self._now()
            begin = max(now, self._free_at.value)
            self._free_at.value = begin + entries / self.rate
        if begin > now:
            self._sleep(begin - now)


# One process's share of a scan ----------------------------------------------------------------------------------------
# Walks directories, counts what they hold, and tells after each step what is left.
#
# A directory is opened without following links, counted itself by what `fstat` says of it, and listed; its other
# entries are looked at by name below its descriptor, so that paths of any length work and lookups are short. Where
# lookups take long (`lookups`), several directories are opened, and names of all of them looked at, side by side;
# counting is always this thread's alone.

__all__ = ["ROOT", "ScanPart", "Signals", "TreeWalk", "WalkRule", "WalkStep"]

SNAPSHOTS: Final = frozenset((".snapshot", ".snapshots", ".zfs"))
GONE: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE))
STATS_HELD: Final = ROWS
DIRECTORIES: Final = 16  # that are visited together, at least
_ENCODING: Final = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())  # as os.fsencode has it


@dataclass(slots=True)
class WalkStep:
    """What one process did since its last step. Directories are relative to the root.

    What is unfinished is now what was, without `done`, with `discovered`; a process keeps all of it but what it has
    `given` away. Steps are whole: what is in `findings` belongs to directories that are finished with. After its last
    step a process waits for more.
    """

    done: list[str]
    discovered: list[str]
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


@dataclass(slots=True)
class _Directory:
    """A directory that was opened and listed, or why not."""

    path: str  # relative to the root
    descriptor: int | None = None
    about: os.stat_result | None = None
    project_id: int | None = None
    listing: Any = None  # what os.scandir gave
    entries: list[os.DirEntry[str]] = field(default_factory=list)  # the first of the listing
    error: OSError | None = None

    def close(self) -> None:
        """Let go of it."""
        if self.listing is not None:
            self.listing.close()
        if self.descriptor is not None:
            os.close(self.descriptor)


class _Unseen(NamedTuple):
    """Entries of a directory that are still to be looked at."""

    directory: _Directory
    entries: list[os.DirEntry[str]]
    project: int


class TreeWalk:
    """Directories still to be looked at, and what was found since the last step."""

    def __init__(
        self,
        rule: WalkRule,
        signals: Signals,
        place: int = 0,
        *,
        pace: ScanPace | None = None,
        lookups: int = 1,
        step_s: float = 5.0,
        share_s: float = 0.005,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rule, self.signals, self.place, self.pace = rule, signals, place, pace
        self.step_s, self.share_s, self.now = step_s, share_s, now
        self.chunk = min(ROWS, LARGEST_CHUNK if pace is None else pace.chunk)
        self.walked = 0
        self._projects = Projects(rule.projects)
        self._exclusion = Exclusion(rule.exclude)
        self._tally = InodeTally(rule)
        self._tree = OpenedTree(rule.root)
        self._lookups = Lookups(lookups)
        # Entries that are kept need what only Python's own stat tells.
        self._batch = BatchStat(self._lookups) if rule.pieces is None and usable(self._tree.descriptor) else None
        self._stack: list[str] = []
        self._known: list[str] = []  # the stack as of the last step
        self._common = 0  # how much of the beginning of both is still the same
        self._unseen: list[_Unseen] = []
        self._unseen_names = 0
        self._others, self._directories = EntryStats(), EntryStats()
        self._kept: Any = None
        self._began = self.now()  # the step that is under way

    def close(self) -> None:
        """Let go of the root, and end the threads."""
        self._lookups.close()
        self._tree.close()

    @property
    def _findings(self) -> Findings:
        return self._tally.findings

    def steps(self, directories: Sequence[str]) -> Iterator[WalkStep]:
        """Walk these directories and all below them. The last step leaves nothing, unless the scan must stop."""
        self._stack += directories
        self._known += directories
        self._common = len(self._stack)
        self._began = self.now()
        while self._stack and not self.signals.must_stop:
            directories = self._next()
            self._common = min(self._common, len(self._stack))
            self._visit(directories)
            self.signals.progress[self.place] = self.walked
            passed = self.now() - self._began
            is_wanted = self.signals.idle and len(self._stack) > 1 and passed >= self.share_s
            if is_wanted or (self._stack and passed >= self.step_s):
                yield self._end_step(is_sharing=bool(is_wanted))
                self._began = self.now()
        yield self._end_step(is_last=True)

    def _next(self) -> list[str]:
        """Directories to be visited together. Half of them stay, for those who have nothing to do."""
        count = 1 if self.pace else min(max(DIRECTORIES, self._lookups.in_flight), -(-len(self._stack) // 2))
        directories = self._stack[-count:]
        del self._stack[-count:]
        return directories

    def _end_step(self, *, is_sharing: bool = False, is_last: bool = False) -> WalkStep:
        """Everything since the last step. Who shares gives away every other directory: large and small ones alike."""
        self._take_stats()
        piece, self._kept = None if self._kept is None else self._kept.close(), None
        done, names = self._known[self._common :], self._stack[self._common :]
        given = self._stack[::2] if is_sharing else []
        if is_sharing:
            del self._stack[::2]
        step = WalkStep(done, names, given, self._tally.end_step(), piece, is_last)
        self._known = self._stack.copy()
        self._common = len(self._stack)
        return step

    def _visit(self, directories: list[str]) -> None:
        if self.pace is not None:
            self.pace.take(len(directories))
        opened = self._lookups.apart(self._open, directories)
        for place, directory in enumerate(opened, 1):
            self._take_directory(directory)
            if len(directory.entries) == self.chunk and self._is_waited_for():  # it was large
                self._stack += directories[place:]
                break
        self._look_up()
        for directory in opened:
            directory.close()

    def _is_waited_for(self) -> bool:
        passed = self.now() - self._began
        return self.signals.must_stop or passed >= (self.share_s if self.signals.idle else self.step_s)

    def _open(self, path: str) -> _Directory:
        """Open a directory and begin to list it: all that may have to wait for the file system."""
        directory = _Directory(path)
        try:
            directory.descriptor = self._tree.open(path)
            directory.about = os.fstat(directory.descriptor)
            if self._is_entered(directory.about):
                if self.rule.project_ids:
                    directory.project_id = project_id(directory.descriptor)
                directory.listing = os.scandir(directory.descriptor)
                directory.entries = list(islice(directory.listing, self.chunk))
        except OSError as error:
            directory.error = _plain(error)
        return directory

    def _is_entered(self, about: os.stat_result) -> bool:
        return about.st_dev == self.rule.device or self.rule.cross_filesystems

    def _take_directory(self, directory: _Directory) -> None:
        part, path, about = self.rule.part, directory.path, directory.about
        is_ours = not part.is_dealt_out(path) or part.is_ours(path)
        if directory.descriptor is None:
            self._note_unopened(directory, is_ours)
            return
        if about is not None and not self._is_entered(about):
            self._note_mount(path)
            return
        if about is not None and is_ours:
            self._look(directory, about)
        elif about is not None:
            self._look_for_directories(directory)
        if directory.error is not None:  # the listing broke off: what was listed until then is counted
            self._note_error(path, directory.error, "not listed to its end: ")

    def _look(self, directory: _Directory, about: os.stat_result) -> None:
        """Count a directory and its entries."""
        project = self._project_of(directory.path, directory.project_id)
        self._count_directory(directory.path, about, project)
        width = 0
        for batch in self._listed(directory):
            width += len(batch)
            if self.pace is not None:
                self.pace.take(len(batch))
            self._take_entries(directory, batch, project)
        if directory.error is None:
            self._tally.add_width(project, about.st_uid, width)

    def _look_for_directories(self, directory: _Directory) -> None:
        """Another node counts this directory; below it there may be some of ours."""
        if depth(directory.path) >= self.rule.part.depth:
            return
        for batch in self._listed(directory):
            names = [entry.name for entry in batch if _is_directory(entry)]
            self._push(directory.path, [name for name in names if not self._exclusion.covers(directory.path, name)])

    def _listed(self, directory: _Directory) -> Iterator[list[os.DirEntry[str]]]:
        """Its entries, not too many at once, until its end or an error."""
        batch = directory.entries
        while batch:
            yield batch
            if len(batch) < self.chunk:
                return
            try:
                batch = list(islice(directory.listing, self.chunk))
            except OSError as error:
                directory.error = _plain(error)
                return

    def _take_entries(self, directory: _Directory, batch: list[os.DirEntry[str]], project: int) -> None:
        path = directory.path
        if self._exclusion:
            kept = [entry for entry in batch if not self._exclusion.covers(path, entry.name)]
            self._findings.excluded += len(batch) - len(kept)
            batch = kept
        try:
            inner = [entry for entry in batch if entry.is_dir(follow_symlinks=False)]
        except OSError:
            inner = [entry for entry in batch if _is_directory(entry)]
        others = [entry for entry in batch if not _is_directory(entry)] if inner else batch
        self._push(path, [entry.name for entry in inner])
        if self._unseen_names + len(others) > self.chunk:
            self._look_up()
        if others:
            self._unseen.append(_Unseen(directory, others, project))
            self._unseen_names += len(others)

    def _look_up(self) -> None:
        """Look at the entries of all directories that were opened."""
        unseen, self._unseen, self._unseen_names = self._unseen, [], 0
        if unseen and self._batch is not None:
            unseen = self._failed_of_batch(self._batch, unseen)
        for directory, entries, project in unseen:
            descriptors = [directory.descriptor] * len(entries)
            answers = self._lookups.timed(_stats, descriptors, entries)
            self._take_answers(directory.path, entries, answers, project)

    def _failed_of_batch(self, batch: BatchStat, unseen: list[_Unseen]) -> list[_Unseen]:
        """Look at many names at once; those that cannot be looked at."""
        descriptors: list[int] = []
        names: list[bytes] = []
        projects: list[int] = []
        runs: list[int] = []
        for directory, entries, project in unseen:
            assert directory.descriptor is not None
            descriptors += [directory.descriptor] * len(entries)
            names += _names(entries)
            projects.append(project)
            runs.append(len(entries))
        if batch.held + len(names) > ROWS:
            self._tally.add_entries(batch.rows())
        failed = batch.take(descriptors, names, projects, runs)
        self.walked += len(names) - len(failed)
        return _only(failed, unseen) if failed else []

    def _take_answers(
        self, directory: str, entries: list[os.DirEntry[str]], answers: list[os.stat_result | OSError], project: int
    ) -> None:
        """Entries one by one, where one may have gone away or cannot be read: what can be looked at is counted."""
        paths: list[str] = []
        stats: list[os.stat_result] = []
        refused: dict[str, int] = {}
        for entry, answer in zip(entries, answers, strict=True):
            if not isinstance(answer, OSError):
                paths.append(inside(directory, entry.name))
                stats.append(answer)
            elif answer.errno in GONE:
                self._findings.vanished += 1
            else:
                reason = answer.strerror or str(answer)
                refused[reason] = refused.get(reason, 0) + 1
        for reason, count in refused.items():
            what = "one of its entries" if count == 1 else f"{count} of its entries"
            self._findings.cannot_read(self._path(directory), f"{what}: {reason}", count)
        self.walked += len(stats)
        self._others.add(stats, project)
        if self.rule.pieces is not None:
            self._keep(paths, stats, project)
        if len(self._others.stats) >= STATS_HELD:
            self._take_stats()

    def _push(self, directory: str, names: list[str]) -> None:
        part = self.rule.part
        for name in names:
            inner = inside(directory, name)
            if inner in self.rule.mount_points and not self.rule.cross_filesystems:
                self._note_mount(inner)
                continue
            if name in SNAPSHOTS:
                self._findings.snapshots.append(FaultyPlace(self._path(inner), "looks like snapshots"))
            if part.of == 1 or depth(inner) != part.depth or part.is_ours(inner):
                self._stack.append(inner)

    def _count_directory(self, directory: str, about: os.stat_result, project: int) -> None:
        self.walked += 1
        self._directories.add([about], project)
        if self.rule.pieces is not None:
            self._keep([directory], [about], project)
        if len(self._directories.stats) >= STATS_HELD:
            self._take_stats()

    def _note_unopened(self, directory: _Directory, is_ours: bool) -> None:
        """A directory that cannot be opened is counted itself where it can be looked at, and named."""
        path, error = directory.path, directory.error
        assert error is not None
        if not is_ours and error.errno in GONE | {errno.EACCES}:  # whose directory it is will say so
            return
        self._note_error(path, error)
        if not is_ours or error.errno in GONE:
            return
        try:
            about = self._tree.stat(path)
        except OSError:
            return
        if stat.S_ISDIR(about.st_mode) and self._is_entered(about):
            self._count_directory(path, about, self._project_of(path, None))

    def _note_error(self, directory: str, error: OSError, what: str = "") -> None:
        if error.errno in GONE:
            self._findings.vanished += 1
        else:
            self._findings.cannot_read(self._path(directory), f"{what}{error.strerror or error}")

    def _note_mount(self, directory: str) -> None:
        part = self.rule.part
        if not part.is_dealt_out(directory) or part.is_ours(directory):
            self._findings.other_filesystems.append(FaultyPlace(self._path(directory), "another file system"))

    def _path(self, directory: str) -> str:
        return storable(f"{self.rule.root.rstrip('/')}/{directory}".rstrip("/") or "/")

    def _project_of(self, directory: str, given_id: int | None) -> int:
        """The tally's code of the project: by its id where that is asked for and set, else by where it is."""
        project = self._projects.of_id(given_id) if self.rule.project_ids else None
        if project is None and self._projects.has_directories:
            project = self._projects.of_path(self._path(directory))
        return self._tally.project_code(project)

    def _take_stats(self) -> None:
        """What was looked at becomes rows."""
        if self._batch is not None and self._batch.held:
            self._tally.add_entries(self._batch.rows())
        if self._directories.stats:
            self._tally.add_directories(self._directories.rows())
        if self._others.stats:
            self._tally.add_entries(self._others.rows())

    def _keep(self, paths: list[str], stats: list[os.stat_result], project: int) -> None:
        if self._kept is None:
            from iolens.scan.kept_entries import EntriesPiece

            assert self.rule.pieces is not None
            self._kept = EntriesPiece(self.rule.pieces)
        self._kept.add([self._path(path) for path in paths], stats, self._tally.project_names[project])


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # looking at it will say why
        return False


def _stats(descriptors: list[int], entries: list[os.DirEntry[str]]) -> list[os.stat_result | OSError]:
    """Of each entry what `lstat` says, and other threads go on meanwhile."""
    answers: list[os.stat_result | OSError] = []
    for descriptor, entry in zip(descriptors, entries, strict=True):
        try:
            answers.append(os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False))
        except OSError as error:
            answers.append(_plain(error))
    return answers


def _plain(error: OSError) -> OSError:
    """Without its traceback, which would keep alive what is kept with the error: cycles are not collected here."""
    return OSError(error.errno, error.strerror)


def _only(places: list[int], unseen: list[_Unseen]) -> list[_Unseen]:
    """The entries at these places, counted through all directories."""
    result, begin = [], 0
    for directory, entries, project in unseen:
        chosen = [entries[place - begin] for place in places if begin <= place < begin + len(entries)]
        result.append(_Unseen(directory, chosen, project))
        begin += len(entries)
    return [item for item in result if item.entries]


def _names(entries: list[os.DirEntry[str]]) -> list[bytes]:
    encoding, errors = _ENCODING
    return [entry.name.encode(encoding, errors) for entry in entries]
