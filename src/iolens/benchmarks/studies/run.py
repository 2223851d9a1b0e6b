"""The directory that a study makes in each place, and the only place it writes to.

It has the study's name, which no other has. At the end its files are removed by the names that studies give them;
anything else in it is not ours, stays, and is named.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.benchmarks.device_counters import memory_bytes
from iolens.benchmarks.studies.plan import (
    MOST_REPEATS,
    PLACE,
    JournalWriter,
    PointSite,
    StudyFolder,
    StudyKind,
    StudyPlan,
    StudyPoint,
    TimeUp,
    Values,
    journal_writer,
    study_kind,
    study_points,
)
from iolens.errors import IolensError, UsageError
from iolens.sources.benchmarks.study_runs import StudyJournal
from iolens.units import format_bytes
from iolens.visible_text import shown_name

PREFIX: Final = "iolens-bench-"
DATA: Final = "data"  # every file of a study begins so
_OURS: Final = re.compile(r"data[A-Za-z0-9._-]*")
_OF_MDTEST: Final = re.compile(r"(?:test-dir\.|mdtest_tree\.|file\.mdtest\.|dir\.mdtest\.)[A-Za-z0-9._-]*")


def own_directory(place: Path, study: str) -> Path:
    """Where the study writes in a place."""
    return place / f"{PREFIX}{study}"


def make_own_directory(path: Path) -> None:
    """Make it; one that is there already is refused: another user's, or of the same plan that runs elsewhere."""
    try:
        path.mkdir(0o700)
    except FileExistsError:
        hint = "`iolens bench clean` removes what a study left"
        raise UsageError(f"{path}: is there already, and not on record here: it is not touched; {hint}") from None
    except OSError as error:
        raise IolensError(f"{path}: cannot be made: {error.strerror}") from error


def remove_own_files(path: Path) -> None:
    """Remove the files of a point, not the directory."""
    for entry in _entries(path):
        if entry.is_dir(follow_symlinks=False):
            if _OURS.fullmatch(entry.name):
                _remove_tree(Path(entry.path))
        elif _OURS.fullmatch(entry.name):
            os.unlink(entry.path)  # noqa: PTH108 (an entry of scandir)


def remove_own_directory(path: Path, *, is_made_here: bool = False) -> list[Path]:
    """Remove what the study made; what is left because it is of somebody else, which may be all of it."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return []
    is_ours = is_made_here or status.st_uid == os.geteuid()  # a server may give what we make to another user
    if not stat.S_ISDIR(status.st_mode) or not is_ours:
        return [path]
    remove_own_files(path)
    others = [Path(entry.path) for entry in _entries(path)]
    if not others:
        path.rmdir()
    return others


def _remove_tree(folder: Path) -> None:
    """A folder that a benchmark program filled: its own names only, so that nothing else goes with it."""
    for entry in _entries(folder):
        known = _OURS.fullmatch(entry.name) or _OF_MDTEST.fullmatch(entry.name)
        if known and entry.is_dir(follow_symlinks=False):
            _remove_tree(Path(entry.path))
        elif known:
            os.unlink(entry.path)  # noqa: PTH108
    if not _entries(folder):
        folder.rmdir()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except FileNotFoundError:
        return []


def free_bytes(path: Path) -> int:
    """What an unprivileged user may still write."""
    return shutil.disk_usage(path).free


def fullness_pct(path: Path, more_bytes: int = 0) -> float:
    """How full the file system is, or would be with so many bytes more, of what users can have."""
    usage = shutil.disk_usage(path)
    whole = usage.used + usage.free
    return 100.0 * (usage.used + more_bytes) / whole if whole else 0.0


# Run a study ----------------------------------------------------------------------------------------------------------
# Check first, then point after point, each on record before the next; clean up whatever happens.

RUN_SEPARATOR: Final = "/"
MARGIN_BYTES: Final = 64 << 20  # that stay free whatever the limit says


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """What is still to come of a study."""

    points: int
    points_done: int
    bytes_written: int
    bytes_read: int
    files: int
    bytes_at_once: int
    seconds: float  # at an assumed speed, or at that of the points that are done

    @property
    def is_measured(self) -> bool:
        """Whether the time is by what was measured."""
        return bool(self.points_done)


@dataclass(slots=True)
class StudyOutcome:
    """How a call ended: all points are done, or why not; directories that are left."""

    points: int
    points_done: int
    stopped: str | None = None  # `interrupted`, or `max_seconds`
    notes: list[str] = field(default_factory=list)
    left: list[Path] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether every point is on record."""
        return self.points_done == self.points


