"""A limit on the memory, page cache included, of programs that a study starts: a control group, version 1 or 2."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.benchmarks.device_counters import memory_bytes
from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies.plan import PointSite, StudyPlan, StudyPoint, Values, exact_size
from iolens.benchmarks.studies.run import DATA
from iolens.benchmarks.studies.sequential_file import TimedPass
from iolens.benchmarks.studies.sequential_study import FileStripes, check_blocks, pass_row
from iolens.errors import UsageError
from iolens.units import MIB, format_bytes

ROOT: Final = Path("/sys/fs/cgroup")
PREFIX: Final = "iolens-bench-"


class NoMemoryLimit(Exception):
    """Why this user, or this machine, cannot limit memory."""


@contextmanager
def memory_limit(limit_bytes: int, root: Path = ROOT) -> Iterator[Callable[[], None]]:
    """A group of its own; what is given is called in a new process and makes it a member. Removed at the end."""
    parent, name = _parent(root)
    group = parent / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoMemoryLimit(f"no control group can be made in {parent}: {error.strerror}") from error
    try:
        try:
            (group / name).write_text(f"{limit_bytes}\n")
        except OSError as error:
            raise NoMemoryLimit(f"{group / name} cannot be set: {error.strerror}") from error
        members = str(group / "cgroup.procs")

        def join() -> None:
            descriptor = os.open(members, os.O_WRONLY)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            os.close(descriptor)

        yield join
    finally:
        with suppress(OSError):  # a process that is still ending keeps it
            group.rmdir()


def _parent(root: Path) -> tuple[Path, str]:
    """Where groups are made, and the file of the limit: version 1's memory controller, or the unified hierarchy."""
    if (root / "memory" / "memory.limit_in_bytes").is_file():
        return root / "memory", "memory.limit_in_bytes"
    controllers = root / "cgroup.subtree_control"
    if controllers.is_file() and "memory" in controllers.read_text().split():
        return root, "memory.max"
    raise NoMemoryLimit(f"{root} has no memory controller that groups can be made of")


# `bench cache` (SPEC N7) ----------------------------------------------------------------------------------------------
# A file that fits into memory and one that does not, and what that says of the policies.
#
# Memory is limited by a control group where that is allowed; else it is the machine's, and said. The page cache is
# dropped by `posix_fadvise`, of our own file only.

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
