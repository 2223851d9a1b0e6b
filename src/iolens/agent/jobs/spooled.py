"""Samples of jobs in the spool of the agent on the same node, for nodes that share no folder. Standard library only.

Until a job ends its samples wait in `SPOOL/jobs`; then its rows become one finished segment, which the agent's shipper
or `iolens ingest SPOOL` takes into the store. Its name is made of job, node and begin, so that it is stored once even
where the process that wrote it died before it could remove the samples.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from iolens.agent.jobs.sampling import boot_id
from iolens.agent.sampling.private_files import make_private_directory, open_private
from iolens.agent.sampling.spool import host_name, sync_directory
from iolens.errors import InputError, IolensError
from iolens.sources.job_files import NodeJob, job_items, read_job_file
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
