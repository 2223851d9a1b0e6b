"""The state of the hub: what waits, what each agent sent, and how the writer is."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from iolens.agent.sampling.spool import open_private
from iolens.hub.inbox import HUB, Inbox, Occupancy
from iolens.hub.takeovers import StoredCounts, UploadCounts, WriterRecord, read_uploads
from iolens.units import from_epoch_us

WRITER_LOCK: Final = "writer.lock"


@dataclass(frozen=True, slots=True)
class HubAgent:
    """One agent; counts are since the files of the hub were made."""

    host: str
    last_seen: datetime | None
    silent_s: float | None  # since it was last seen
    waiting_segments: int
    waiting_bytes: int
    late_segments: int  # put aside now
    bad_segments: int
    accepted_segments: int
    accepted_bytes: int
    refused: int
    last_refusal: str
    stored_segments: int
    taken_over: int = 0  # targets that another server served before
    aside_since: datetime | None = None  # when the first of those put aside arrived


@dataclass(frozen=True, slots=True)
class WriterState:
    """The process that brings segments into the store."""

    is_running: bool
    started: datetime | None
    last_commit: datetime | None
    batches: int
    segments: int
    samples: int
    rows: int
    rss_bytes: int
    trouble: str


@dataclass(frozen=True, slots=True)
class HubState:
    """The whole hub at one time."""

    time: datetime
    waiting_segments: int
    waiting_bytes: int
    oldest_waiting_s: float | None  # since the segment that waits longest arrived
    free_bytes: int | None
    agents: tuple[HubAgent, ...]
    writer: WriterState


def hub_state(state_dir: Path, now: datetime) -> HubState:
    """The state below a state directory, whether a server runs there or not."""
    inbox = Inbox(state_dir / HUB)
    occupancies = {host: inbox.occupancy(host) for host in inbox.hosts()}
    uploads, record = read_uploads(inbox.directory), WriterRecord.read(inbox.directory)
    hosts = sorted({*occupancies, *uploads, *record.agents})
    oldest = min((own.oldest for own in occupancies.values() if own.oldest is not None), default=None)
    return HubState(
        now,
        sum(own.segments for own in occupancies.values()),
        sum(own.waiting_bytes for own in occupancies.values()),
        None if oldest is None else max(now.timestamp() - oldest, 0.0),
        inbox.free_bytes() if inbox.directory.is_dir() else None,
        tuple(
            _agent(
                host,
                occupancies.get(host, Occupancy()),
                uploads.get(host, UploadCounts()),
                record.agents.get(host, StoredCounts()),
                now,
            )
            for host in hosts
        ),
        _writer(record, is_running=_is_locked(inbox.directory / WRITER_LOCK)),
    )


def _agent(host: str, own: Occupancy, sent: UploadCounts, stored: StoredCounts, now: datetime) -> HubAgent:
    seen = _time(sent.last_seen_us)
    return HubAgent(
        host,
        seen,
        None if seen is None else max((now - seen).total_seconds(), 0.0),
        own.segments,
        own.waiting_bytes,
        own.late,
        own.bad,
        sent.segments,
        sent.bytes,
        sent.refused,
        sent.reason,
        stored.stored,
        stored.taken_over,
        None if own.oldest_aside is None else from_epoch_us(int(own.oldest_aside * 1e6)),
    )


def _writer(record: WriterRecord, *, is_running: bool) -> WriterState:
    return WriterState(
        is_running,
        _time(record.started_us),
        _time(record.commit_us),
        record.batches,
        record.segments,
        record.samples,
        record.rows,
        record.rss_bytes if is_running else 0,
        record.trouble,
    )


def _time(time_us: int | None) -> datetime | None:
    return from_epoch_us(time_us) if time_us else None


def _is_locked(path: Path) -> bool:
    """Whether a process holds the lock; nothing is made here."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
