"""`bench sequential` (SPEC N4): one process writes and reads a file over block sizes, stripe sizes and stripe counts.

On one file system or several side by side (paper N, Fig. 13). A point is one file: written, dropped from the page
cache, read, removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from iolens.benchmarks.safety import IN_MEMORY, direct_io_trouble
from iolens.benchmarks.studies.kind import PointSite, StudyPoint, Values
from iolens.benchmarks.studies.own_directory import DATA
from iolens.benchmarks.studies.plan import StudyPlan, exact_size
from iolens.benchmarks.studies.sequential_file import TimedPass, drop_from_cache, read_file, write_file
from iolens.benchmarks.studies.stripes import FileStripes, filesystem_kind, make_striped, refuse_stripes
from iolens.errors import UsageError
from iolens.units import GIB, KIB, format_bytes

TOOL: Final = "sequential"
BLOCKS: Final = tuple(4 * KIB << power for power in range(13))  # 4 KiB to 16 MiB, as in Figs. 14 to 17
SMALLEST: Final = 512


@dataclass(frozen=True, slots=True)
class SequentialParameters:
    """`file_bytes` of each file; `fsync`: the seconds of a write include an fsync at its end."""

    file_bytes: int = GIB
    block_bytes: tuple[int, ...] = BLOCKS
    stripe_counts: tuple[int, ...] | None = None
    stripe_bytes: tuple[int, ...] | None = None
    direct: bool = False
    fsync: bool = True


class SequentialStudy:
    """One process, one file."""

    name = "sequential"
    parameters = SequentialParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """Sizes that fit, stripes and O_DIRECT only where they work."""
        asked: SequentialParameters = plan.parameters
        check_blocks(asked.block_bytes, asked.file_bytes, direct=asked.direct)
        for place in plan.places:
            if asked.stripe_counts is not None or asked.stripe_bytes is not None:
                refuse_stripes(place.path)
            if asked.direct and (why := direct_io_trouble(place.path)) is not None:
                raise UsageError(f"{place.path}: O_DIRECT does not work here ({why}); leave out --direct")
        in_memory = [place for place in plan.places if filesystem_kind(place.path) in IN_MEMORY]
        return [f"{place.name} is memory: there is no disk below, and nothing is dropped" for place in in_memory]

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """All cases once per repeat, so that a busy minute spoils no case alone."""
        asked: SequentialParameters = plan.parameters
        return [
            StudyPoint(
                key=f"{place.name}/block={exact_size(block)}{striping.key()}/{repeat}",
                place=place,
                iteration=repeat,
                values={"block": block, "striping": striping},
                bytes_written=asked.file_bytes,
                bytes_read=asked.file_bytes,
                files=1,
                bytes_at_once=asked.file_bytes,
            )
            for repeat in range(plan.repeats)
            for place in plan.places
            for striping in stripings(asked.stripe_counts, asked.stripe_bytes)
            for block in asked.block_bytes
        ]

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        """Write, drop, read."""
        asked: SequentialParameters = plan.parameters
        path, block, striping = site.directory / DATA, point.values["block"], point.values["striping"]
        make_striped(path, striping)
        written = write_file(
            path, asked.file_bytes, block, direct=asked.direct, fsync=asked.fsync, check=site.check_time
        )
        yield pass_row("write", written, block, striping, direct=asked.direct, fsync=asked.fsync)
        drop_from_cache(path)
        read = read_file(path, asked.file_bytes, block, direct=asked.direct, check=site.check_time)
        yield pass_row("read", read, block, striping, direct=asked.direct, page_cache="dropped")


KIND: Final = SequentialStudy()


def stripings(counts: tuple[int, ...] | None, sizes: tuple[int, ...] | None) -> list[FileStripes]:
    """Every count with every size; the directory's own where neither is asked for."""
    return [FileStripes(count, size) for count, size in product(counts or (None,), sizes or (None,))]


def check_blocks(blocks: tuple[int, ...], file_bytes: int, *, direct: bool) -> None:
    """A block is a whole part of the file, with O_DIRECT in whole pages."""
    for block in blocks:
        if not block or file_bytes < block or file_bytes % block:
            raise UsageError(f"a file of {format_bytes(file_bytes)} is not a whole number of blocks of {block} bytes")
        if direct and block % SMALLEST:
            raise UsageError(f"O_DIRECT moves multiples of {SMALLEST} bytes, not blocks of {block}")


def pass_row(
    direction: str,
    timed: TimedPass,
    block: int,
    striping: FileStripes,
    *,
    direct: bool,
    fsync: bool | None = None,
    page_cache: str | None = None,
) -> Values:
    """A row of `benchmark_runs` for one pass of our own code."""
    return {
        "tool": TOOL,
        "direction": direction,
        "api": "POSIX",
        "transfer_bytes": block,
        "block_bytes": timed.bytes,
        "tasks": 1,
        "queue_depth": 1,
        "duration_s": timed.seconds,
        "bytes": timed.bytes,
        "operations": timed.calls,
        "access": "sequential",
        "mixed": False,
        "file_per_process": True,
        "direct": direct,
        "fsync": fsync,
        "aggregate_bytes": timed.bytes,
        "reported_bytes_per_s": timed.bytes / timed.seconds,
        "stripe_count": striping.count,
        "stripe_bytes": striping.size_bytes,
        "page_cache": "bypassed" if direct else page_cache,
    }
