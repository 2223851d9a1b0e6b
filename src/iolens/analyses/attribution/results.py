"""What attribution says of many jobs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.analyses.calibration.levels import NO_FSU


@dataclass(frozen=True, slots=True)
class DiskSeconds:
    """Disk-seconds by number of the job; a job that no job_stats name has none. `assumed_pct`: share by k = 1.

    `calibrated` are the fields of `RestsOnCalibration` of what is made of them.
    """

    by_job: Mapping[int, float | None] = field(default_factory=dict)
    calibrations: Sequence[str] = ()
    assumed_pct: float | None = None
    calibrated: Mapping[str, Any] = field(default_factory=lambda: NO_FSU)


NOT_ATTRIBUTED: Final = DiskSeconds()
