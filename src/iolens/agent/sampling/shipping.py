"""When to ship: a child every few minutes with jitter, and growing pauses while the store cannot be reached."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

FIRST_PAUSE_S: Final = 10.0
LONGEST_PAUSE_S: Final = 900.0
LONGEST_RUN_S: Final = 1800.0
SOON_S: Final = 1.0


@dataclass(slots=True)
class Shipping:
    """Starts the shipper and listens to what it says; never waits for it while there is sampling to do."""

    spool: Path
    url: str
    every_s: float
    failures: int = 0
    next_at: float = 0.0
    started_at: float = 0.0
    child: subprocess.Popen[bytes] | None = None
    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.next_at = time.monotonic() + self.jittered(self.every_s)

    def jittered(self, seconds: float) -> float:
        """That long, give or take a fifth, so that a thousand agents do not knock together."""
        return seconds * self.chance.uniform(0.8, 1.2)

    @property
    def is_due(self) -> bool:
        """Whether to ship now."""
        return self.child is None and time.monotonic() >= self.next_at

    def start(self) -> None:
        """Start the child, out of reach of the terminal's Ctrl-C: it may finish what it began."""
        self.started_at = time.monotonic()
        self.child = subprocess.Popen(self.command(), stdout=subprocess.PIPE, start_new_session=True)

    def command(self) -> Sequence[str]:
        """What is run."""
        return [sys.executable, "-m", "iolens.agent.sampling.shipper", str(self.spool), self.url]

    def put_off(self) -> None:
        """Nothing to ship now: look again in a while."""
        self.next_at = time.monotonic() + self.jittered(self.every_s)

    def poll(self) -> dict[str, Any] | None:
        """What the child did, once it has ended; one that hangs is ended."""
        if self.child is None:
            return None
        if self.child.poll() is None:
            if time.monotonic() - self.started_at > LONGEST_RUN_S:
                self.child.kill()
            return None
        return self._ended(self.child)

    def wait(self, seconds: float = LONGEST_RUN_S) -> dict[str, Any] | None:
        """Wait for the child to end."""
        if self.child is None:
            return None
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        return self._ended(self.child)

    def _ended(self, child: subprocess.Popen[bytes]) -> dict[str, Any]:
        self.child = None
        said = _said(child.stdout)
        if said is None:
            said = {"error": f"the shipper ended with code {child.returncode} and said nothing"}
        if said["error"]:
            self.failures += 1
            pause = min(FIRST_PAUSE_S * 2 ** min(self.failures - 1, 20), max(LONGEST_PAUSE_S, self.every_s))
            self.next_at = time.monotonic() + self.jittered(pause)
        else:
            self.failures = 0
            self.next_at = time.monotonic() + (SOON_S if said["left"] else self.jittered(self.every_s))
        return said


def _said(stream: IO[bytes] | None) -> dict[str, Any] | None:
    if stream is None:
        return None
    with stream:
        text = stream.read()
    try:
        said: dict[str, Any] = json.loads(text)
    except ValueError:
        return None
    return said
