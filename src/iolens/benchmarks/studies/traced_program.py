"""The program that `bench latency` traces or lets time itself: the calls behind writing and reading a small file.

A run-time library of Fortran makes these calls (paper N, VIII-B). Run as a script in the directory that is measured,
with as little of Python as possible. Writes to file descriptor -1, which touch no file, mark the measured part.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

BEGIN: Final = "iolens: begin"
END: Final = "iolens: end"
TIME_UP: Final = "time is up"
IDLE_CALL: Final = "getppid"  # asks no file system: what it takes is the cost of measuring a call
FILE: Final = "data."
CALLS: Final = {  # of one operation, in their order
    "write": ("getcwd", "open", "ioctl", "fstat", "lseek", "ftruncate", "write", "close"),
    "read": ("getcwd", "open", "ioctl", "fstat", "lseek", "read", "close"),
}

Result = TypeVar("Result")


class CallClock:
    """Nanoseconds of every call, by its name."""

    def __init__(self) -> None:
        self.times_ns: dict[str, list[int]] = {}

    def timed(self, call: str, function: Callable[..., Result], *arguments: object) -> Result:
        """The result of the function."""
        began = time.perf_counter_ns()
        result = function(*arguments)
        self.times_ns.setdefault(call, []).append(time.perf_counter_ns() - began)
        return result


def write_small_file(clock: CallClock, name: str, block: bytes) -> None:
    """Make a file, write to it once, close it."""
    clock.timed("getcwd", os.getcwd)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = clock.timed("open", os.open, name, flags, 0o600)
    clock.timed("ioctl", os.isatty, descriptor)
    clock.timed("fstat", os.fstat, descriptor)
    clock.timed("lseek", os.lseek, descriptor, 0, os.SEEK_CUR)
    clock.timed("ftruncate", os.ftruncate, descriptor, 0)
    if clock.timed("write", os.write, descriptor, block) != len(block):
        sys.exit(f"error: {name}: not all of {len(block)} bytes were written")
    clock.timed("close", os.close, descriptor)


def read_small_file(clock: CallClock, name: str, block: bytes) -> None:
    """Open a file, read as many bytes as `block` has, close it."""
    clock.timed("getcwd", os.getcwd)
    descriptor = clock.timed("open", os.open, name, os.O_RDONLY | os.O_NOFOLLOW)
    clock.timed("ioctl", os.isatty, descriptor)
    clock.timed("fstat", os.fstat, descriptor)
    clock.timed("lseek", os.lseek, descriptor, 0, os.SEEK_CUR)
    if clock.timed("read", os.read, descriptor, len(block)) != block:
        sys.exit(f"error: {name}: not the {len(block)} bytes that were written")
    clock.timed("close", os.close, descriptor)


OPERATIONS: Final = {"write": write_small_file, "read": read_small_file}


def mark(words: str) -> None:
    """A call that a trace shows and that does nothing."""
    with suppress(OSError):
        os.write(-1, words.encode())


def run_operations(direction: str, files: int, size: int, seconds: float) -> CallClock | None:
    """One operation on each file; None where `seconds` were over before the last.

    Who was started by strace ends when strace does: nobody else would stop it.
    """
    clock, operation, block = CallClock(), OPERATIONS[direction], b"\xa5" * size
    parent, deadline = os.getppid(), time.monotonic() + seconds
    mark(BEGIN)
    for number in range(files):
        if time.monotonic() > deadline:
            return None
        if clock.timed(IDLE_CALL, os.getppid) != parent:
            sys.exit("error: the parent process has ended")
        operation(clock, f"{FILE}{number}", block)
    mark(END)
    return clock


def main(direction: str, files: str, size: str, seconds: str) -> None:
    """Do it, and print a line of nanoseconds for every call."""
    try:
        clock = run_operations(direction, int(files), int(size), float(seconds))
    except OSError as error:
        sys.exit(f"error: {error}")
    lines = [TIME_UP] if clock is None else [" ".join(map(str, (call, *ns))) for call, ns in clock.times_ns.items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
