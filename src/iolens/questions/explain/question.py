"""Was it me or the system: why one run was slow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from iolens.question import Option, Rights, question
from iolens.questions.shared import CALIBRATION

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.questions.asking import Ask


@question(
    "explain", "Was it me or the system: why one run was slow",
    Option(
        "run", "Id of a job or run, or the name of a log", metavar="JOB|RUN", means="job", is_argument=True,
        is_needed=True, in_url="id",
    ),
    CALIBRATION,
    about="runs",
    rights=Rights(owner=lambda run: run.user, without_others=lambda run: replace(run, neighbours=[])),
    examples=(
        "4400017 --store centre",
        "3fa9c1 --format json",
        "4400017 --figure timeline=load.png --figure factors=history.html",
    ),
)  # fmt: skip
def explain(ask: Ask, run: str, calibration: str | None) -> RunExplanation:
    """One run against like runs, and against the state of the file system in its time and in theirs.

    JOB|RUN is a job id, a run id or its first four digits or more, or the name of a log. The verdict is own, system,
    both, unexplained, not slow, or too little history. --from and --to limit the history; --target names the OSTs of
    the run's files if its log does not.
    """
    from iolens.api.explain import explanation

    return explanation(ask.store, run, ask.scope, load=ask.draws, calibration=calibration)
