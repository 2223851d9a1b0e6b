"""How long each system call of the traced program took: by strace, or by the program's own clock where it cannot be.

strace counts calls itself (`-C`); a trace whose calls are not as many is refused.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from iolens.benchmarks.programs import run_program
from iolens.benchmarks.studies import traced_program
from iolens.benchmarks.studies.kind import TimeUp
from iolens.benchmarks.studies.traced_program import BEGIN, CALLS, END, IDLE_CALL, TIME_UP
from iolens.errors import IolensError
from iolens.sources.benchmarks.strace_trace import StraceTrace, TracedCall, read_trace

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
