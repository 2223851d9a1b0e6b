"""`bench metadata`: rates of metadata operations with mdtest, by number of tasks.

Every task works in a directory of its own, as most applications do, unless `shared_directory`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.benchmarks.programs import found_program, launcher_words, run_program
from iolens.benchmarks.studies.plan import PointSite, StudyPlan, StudyPoint, Values
from iolens.benchmarks.studies.run import DATA
from iolens.errors import IolensError, UsageError
from iolens.records import Note, Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.mdtest import read_mdtest_text
from iolens.sources.benchmarks.results import ResultFile

PHASES: Final = 8  # directories and files: made, looked at, read, removed
DIRECTORY: Final = f"{DATA}-mdtest"
_OTHERS_SAY: Final = ("time", "run_id", "filesystem", "fullness_pct", "iteration", "repetitions")


@dataclass(frozen=True, slots=True)
class MetadataParameters:
    """`items` are files and directories of each task; `file_bytes` written to, and read from, each file."""

    tasks: tuple[int, ...] = (1, 2)
    items: int = 1000
    file_bytes: int = 0
    shared_directory: bool = False
    launcher: str | None = None


class MetadataBenchmark:
    """Runs of mdtest."""

    name = "metadata"
    parameters = MetadataParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """Mdtest and its launcher are there."""
        asked: MetadataParameters = plan.parameters
        found_program("mdtest")
        if min(asked.tasks) < 1 or asked.items < 1:
            raise UsageError("tasks and items: at least 1")
        for place in plan.places:
            if "@" in str(place.path):
                raise UsageError(f"{place.path}: '@' separates directories for mdtest")
        for tasks in asked.tasks:
            launcher_words(asked.launcher, tasks, "--tasks 1")
        return []

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """All numbers of tasks once per repeat."""
        asked: MetadataParameters = plan.parameters
        return [
            StudyPoint(
                key=f"{place.name}/tasks={tasks}/items={asked.items}/{repeat}",
                place=place,
                iteration=repeat,
                values={"tasks": tasks},
                bytes_written=tasks * asked.items * asked.file_bytes,
                bytes_read=tasks * asked.items * asked.file_bytes,
                files=2 * tasks * asked.items,
                bytes_at_once=tasks * asked.items * asked.file_bytes,
                operations=PHASES * tasks * asked.items + 1000,  # starting MPI takes about half a second
            )
            for repeat in range(plan.repeats)
            for place in plan.places
            for tasks in asked.tasks
        ]

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        """One run of mdtest."""
        asked: MetadataParameters = plan.parameters
        folder = site.directory / DIRECTORY
        folder.mkdir()
        options = ["-n", str(asked.items), "-d", str(folder), *([] if asked.shared_directory else ["-u"])]
        options += ["-w", str(asked.file_bytes), "-e", str(asked.file_bytes)] if asked.file_bytes else []
        command = [*launcher_words(asked.launcher, point.values["tasks"]), found_program("mdtest"), *options]
        text = run_program(command, timeout_s=site.left_s)
        items = list(read_mdtest_text(ResultFile(Path("mdtest"), ReadOptions(), "mdtest"), text))
        problems = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
        if problems:
            raise IolensError(f"mdtest: {problems[0].reason}")
        for item in items:
            if isinstance(item, Row):
                yield {name: value for name, value in item.values.items() if name not in _OTHERS_SAY}


KIND: Final = MetadataBenchmark()
