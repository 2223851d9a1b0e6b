"""What to change first: findings over one run, or over many out of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolens.analyses.runs.advise import Order, RunAdvice, run_advice
from iolens.analyses.runs.summary import run_summary
from iolens.api.runs import RunAccess, pages
from iolens.errors import InputError
from iolens.run_tables import RUN_FILES

if TYPE_CHECKING:
    from iolens.api.stored_runs import WantedRuns

MOST_RUNS: Final = 1000
AT_ONCE: Final = 100  # runs whose files are held together


def advice_on(places: Sequence[str], access: RunAccess, order: Order = "core-hours") -> RunAdvice:
    """On logs, runs or jobs."""
    return run_advice([page.summary for which in places for page in pages(which, access, every=True)], order)


def advice_on_stored(
    wanted: WantedRuns, access: RunAccess, order: Order = "core-hours", most: int = MOST_RUNS
) -> RunAdvice:
    """On runs of a store: at most so many, those with most I/O time."""
    stored = access.stored()
    rows = stored.wanted(wanted)
    if not rows:
        raise InputError(stored.url, "no such run", "names as `iolens runs` lists them")
    thresholds = access.thresholds()
    chosen = rows[:most]
    results = [
        run_summary(record, access.nodes, thresholds, stored.like(record.run))
        for first in range(0, len(chosen), AT_ONCE)
        for record in stored.records(chosen[first : first + AT_ONCE], (RUN_FILES.name,))
    ]
    return run_advice(results, order, len(rows) - len(chosen))
