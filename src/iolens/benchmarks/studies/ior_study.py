"""`bench ior` (SPEC N5): file per process against one shared file, over aggregate sizes, stripes and transfer sizes.

Paper N, Figs. 14 to 18. A point is one run of IOR that writes and then reads, on several nodes what another node wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from iolens.benchmarks.ior_sweep import IorCommand, run_ior
from iolens.benchmarks.programs import found_program, launcher_words
from iolens.benchmarks.studies.plan import PointSite, StudyPlan, StudyPoint, Values, exact_size
from iolens.benchmarks.studies.run import DATA
from iolens.benchmarks.studies.sequential_study import make_striped, refuse_stripes, stripe_directory, stripings
from iolens.errors import UsageError
from iolens.units import GIB, MIB, format_bytes

FILES: Final = ("per-process", "shared")


@dataclass(frozen=True, slots=True)
class IorStudyParameters:
    """`aggregate_bytes` of all tasks together; `files`: per-process, shared, or both."""

    tasks: tuple[int, ...] = (2,)
    aggregate_bytes: tuple[int, ...] = (GIB,)
    transfer_bytes: tuple[int, ...] = (MIB,)
    files: tuple[str, ...] = FILES
    stripe_counts: tuple[int, ...] | None = None
    stripe_bytes: tuple[int, ...] | None = None
    api: str = "POSIX"
    collective: bool = False
    direct: bool = False
    fsync: bool = True
    launcher: str | None = None


class IorStudy:
    """Runs of IOR."""

    name = "ior"
    parameters = IorStudyParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """IOR and its launcher are there, and every point is one that it takes."""
        asked: IorStudyParameters = plan.parameters
        found_program("ior")
        for tasks in asked.tasks:
            launcher_words(asked.launcher, tasks, "--tasks 1")
        unknown = [name for name in asked.files if name not in FILES]
        if unknown:
            raise UsageError(f"files {unknown[0]!r}: there are {' and '.join(FILES)}")
        if asked.stripe_counts is not None or asked.stripe_bytes is not None:
            for place in plan.places:
                refuse_stripes(place.path)
        for point in self.points(plan):
            point.values["command"].check()
        return []

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """All cases once per repeat, so that a busy minute spoils no case alone."""
        asked: IorStudyParameters = plan.parameters
        cases = product(
            range(plan.repeats), plan.places, stripings(asked.stripe_counts, asked.stripe_bytes), asked.tasks,
            asked.aggregate_bytes, asked.transfer_bytes, asked.files,
        )  # fmt: skip
        points = []
        for repeat, place, striping, tasks, aggregate, transfer, files in cases:
            command = IorCommand(
                file=place.path / DATA,
                transfer_bytes=transfer,
                block_bytes=_block(aggregate, tasks, transfer),
                api=asked.api,
                tasks=tasks,
                file_per_process=files == "per-process",
                collective=asked.collective,
                fsync=asked.fsync,
                direct=asked.direct,
                reorder=tasks > 1,
                use_existing=not striping.is_default and files == "shared",
            )
            sizes = f"tasks={tasks}/size={exact_size(aggregate)}/transfer={exact_size(transfer)}"
            points.append(
                StudyPoint(
                    key=f"{place.name}/{files}/{sizes}{striping.key()}/{repeat}",
                    place=place,
                    iteration=repeat,
                    values={"command": command, "striping": striping},
                    bytes_written=command.aggregate_bytes,
                    bytes_read=command.aggregate_bytes,
                    files=tasks if command.file_per_process else 1,
                    bytes_at_once=command.aggregate_bytes,
                    operations=1000,  # starting MPI takes about half a second
                )
            )
        return points

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        """One run of IOR."""
        striping = point.values["striping"]
        command: IorCommand = replace(point.values["command"], file=site.directory / DATA)
        if not striping.is_default:
            if command.file_per_process:
                stripe_directory(site.directory, striping)
            else:
                make_striped(command.file, striping)
        for row in run_ior(command, plan.parameters.launcher, timeout_s=site.left_s):
            cache = {} if row.get("page_cache") or row["direction"] == "write" else {"page_cache": "warm"}
            yield {**row, **cache, "stripe_count": striping.count, "stripe_bytes": striping.size_bytes}


KIND: Final = IorStudy()


def _block(aggregate: int, tasks: int, transfer: int) -> int:
    """Bytes of each task."""
    if tasks < 1 or transfer < 1:
        raise UsageError("tasks and transfers: at least 1")
    block, rest = divmod(aggregate, tasks)
    if rest or block % transfer or not block:
        raise UsageError(
            f"{tasks} tasks cannot share {format_bytes(aggregate)} in transfers of {format_bytes(transfer)}:"
            " name sizes that divide"
        )
    return block
