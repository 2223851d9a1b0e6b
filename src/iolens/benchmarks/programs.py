"""Benchmark programs: found on PATH, run and stopped with us, started on nodes."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from iolens.benchmarks.guardian import Guardian, end_session, our_guardian
from iolens.errors import IolensError, UsageError

# Running a benchmark program ------------------------------------------------------------------------------------------
# Found on PATH, stopped with us, its failure reported in its own words.

# Buffers in large pages are contiguous: the kernel then need not split a transfer at every 4 KiB page.
LARGE_PAGES: Final = "glibc.malloc.hugetlb=1"
_LIBC: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG: Final = 1


def run_program(
    command: Sequence[str],
    realtime: bool = False,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    in_child: Callable[[], None] | None = None,
    killed_with_us: bool = False,
) -> str:
    """Standard output of a program; it is stopped when we are, and its failure is ours with its own words.

    After `timeout_s` it is stopped with `subprocess.TimeoutExpired`. `in_child` is called in the new process before it
    becomes the program. When we are killed it gets a SIGTERM, or a SIGKILL if `killed_with_us`: for programs that block
    the other.
    """
    guardian = our_guardian()
    environment = {"GLIBC_TUNABLES": LARGE_PAGES, **os.environ, **(variables or {})}
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=partial(_begin, guardian, signal.SIGKILL if killed_with_us else signal.SIGTERM, in_child),
        )
    except OSError:
        guardian.forget()
        raise
    try:
        if realtime:
            _raise_priority(process.pid)
        out, err = process.communicate(timeout=timeout_s)
    except BaseException:
        _stop(process)
        raise
    finally:
        guardian.forget(process.pid)
    text = out.decode("utf-8", "backslashreplace")
    if process.returncode != 0:
        said = _reason(err.decode("utf-8", "replace"), text)
        raise IolensError(f"{Path(command[0]).name} failed with code {process.returncode}: {said[:200]}")
    return text


def _begin(guardian: Guardian, when_we_end: signal.Signals, more: Callable[[], None] | None) -> None:
    """In the child: a signal from the kernel when we are killed, so that nothing goes on writing without us."""
    guardian.watch_this()
    _LIBC.prctl(_PR_SET_PDEATHSIG, when_we_end)
    if more is not None:
        more()


def _reason(err: str, out: str) -> str:
    """The line that says most: IOR prints its errors among its results, and a launcher its own complaint after them."""
    lines = [line.strip() for line in (*err.splitlines(), *out.splitlines()) if line.strip()]
    for of_error in (lambda line: line.startswith("ERROR: "), lambda line: "error" in line.lower()):
        if (line := next(filter(of_error, lines), None)) is not None:
            return line
    return lines[0] if lines else "it said nothing"


def _raise_priority(pid: int) -> None:
    """Ahead of other programs, so that their use of the processors is not booked to the disk."""
    with suppress(OSError):  # it may have ended already
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def may_raise_priority() -> bool:
    """Whether this user may run a program ahead of others."""
    process = subprocess.Popen(["sleep", "5"])
    try:
        os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return False
    finally:
        process.kill()
        process.wait()
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """With all that it started: tasks of a launcher may outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    end_session(process.pid)
    process.wait()


def found_program(name: str) -> str:
    """The program on PATH, or what to do without it."""
    path = shutil.which(name)
    if path is None:
        raise UsageError(f"{name} is not on PATH: install it, or import results of another machine")
    return path


# The command that starts the tasks of an MPI program ------------------------------------------------------------------
# The one the user names, or the first launcher on PATH.

LAUNCHERS: Final = {"mpirun": "-np", "mpiexec": "-n", "srun": "-n"}


def launcher_words(given: str | None, tasks: int, tasks_option: str = "one task") -> list[str]:
    """The words before the program; `{tasks}` of a given command is their number, and a single task needs none.

    `tasks_option` is how the user asks for a single task.
    """
    if given is not None:
        return _words(given, tasks)
    for name, option in LAUNCHERS.items():
        if (path := shutil.which(name)) is not None:
            return [path, option, str(tasks)]
    if tasks == 1:
        return []
    known = ", ".join(LAUNCHERS)
    raise UsageError(f"no MPI launcher ({known}) is on PATH: name one with --launcher, or use {tasks_option}")


def _words(given: str, tasks: int) -> list[str]:
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise UsageError(f"--launcher {given!r}: {error}") from None
    return [word.replace("{tasks}", str(tasks)) for word in words]
