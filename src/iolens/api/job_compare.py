"""Two groups of like jobs out of a store, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from iolens.analyses.job_compare.analysis import SIGNIFICANT, JobComparison, JobsLeftOut, job_compare
from iolens.analyses.job_totals.results import JobTotals
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.job_totals import JobsOfWindow, jobs_of_window
from iolens.errors import OptionError, UsageError
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.units import epoch_us, iso
from iolens.visible_text import some_names

NAMED = 5

Group = tuple[str, list[JobTotals]]


def compare_at(
    opened: StoreAnalyses,
    scope: Scope,
    like: JobFilter,
    before: datetime | None,
    after: datetime | None,
    *,
    exclusive: bool = False,
    significance: float = SIGNIFICANT,
) -> JobComparison:
    """Jobs that ended by `before` and jobs that started at `after` or later; one of the two dates is enough."""
    first_date, second_date = before or after, after or before
    if first_date is None or second_date is None:
        raise OptionError("name a date (--before, --after, or both) or two lists of jobs (--jobs and --against)")
    if first_date > second_date:
        raise OptionError(f"--before {iso(first_date)} is later than --after {iso(second_date)}")
    chosen = jobs_of_window(opened, scope, like)
    early = [line for line in chosen.jobs if line.job.end_us <= epoch_us(first_date)]
    late = [line for line in chosen.jobs if line.job.start_us >= epoch_us(second_date)]
    left_out = replace(_left_out(chosen), in_between=len(chosen.jobs) - len(early) - len(late))
    sides, dates = (("before", early), ("after", late)), (first_date, second_date)
    return _compared(chosen, sides, dates, left_out, exclusive, significance)


def compare_lists(
    opened: StoreAnalyses,
    scope: Scope,
    like: JobFilter,
    jobs: Sequence[str],
    against: Sequence[str],
    *,
    exclusive: bool = False,
    significance: float = SIGNIFICANT,
) -> JobComparison:
    """Two lists of job ids; what differs in `jobs` is said with `against` as the reference."""
    if not jobs or not against:
        raise OptionError("--jobs and --against go together: two lists of job ids")
    if both := sorted({*jobs} & {*against}):
        raise OptionError(f"in both lists: job {some_names(both, NAMED)}")
    chosen = jobs_of_window(opened, scope, replace(like, job_ids=(*jobs, *against)))
    known = {line.job.job_id for line in chosen.jobs}
    if absent := [job_id for job_id in (*jobs, *against) if job_id not in known]:
        raise UsageError(f"{chosen.filesystem} has no counters of job {some_names(absent, NAMED)}")
    groups = [[line for line in chosen.jobs if line.job.job_id in listed] for listed in ({*against}, {*jobs})]
    sides = (("against", groups[0]), ("jobs", groups[1]))
    return _compared(chosen, sides, (None, None), _left_out(chosen), exclusive, significance)


def _left_out(chosen: JobsOfWindow) -> JobsLeftOut:
    return JobsLeftOut(running=chosen.running, without_counters=len(chosen.without_counters))


def _compared(
    chosen: JobsOfWindow,
    sides: tuple[Group, Group],
    dates: tuple[datetime | None, datetime | None],
    left_out: JobsLeftOut,
    exclusive: bool,
    significance: float,
) -> JobComparison:
    first, second = (
        (label, [line for line in lines if not exclusive or line.shares_nodes is False]) for label, lines in sides
    )
    kept = len(first[1]) + len(second[1])
    left_out = replace(left_out, sharing_nodes=sum(len(lines) for _, lines in sides) - kept)
    for label, lines in (first, second):
        if not lines:
            raise UsageError(_nothing(chosen.filesystem, label, left_out))
    return job_compare(chosen.filesystem, first, second, dates, left_out, significance)


def _nothing(filesystem: str, label: str, left_out: JobsLeftOut) -> str:
    """Which side is empty, and where its jobs went."""
    reasons = {
        "without counters": left_out.without_counters, "still running": left_out.running,
        "in between": left_out.in_between, "not alone on their nodes": left_out.sharing_nodes,
    }  # fmt: skip
    words = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"no such job on {filesystem} on the side {label!r}" + (f"; left out: {words}" if words else "")