def expected_work(plan: StudyPlan, journal: StudyJournal) -> ExpectedWork:
    """Bytes, files and time to come."""
    points = study_points(plan)
    left = [point for point in points if point.key not in journal.rows]
    done = [point for point in points if point.key in journal.rows]
    assumed = sum(point.expected_s for point in left)
    spent = sum(_seconds(row) for point in done for row in journal.rows[point.key])
    factor = spent / sum(point.expected_s for point in done) if done and spent else 1.0
    return ExpectedWork(
        points=len(points),
        points_done=len(done),
        bytes_written=sum(point.bytes_written for point in left),
        bytes_read=sum(point.bytes_read for point in left),
        files=sum(point.files for point in left),
        bytes_at_once=max((point.bytes_at_once for point in left), default=0),
        seconds=assumed * factor,
    )


def _seconds(row: Values) -> float:
    seconds = row.get("duration_s")
    return seconds if isinstance(seconds, float) else 0.0


def check_study(plan: StudyPlan, journal: StudyJournal) -> list[str]:
    """Refuse what would fill a file system, exceed a limit or cannot be done; what the user should know."""
    names = [place.name for place in plan.places]
    if len(set(names)) < len(names):
        raise UsageError(f"two places are called {max(names, key=names.count)}: give each a name, as NAME=DIR")
    if not 1 <= plan.repeats <= MOST_REPEATS:
        raise UsageError(f"repeats: from 1 to {MOST_REPEATS}")
    for place in plan.places:
        for text in (place.name, str(place.path)):
            if not PLACE.fullmatch(text):
                raise UsageError(f"{shown_name(text)}: no name for a place in a plan; name another directory")
        if not place.path.is_dir():
            raise UsageError(f"{place.path}: no such directory")
    work = expected_work(plan, journal)
    if work.bytes_written > plan.limits.max_bytes:
        raise UsageError(
            f"the study writes {format_bytes(work.bytes_written)} in all, more than --max-bytes"
            f" {format_bytes(plan.limits.max_bytes)}: make it smaller, or raise the limit"
        )
    for place in plan.places:
        needed = max((p.bytes_at_once for p in study_points(plan) if p.place == place), default=0)
        _check_space(place.path, needed, plan.limits.max_fullness_pct)
    return study_kind(plan.kind).check(plan)


def _check_space(path: Path, needed: int, max_fullness_pct: float) -> None:
    if not needed:
        return
    free, after = free_bytes(path), fullness_pct(path, needed)
    if needed + MARGIN_BYTES > free:  # what does not fit is no question of a limit
        raise UsageError(
            f"{path} has {format_bytes(free)} free, which is not enough for the {format_bytes(needed)} of one run and"
            f" {format_bytes(MARGIN_BYTES)} that stay free: make the files smaller"
        )
    if after > max_fullness_pct:
        raise UsageError(
            f"{path} has {format_bytes(free)} free and would be {after:.3g} % full with the {format_bytes(needed)} of"
            f" one run; the limit is {max_fullness_pct:g} % (--max-fullness): make the files smaller, or raise it"
        )


def run_study(folder: StudyFolder, progress: Callable[[str], None] | None = None) -> StudyOutcome:
    """Measure the points that are not on record yet."""
    plan = folder.plan()
    kind = study_kind(plan.kind)
    with journal_writer(folder) as (journal, writer), _stop_signals() as signals:
        notes = check_study(plan, journal)
        points = study_points(plan)
        outcome = StudyOutcome(len(points), 0, notes=notes)
        runner = _Runner(plan, kind, writer, signals, time.monotonic() + plan.limits.max_seconds, outcome)
        try:
            runner.clean_leftovers(named_directories(plan, journal))
            for point in points:
                if point.key in journal.rows:
                    outcome.points_done += 1
                    continue
                if progress is not None:
                    progress(point.key)
                runner.measure(point)
        except KeyboardInterrupt:
            outcome.stopped = "interrupted"
        except (TimeUp, subprocess.TimeoutExpired):
            outcome.stopped = "max_seconds"
        finally:
            signals.are_held = True  # nothing breaks off the cleaning
            runner.clean_up()
    return outcome


