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
from contextlib import suppress
from functools import cache
from pathlib import Path

WAIT_S = 5.0


class Guardian:
    """The process beside us, which begins with our first program."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin.fileno()
        atexit.register(self._dismiss)

    def watch_this(self) -> None:
        """The session of the process that calls: a child that is about to become a program. Nothing is missed so."""
        os.write(self._pipe, f"+{os.getpid()}\n".encode())

    def forget(self, session: int | None = None) -> None:
        """It has ended; without a number, the last one: its number may soon be that of another program."""
        with suppress(BrokenPipeError):
            os.write(self._pipe, f"-{session or ''}\n".encode())

    @property
    def is_there(self) -> bool:
        """Whether nobody has ended it."""
        return self._process.poll() is None

    def _dismiss(self) -> None:
        with self._process:  # closes the pipe, and waits
            pass


def our_guardian() -> Guardian:
    """The guardian of this process, a new one if it was ended."""
    if not _guardian().is_there:
        _guardian.cache_clear()
    return _guardian()


_guardian = cache(Guardian)


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


def _main() -> None:
    sessions: list[str] = []
    for line in sys.stdin:
        session = line[1:].strip() or (sessions or [""])[-1]
        if line[0] == "+":
            sessions.append(session)
        elif session in sessions:
            sessions.remove(session)
    for session in sessions:
        end_session(int(session))


if __name__ == "__main__":
    _main()
