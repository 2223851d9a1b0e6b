"""Stripe layouts of Lustre: set for a new file with `lfs setstripe`, or not applicable where there is no Lustre."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from iolens.benchmarks.device_counters import mounted_kind
from iolens.benchmarks.light_probe import IN_MEMORY, direct_io_trouble
from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies.plan import PointSite, StudyPlan, StudyPoint, Values, exact_size
from iolens.benchmarks.studies.run import DATA
from iolens.benchmarks.studies.sequential_file import TimedPass, drop_from_cache, read_file, write_file
from iolens.errors import UsageError
from iolens.units import GIB, KIB, format_bytes


@dataclass(frozen=True, slots=True)
class FileStripes:
    """How a file is striped; None: as the directory says."""

    count: int | None = None
    size_bytes: int | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing is asked for."""
        return self.count is None and self.size_bytes is None

    def key(self) -> str:
        """For the name of a point: `/stripes=16x1048576`, nothing where nothing is asked for."""
        if self.is_default:
            return ""
        count, size = ("default" if value is None else str(value) for value in (self.count, self.size_bytes))
        return f"/stripes={count}x{size}"

    def __str__(self) -> str:
        count = "default stripes" if self.count is None else f"{self.count} stripe{'s' if self.count != 1 else ''}"
        return count if self.size_bytes is None else f"{count} of {format_bytes(self.size_bytes)}"


def filesystem_kind(path: Path, root: Path = Path("/")) -> str:
    """`lustre`, `ext4`, `nfs4`, `tmpfs`: what is mounted there."""
    number = path.stat().st_dev
    return mounted_kind(f"{os.major(number)}:{os.minor(number)}", root)


def can_stripe(path: Path, root: Path = Path("/")) -> bool:
    """Whether files there can be striped: Lustre, with its program `lfs`."""
    return filesystem_kind(path, root) == "lustre" and shutil.which("lfs") is not None


def refuse_stripes(path: Path, root: Path = Path("/")) -> None:
    """Say why stripes are not applicable, where they are not."""
    kind = filesystem_kind(path, root)
    if kind != "lustre":
        raise UsageError(f"{path} is {kind}: stripes are not applicable; leave out --stripe-count and --stripe-size")
    if shutil.which("lfs") is None:
        raise UsageError(f"{path} is Lustre, but `lfs` is not on PATH: it sets stripes")


def make_striped(path: Path, striping: FileStripes) -> None:
    """Make an empty file with these stripes; nothing where none are asked for."""
    if striping.is_default:
        return
    program = shutil.which("lfs")
    if program is None:
        raise UsageError("`lfs` is not on PATH: it sets stripes")
    options = ["-c", str(striping.count)] if striping.count is not None else []
    options += ["-S", str(striping.size_bytes)] if striping.size_bytes is not None else []
    run_program([program, "setstripe", *options, str(path)])


def stripe_directory(path: Path, striping: FileStripes) -> None:
    """Files made in the directory from now on have these stripes."""
    make_striped(path, striping)


# `bench sequential` (SPEC N4) -----------------------------------------------------------------------------------------
# One process writes and reads a file over block sizes, stripe sizes and stripe counts.
#
# On one file system or several side by side (paper N, Fig. 13). A point is one file: written, dropped from the page
# cache, read, removed.

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
