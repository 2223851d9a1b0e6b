"""Core-hours lost to slow I/O over the runs of a store, and the findings of those that lost most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolens.analyses.lost import MOST_RUNS, MOST_SHOWN, JudgedRun, LostCoreHours, lost_core_hours
from iolens.analyses.runs.asked import RunConditions
from iolens.analyses.runs.summary import run_summary
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_runs import StoredRuns
from iolens.errors import OptionError, UsageError
from iolens.findings import Thresholds, checked_thresholds
from iolens.run_tables import RUN_FILES
from iolens.store.scope import Scope

AT_ONCE: Final = 100  # runs whose files are held together


def lost_hours(
    opened: StoreAnalyses,
    scope: Scope | None = None,
    like: RunConditions | None = None,
    *,
    top: int = MOST_SHOWN,
    most: int = MOST_RUNS,
) -> LostCoreHours:
    """Over runs that started in the scope's window and are as `like` says; findings of `most` runs that lost most."""
    asked = scope or Scope()
    if asked.targets:
        raise OptionError("--target does not go with runs: a log does not say which targets a run used")
    if asked.rollup is not None:
        raise OptionError("--resolution does not go with runs: a run is one row")
    stored = StoredRuns(opened.store)
    thresholds = checked_thresholds(opened.config.findings, str(opened.config.path))

    def judge(run_ids: Sequence[str]) -> Iterator[JudgedRun]:
        return _judged(stored, run_ids, thresholds)

    result = opened.ask_all(lambda selection: lost_core_hours(selection, like, judge=judge, top=top, most=most), asked)
    if not result.runs:
        raise UsageError(f"{opened.store.url} has no application run of that kind in the window")
    return result


def _judged(stored: StoredRuns, run_ids: Sequence[str], thresholds: Thresholds) -> Iterator[JudgedRun]:
    for first in range(0, len(run_ids), AT_ONCE):
        rows = stored.of_ids(run_ids[first : first + AT_ONCE])
        for record in stored.records(rows, (RUN_FILES.name,)):
            page = run_summary(record, None, thresholds)
            yield JudgedRun(str(page.run_id), page.jobid, page.executable, page.findings)
