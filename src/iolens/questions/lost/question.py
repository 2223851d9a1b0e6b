"""Core-hours lost to slow I/O: by application, project and finding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iolens.question import MOST_LISTED, OWN, TOP, Option, question, whole
from iolens.questions.shared import LIKE_RUNS

if TYPE_CHECKING:
    from iolens.analyses.lost import LostCoreHours
    from iolens.analyses.runs.asked import RunConditions
    from iolens.questions.asking import Ask


@question(
    "lost", "Core-hours lost to slow I/O, by application, project, finding",
    replace(TOP, meaning="Number of applications and projects shown"),
    Option(
        "most", "Number of runs to search for findings, largest loss first", whole(1), 1000, most_at_url=MOST_LISTED,
    ),
    LIKE_RUNS, about="runs", rights=OWN,
    examples=(
        "--from 2026-11-01 --store centre",
        "--project climate --format json",
        "--user alice --figure fixes=fixes.png",
    ),
)  # fmt: skip
def lost(ask: Ask, like: RunConditions, **options: Any) -> LostCoreHours:
    """What runs lost against the best quarter of their like: cores × the I/O time beyond theirs.

    Findings are ordered by what a fix brings back, measured on like runs without the finding; if there are no such
    runs, by what the runs with the finding lost. A run with several findings counts in each. The number of runs
    without history is shown.
    """
    from iolens.api.lost import lost_hours

    return lost_hours(ask.store, ask.scope, like, **options)
