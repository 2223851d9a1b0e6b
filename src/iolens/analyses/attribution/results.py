"""What attribution says of many jobs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class DiskSeconds:
    """Disk-seconds by number of the job; a job that no job_stats name has none. `assumed_pct`: share by k = 1."""

    by_job: Mapping[int, float | None] = field(default_factory=dict)
    calibrations: Sequence[str] = ()
    assumed_pct: float | None = None


NOT_ATTRIBUTED: Final = DiskSeconds()
