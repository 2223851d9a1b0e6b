"""How long each system call of the traced program took: by strace, or by the program's own clock where it cannot be.

strace counts calls itself (`-C`); a trace whose calls are not as many is refused.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies import traced_program
from iolens.benchmarks.studies.plan import PointSite, StudyPlan, StudyPoint, TimeUp, Values
from iolens.benchmarks.studies.sequential_file import drop_from_cache
from iolens.benchmarks.studies.traced_program import BEGIN, CALLS, END, FILE, IDLE_CALL, TIME_UP
from iolens.errors import IolensError, UsageError
from iolens.sources.benchmarks.strace_trace import StraceTrace, TracedCall, read_trace
from iolens.units import KIB, MIB, format_bytes

STRACE: Final = "strace"
LOOP: Final = "loop"
MEMORY: Final = Path("/dev/shm")  # noqa: S108 (a directory of our own is made in it)
# Names by machine and C library, and what they are called here. What a machine does not have is no error (`?`).
COMMON_NAMES: Final = {
    "openat": "open",
    "fstat64": "fstat",
    "newfstatat": "fstat",
    "statx": "fstat",
    "_llseek": "lseek",
    "ftruncate64": "ftruncate",
}
TRACED_CALLS: Final = sorted({IDLE_CALL, *CALLS["write"], *CALLS["read"], *COMMON_NAMES})
TRACED: Final = ",".join(f"?{name}" for name in TRACED_CALLS)
TRACE_OPTIONS: Final = ("-f", "-C", "-T", "-ttt", "-e", f"trace={TRACED}")


@dataclass(frozen=True, slots=True)
class SmallFilePass:
    """What the program does: `files` of `size_bytes` each in a directory, within some seconds."""

    directory: Path
    direction: str
    files: int
    size_bytes: int
    seconds: float = float("inf")

    def command(self) -> list[str]:
        """The program with its arguments; Python reads neither its environment nor other packages."""
        program = [sys.executable, "-I", "-S", str(Path(traced_program.__file__))]
        return [*program, self.direction, str(self.files), str(self.size_bytes), str(self.seconds)]


@dataclass(frozen=True, slots=True)
class CallTimes:
    """One system call: seconds of each time it was made, and the bytes these moved in all."""

    call: str
    seconds: list[float]
    moved_bytes: int = 0


class CallTimer(Protocol):
    """A way to time the calls; `tool` is what rows call it."""

    tool: str

    def measure(self, work: SmallFilePass) -> list[CallTimes]:
        """Run the program; its calls in the order in which they were first made."""


class StraceTimer:
    """strace's own times; they include what it costs to trace a call."""

    tool = STRACE

    def measure(self, work: SmallFilePass) -> list[CallTimes]:
        """Trace the program; the trace lies outside the directory that is measured."""
        with tempfile.TemporaryDirectory(prefix="iolens-trace-", dir=_trace_place(work.directory)) as folder:
            file = Path(folder) / "trace"
            with on_one_processor():
                command = [STRACE, *TRACE_OPTIONS, "-o", str(file), *work.command()]
                said = run_program(command, cwd=work.directory, killed_with_us=True)  # strace blocks SIGTERM
            _check_time(said)
            trace = read_trace(file.read_text("utf-8", "backslashreplace"), "the trace of strace")
        check_counts(trace)
        return _complete(call_times(measured_calls(trace.calls)), work)


class LoopTimer:
    """Times that the program takes around each of its calls; they include what Python adds."""

    tool = LOOP

    def measure(self, work: SmallFilePass) -> list[CallTimes]:
        """Run the program alone."""
        said = run_program(work.command(), cwd=work.directory)
        _check_time(said)
        times = []
        for line in said.splitlines():
            call, *nanoseconds = line.split()
            moved = work.size_bytes * len(nanoseconds) if call == work.direction else 0
            times.append(CallTimes(call, [int(number) / 1e9 for number in nanoseconds], moved))
        return _complete(times, work)


@contextmanager
def on_one_processor() -> Iterator[None]:
    """Programs that are started meanwhile share one processor.

    Otherwise a traced call takes 7 µs in one run and 40 µs in the next, where strace sits on another one.
    """
    usual = os.sched_getaffinity(0)
    with suppress(OSError):  # not permitted: then without
        os.sched_setaffinity(0, {max(usual)})
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, usual)


def strace_trouble() -> str | None:
    """Why strace cannot be used here; None: it can."""
    if shutil.which(STRACE) is None:
        return "strace is not on PATH"
    program = shutil.which("true") or sys.executable
    try:
        run_program([STRACE, *TRACE_OPTIONS, "-o", "/dev/null", program, "--version"])
    except (IolensError, OSError) as error:
        return f"tracing is not permitted or does not work: {error}"
    return None


def check_counts(trace: StraceTrace) -> None:
    """Refuse a trace that was not read, or not written, as strace counted it."""
    if trace.is_cut or trace.summary is None:
        raise IolensError("the trace of strace is incomplete: is the directory of temporary files full?")
    counts = trace.counts()
    for name, counted in trace.summary.items():
        if counts.pop(name, None) != counted:
            raise IolensError(f"strace counted {counted.calls} calls of {name}; its trace has another number")
    if counts:
        raise IolensError(f"strace did not count the calls of {min(counts)} that are in its trace")


def measured_calls(calls: Iterable[TracedCall]) -> Iterator[TracedCall]:
    """Those between the marks; Python's own, before and after, are left out."""
    remaining = iter(calls)
    for call in remaining:
        if _is_mark(call, BEGIN):
            break
    for call in remaining:
        if _is_mark(call, END):
            return
        yield call
    raise IolensError("the trace of strace has no measured part: the marks of its beginning and end are missing")


def _is_mark(call: TracedCall, words: str) -> bool:
    return call.name == "write" and call.arguments.startswith(f'-1, "{words}"')


def call_times(calls: Iterable[TracedCall]) -> list[CallTimes]:
    """Seconds and bytes by call."""
    seconds: dict[str, list[float]] = {}
    moved: dict[str, int] = {}
    for call in calls:
        name = COMMON_NAMES.get(call.name, call.name)
        if call.seconds is None:
            raise IolensError(f"strace gave no time for {name}")
        seconds.setdefault(name, []).append(call.seconds)
        if name in CALLS:
            moved[name] = moved.get(name, 0) + (call.returned or 0)
    return [CallTimes(name, times, moved.get(name, 0)) for name, times in seconds.items()]


def _complete(times: list[CallTimes], work: SmallFilePass) -> list[CallTimes]:
    """All calls, each for every file; more often where a signal made the kernel begin one again."""
    counts = {item.call: len(item.seconds) for item in times}
    for call in (IDLE_CALL, *CALLS[work.direction]):
        if counts.get(call, 0) < work.files:
            raise IolensError(f"{counts.get(call, 0)} calls of {call} were timed, for {work.files} files")
    return times


def _check_time(said: str) -> None:
    if said.startswith(TIME_UP):
        raise TimeUp


def _trace_place(directory: Path) -> str:
    """Where temporary files lie, or memory where that is the file system that is measured."""
    usual, measured = tempfile.gettempdir(), directory.stat().st_dev
    if Path(usual).stat().st_dev == measured and MEMORY.is_dir() and MEMORY.stat().st_dev != measured:
        return str(MEMORY)
    return usual


# `bench latency` (SPEC N6) --------------------------------------------------------------------------------------------
# How long each system call behind a small write and a small read takes, place by place.
#
# A point makes files of a few bytes, one operation each, and reads them again (paper N, Figs. 10, 11). A row is one
# system call of one direction.

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
