"""One process's share of a scan: walks directories, counts what they hold, and tells after each step what is left.

A directory is opened without following links, counted itself by what `fstat` says of it, and listed; its other entries
are looked at by name below its descriptor, so that paths of any length work and lookups are short.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from iolens.scan.batch_stat import ROWS, BatchStat, EntryStats, usable
from iolens.scan.findings import FaultyPlace, Findings
from iolens.scan.opened_tree import OpenedTree
from iolens.scan.owners import project_id, storable
from iolens.scan.pace import LARGEST_CHUNK, ScanPace
from iolens.scan.rule import ROOT, Exclusion, ScanPart, WalkRule, depth, inside
from iolens.scan.tally import InodeTally
from iolens.sources.contents.projects import Projects

__all__ = ["ROOT", "ScanPart", "Signals", "TreeWalk", "WalkRule", "WalkStep"]

SNAPSHOTS: Final = frozenset((".snapshot", ".snapshots", ".zfs"))
GONE: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE))
STATS_HELD: Final = ROWS
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
        self._exclusion = Exclusion(rule.exclude)
        self._tally = InodeTally(rule)
        self._tree = OpenedTree(rule.root)
        # Entries that are kept need what only Python's own stat tells.
        self._batch = BatchStat() if rule.pieces is None and usable(self._tree.descriptor) else None
        self._stack: list[str] = []
        self._known: list[str] = []  # the stack as of the last step
        self._common = 0  # how much of the beginning of both is still the same
        self._others, self._directories = EntryStats(), EntryStats()
        self._kept: Any = None

    def close(self) -> None:
        """Let go of the root."""
        self._tree.close()

    @property
    def _findings(self) -> Findings:
        return self._tally.findings

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

    def _visit(self, directory: str) -> None:
        part = self.rule.part
        is_ours = not part.is_dealt_out(directory) or part.is_ours(directory)
        if self.pace is not None:
            self.pace.take(1)
        try:
            descriptor = self._tree.open(directory)
        except OSError as error:
            if is_ours:
                self._note_unopened(directory, error)
            elif error.errno not in GONE and error.errno != errno.EACCES:  # that, whose directory it is will say
                self._findings.cannot_read(self._path(directory), error.strerror or str(error))
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
                self._findings.vanished += 1
            else:
                self._findings.cannot_read(self._path(directory), f"not listed to its end: {error.strerror}")
        finally:
            os.close(descriptor)

    def _look(self, directory: str, descriptor: int, about: os.stat_result) -> None:
        """Count a directory and its entries."""
        project = self._project_of(directory, descriptor)
        self._count_directory(directory, about, project)
        width = 0
        with os.scandir(descriptor) as listing:
            while batch := list(islice(listing, self.chunk)):
                width += len(batch)
                if self.pace is not None:
                    self.pace.take(len(batch))
                self._take_entries(directory, descriptor, batch, project)
        self._tally.add_width(project, about.st_uid, width)

    def _look_for_directories(self, directory: str, descriptor: int) -> None:
        """Another node counts this directory; below it there may be some of ours."""
        if depth(directory) >= self.rule.part.depth:
            return
        with os.scandir(descriptor) as listing:
            names = [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        self._push(directory, [name for name in names if not self._exclusion.covers(directory, name)])

    def _take_entries(self, directory: str, descriptor: int, batch: list[os.DirEntry[str]], project: int) -> None:
        if self._exclusion:
            kept = [entry for entry in batch if not self._exclusion.covers(directory, entry.name)]
            self._findings.excluded += len(batch) - len(kept)
            batch = kept
        try:
            inner = [entry for entry in batch if entry.is_dir(follow_symlinks=False)]
            others = [entry for entry in batch if not entry.is_dir(follow_symlinks=False)] if inner else batch
            if self._batch is not None and self._take_batch(descriptor, _names(others), project):
                self._push(directory, [entry.name for entry in inner])
                return
            stats = [other.stat(follow_symlinks=False) for other in others]
        except OSError:
            inner, others, stats = self._one_by_one(directory, batch)
        self._push(directory, [entry.name for entry in inner])
        self.walked += len(stats)
        self._others.add(stats, project)
        if self.rule.pieces is not None:
            self._keep([inside(directory, other.name) for other in others], stats, project)
        if len(self._others.stats) >= STATS_HELD:
            self._take_stats()

    def _take_batch(self, descriptor: int, names: list[bytes], project: int) -> bool:
        """Look at many names at once; False where one of them cannot be looked at."""
        assert self._batch is not None
        if self._batch.held + len(names) > ROWS:
            self._tally.add_entries(self._batch.rows())
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
        for entry in batch:
            try:
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry)
                    continue
                about = entry.stat(follow_symlinks=False)
            except OSError as error:
                if error.errno in GONE:
                    self._findings.vanished += 1
                else:
                    reason = error.strerror or str(error)
                    refused[reason] = refused.get(reason, 0) + 1
                continue
            others.append(entry)
            stats.append(about)
        for reason, count in refused.items():
            what = "one of its entries" if count == 1 else f"{count} of its entries"
            self._findings.cannot_read(self._path(directory), f"{what}: {reason}", count)
        return inner, others, stats

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

    def _note_unopened(self, directory: str, error: OSError) -> None:
        """A directory that cannot be opened is counted itself where it can be looked at, and named."""
        if error.errno in GONE:
            self._findings.vanished += 1
            return
        self._findings.cannot_read(self._path(directory), error.strerror or str(error))
        try:
            about = self._tree.stat(directory)
        except OSError:
            return
        if stat.S_ISDIR(about.st_mode) and (about.st_dev == self.rule.device or self.rule.cross_filesystems):
            self._count_directory(directory, about, self._project_of(directory, None))

    def _note_mount(self, directory: str) -> None:
        part = self.rule.part
        if not part.is_dealt_out(directory) or part.is_ours(directory):
            self._findings.other_filesystems.append(FaultyPlace(self._path(directory), "another file system"))

    def _path(self, directory: str) -> str:
        return storable(f"{self.rule.root.rstrip('/')}/{directory}".rstrip("/") or "/")

    def _project_of(self, directory: str, descriptor: int | None) -> int:
        """The tally's code of the project: by its id where that is asked for and set, else by where it is."""
        project = None
        if self.rule.project_ids and descriptor is not None:
            project = self._projects.of_id(project_id(descriptor))
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


def _names(entries: list[os.DirEntry[str]]) -> list[bytes]:
    encoding, errors = _ENCODING
    return [entry.name.encode(encoding, errors) for entry in entries]
