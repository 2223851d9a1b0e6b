"""Jobs of a window: those that did most, all that anything is known of, applications, and like jobs in two groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.errors import OptionError
from iolens.question import OWN, SWITCH, TIME, TOP, WORDS, Option, choice, number, question, whole
from iolens.questions.shared import LIKE_JOBS, listed

if TYPE_CHECKING:
    from datetime import datetime

    from iolens.analyses.job_applications import Applications, By
    from iolens.analyses.job_compare import JobComparison
    from iolens.analyses.job_list import JobList
    from iolens.analyses.job_search import JobSearch
    from iolens.questions.asking import Ask
    from iolens.store.jobs import JobFilter

LIST_ORDERS: Final = ("bytes", "read", "written", "operations", "opens", "rpcs", "disk", "start")
SEARCH_ORDERS: Final = ("start", "disk", "bytes", "read", "written", "core-hours", "duration")


@question(
    "job list", "Jobs of a window by what they moved, opened or asked",
    Option("sort", "Order; largest first", choice(*LIST_ORDERS), "bytes"), TOP, LIKE_JOBS,
    url="jobs/list", rights=OWN, has_figures=False,
    examples=(
        "-f scratch --from 2026-03-01 --to 2026-03-02",
        "-f scratch --sort disk",
        "-f scratch --user alice --sort opens --top 50 --format csv",
    ),
)  # fmt: skip
def job_list(ask: Ask, sort: str, top: int, like: JobFilter) -> JobList:
    """Jobs that ran in the window, with what each did to the file system.

    Numbers come from the samples of a job's begin and end, else from the counters of its nodes while it ran. The time
    it kept the disks busy is known if job_stats of the servers and a calibration of the file system are stored.
    """
    from iolens.api.jobs import listed_jobs

    return listed_jobs(ask.store, ask.scope, like, sort, top)


@question(
    "job search", "Search all jobs of a window that anything is known of",
    Option("text", "Begin of an id, or a part of a user, project, program or name", default="", is_argument=True),
    Option("sort", "Order; newest or largest first", choice(*SEARCH_ORDERS), "start"),
    Option("reverse", "Oldest or smallest first", SWITCH),
    replace(TOP, default=50),
    Option("skip", "After how many", whole(0), 0),
    listed("users", "--user", "Only jobs of these users", means="person"),
    listed("projects", "--project", "Only jobs of these projects", means="project"),
    listed("names", "--name", "Only jobs with these programs or names; * and ? stand for anything"),
    listed("clusters", "--cluster", "Only jobs of these clusters"),
    listed("states", "--state", "Only jobs with this state"),
    url="jobs", about="jobs", rights=OWN, has_figures=False,
    examples=(
        "wrf --store centre",
        "-f scratch --sort disk --top 20",
        "'4400*' --user alice,bob --sort core-hours --format csv",
    ),
)  # fmt: skip
def job_search(ask: Ask, **wanted: Any) -> JobSearch:
    """Jobs that ran in the window (the last seven days of data), by records, logs, job_stats and nodes together.

    TEXT is the start of a job id, or part of a user, project, program or job name; upper and lower case are the same.
    With * or ? it must match the whole of one of these. Without -f all file systems count; with it, only jobs that
    used this one, and what they did there.
    """
    from iolens.api.jobs import JobSearchOptions, search_jobs

    return search_jobs(ask.store, ask.scope, JobSearchOptions(**wanted))


@question(
    "job compare", "Like jobs before and after a change: what moved, is it chance",
    Option("before", "First group: jobs that ended by this time [--after]", TIME, metavar="TIME"),
    Option("after", "Second group: jobs that started at this time or later [--before]", TIME, metavar="TIME"),
    Option("jobs", "Second group: job ids", WORDS, "", metavar="IDS", means="job"),
    Option("against", "First group (reference): job ids", WORDS, "", metavar="IDS", means="job"),
    Option("exclusive", "Only jobs that are known to have shared no node", SWITCH),
    Option(
        "significance", "Accepted share of false alarms when there is no difference", number(0, 0.5, above=True), 0.01
    ),
    LIKE_JOBS,
    examples=(
        "-f scratch --name 'enzo*' --after 2026-03-01",
        "-f scratch --name enzo --cores 1024 --before 2026-03-01 --after 2026-03-03",
        "-f scratch --jobs 4711,4712,4713 --against 3901,3902,3907 --figure shift.png",
    ),
)  # fmt: skip
def job_compare(
    ask: Ask,
    before: datetime | None,
    after: datetime | None,
    jobs: tuple[str, ...],
    against: tuple[str, ...],
    like: JobFilter,
    **options: Any,
) -> JobComparison:
    """Compare like jobs before and after a date, such as that of an upgrade, or between two lists.

    Jobs are compared by the shares of their RPCs of each size, and by their totals. A difference is called real if at
    most one in a hundred random divisions of the jobs into two such groups has a difference as large in any measure.
    """
    from iolens.api.jobs import compare_at, compare_lists

    if not (jobs or against):
        return compare_at(ask.store, ask.scope, like, before, after, **options)
    if before or after:
        raise OptionError("a date (--before, --after) or two lists (--jobs, --against), not both")
    return compare_lists(ask.store, ask.scope, like, jobs, against, **options)


@question(
    "job applications", "Applications side by side, and each across core counts",
    Option("by", "Compare job names, or the core counts of each", choice("name", "cores"), "name"),
    replace(TOP, meaning="Number shown, by bytes moved", default=10), LIKE_JOBS,
    url="applications", rights=OWN,
    examples=(
        "-f scratch --from 2026-01-01 --figure gigabytes.png --figure rpcs=sizes.png",
        "-f scratch --name overflow --by cores --figure rpcs=overflow.svg",
    ),
)  # fmt: skip
def applications(ask: Ask, by: By, top: int, like: JobFilter) -> Applications:
    """What each application did: bytes read and written, opens and closes, RPCs by size.

    An application is the name of its jobs in the scheduler's records. Bytes and opens are means of a job; shares are of
    all RPCs of the application.
    """
    from iolens.api.jobs import applications_of

    return applications_of(ask.store, ask.scope, like, by, top)
