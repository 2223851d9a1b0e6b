"""Who made a file system busy, as a report shows it: over the window by user, in its busiest hour by job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from iolens.analyses.blame import Blame


@dataclass(frozen=True, slots=True)
class ReportedBlame:
    """Of one file system."""

    filesystem: str
    window_start: datetime
    window_end: datetime
    users: Blame
    busiest_hour: Blame