def named_directories(plan: StudyPlan, journal: StudyJournal) -> list[Path]:
    """Directories on record that may still be there; a record that names any other directory is not believed."""
    return [path for path in journal.directories if path.name == f"{PREFIX}{plan.name}"]


@dataclass(slots=True)
class _Runner:
    """Measures points, and knows which directories it made."""

    plan: StudyPlan
    kind: StudyKind
    writer: JournalWriter
    signals: _StopSignals
    deadline: float
    outcome: StudyOutcome
    made: list[Path] = field(default_factory=list)

    def measure(self, point: StudyPoint) -> None:
        """One point, onto record with what all rows have."""
        if time.monotonic() >= self.deadline:
            raise TimeUp
        directory = self._directory(point.place.path)
        _check_space(point.place.path, point.bytes_at_once, self.plan.limits.max_fullness_pct)
        site = PointSite(directory, self.deadline, self.outcome.notes)
        try:
            measured = enumerate(self.kind.run(self.plan, point, site))
            rows = [self._row(point, number, values) for number, values in measured]
        except OSError as error:  # a full disk among others
            raise IolensError(f"{point.key}: {error.strerror or error}") from error
        finally:
            remove_own_files(directory)
        with self.signals.held():
            self.writer.add_point(point.key, rows)
            self.outcome.points_done += 1

    def _row(self, point: StudyPoint, number: int, values: Values) -> Values:
        common: dict[str, Any] = {
            "time": time.time_ns() // 1000,
            "sweep": self.plan.name,
            "study": self.plan.kind,
            "run_id": RUN_SEPARATOR.join((self.plan.name, point.key, str(number))),
            "place": point.place.name,
            "filesystem": point.place.filesystem,
            "host": socket.gethostname(),
            "iteration": point.iteration,
            "repetitions": self.plan.repeats,
            "memory_bytes": memory_bytes(),
            "fullness_pct": fullness_pct(point.place.path),
            "complete": True,
        }
        everything = {**common, **values, "run_id": common["run_id"]}
        return {name: value for name, value in everything.items() if value is not None}

    def _directory(self, place: Path) -> Path:
        path = own_directory(place, self.plan.name)
        if path not in self.made:
            with self.signals.held():
                if not os.path.lexists(path):  # what is refused must not be taken for ours the next time
                    self.writer.add_directory(path)
                make_own_directory(path)
                self.made.append(path)
        return path

    def clean_leftovers(self, paths: Sequence[Path]) -> None:
        """Of a run that was killed; a directory that stays because of what somebody put into it is used again."""
        self.made += [path for path in paths if any(left != path for left in self.clean(path))]

    def clean(self, path: Path) -> list[Path]:
        """Remove a directory of this study; what is not ours in it is named."""
        left = remove_own_directory(path, is_made_here=path in self.made)
        if left:
            self.outcome.left += [item for item in left if item not in self.outcome.left]
        else:
            self.writer.add_removed(path)
        return left

    def clean_up(self) -> None:
        """Remove what this call made."""
        for path in self.made:
            self.clean(path)


class _StopSignals:
    """SIGTERM, a batch system's way to end us, and SIGHUP do what Ctrl-C does; while they are held, they wait."""

    def __init__(self) -> None:
        self.are_held = False
        self._waits = False

    def __call__(self, *_: object) -> None:
        if not self.are_held:
            raise KeyboardInterrupt
        self._waits = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """For steps that belong together: a directory and its name on record."""
        self.are_held = True
        try:
            yield
        finally:
            self.are_held = False
        if self._waits:
            self._waits = False
            raise KeyboardInterrupt


@contextmanager
def _stop_signals() -> Iterator[_StopSignals]:
    kinds: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signals = _StopSignals()
    before = {kind: signal.signal(kind, signals) for kind in kinds}
    try:
        yield signals
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def clean_study(folder: StudyFolder) -> tuple[list[Path], list[Path]]:
    """Remove what a killed run left: the directories that are gone now, and what is left because it is not ours."""
    plan = folder.plan()
    with journal_writer(folder) as (journal, writer):
        gone, left = [], []
        places = (own_directory(place.path, plan.name) for place in plan.places)
        for path in {*named_directories(plan, journal), *places}:
            if os.path.lexists(path):
                others = remove_own_directory(path)
                left += others
                if not others:
                    gone.append(path)
            if path in journal.directories and not os.path.lexists(path):
                writer.add_removed(path)
    return sorted(gone), sorted(left)
