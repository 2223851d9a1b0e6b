"""Reads of a running kernel's files, which may never return: each has a limit, and one that hangs is left behind.

Nothing can interrupt a read inside the kernel, so a thread does it. A file that hangs is not asked again until that
read has returned: it costs its reader the limit once. Standard library only, for the sampler on a server reads so.
"""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

Read = Callable[[Path], bytes]

READ_LIMIT_S: Final = 2.0
IDLE_S: Final = 0.5


@dataclass(slots=True, eq=False)
class _ReadRequest:
    read: Read
    path: Path
    done: threading.Event = field(default_factory=threading.Event)
    content: bytes = b""
    error: Exception | None = None


class _ReadingThread:
    """A thread that reads one file at a time, until it has had nothing to do for a while."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[_ReadRequest] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="limited-read", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                request = self.requests.get(timeout=IDLE_S)
            except queue.Empty:
                with suppress(ValueError):  # somebody has just taken us
                    _idle.remove(self)
                    return
                continue
            try:
                request.content = request.read(request.path)
            except Exception as error:
                request.error = error
            _idle.append(self)  # first, so that whoever waits for this read finds us
            request.done.set()


_idle: list[_ReadingThread] = []
_hanging: dict[Path, _ReadRequest] = {}


def bytes_within(limit_s: float, read: Read, path: Path) -> bytes:
    """What `read` gives of a file; OSError (ETIMEDOUT) where it takes longer, or an earlier read still does."""
    earlier = _hanging.get(path)
    if earlier is not None and not earlier.done.is_set():
        raise _no_answer(limit_s)
    _hanging.pop(path, None)
    request = _ReadRequest(read, path)
    _idle_thread().requests.put(request)
    if not request.done.wait(limit_s):
        _hanging[path] = request
        raise _no_answer(limit_s)
    if request.error is not None:
        raise request.error
    return request.content


def _idle_thread() -> _ReadingThread:
    with suppress(IndexError):
        return _idle.pop()
    return _ReadingThread()


def _no_answer(limit_s: float) -> OSError:
    return OSError(errno.ETIMEDOUT, f"no answer within {limit_s:g} s")
