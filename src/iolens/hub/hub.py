"""The hub as the server holds it: segments are received here, and one writer process is kept running."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from iolens.agent.sampling.spool import locked
from iolens.config import Config
from iolens.errors import IolensError
from iolens.hub.hub_config import LATER_S, HubConfig, Quotas, TakeoverRules, hub_config
from iolens.hub.inbox import HUB, NO_SPACE, Inbox, Received, SegmentName, UploadRefusedError
from iolens.hub.takeovers import UploadCounts, read_uploads, write_uploads
from iolens.messages import warn

SERVER_LOCK: Final = "server.lock"
LOOK_EVERY_S: Final = 0.5  # whether the writer still runs
TEND_EVERY_S: Final = 10.0  # occupancies, counts, abandoned parts
ABANDONED_AFTER_S: Final = 24 * 3600.0
FIRST_PAUSE_S: Final = 0.5  # before a writer that died is started again
LONGEST_PAUSE_S: Final = 10.0
STOP_S: Final = 10.0


@dataclass(slots=True)
class Upload:
    """A segment that is arriving; it is written from one thread at a time."""

    inbox: Inbox
    name: SegmentName
    descriptor: int
    received: int

    def write(self, content: bytes) -> None:
        """Append what has arrived; a full disk gives back what it took."""
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
        except OSError as error:
            if error.errno in NO_SPACE:
                self.inbox.discard(self.name)
                raise UploadRefusedError("full", "the disk of the hub is full", LATER_S) from error
            raise
        self.received += len(content)


@dataclass(slots=True)
class Hub:
    """Receives segments into `STATE/hub` and has one writer bring them into the store."""

    inbox: Inbox
    config: HubConfig
    store_url: str
    quotas: Quotas
    counts: dict[str, UploadCounts]
    takeovers: TakeoverRules = field(default_factory=TakeoverRules)
    restarts: int = 0  # of the writer
    _changed: bool = False
    _lock: Lock = field(default_factory=Lock)
    _stopping: Event = field(default_factory=Event)
    _thread: Thread | None = None
    _held: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def open(cls, config: Config, state: Path, store_url: str) -> Hub:
        """A hub below a state directory; `start` lets it work."""
        inbox, own = Inbox(state / HUB), hub_config(config)
        inbox.make()
        url = store_url if "://" in store_url else str(Path(store_url).absolute())
        servers = {name: known.servers for name, known in config.filesystems.items() if known.servers}
        rules = TakeoverRules(own.failover, servers, own.takeover_s)
        return cls(inbox, own, url, Quotas(inbox, own), read_uploads(inbox.directory), rules)

    def start(self) -> None:
        """Keep a writer running until `stop`; IolensError when another server has this inbox."""
        if not self._held.enter_context(locked(self.inbox.directory, SERVER_LOCK, wait=False)):
            self._held.close()
            raise IolensError(f"{self.inbox.directory}: another server takes samples here; give each its own state")
        self.quotas.refresh()
        self._stopping.clear()
        self._thread = Thread(target=self._supervise, name="hub", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the writer, wherever it is: the next one goes on from there."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._thread = None
        self._write_counts()
        self._held.close()

    def received(self, name: SegmentName, size: int = 0) -> Received:
        """How much of a segment is here; UploadRefusedError when it is not whole and `size` bytes cannot be taken."""
        here = self.inbox.received(name)
        if not here.is_complete:
            with self._counted(name.host):
                self.quotas.check(name, size)
        return here

    def holds(self, name: SegmentName, digest: bytes) -> bool:
        """Whether a segment with this content is here, whole; a repeated one is acknowledged again."""
        with self._counted(name.host):
            return self.inbox.holds(name, digest)

    @contextmanager
    def upload(self, name: SegmentName, size: int, offset: int) -> Iterator[Upload]:
        """An upload of the bytes from `offset` to `size`, the only one of this segment."""
        with self._counted(name.host), self.quotas.admitted(name, size):
            upload = Upload(self.inbox, name, self.inbox.begin(name, offset), offset)
            try:
                yield upload
            finally:
                os.close(upload.descriptor)
                self.quotas.note_received(name.host, upload.received - offset)

    def accept(self, name: SegmentName, size: int, digest: bytes) -> None:
        """A segment has arrived: when this returns it is on disk and will be stored."""
        try:
            self.inbox.accept(name, digest)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise UploadRefusedError("full", "the disk of the hub is full", LATER_S) from error
            raise
        self.quotas.note_accepted(name.host)
        with self._lock:
            own = self._counts_of(name.host)
            own.segments, own.bytes = own.segments + 1, own.bytes + size

    @contextmanager
    def _counted(self, host: str) -> Iterator[None]:
        """Note that an agent was here, and whether it was refused."""
        with self._lock:
            own = self._counts_of(host)
            own.last_seen_us, self._changed = time.time_ns() // 1000, True
        try:
            yield
        except UploadRefusedError as error:
            if error.kind != "conflict":
                own.refused, own.reason = own.refused + 1, error.reason
            raise

    def _counts_of(self, host: str) -> UploadCounts:
        """Of no more agents than there may be: names cost nothing to invent."""
        known = self.counts.get(host, UploadCounts())
        if len(self.counts) < self.config.agents:
            self.counts[host] = known
        return known

    def _supervise(self) -> None:
        """Start the writer whenever there is none, with growing pauses while it dies at once; tend the inbox."""
        child: subprocess.Popen[bytes] | None = None
        pause_s, started, start_at, tend_at = FIRST_PAUSE_S, 0.0, 0.0, time.monotonic() + TEND_EVERY_S
        while not self._stopping.wait(LOOK_EVERY_S):
            now = time.monotonic()
            if child is not None and child.poll() is not None:
                _close(child)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S) if now - started < LONGEST_PAUSE_S else FIRST_PAUSE_S
                start_at, child = (now if child.returncode == 0 else now + pause_s), None
                self.restarts += 1
            if child is None and now >= start_at:
                started, start_at = now, now + LONGEST_PAUSE_S
                child = self._started_writer()
            if now >= tend_at:
                self._tend()
                tend_at = now + TEND_EVERY_S
        if child is not None:
            child.kill()
            child.wait()
            _close(child)

    def _started_writer(self) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(self.writer_command(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        except OSError as error:  # no memory or no process left: tried again
            warn(f"the writer of the hub cannot be started: {error.strerror}")
            return None

    def writer_command(self) -> list[str]:
        """How the writer is run; it ends when its standard input does."""
        config = self.config
        limits = (
            config.batch_bytes, config.batch_segments, config.commit_every_s, config.writer_bytes, config.aside_bytes,
        )  # fmt: skip
        return [sys.executable, "-m", "iolens.hub.writer", str(self.inbox.directory), self.store_url,
                *map(str, limits), self.takeovers.to_json()]  # fmt: skip

    def _tend(self) -> None:
        try:
            self.quotas.refresh()
            for part in self.inbox.abandoned_parts(time.time() - ABANDONED_AFTER_S):
                if not self.quotas.is_arriving(part.stem):
                    part.unlink(missing_ok=True)
            self._write_counts()
        except OSError as error:  # a full disk: the counts of the next time will do
            warn(f"{self.inbox.directory}: {error.strerror}")

    def _write_counts(self) -> None:
        with self._lock:
            if not self._changed:
                return
            self._changed = False
            with suppress(OSError):
                write_uploads(self.inbox.directory, self.counts)


def _close(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        with suppress(OSError):
            child.stdin.close()
