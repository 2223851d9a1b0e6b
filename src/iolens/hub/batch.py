"""What is written next: segments of all agents, the oldest of each first, so that none waits for another's backlog."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from iolens.hub.inbox import Inbox


@dataclass(frozen=True, slots=True)
class Batch:
    """Segments in the order of host, run and sequence; `is_full`: more waits, or as much as a batch may hold."""

    paths: tuple[Path, ...]
    is_full: bool
    oldest: float | None = None  # when the first of them arrived, seconds since 1970


def waiting_batch(inbox: Inbox, most_bytes: int, most_segments: int, without: Container[str] = ()) -> Batch:
    """The next batch, `without` segments of some hosts; at least one segment where one waits, however large."""
    paths: list[Path] = []
    total, oldest = 0, None
    for path in _in_turn(inbox, without):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if paths and (total + status.st_size > most_bytes or len(paths) == most_segments):
                return Batch(tuple(sorted(paths)), True, oldest)
            paths.append(path)
            total += status.st_size
            oldest = status.st_mtime if oldest is None else min(oldest, status.st_mtime)
    return Batch(tuple(sorted(paths)), total >= most_bytes or len(paths) >= most_segments, oldest)


def _in_turn(inbox: Inbox, without: Container[str]) -> Iterator[Path]:
    """The first segment of each agent, then the second of each, and so on."""
    for turn in zip_longest(*(inbox.waiting(host) for host in inbox.hosts() if host not in without)):
        yield from (path for path in turn if path is not None)
