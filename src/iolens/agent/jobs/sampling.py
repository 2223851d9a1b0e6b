"""Which job this is, and one sample of this node for one job, appended to the job's folder, as `job begin`, `end` and
`run` ask for it.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.spool import make_private_directory, open_private
from iolens.errors import InputError, IolensError
from iolens.records import Item, Problem
from iolens.sources.devices.block_devices import stated_host
from iolens.sources.job_samples import BEGIN, SUFFIX, JobSample
from iolens.sources.lustre.lustre_client_proc import read_tree
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.schedulers.node_lists import expand_nodes

# Which job this is, as Slurm or PBS say it in the environment of its processes, prologs and epilogs -------------------

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


# One sample of this node for one job, appended to the job's folder ----------------------------------------------------
# `FOLDER/JOB/NODE.job` has the samples; `FOLDER/.active/NODE` knows which jobs are on the node now, so that each can
# say with whom it shared it. Both are changed under a lock, and only we may open them: whoever else could would be able
# to lock them, and to hold up the prolog of every job. Needs only the standard library: it runs on compute nodes.

ACTIVE: Final = ".active"
LONGEST_NAME: Final = 200
LOCK_S: Final = 2.0  # others of ours hold a lock for milliseconds
_BOOT_ID: Final = "proc/sys/kernel/random/boot_id"
_UPTIME: Final = "proc/uptime"


def take_sample(point: str, job: JobContext, folder: Path, root: Path = Path("/"), node: str | None = None) -> Path:
    """Sample this node at the begin or the end of a job; the file that has it now."""
    host = _host(root, node)
    about = JobSample(
        point,
        job.job_id,
        host,
        time.time_ns() // 1000,
        job.cluster,
        job.user,
        job.name,
        job.nodes,
        job.processes,
        boot_id(root),
        _uptime_us(root),
    )
    items = [*_items(root, about.time_us)]
    _make_directories(folder, job_folder(folder, job.job_id), folder / ACTIVE)
    others: tuple[str, ...] = ()
    try:
        others = _noted(folder / ACTIVE / file_name(host), about)
    except IolensError as error:
        items.append(Problem(str(folder), None, f"which jobs shared the node is not known: {error}"))
    path = sample_file(folder, job, root, node)
    _append(path, replace(about, other_jobs=others, items=tuple(items)))
    return path


def sample_file(folder: Path, job: JobContext, root: Path, node: str | None) -> Path:
    """Where the samples of a job on this node are."""
    return job_folder(folder, job.job_id) / f"{file_name(_host(root, node))}{SUFFIX}"


def _host(root: Path, node: str | None) -> str:
    return node or os.environ.get("SLURMD_NODENAME") or stated_host(root) or os.uname().nodename


def job_folder(folder: Path, job_id: str) -> Path:
    """Where the samples of a job are."""
    return folder / file_name(job_id)


def file_name(name: str) -> str:
    """A name of a job or host, fit for a file: never a path, never hidden."""
    return re.sub(r"[^A-Za-z0-9_+\[\]-]|^[^A-Za-z0-9]", _quoted, name)[:LONGEST_NAME] or "_"


def _quoted(letter: re.Match[str]) -> str:
    if letter[0] == "." and letter.start():
        return "."
    return "".join(f"%{byte:02x}" for byte in letter[0].encode("utf-8", "surrogateescape"))


def _items(root: Path, time_us: int) -> Iterator[Item]:
    """Everything the node counts; what cannot be read is said, and the job goes on."""
    try:
        yield from read_tree(root, time_us)
    except (IolensError, OSError) as error:
        yield Problem(str(root), None, str(error))


def boot_id(root: Path) -> str | None:
    """What names this boot of the node."""
    try:
        return parameter_bytes(root / _BOOT_ID).decode("ascii", "replace").strip() or None
    except OSError:
        return None


def _uptime_us(root: Path) -> int | None:
    if root == Path("/"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    try:
        return round(float(parameter_bytes(root / _UPTIME).split()[0]) * 1e6)
    except (OSError, ValueError, IndexError):
        return None


def _make_directories(*directories: Path) -> None:
    for directory in directories:
        try:
            make_private_directory(directory)
        except OSError as error:
            reason = error.strerror or str(error)
            raise IolensError(
                f"{directory}: {reason}; name a folder that every node can write to with --folder"
            ) from error


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A file of ours, made where it is not there, and nobody else's until we are done; IolensError without the lock."""
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        os.fchmod(descriptor, 0o600)  # files of earlier versions could be read, and so locked, by all
        _lock(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise IolensError(f"{path}: another process has kept it locked for {LOCK_S:g} s") from None
        time.sleep(0.02)


def _append(path: Path, sample: JobSample) -> None:
    """All lines of a sample at once; after a write that was cut short they begin on a line of their own."""
    with _locked(path) as descriptor:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        rest = memoryview((b"\n" if is_torn else b"") + sample.encoded())
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)


def _noted(path: Path, sample: JobSample) -> tuple[str, ...]:
    """Note that the job has come to the node or gone; the jobs it has shared the node with so far.

    A job that never ended is forgotten when the node has booted anew.
    """
    with _locked(path) as descriptor:
        active = _active(os.pread(descriptor, 1 << 20, 0), sample.boot_id)
        mine = set(active.pop(sample.job_id, {}).get("others", ()))
        mine |= active.keys()
        for other in active.values():
            other["others"] = sorted({*other["others"], sample.job_id})
        if sample.point == BEGIN:
            active[sample.job_id] = {"boot_id": sample.boot_id, "others": sorted(mine)}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(active).encode(), 0)
    return tuple(sorted(mine))


def _active(content: bytes, boot_id: str | None) -> dict[str, Any]:
    """The jobs on this node by the file, which may be damaged: then nothing is known of others."""
    try:
        plain = json.loads(content or b"{}")
        return {
            str(job): {"boot_id": entry["boot_id"], "others": [str(other) for other in entry["others"]]}
            for job, entry in plain.items()
            if entry["boot_id"] == boot_id
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
