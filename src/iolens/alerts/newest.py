"""When targets and agents last reported: and what of agents is not in the store: what rules ask about silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class NewestRows:
    """End of the newest row of each target, by file system, and of each agent; those with none in the window lack."""

    targets: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    agents: Mapping[str, datetime] = field(default_factory=dict)

    def of(self, filesystem: str) -> Mapping[str, datetime]:
        """Targets of one file system."""
        return self.targets.get(filesystem, {})


@dataclass(frozen=True, slots=True)
class SegmentsAside:
    """How many segments of one agent lie in `late/` and `bad/` of the hub, and when the first of them arrived."""

    host: str
    late: int
    bad: int
    since: datetime | None
