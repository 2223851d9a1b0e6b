"""A small process beside us that ends what is left of benchmark programs when we are killed.

The kernel ends a program with us, but not always the tasks of a launcher that has just begun them. The guardian hears
of each program's session through a pipe, and the pipe ends with us, however that happens.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

WAIT_S = 5.0


@contextmanager
def guarded(session: int) -> Iterator[None]:
    """While the programs of this session run, they end with us."""
    pipe = _pipe()
    with suppress(OSError):  # a guardian that was ended itself is no reason to stop measuring
        os.write(pipe, f"+{session}\n".encode())
    try:
        yield
    finally:
        with suppress(OSError):
            os.write(pipe, f"-{session}\n".encode())


def end_session(session: int, wait_s: float = WAIT_S) -> None:
    """Its first process may take so long to end; those that it leaves behind, or that go on with it, are killed."""
    until = time.monotonic() + wait_s
    while (left := _members(session)) and time.monotonic() < until + WAIT_S:
        if session not in left or time.monotonic() > until:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _members(session: int) -> list[int]:
    """Processes of a session that have not ended."""
    result = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end meanwhile
            state, _, _, of_session, *_ = (place / "stat").read_text().rpartition(")")[2].split()
            if int(of_session) == session and state != "Z":
                result.append(int(place.name))
    return result


@cache
def _pipe() -> int:
    """Of the guardian of this process, which begins with its first program."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    atexit.register(_dismiss, process)
    return process.stdin.fileno()


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    with process:  # closes the pipe, and waits
        pass


def _main() -> None:
    sessions: set[int] = set()
    for line in sys.stdin:
        (sessions.add if line[0] == "+" else sessions.discard)(int(line[1:]))
    for session in sessions:
        end_session(session)


if __name__ == "__main__":
    _main()
