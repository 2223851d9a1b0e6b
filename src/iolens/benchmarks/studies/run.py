"""Run a study: check first, then point after point, each on record before the next; clean up whatever happens."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.benchmarks.device_counters import memory_bytes
from iolens.benchmarks.studies.folder import JournalWriter, StudyFolder, journal_writer
from iolens.benchmarks.studies.kind import PointSite, StudyKind, StudyPoint, TimeUp, Values, study_kind
from iolens.benchmarks.studies.own_directory import (
    free_bytes,
    fullness_pct,
    make_own_directory,
    own_directory,
    remove_own_directory,
    remove_own_files,
)
from iolens.benchmarks.studies.plan import StudyPlan
from iolens.errors import UsageError
from iolens.sources.benchmarks.study_runs import StudyJournal
from iolens.units import format_bytes

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
    points = study_kind(plan.kind).points(plan)
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
    if plan.repeats < 1:
        raise UsageError("repeats: at least 1")
    for place in plan.places:
        if not place.path.is_dir():
            raise UsageError(f"{place.path}: no such directory")
    work = expected_work(plan, journal)
    if work.bytes_written > plan.limits.max_bytes:
        raise UsageError(
            f"the study writes {format_bytes(work.bytes_written)} in all, more than --max-bytes"
            f" {format_bytes(plan.limits.max_bytes)}: make it smaller, or raise the limit"
        )
    for place in plan.places:
        needed = max((p.bytes_at_once for p in study_kind(plan.kind).points(plan) if p.place == place), default=0)
        _check_space(place.path, needed, plan.limits.max_fullness_pct)
    return study_kind(plan.kind).check(plan)


def _check_space(path: Path, needed: int, max_fullness_pct: float) -> None:
    free, after = free_bytes(path), fullness_pct(path, needed)
    if needed and (after > max_fullness_pct or needed + MARGIN_BYTES > free):
        raise UsageError(
            f"{path} has {format_bytes(free)} free and would be {after:.0f} % full with the {format_bytes(needed)} of"
            f" one run; the limit is {max_fullness_pct:g} % (--max-fullness): make the files smaller"
        )


def run_study(folder: StudyFolder, progress: Callable[[str], None] | None = None) -> StudyOutcome:
    """Measure the points that are not on record yet."""
    plan = folder.plan()
    kind = study_kind(plan.kind)
    with journal_writer(folder) as (journal, writer), _stoppable():
        notes = check_study(plan, journal)
        points = kind.points(plan)
        outcome = StudyOutcome(len(points), 0, notes=notes)
        runner = _Runner(plan, kind, writer, time.monotonic() + plan.limits.max_seconds, outcome)
        try:
            for path in [*journal.directories, *(own_directory(place.path, plan.name) for place in plan.places)]:
                runner.clean(path)  # of a run that was killed
            for point in points:
                if point.key in journal.rows:
                    outcome.points_done += 1
                    continue
                if progress is not None:
                    progress(point.key)
                runner.measure(point)
                outcome.points_done += 1
        except KeyboardInterrupt:
            outcome.stopped = "interrupted"
        except (TimeUp, subprocess.TimeoutExpired):
            outcome.stopped = "max_seconds"
        finally:
            runner.clean_up()
    return outcome


@dataclass(slots=True)
class _Runner:
    """Measures points, and knows which directories it made."""

    plan: StudyPlan
    kind: StudyKind
    writer: JournalWriter
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
        finally:
            remove_own_files(directory)
        self.writer.add_point(point.key, rows)

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
            self.writer.add_directory(path)
            make_own_directory(path)
            self.made.append(path)
        return path

    def clean(self, path: Path) -> None:
        """Remove a directory of this study; what is not ours in it is named."""
        if not path.is_dir():
            return
        left = remove_own_directory(path)
        if left:
            self.outcome.left += [item for item in left if item not in self.outcome.left]
        else:
            self.writer.add_removed(path)

    def clean_up(self) -> None:
        """Remove what this call made."""
        for path in self.made:
            self.clean(path)


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM, a batch system's way to end us, and SIGHUP do what Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    kinds: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGHUP)
    before = {kind: signal.signal(kind, stop) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def clean_study(folder: StudyFolder) -> tuple[list[Path], list[Path]]:
    """Remove what a killed run left: the directories that are gone now, and what is left because it is not ours."""
    plan = folder.plan()
    with journal_writer(folder) as (journal, writer):
        gone, left = [], []
        for path in {*journal.directories, *(own_directory(place.path, plan.name) for place in plan.places)}:
            if path.is_dir():
                others = remove_own_directory(path)
                left += others
                if not others:
                    gone.append(path)
                    writer.add_removed(path)
    return sorted(gone), sorted(left)
