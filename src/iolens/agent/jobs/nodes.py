"""The same command on every node of a job, and the output of the batch job. Standard library only."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from iolens.agent.jobs.sampling import file_name, job_folder
from iolens.errors import InputError, IolensError
from iolens.sources.job_files import read_job_file
from iolens.sources.job_samples import BEGIN, SUFFIX

# The same command on every node of a job, through srun, pdsh, clush or ssh. Standard library only ---------------------

Commands = Sequence[Sequence[str]]
SSH: Final = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "StrictHostKeyChecking=accept-new")
POLL_S: Final = 0.1


def _srun(nodes: Sequence[str], words: Sequence[str]) -> Commands:
    """Inside the job's allocation, beside its own steps."""
    count = str(len(nodes))
    begin = ["srun", "--overlap", "--nodes", count, "--ntasks", count, "--ntasks-per-node", "1"]
    return [[*begin, "--nodelist", ",".join(nodes), "--kill-on-bad-exit=0", *words]]


def _pdsh(nodes: Sequence[str], words: Sequence[str]) -> Commands:
    return [["pdsh", "-w", ",".join(nodes), shlex.join(words)]]


def _clush(nodes: Sequence[str], words: Sequence[str]) -> Commands:
    return [["clush", "-w", ",".join(nodes), shlex.join(words)]]


def _ssh(nodes: Sequence[str], words: Sequence[str]) -> Commands:
    return [[*SSH, "--", node, shlex.join(words)] for node in nodes]


LAUNCHERS: Final[Mapping[str, Callable[[Sequence[str], Sequence[str]], Commands]]] = {
    "srun": _srun,
    "pdsh": _pdsh,
    "clush": _clush,
    "ssh": _ssh,
}


def run_on_nodes(launcher: str, nodes: Sequence[str], words: Sequence[str], timeout_s: float) -> list[str]:
    """Run a command once on every node; what the launcher had to complain of. Who did not answer, the files say."""
    started: list[subprocess.Popen[str]] = []
    complaints: list[str] = []
    try:
        for command in LAUNCHERS[launcher](nodes, words):
            started.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
                )
            )
    except OSError as error:
        raise IolensError(f"{launcher}: {error.strerror or error}; install it, or choose another with --via") from error
    finally:
        deadline = time.monotonic() + timeout_s
        for process in started:
            complaints += _finished(process, launcher, deadline)
    return complaints


def _finished(process: subprocess.Popen[str], launcher: str, deadline: float) -> Iterator[str]:
    try:
        _, text = process.communicate(timeout=max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        yield f"{launcher} took too long and was ended"
        return
    if process.returncode:
        lines = text.strip().splitlines()[-1:] or ["no message"]
        yield f"{launcher} ended with {process.returncode}: {lines[0]}"


def without_sample(folder: Path, job_id: str, nodes: Sequence[str], point: str) -> list[str]:
    """Nodes of the job that have no sample at its begin, or none at its end."""
    return [node for node in nodes if not _has_sample(job_folder(folder, job_id), node, point)]


def wait_for_samples(folder: Path, job_id: str, nodes: Sequence[str], point: str, wait_s: float) -> list[str]:
    """Wait until every node has its sample, but not longer than `wait_s`; those that have none then."""
    deadline = time.monotonic() + wait_s
    silent = without_sample(folder, job_id, nodes, point)
    while silent and time.monotonic() < deadline:
        time.sleep(POLL_S)
        silent = without_sample(folder, job_id, silent, point)
    return silent


def _has_sample(place: Path, node: str, point: str) -> bool:
    path = place / f"{file_name(node)}{SUFFIX}"
    try:
        node_job = read_job_file(path)
    except (InputError, OSError):
        return False
    return (node_job.begin if point == BEGIN else node_job.end) is not None


# Running the command of `job run` -------------------------------------------------------------------------------------
# Signals are the command's, and we stay for the report.

NOT_STARTED: Final = 127  # as a shell has it


def run_command(command: Sequence[str], say: Callable[[str], None]) -> int:
    """The command's exit code, as a shell gives it."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror or error}")
        return NOT_STARTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command too
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    code = process.wait()
    return 128 - code if code < 0 else code


# Append the report to the output of a batch job, as the user whose job it was. Standard library only ------------------
# An epilog runs as root and the file's path is the user's: opened as root it could be any file of the system. So a
# child process becomes the user first, and opens only a plain file.


def append_as_user(path: Path, text: str, user: str | None) -> None:
    """Append `text` to a file that exists, as `user` where one is named and we are root."""
    if user is None or os.geteuid() != 0:
        _append(path, text)
        return
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise IolensError(f"{user}: no such user; the report is not appended to {path}") from None
    child = os.fork()
    if child == 0:
        os._exit(_append_in_child(path, text, account))
    _, status = os.waitpid(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        reason = os.strerror(code) if code > 0 else "the process that writes it was killed"
        raise IolensError(f"{path}: {reason}; the report of the job is not appended (as {user})")


def _append_in_child(path: Path, text: str, account: pwd.struct_passwd) -> int:
    """The number of the error, 0 for none: an exception must not run through the parent's code again."""
    try:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        _append(path, text)
    except OSError as error:
        return error.errno or 1
    except IolensError:
        return 22  # EINVAL: no plain file
    return 0


def _append(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise IolensError(f"{path}: not a plain file")
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)
