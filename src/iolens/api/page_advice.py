"""What to change, for the person who ran it: findings of logs, and of counters where no log shows the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolens.analyses.runs.advise import AdviceLine, RunAdvice, run_advice
from iolens.analyses.runs.summary import RunSummary, run_summary
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.stored_runs import StoredRuns
from iolens.findings import Thresholds, checked_thresholds
from iolens.findings.rule import Finding
from iolens.run_tables import RUN_FILES

AT_ONCE: Final = 100  # runs whose files are held together
BY_COUNTERS: Final = 0  # runs of a line that no log shows

Row = Mapping[str, Any]


def thresholds_of(opened: StoreAnalyses) -> Thresholds:
    """Those that the configuration sets."""
    return checked_thresholds(opened.config.findings, str(opened.config.path))


def summaries_of(opened: StoreAnalyses, rows: Sequence[Row]) -> list[RunSummary]:
    """Each run with its findings and the gain that like runs show."""
    stored, thresholds = StoredRuns(opened.store), thresholds_of(opened)
    return [
        run_summary(record, None, thresholds, stored.like(record.run))
        for first in range(0, len(rows), AT_ONCE)
        for record in stored.records(rows[first : first + AT_ONCE], (RUN_FILES.name,))
    ]


def advice_of(opened: StoreAnalyses, rows: Sequence[Row], left_out: int = 0) -> RunAdvice | None:
    """Over the runs, the most expensive first; None where there is no run."""
    return run_advice(summaries_of(opened, rows), "core-hours", left_out) if rows else None


def advice_lines(logged: RunAdvice | None, counted: Sequence[Finding]) -> list[AdviceLine]:
    """Lines of logs, then findings of counters that no log shows."""
    lines = [*logged.lines] if logged is not None else []
    shown = {line.code for line in lines}
    return [*lines, *(_line(finding) for finding in counted if finding.code not in shown)]


def _line(finding: Finding) -> AdviceLine:
    return AdviceLine(
        finding.code,
        finding.severity,
        user=None,
        executable=None,
        runs=BY_COUNTERS,
        core_hours=None,
        core_hours_lost=None,
        estimated_gain=finding.estimated_gain,
        gain_from=finding.gain_from,
        jobid=None,
        run_id=None,
        message=finding.message,
        evidence=finding.evidence,
        remedy=finding.remedy,
        reference=finding.reference,
    )
