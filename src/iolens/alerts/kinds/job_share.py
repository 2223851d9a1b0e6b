"""A job that takes most of the disk time of a busy file system (B1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.alerts.kinds.fsu import without_level
from iolens.alerts.results import WhoTook, duration_text
from iolens.alerts.rule import (
    AlertRule,
    Answers,
    CheckedWindow,
    Condition,
    EvidenceQuestion,
    KindOption,
    RuleKind,
    unknown,
)
from iolens.visible_text import shown_job_id

if TYPE_CHECKING:
    from iolens.analyses.blame import Blame, WhoShare

BY_JOB_STATS: Final = "job_stats"


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """Shares by job."""
    return (EvidenceQuestion("blame", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Each job with a share that matters; none where the file system is hardly busy."""
    result: Blame = answers["blame"]
    if result.method != BY_JOB_STATS or result.fsu_pct is None:
        yield unknown(f"{window.filesystem} has no job_stats in the window.")
    elif (lack := without_level(result)) is not None:
        yield unknown(lack)
    elif result.fsu_pct >= rule.number("busy"):
        for share in result.who:
            yield _condition(rule, share, result.fsu_pct, window)


def _condition(rule: AlertRule, share: WhoShare, fsu_pct: float, window: CheckedWindow) -> Condition:
    job = shown_job_id(share.name)
    owner = f" of {share.user}" if share.user else ""
    why = (
        f"Job {job}{owner} took {rule.text(share.share_pct)} of the disk time of {window.filesystem} over the last "
        f"{duration_text(rule.window_s)}, at an FSU of {fsu_pct:.1f} %; the threshold is {rule.text(rule.threshold)}."
    )
    who = (WhoTook(share.name, share.user, share.share_pct),)
    stretch = window.start, window.end
    return Condition(job, rule.level(share.share_pct), why, share.share_pct, stretch=stretch, who=who)


KIND = RuleKind(
    summary="a job takes most of the disk time",
    measure="share of the disk time over the window",
    unit="%",
    threshold=60.0,
    clear=40.0,
    window_s=1800.0,
    for_s=600.0,
    clear_for_s=600.0,
    severity="info",
    questions=questions,
    conditions=conditions,
    verb=("blame",),
    page="job",
    absent="clear",
    absent_why="It has no share of the disk time in the window, or the file system is hardly busy.",
    options={"busy": KindOption(30.0, "%")},
)
