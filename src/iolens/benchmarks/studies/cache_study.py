"""`bench cache` (SPEC N7): a file that fits into memory and one that does not, and what that says of the policies.

Memory is limited by a control group where that is allowed; else it is the machine's, and said. The page cache is
dropped by `posix_fadvise`, of our own file only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from iolens.benchmarks.device_counters import memory_bytes
from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies.kind import PointSite, StudyPoint, Values
from iolens.benchmarks.studies.memory_limit import NoMemoryLimit, memory_limit
from iolens.benchmarks.studies.own_directory import DATA
from iolens.benchmarks.studies.plan import StudyPlan, exact_size
from iolens.benchmarks.studies.sequential_file import TimedPass
from iolens.benchmarks.studies.sequential_study import check_blocks, pass_row
from iolens.benchmarks.studies.stripes import FileStripes
from iolens.errors import UsageError
from iolens.units import MIB, format_bytes

SMALL_SHARE: Final = 0.25  # of memory, by default
LARGE_SHARE: Final = 3.0
READS: Final = 3  # of every file


@dataclass(frozen=True, slots=True)
class CacheParameters:
    """`memory_limit_bytes` is set with a control group; without, memory is that of the machine.

    Files are a quarter and three times of that, unless they are given.
    """

    memory_limit_bytes: int | None = 512 * MIB
    small_bytes: int | None = None
    large_bytes: int | None = None
    block_bytes: int = MIB


class CacheBenchmark:
    """Two files in a process of limited memory."""

    name = "cache"
    parameters = CacheParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """Whether memory can be limited, and the files are on both sides of it."""
        asked: CacheParameters = plan.parameters
        small, large = _sizes(asked)
        for size in (small, large):
            check_blocks((asked.block_bytes,), size, direct=False)
        limit = asked.memory_limit_bytes
        if limit is not None:
            try:
                with memory_limit(limit):
                    pass
            except NoMemoryLimit as error:
                raise UsageError(
                    f"{error}; without --memory the machine's {format_bytes(memory_bytes() or 0)} count:"
                    " --memory none, and files on both sides of it"
                ) from None
        return []

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """Both files once per repeat."""
        return [
            StudyPoint(
                key=f"{place.name}/file={exact_size(size)}/{repeat}",
                place=place,
                iteration=repeat,
                values={"size": size},
                bytes_written=size,
                bytes_read=READS * size,
                files=1,
                bytes_at_once=size,
            )
            for repeat in range(plan.repeats)
            for place in plan.places
            for size in _sizes(plan.parameters)
        ]

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        """All passes over one file in one process."""
        asked: CacheParameters = plan.parameters
        size, limit = point.values["size"], asked.memory_limit_bytes
        words = [str(site.directory / DATA), str(size), str(asked.block_bytes)]
        command = [sys.executable, "-m", "iolens.benchmarks.studies.cache_passes", *words]
        with nullcontext() if limit is None else memory_limit(limit) as join:
            printed = run_program(command, timeout_s=site.left_s, in_child=join)
        for done in json.loads(printed):
            timed = TimedPass(size, done["calls"], done["seconds"])
            row = pass_row(
                done["direction"], timed, asked.block_bytes, FileStripes(), direct=False, fsync=done.get("fsync"),
                page_cache=done.get("page_cache"),
            )  # fmt: skip
            yield {**row, "memory_bytes": memory_bytes() if limit is None else limit}


KIND: Final = CacheBenchmark()


def _sizes(asked: CacheParameters) -> tuple[int, int]:
    """The small file and the large one, in whole blocks."""
    if asked.block_bytes < 1 or asked.memory_limit_bytes == 0:
        raise UsageError("block and memory: at least 1 byte")
    memory = asked.memory_limit_bytes or memory_bytes()
    if memory is None:
        raise UsageError("the memory of this machine is not known: name --memory, --small and --large")
    small, large = (
        given or round(share * memory) // asked.block_bytes * asked.block_bytes
        for given, share in ((asked.small_bytes, SMALL_SHARE), (asked.large_bytes, LARGE_SHARE))
    )
    if not small < memory < large:
        words = ", ".join(format_bytes(size) for size in (small, memory, large))
        raise UsageError(f"one file must be smaller than memory and one larger: {words}")
    return small, large
