"""The same command on every node of a job, through srun, pdsh, clush or ssh. Standard library only."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from iolens.agent.jobs.sampling import file_name, job_folder
from iolens.errors import InputError, IolensError
from iolens.sources.job_files import read_job_file
from iolens.sources.job_samples import BEGIN, SUFFIX

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
