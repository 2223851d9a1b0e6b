"""Which job this is, as Slurm or PBS say it in the environment of its processes, prologs and epilogs."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.schedulers.node_lists import expand_nodes

_JOB_IDS: Final = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID")
_CLUSTERS: Final = ("SLURM_CLUSTER_NAME", "PBS_SERVER")
_USERS: Final = ("SLURM_JOB_USER", "PBS_O_LOGNAME")
_NAMES: Final = ("SLURM_JOB_NAME", "PBS_JOBNAME")
_NODE_LISTS: Final = ("IOLENS_JOB_NODES", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
_PROCESSES: Final = ("SLURM_NTASKS", "SLURM_NPROCS", "PBS_NP")


@dataclass(frozen=True)
class JobContext:
    """What is known of a job while it runs."""

    job_id: str
    cluster: str | None = None
    user: str | None = None
    name: str | None = None
    nodes: tuple[str, ...] = ()
    processes: int | None = None

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ, job_id: str | None = None) -> JobContext:
        """The job of this environment; `job_id` where the user names it."""
        chosen = job_id or _first(environment, _JOB_IDS)
        if not chosen:
            raise InputError("the environment", f"none of {', '.join(_JOB_IDS)} is set", "a batch job, or --job-id")
        return cls(
            chosen,
            _first(environment, _CLUSTERS),
            _first(environment, _USERS) or _login(),
            _first(environment, _NAMES),
            _nodes(environment),
            _count(_first(environment, _PROCESSES)),
        )

    @classmethod
    def of_command(cls, environment: Mapping[str, str], command: Sequence[str], job_id: str | None) -> JobContext:
        """A command run by hand is a job of its own, inside a batch job too; it has the nodes of the batch job."""
        inside = _first(environment, _JOB_IDS)
        chosen = job_id or f"{inside or 'run'}.{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}.{os.getpid()}"
        user = _first(environment, _USERS) or _login()
        return cls(chosen, _first(environment, _CLUSTERS), user, Path(command[0]).name, _nodes(environment))


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _login() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return None


def _nodes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """All nodes of the job; none where the scheduler does not say, or says nonsense."""
    compact = _first(environment, _NODE_LISTS)
    try:
        if compact:
            return tuple(expand_nodes(compact))
        if file := environment.get("PBS_NODEFILE"):
            names = parameter_bytes(Path(file)).decode("utf-8", "replace").split()
            return tuple(dict.fromkeys(names))
    except (ValueError, OSError, InputError):
        pass
    return ()


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 and int(text) else None
