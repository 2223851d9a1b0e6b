"""The folder of a study: `plan.toml`, and `runs.jsonl` with a line for every point that was measured.

A line is on disk before the next point begins. One that a kill cut short is as if the point had not been measured. Who
has the two files can read the results, or go on, on any machine. Directories a study makes are named before they are
made, so that what a kill leaves behind is known.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.benchmarks.studies.kind import Values, parameters_of
from iolens.benchmarks.studies.plan import StudyPlan, plan_text, read_plan
from iolens.errors import IolensError, UsageError
from iolens.sources.benchmarks.study_runs import RUNS, RUNS_FORMAT, StudyJournal, journal_of

PLAN: Final = "plan.toml"


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """A folder that has a plan."""

    path: Path

    @property
    def runs_path(self) -> Path:
        """Where results are."""
        return self.path / RUNS

    def plan(self) -> StudyPlan:
        """The plan, checked."""
        return read_plan(self.path / PLAN, parameters_of)

    def journal(self) -> StudyJournal:
        """What was measured; nothing where nothing was."""
        return journal_of(self.runs_path) if self.runs_path.exists() else StudyJournal()


def new_folder(path: Path, plan: StudyPlan) -> StudyFolder:
    """Make the folder with its plan; one that is there already is refused."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        hint = f"go on with it by `iolens bench run {path}`, or name another --folder"
        raise UsageError(f"{path}: exists; {hint}") from None
    except OSError as error:
        raise IolensError(f"{path}: cannot be made: {error.strerror}") from error
    try:
        (path / PLAN).write_text(plan_text(plan), "utf-8")
    except OSError as error:
        raise IolensError(f"{path / PLAN}: cannot be written: {error.strerror}") from error
    return StudyFolder(path)


class JournalWriter:
    """Appends lines; each is on disk when the call returns."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def add_point(self, key: str, rows: Iterable[Values]) -> None:
        """A point is done."""
        self._add({"point": key, "rows": list(rows)})

    def add_directory(self, path: Path) -> None:
        """A directory is about to be made."""
        self._add({"directory": str(path)})

    def add_removed(self, path: Path) -> None:
        """It is gone, with all that was in it."""
        self._add({"removed": str(path)})

    def begin(self) -> None:
        """The line that every file begins with."""
        self._add({"format": RUNS_FORMAT})

    def _add(self, line: dict[str, object]) -> None:
        """A whole line or none: on a full disk the next would be written behind half of this one."""
        octets = json.dumps(line, allow_nan=False).encode() + b"\n"
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            while octets:
                octets = octets[os.write(self._descriptor, octets) :]
            os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, end)
            raise


@contextmanager
def journal_writer(folder: StudyFolder) -> Iterator[tuple[StudyJournal, JournalWriter]]:
    """What was measured, and where more is added; one process at a time."""
    try:
        descriptor = os.open(folder.runs_path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise IolensError(f"{folder.runs_path}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder.path}: another process runs this study") from None
        journal = folder.journal()
        os.ftruncate(descriptor, journal.whole_bytes)
        writer = JournalWriter(descriptor)
        if not journal.whole_bytes:
            writer.begin()
        yield journal, writer
    finally:
        os.close(descriptor)
