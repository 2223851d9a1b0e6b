"""`bench latency` (SPEC N6): how long each system call behind a small write and a small read takes, place by place.

A point makes files of a few bytes, one operation each, and reads them again (paper N, Figs. 10, 11). A row is one
system call of one direction.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iolens.benchmarks.studies.call_times import (
    LOOP,
    STRACE,
    CallTimer,
    CallTimes,
    LoopTimer,
    SmallFilePass,
    StraceTimer,
    strace_trouble,
)
from iolens.benchmarks.studies.kind import PointSite, StudyPoint, Values
from iolens.benchmarks.studies.plan import StudyPlan
from iolens.benchmarks.studies.sequential_file import drop_from_cache
from iolens.benchmarks.studies.traced_program import CALLS, FILE, IDLE_CALL
from iolens.errors import UsageError
from iolens.units import KIB, MIB, format_bytes

AUTO: Final = "auto"
TRACERS: Final = (AUTO, STRACE, LOOP)
MOST_BYTES: Final = MIB  # larger transfers are `bench sequential`'s
MOST_FILES: Final = 100_000
FILE_SPACE: Final = 4 * KIB  # a small file takes a block
CALLS_PER_FILE: Final = 2 + sum(map(len, CALLS.values()))  # and the idle call of both directions
STRACE_NOTE: Final = (
    "times are strace's and include the cost of tracing a call; "
    f"{IDLE_CALL}, which asks no file system, is measured beside it, and nothing is subtracted"
)
LOOP_NOTE: Final = (
    "calls are timed by our own loop, not traced: times include what Python adds to a call; "
    f"{IDLE_CALL}, which asks no file system, is measured beside it, and nothing is subtracted"
)


@dataclass(frozen=True, slots=True)
class LatencyParameters:
    """`operations`: files that are written, and read, once each in a pass, with `transfer_bytes` in one call.

    `tracer`: strace, loop (the program times itself), or auto: strace where it works. `drop_cache`: files are written
    to disk and dropped from the page cache before they are read.
    """

    transfer_bytes: int = 8
    operations: int = 200
    tracer: str = AUTO
    drop_cache: bool = True


class LatencyStudy:
    """One process, one small file after the other."""

    name = "latency"
    parameters = LatencyParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """Sizes that make sense, strace where it is asked for; how times are taken."""
        asked: LatencyParameters = plan.parameters
        if not 1 <= asked.transfer_bytes <= MOST_BYTES:
            raise UsageError(f"transfers are of 1 byte to {format_bytes(MOST_BYTES)}, not of {asked.transfer_bytes}")
        if not 1 <= asked.operations <= MOST_FILES:
            raise UsageError(f"operations: 1 to {MOST_FILES:,}, not {asked.operations:,}")
        return tracer_notes(asked.tracer)

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """Every place once per repeat, so that a busy minute spoils none alone."""
        asked: LatencyParameters = plan.parameters
        moved = asked.operations * asked.transfer_bytes
        return [
            StudyPoint(
                key=f"{place.name}/{repeat}",
                place=place,
                iteration=repeat,
                values={},
                bytes_written=moved,
                bytes_read=moved,
                files=asked.operations,
                bytes_at_once=asked.operations * (FILE_SPACE + asked.transfer_bytes),
                operations=asked.operations * CALLS_PER_FILE,
            )
            for repeat in range(plan.repeats)
            for place in plan.places
        ]

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterator[Values]:
        """Write, drop, read."""
        asked: LatencyParameters = plan.parameters
        timer = chosen_timer(asked.tracer)
        for direction in ("write", "read"):
            if direction == "read" and asked.drop_cache:
                drop_files(site, asked.operations)
            work = SmallFilePass(site.directory, direction, asked.operations, asked.transfer_bytes, site.left_s)
            for times in timer.measure(work):
                yield call_row(timer.tool, direction, times, asked)


KIND: Final = LatencyStudy()


def tracer_notes(tracer: str) -> list[str]:
    """What the user should know of the times; a refusal where strace is asked for and does not work."""
    if tracer not in TRACERS:
        raise UsageError(f"tracer = {tracer!r}: {', '.join(TRACERS)}")
    trouble = strace_trouble() if tracer != LOOP else None
    if trouble is None:
        return [LOOP_NOTE if tracer == LOOP else STRACE_NOTE]
    if tracer == STRACE:
        raise UsageError(f"{trouble}; without a tracer, the same calls are timed by our own loop: tracer = {LOOP!r}")
    return [f"{trouble}; {LOOP_NOTE}"]


def chosen_timer(tracer: str) -> CallTimer:
    """By strace where it is asked for, or works."""
    return StraceTimer() if tracer == STRACE or (tracer == AUTO and strace_trouble() is None) else LoopTimer()


def drop_files(site: PointSite, files: int) -> None:
    """Write the files to disk, and ask the kernel to forget them."""
    for number in range(files):
        site.check_time()
        drop_from_cache(site.directory / f"{FILE}{number}")


def call_row(tool: str, direction: str, times: CallTimes, asked: LatencyParameters) -> Values:
    """A row of `benchmark_runs` for one system call; `bytes` only where it moves any."""
    return {
        "tool": tool,
        "direction": direction,
        "call": times.call,
        "api": "POSIX",
        "transfer_bytes": asked.transfer_bytes,
        "tasks": 1,
        "queue_depth": 1,
        "file_per_process": True,
        "direct": False,
        "mixed": False,
        "duration_s": math.fsum(times.seconds),
        "operations": len(times.seconds),
        "bytes": times.moved_bytes or None,
        "aggregate_bytes": asked.operations * asked.transfer_bytes,
        "page_cache": ("dropped" if asked.drop_cache else "warm") if direction == "read" else None,
        "latency_mean_s": statistics.fmean(times.seconds),
        "latency_median_s": statistics.median(times.seconds),
        "latency_p99_s": percentile(times.seconds, 0.99),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """By linear interpolation at (n - 1) · share of the sorted values."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
