"""A child that is a copy of this process: it has everything imported already, so that one log is read at once.

Only a process of one thread can be copied safely; NumPy's linear algebra starts more unless it is asked not to.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

POLL_S: Final = 0.01
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1"}  # NumPy then starts no thread


def stay_alone() -> None:
    """Ask NumPy for no threads, where it is not imported yet: for a program that computes nothing large."""
    if "numpy" not in sys.modules:
        for name, value in _ALONE.items():
            os.environ.setdefault(name, value)


def may_fork() -> bool:
    """Whether this process has one thread, and will have after NumPy is imported."""
    try:
        threads = len([*Path("/proc/self/task").iterdir()])
    except OSError:
        return False
    asked = all(os.environ.get(name) == value for name, value in _ALONE.items())
    return threads == 1 and ("numpy" in sys.modules or asked)


class ForkedProcess:
    """The copy, with as much of `subprocess.Popen` as is needed of it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work)

    @staticmethod
    def _run(work: Callable[[], None]) -> None:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            work()
            code = 0
        finally:
            os._exit(code)  # what this process would do at its end is for the other one to do

    def poll(self) -> int | None:
        """Its exit code, the negative number of a signal, or None while it lives."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Until it ends; TimeoutExpired where it takes longer."""
        since = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - since > timeout:
                import subprocess  # late: only to be as Popen is

                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(POLL_S)
        return code

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
