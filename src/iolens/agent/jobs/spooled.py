"""Samples of jobs on their way: in the spool of the agent on the same node, or from a shared folder to a hub."""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.jobs.sampling import boot_id
from iolens.agent.sampling.hub_client import HubAddress, HubClient, HubError, SegmentRefusedError
from iolens.agent.sampling.spool import host_name, make_private_directory, open_private, replace_private, sync_directory
from iolens.errors import InputError, IolensError
from iolens.sources.job_files import NodeJob, job_files, job_items, read_job_file
from iolens.sources.job_samples import SUFFIX
from iolens.sources.spool import (
    CLOSED,
    TAKEN,
    SegmentHeader,
    Tick,
    encode_header,
    encode_tick,
    fit_for_file,
    in_lines,
    is_same_host,
)

# Samples of jobs in the spool of the agent on the same node -----------------------------------------------------------
# For nodes that share no folder. Standard library only.
#
# Until a job ends its samples wait in `SPOOL/jobs`; then its rows become one finished segment, which the agent's
# shipper or `iolens ingest SPOOL` takes into the store. Its name is made of job, node and begin, so that it is stored
# once even where the process that wrote it died before it could remove the samples.

WAITING: Final = "jobs"  # the folder of samples of jobs that have not ended
_UNFINISHED: Final = ".new"


def waiting_folder(spool: Path) -> Path:
    """Where samples wait for the end of their jobs; the spool is made where it is missing, refused if others write."""
    try:
        make_private_directory(spool)
    except OSError as error:
        raise IolensError(f"{spool}: {error.strerror or error}; name the spool of the agent with --spool") from error
    return spool / WAITING


def spool_job(spool: Path, path: Path) -> Path:
    """Make the samples of a job on this node a finished segment of the spool, and remove them; the segment."""
    node_job = read_job_file(path)
    node = fit_for_file(node_job.node)  # what is sampled on it goes under its name
    header = job_header(node_job, host_name() if is_same_host(node, host_name()) else node)
    closed = spool / f"{header.stem}{CLOSED}"
    try:
        if not closed.exists() and not closed.with_suffix(TAKEN).exists():
            write_job_segment(closed, header, node_job)
        path.unlink()
        with suppress(OSError):  # of several nodes in a test: the folder is not empty
            path.parent.rmdir()
    except OSError as error:
        raise IolensError(f"{spool}: {error.strerror or error}; the samples stay in {path}") from error
    return closed


def spool_leftovers(spool: Path, root: Path) -> Iterator[str]:
    """Jobs that ran when the node went down: what is known of them becomes segments; yields what cannot be read."""
    now = boot_id(root)
    for path in sorted((spool / WAITING).glob(f"*/*{SUFFIX}")):
        try:
            node_job = read_job_file(path)
            last = node_job.end or node_job.begin
            if now is not None and last is not None and last.boot_id not in (None, now):
                spool_job(spool, path)
        except InputError as error:
            yield str(error)


def job_header(node_job: NodeJob, host: str) -> SegmentHeader:
    """What the segment of a job on a node is called."""
    return SegmentHeader(host, _run_of(node_job), 1)


def _run_of(node_job: NodeJob) -> str:
    """The same for the same job, node and begin; like that of an agent's start it sorts by time."""
    first = node_job.begin or node_job.end
    assert first is not None
    seconds, micros = divmod(first.time_us, 1_000_000)
    mark = zlib.crc32(f"{first.job_id}\0{first.node}\0{first.point}".encode("utf-8", "surrogateescape"))
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}.{micros:06d}-{mark:08x}"


def write_job_segment(closed: Path, header: SegmentHeader, node_job: NodeJob) -> None:
    """A whole segment under its final name, or none."""
    last = node_job.end or node_job.begin
    assert last is not None
    items = job_items(node_job, with_record=node_job.rank == 0)
    content = b"".join([encode_header(header), *(encode_tick(Tick(last.time_us, part)) for part in in_lines(items))])
    beside = closed.with_suffix(_UNFINISHED)
    beside.unlink(missing_ok=True)
    descriptor = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        beside.rename(closed)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(closed.parent)


# Finished jobs of a shared folder, pushed to a hub --------------------------------------------------------------------
# One segment for each job and node. Standard library only.
#
# A segment is named after job, node and begin, so that pushing again, from wherever, stores nothing twice. What was
# pushed is noted beside the samples (`NODE.pushed`), which stay where they are.

PUSHED: Final = ".pushed"
LONGEST_NOTE: Final = 256


@dataclass(slots=True)
class PushedJobs:
    """What became of the jobs of a folder, each counted by node."""

    pushed: int = 0
    before: int = 0  # pushed by an earlier run
    unfinished: int = 0
    refused: list[str] = field(default_factory=list)
    error: str = ""  # why the rest waits


def push_jobs(folder: Path, hub: HubAddress) -> PushedJobs:
    """Push every job of a folder that has ended and was not pushed before; stops where the hub takes no more."""
    done = PushedJobs()
    try:
        with HubClient(hub) as client, tempfile.TemporaryDirectory(prefix="iolens-jobs-") as name:
            for path in _sample_files(folder):
                _push_one(path, client, Path(name), done)
    except HubError as error:
        done.error = str(error)
    return done


def _sample_files(folder: Path) -> Iterator[Path]:
    """The files of all nodes of all jobs; folders whose names begin with a dot hold none."""
    try:
        places = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    except OSError as error:
        raise InputError(str(folder), error.strerror or "cannot be read", "a folder of jobs") from error
    for place in places:
        with suppress(FileNotFoundError):
            yield from job_files(place)


def _push_one(path: Path, client: HubClient, beside: Path, done: PushedJobs) -> None:
    try:
        state = _state(path)
        if _noted(path) == state:
            done.before += 1
            return
        node_job = read_job_file(path)
        if node_job.end is None:
            done.unfinished += 1
            return
        header = job_header(node_job, fit_for_file(node_job.node))
        segment = beside / f"{header.stem}{CLOSED}"
        write_job_segment(segment, header, node_job)
        client.push(header.stem, segment)
        segment.unlink()
        with suppress(OSError):  # a folder that is not ours to write: pushed again the next time, and stored once
            replace_private(path.with_suffix(PUSHED), state.encode())
    except OSError as error:
        done.refused.append(f"{path}: {error.strerror or error}")
    except (InputError, SegmentRefusedError) as error:
        done.refused.append(str(error))
    else:
        done.pushed += 1


def _state(path: Path) -> str:
    """What changes when a file of samples does."""
    status = os.stat(path)  # noqa: PTH116 (for each of many)
    return f"{status.st_size} {status.st_mtime_ns}"


def _noted(path: Path) -> str | None:
    try:
        with path.with_suffix(PUSHED).open("rb") as stream:
            return stream.read(LONGEST_NOTE).decode("ascii", "replace")
    except OSError:
        return None
