"""Finished jobs of a shared folder, pushed to a hub: one segment for each job and node. Standard library only.

A segment is named after job, node and begin, so that pushing again, from wherever, stores nothing twice. What was
pushed is noted beside the samples (`NODE.pushed`), which stay where they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.jobs.spooled import job_header, write_job_segment
from iolens.agent.sampling.hub_address import HubAddress
from iolens.agent.sampling.hub_client import HubClient, HubError, SegmentRefusedError
from iolens.agent.sampling.private_files import replace_private
from iolens.errors import InputError
from iolens.sources.job_files import job_files, read_job_file
from iolens.sources.spool import CLOSED, fit_for_file

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
