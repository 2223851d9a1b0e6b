"""`bench imitate` (SPEC N5): IOR does what a job did, at most to a share of its bytes; a point is one such run of IOR.

The parameters are lists with a member for each run of IOR, so that a reader of `plan.toml` sees a table.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from iolens.benchmarks.imitation.run_imitation import ior_commands
from iolens.benchmarks.ior_sweep import run_ior
from iolens.benchmarks.programs import found_program, launcher_words
from iolens.benchmarks.studies.plan import PointSite, StudyPlace, StudyPlan, StudyPoint, TimeUp, Values
from iolens.benchmarks.studies.run import DATA
from iolens.benchmarks.studies.sequential_file import drop_from_cache
from iolens.errors import UsageError
from iolens.models.ior_parameters import IorParameters

START_OPERATIONS: Final = 1000  # starting MPI takes as long as so many operations are taken to
_SUMMED: Final = ("bytes", "operations", "duration_s")


@dataclass(frozen=True, slots=True)
class ImitateParameters:
    """`record` is the job that is imitated, `share` of its bytes; lists have a member for each run of IOR."""

    record: str
    share: float
    api: tuple[str, ...]
    tasks: tuple[int, ...]
    transfer_bytes: tuple[int, ...]
    block_bytes: tuple[int, ...]
    segments: tuple[int, ...]
    file_per_process: tuple[bool, ...]
    write: tuple[bool, ...]
    read: tuple[bool, ...]
    collective: tuple[bool, ...]
    random: tuple[bool, ...]
    fsync: tuple[bool, ...]
    reorder: tuple[bool, ...]
    repetitions: tuple[int, ...]
    launcher: str | None = None

    @classmethod
    def of(cls, record: str, share: float, runs: Sequence[IorParameters], launcher: str | None) -> ImitateParameters:
        """From parameters that have their size already."""
        lists = {name: tuple(getattr(run, name) for run in runs) for name in _LISTS}
        return cls(record=record, share=share, launcher=launcher, **lists)

    def runs(self) -> list[IorParameters]:
        """The runs of IOR; lists of different lengths are refused."""
        lists = {name: getattr(self, name) for name in _LISTS}
        if len({len(values) for values in lists.values()}) != 1:
            lengths = ", ".join(f"{name} {len(values)}" for name, values in lists.items())
            raise UsageError(f"parameters of IOR runs must be lists of one length, not {lengths}")
        return [IorParameters(**dict(zip(lists, values, strict=True))) for values in zip(*lists.values(), strict=True)]


_LISTS: Final = tuple(
    item.name for item in fields(ImitateParameters) if item.name not in ("record", "share", "launcher")
)


class ImitateStudy:
    """Runs of IOR, one after another."""

    name = "imitate"
    parameters = ImitateParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """IOR and its launcher are there, and IOR can do it."""
        asked: ImitateParameters = plan.parameters
        found_program("ior")
        for run in asked.runs():
            launcher_words(asked.launcher, run.tasks, "--tasks 1")
            for command in ior_commands(run, plan.places[0].path / DATA):
                command.check()
        most, processors = max(asked.tasks), len(os.sched_getaffinity(0))
        if asked.launcher is None and most > processors:
            return [f"{most} tasks on {processors} processors: the launcher may refuse them, see --tasks"]
        return []

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """All runs once per repeat."""
        return [
            _point(place, repeat, number, run)
            for repeat in range(plan.repeats)
            for place in plan.places
            for number, run in enumerate(plan.parameters.runs(), 1)
        ]

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        """The run of IOR, after its files are written where it only reads; one row per direction."""
        run: IorParameters = point.values["run"]
        *before, command = ior_commands(run, site.directory / DATA)
        launcher = plan.parameters.launcher
        try:
            for earlier in before:
                run_ior(earlier, launcher, site.left_s)
                _drop(site.directory)
            rows = run_ior(command, launcher, site.left_s)
        except subprocess.TimeoutExpired:
            raise TimeUp from None
        for row in summed_rows(rows):
            cache = {} if row["direction"] == "write" else {"page_cache": "dropped" if before else "warm"}
            yield {**row, **cache}


KIND: Final = ImitateStudy()


def _point(place: StudyPlace, repeat: int, number: int, run: IorParameters) -> StudyPoint:
    written = run.aggregate_bytes * (run.repetitions if run.write else 1)
    return StudyPoint(
        key=f"{place.name}/run={number}/{repeat}",
        place=place,
        iteration=repeat,
        values={"run": run},
        bytes_written=written,
        bytes_read=run.aggregate_bytes * run.repetitions if run.read else 0,
        files=run.files,
        bytes_at_once=run.aggregate_bytes,
        operations=run.operations // run.tasks + START_OPERATIONS,
    )


def summed_rows(rows: Sequence[Values]) -> list[Values]:
    """Repetitions of IOR imitate one job: their bytes, operations and seconds belong together."""
    by_direction: dict[object, list[Values]] = {}
    for row in rows:
        by_direction.setdefault(row["direction"], []).append(row)
    return [_summed(repetitions) for repetitions in by_direction.values()]


def _summed(rows: Sequence[Values]) -> Values:
    if len(rows) == 1:
        return rows[0]
    kept = {name: value for name, value in rows[0].items() if name not in ("iteration", "repetitions")}
    numbers = {name: [row[name] for row in rows if isinstance(row.get(name), int | float)] for name in _SUMMED}
    total: dict[str, Any] = {name: sum(values) for name, values in numbers.items() if len(values) == len(rows)}
    if "bytes" in total and total.get("duration_s"):
        total |= {"reported_bytes_per_s": total["bytes"] / total["duration_s"], "reported_ops_per_s": None}
    return kept | total


def _drop(directory: Path) -> None:
    """Nothing that was just written is read from memory."""
    for path in directory.glob(f"{DATA}*"):
        drop_from_cache(path)
