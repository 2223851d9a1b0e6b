"""The page of a user: the answer first, then jobs, days, advice, slow runs, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si
from iolens.views.brief_page.advice import advice_sections
from iolens.views.brief_page.missing import missing_chapter
from iolens.views.brief_page.numbers import ASSOCIATED, DISK_TIME, plain_hours
from iolens.views.brief_page.verdict import verdict_sentence
from iolens.views.explain.words import who_words
from iolens.views.render import tables as t
from iolens.views.render.section import Fact, Facts, Part, ReportSection
from iolens.views.render.shown_times import short_time, shown_in, time_with_zone, window_with_zone, zone_name
from iolens.views.report.page import ReportChapter, ReportInfo, page_html
from iolens.views.user_page.figures import trend
from iolens.views.user_page.words import WHEN, answer
from iolens.visible_text import core_hours, counted

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.analyses.user_page import UserPage
    from iolens.views.render.tables import TableView

MOST_DAYS_IN_TABLE: Final = 14
FEWEST_DAYS: Final = 2  # that make a trend


def user_page_html(page: UserPage, about: ReportInfo) -> str:
    """The whole page; the time zone is that of `about`."""
    with shown_in(about.timezone):
        facts = [
            ("User", page.user),
            ("Window", window_with_zone(page.window_start, page.window_end)),
            ("Made", f"{time_with_zone(about.generated)} by iolens {about.version}"),
        ]
        return page_html(f"Storage use of {page.user}", about, facts, chapters(page), brief=True)


def chapters(page: UserPage) -> Iterator[ReportChapter]:
    """The answer, what it rests on, and what is not known."""
    yield _chapter("In short", *answer(page), *_facts(page), kind="answer")
    if page.uses:
        yield _chapter("Whose disk time it was", *_costs(page))
    if page.top_jobs:
        yield _chapter("Jobs that cost most", _jobs(page))
    if page.days:
        yield _chapter("Day by day" if page.days_each == 1 else "Week by week", *_days(page))
    if page.jobs:
        yield ReportChapter("What to change", "part", advice_sections(page.advice, page.is_judged, page.runs))
    if page.slow_runs:
        slow = [_slow(number, run) for number, run in enumerate(page.slow_runs, 1)]
        yield ReportChapter("Runs that were slow", "part", slow)
    yield from missing_chapter(page.missing)


def _chapter(title: str, *parts: Part, kind: str = "part") -> ReportChapter:
    return ReportChapter(title, kind, [ReportSection("", parts)])


def _facts(page: UserPage) -> list[Part]:
    facts = [
        Fact(f"{t.show_percent(use.cost.share_pct)} %", f"of the disk time of {use.filesystem}", WHEN)
        for use in page.uses
    ]
    facts += [Fact(f"{page.jobs:,}", "jobs", f"{counted(page.runs, 'run')} with a log")] if page.jobs else []
    if page.core_hours:
        spent = "" if page.io_core_hours is None else f"{plain_hours(page.io_core_hours)} in I/O calls, by the logs"
        facts.append(Fact(plain_hours(page.core_hours), "core-hours", spent))
    for label, count in (("read", page.read_bytes), ("written", page.write_bytes)):
        facts += [Fact(format_bytes_si(count), label)] if count is not None else []
    return [Facts(tuple(facts))] if facts else []


def _costs(page: UserPage) -> Iterator[Part]:
    columns = (
        t.text("filesystem", "File system"), t.percent("own", "These jobs"), t.percent("others", "Other jobs"),
        t.percent("nobody", "No job that is known"), t.number("seconds", "Disk time of these jobs", "s", ",.0f"),
        t.percent("bytes", "Bytes, of all jobs'"), t.percent("busy", "FSU of all"),
        t.text("calibration", "Calibration"),
    )  # fmt: skip
    rows: list[t.Row] = [
        (use.filesystem, cost.share_pct, cost.others_pct, cost.unattributed_pct, cost.disk_seconds,
         cost.bytes_share_pct, cost.fsu_pct, cost.calibration_words)
        for use in page.uses for cost in [use.cost]
    ]  # fmt: skip
    yield t.TableView("Shares of the disk time", columns, rows, DISK_TIME)
    methods = {use.cost.method for use in page.uses}
    yield from (words for method, words in ASSOCIATED.items() if method in methods)


def _jobs(page: UserPage) -> TableView:
    columns = (
        t.text("job_id", "Job"), t.text("name", "Program"), t.text("start", f"Start ({zone_name()})"),
        t.number("core_hours", "Core-hours", form=",.3g"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"), t.number("disk_seconds", "Disk time", "s", ",.0f"),
    )  # fmt: skip
    rows = [
        t.row_of(job, columns, {"start": None if job.start is None else short_time(job.start)}) for job in page.top_jobs
    ]
    note = f"The first by disk time, bytes or core-hours, of {page.jobs:,}." if len(rows) < page.jobs else ""
    return t.TableView("Jobs", columns, rows, note)


def _days(page: UserPage) -> Iterator[Part]:
    if len({day.day for day in page.days}) >= FEWEST_DAYS:
        yield trend(page)
    busy = [day for day in page.days if day.share_pct or day.moved_bytes]
    if len(busy) > MOST_DAYS_IN_TABLE:
        return
    columns = (
        t.day("day", "Day" if page.days_each == 1 else "Week from"),
        t.text("filesystem", "File system"), t.percent("share_pct", "Share of the disk time"),
        t.number("disk_seconds", "Disk time", "s", ",.0f"), t.volume("moved_bytes", "Read and written"),
    )  # fmt: skip
    yield t.TableView("Days with any I/O", columns, t.rows_of(busy, columns))


def _slow(number: int, run: RunExplanation) -> ReportSection:
    hours = core_hours(plain_hours(run.core_hours_lost or 0.0))
    lost = f" {hours} {'was' if hours.startswith('1 ') else 'were'} lost." if run.core_hours_lost else ""
    title = f"{number}. {who_words(run)}, {short_time(run.window_start)}"
    return ReportSection(title, (f"{verdict_sentence(run)}{lost}",))
