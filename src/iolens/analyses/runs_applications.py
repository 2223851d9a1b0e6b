"""The application runs of a report: who moved most, which jobs left a log, interfaces and patterns, like runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolens.analyses.runs_coverage import RunCoverage
    from iolens.analyses.runs_interfaces import RunInterfaces
    from iolens.analyses.runs_patterns import RunPatterns
    from iolens.analyses.runs_projects import RunProjects
    from iolens.analyses.runs_variance import RunVariance


@dataclass(frozen=True, slots=True)
class ReportedRuns:
    """Runs of a centre, whichever file system they used: `filesystem` is None."""

    filesystem: None
    window_start: datetime | None
    window_end: datetime | None
    projects: RunProjects
    coverage: RunCoverage
    interfaces: RunInterfaces
    patterns: RunPatterns
    variance: RunVariance
