"""The audit log: a JSON line for each log-in, refusal and change, in a private file that is rotated by size."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.spool import make_private_directory, open_private
from iolens.messages import TroubleLog, cause
from iolens.visible_text import shortened, visible
from iolens.web.access.attempts import Attempts, Pace
from iolens.web.access.tokens import without_tokens

FILE: Final = "audit.log"
LARGEST_BYTES: Final = 10 << 20
KEPT: Final = 5  # older files, audit.log.1 to audit.log.5
LONGEST_TEXT: Final = 256
# Whoever may not come in cannot push the lines of others out of the log: this is at most 4 MB a day.
REFUSALS: Final = (Pace(20, 0.1), Pace(200, 0.2))


@dataclass(slots=True)
class AuditLog:
    """Appends lines; several processes may do so at once."""

    state: Path
    largest_bytes: int = LARGEST_BYTES
    clock: Callable[[], float] = time.time
    troubles: TroubleLog = field(default_factory=TroubleLog)
    refusals: Attempts = field(default_factory=lambda: Attempts(*REFUSALS))
    _left_out: int = 0

    def note(self, event: str, **facts: Any) -> None:
        """Write a line; where that fails, the log of the server says so."""
        if self._left_out:
            facts["refusals_left_out"], self._left_out = self._left_out, 0
        line = {"time": _time(self.clock()), "event": event, **{key: _plain(value) for key, value in facts.items()}}
        try:
            self._append(f"{json.dumps(line)}\n".encode())  # ASCII: nothing in it ends a line or moves a cursor
        except OSError as error:
            self.troubles.tell("audit", f"{self.state / FILE}: not written: {cause(error)}")
        else:
            self.troubles.over("audit", f"{self.state / FILE} is written again")

    def note_refusal(self, address: str, **facts: Any) -> None:
        """The same for a request that was refused, unless the address had many: they are counted in the next line."""
        if self.refusals.wait_s(address):
            self._left_out += 1
        else:
            self.note("refused", address=address, **facts)

    def _append(self, line: bytes) -> None:
        make_private_directory(self.state)
        path = self.state / FILE
        lock = open_private(self.state / "audit.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists() and path.stat().st_size + len(line) > self.largest_bytes:
                _rotate(path)
            with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as stream:
                stream.write(line)
        finally:
            os.close(lock)


def _rotate(path: Path) -> None:
    for number in range(KEPT, 0, -1):
        older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _plain(value: Any) -> Any:
    """Text of others: without a token, visible and not too long."""
    return shortened(visible(without_tokens(value)), LONGEST_TEXT) if isinstance(value, str) else value
