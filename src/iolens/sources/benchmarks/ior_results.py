"""One IOR result and the test it belongs to, whatever format they were printed in, as a row of `benchmark_runs`.

IOR prints bandwidth and seconds rounded, each to another number of digits; a completed test moved a number of bytes
that is known exactly. So the more precise of the two, with the exact bytes, gives the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from iolens.records import Item, Problem
from iolens.sources.benchmarks.results import ResultFile, finite, whole
from iolens.units import MIB

TOOL: Final = "ior"
DIRECTIONS: Final = ("write", "read")
SAME: Final = 0.02  # rounded numbers that differ by less mean the same


@dataclass(frozen=True, slots=True)
class IorTest:
    """The options of one test; None where the format does not tell."""

    number: int = 0
    time_us: int | None = None
    api: str | None = None
    tasks: int | None = None
    nodes: int | None = None
    segments: int | None = None
    repetitions: int | None = None
    block_bytes: int | None = None
    transfer_bytes: int | None = None
    access: str | None = None
    file_per_process: bool | None = None
    direct: bool | None = None
    fullness_pct: float | None = None
    collective: bool | None = None
    fsync: bool | None = None  # after the writes, within their time
    stripe_count: int | None = None
    stripe_bytes: int | None = None

    @property
    def block_of_all_bytes(self) -> int | None:
        """One segment of all tasks."""
        return self.block_bytes * self.tasks if self.block_bytes and self.tasks else None


class IorResult(NamedTuple):
    """One line of results as printed: numbers are texts, because their digits tell how exact they are."""

    access: str
    mib_per_s: str
    ops_per_s: str
    total_s: str
    iteration: str
    line: int | None
    moved_bytes: int | None = None  # as IOR counted them, where it prints them
    file_bytes: int | None = None  # of all files afterwards, likewise


def is_collective(api: str | None, asked: bool | None) -> bool | None:
    """Whether MPI-IO was collective; POSIX has no such thing, whatever was asked for."""
    return asked if asked is None else asked and api != "POSIX"


def result_row(file: ResultFile, run: int, test: IorTest, result: IorResult) -> Iterator[Item]:
    """The row of a result, or why there is none."""
    if result.access not in DIRECTIONS:
        return
    mib_per_s, total_s, ops_per_s = (finite(text) for text in (result.mib_per_s, result.total_s, result.ops_per_s))
    if not mib_per_s or not total_s:
        yield Problem(file.place, result.line, f"a {result.access} without bandwidth or time: left out")
        return
    moved = _moved_bytes(test, result, mib_per_s * MIB * total_s)
    exact = digits(result.mib_per_s) > digits(result.total_s) and moved is not None
    seconds = moved / (mib_per_s * MIB) if moved is not None and exact else total_s
    volume = moved if moved is not None else whole(mib_per_s * MIB * total_s)
    iteration = whole(finite(result.iteration))
    yield from file.rows(
        TOOL,
        result.line,
        run_id=file.run_id(run, test.number, "" if iteration is None else iteration),
        time=test.time_us if test.time_us is not None else file.time_us(None),
        direction=result.access,
        api=test.api,
        transfer_bytes=test.transfer_bytes,
        block_bytes=test.block_bytes,
        tasks=test.tasks,
        queue_depth=test.tasks,  # each task waits for its transfer before the next
        duration_s=seconds,
        bytes=volume,
        operations=None if not volume or not test.transfer_bytes else volume // test.transfer_bytes,
        iteration=iteration,
        repetitions=test.repetitions,
        access=test.access,
        mixed=False,
        file_per_process=test.file_per_process,
        direct=test.direct,
        segments=test.segments,
        nodes=test.nodes,
        aggregate_bytes=result.file_bytes or _aggregate(test, volume),
        fullness_pct=test.fullness_pct,
        reported_bytes_per_s=mib_per_s * MIB,
        reported_ops_per_s=ops_per_s,
        complete=True,
        collective=test.collective,
        fsync=test.fsync if result.access == "write" else None,
        stripe_count=test.stripe_count,
        stripe_bytes=test.stripe_bytes,
    )


def _moved_bytes(test: IorTest, result: IorResult, rounded: float) -> int | None:
    """The exact bytes: as counted by IOR, else those of a test that ran to its end; None where neither is known."""
    counted = result.moved_bytes
    if counted is not None and abs(rounded - counted) <= SAME * counted:
        return counted
    once = test.block_of_all_bytes
    if once is None:
        return None
    segments = test.segments or max(round(rounded / once), 1)
    exact = once * segments
    return exact if abs(rounded - exact) <= SAME * exact else None


def _aggregate(test: IorTest, volume: int | None) -> int | None:
    once = test.block_of_all_bytes
    return once * test.segments if once and test.segments else volume


def digits(text: str) -> int:
    """Significant digits of a printed number."""
    return len(text.strip().lower().partition("e")[0].replace(".", "").lstrip("-0"))
