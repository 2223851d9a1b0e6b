"""The agent's own health: a status file beside the spool after every tick, and a row for the store once it has a table.

Counts are since the start of the agent.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from iolens.agent.sampling.private_files import replace_private
from iolens.records import Row
from iolens.schema import TABLES

HEALTH_TABLE: Final = "agent_health"  # rows are spooled as soon as the schema declares this table
STATUS_FILE: Final = "health.json"
_PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")


@dataclass(slots=True)
class Health:
    """What the agent has done, and what it costs."""

    host: str
    run: str
    time: int = 0  # tick, microseconds since 1970
    ticks: int = 0
    late_ticks: int = 0
    missed_ticks: int = 0
    lost_ticks: int = 0
    clock_steps_back: int = 0
    targets: int = 0
    samples: int = 0
    refused: int = 0
    thinned_samples: int = 0
    spool_bytes: int = 0
    segments_waiting: int = 0
    segments_shipped: int = 0
    segments_late: int = 0
    segments_bad: int = 0
    ship_failures: int = 0
    cpu_s: float = 0.0
    rss_bytes: int = 0
    trouble: str = ""

    def measure(self) -> None:
        """Note the processor time and memory of this process."""
        self.cpu_s = round(time.process_time(), 3)
        self.rss_bytes = rss_bytes()

    def row(self) -> Row:
        """A row of `agent_health`."""
        return Row(HEALTH_TABLE, asdict(self) | {"trouble": self.trouble or None})

    @property
    def is_stored(self) -> bool:
        """Whether the store has a table for it."""
        return HEALTH_TABLE in TABLES

    def write(self, directory: Path) -> None:
        """The status file, replaced in one step."""
        text = json.dumps({**asdict(self), "pid": os.getpid()}, indent=1) + "\n"
        replace_private(directory / STATUS_FILE, text.encode())


def rss_bytes() -> int:
    """Resident memory of this process."""
    with Path("/proc/self/statm").open("rb") as stream:
        return int(stream.read().split()[1]) * _PAGE_BYTES
