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

from iolens.agent.sampling.hub_client import HubAddress

FIRST_PAUSE_S: Final = 10.0
LONGEST_PAUSE_S: Final = 900.0
LONGEST_RUN_S: Final = 1800.0
SOON_S: Final = 1.0


@dataclass(slots=True)
class Shipping:
    """Starts the shipper and listens to what it says; never waits for it while there is sampling to do.

    `destination` is the address of a store, or a hub.
    """

    spool: Path
    destination: str | HubAddress
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
        if isinstance(self.destination, HubAddress):
            return push_command(self.spool, self.destination)
        return [sys.executable, "-m", "iolens.agent.sampling.shipper", str(self.spool), self.destination]

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
            self.next_at = time.monotonic() + max(self.jittered(pause), said.get("wait_s", 0.0))
        else:
            self.failures = 0
            self.next_at = time.monotonic() + (SOON_S if said["left"] else self.jittered(self.every_s))
        return said


def push_command(spool: Path, hub: HubAddress) -> Sequence[str]:
    """How segments are pushed to a hub, from the package or from the agent that is one file."""
    program = next((place for place in Path(__file__).absolute().parents if place.is_file()), None)
    if program is None:
        return [sys.executable, "-m", "iolens.agent.sampling.pushing", str(spool), *hub.words()]
    return [sys.executable, str(program), "push", "--spool", str(spool), "--json", *hub.options()]


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
