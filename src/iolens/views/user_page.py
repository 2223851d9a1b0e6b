"""What is said to a user first: what ran, what it cost, what to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes_si
from iolens.views.brief_page import (
    ASSOCIATED,
    DISK_TIME,
    advice_sections,
    cost_words,
    first_advice,
    hours,
    missing_chapter,
    moved_words,
    plain_hours,
    verdict_sentence,
)
from iolens.views.explain import who_words
from iolens.views.render import tables as t
from iolens.views.render.figures import NAMES, WRITE, Axis, Bars, Figure, Panel
from iolens.views.render.section import Fact, Facts, Part, ReportSection
from iolens.views.render.shown_times import short_time, shown_in, time_with_zone, window_with_zone, zone_name
from iolens.views.report.page import ReportChapter, ReportInfo, page_html
from iolens.visible_text import core_hours, counted, shown_name

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.analyses.user_page import UserDay, UserPage
    from iolens.views.render.tables import TableView


WHEN: Final = "in this time"


def answer(page: UserPage) -> Iterator[str]:
    """Two or three short paragraphs."""
    window = window_with_zone(page.window_start, page.window_end)
    if not page.jobs:
        yield f"Nothing of {shown_name(page.user)} is stored from {window}."
        return
    yield f"{_what(page, window)} {' '.join(_costs(page))}"
    if page.slow_runs:
        were = "was" if len(page.slow_runs) == 1 else "were"
        yield f"At least {counted(len(page.slow_runs), 'run')} {were} slower than like runs; below is why."
    yield first_advice(page.advice, page.is_judged, page.runs)


def _what(page: UserPage, window: str) -> str:
    cost = f" ({hours(page.core_hours)})" if page.core_hours else ""
    they = _they(page)
    words = moved_words(page.read_bytes, page.write_bytes)
    moved = f"; {they} {words}" if words else f"; what {they} moved is not known"
    return f"From {window}, {shown_name(page.user)} ran {counted(page.jobs, 'job')}{cost}{moved}."


def _costs(page: UserPage) -> Iterator[str]:
    for use in page.uses:
        yield cost_words(_they(page).capitalize(), shown_name(use.filesystem), use.cost, WHEN)
    if not page.uses:
        yield f"How much disk time {_they(page)} took is not known."


def _they(page: UserPage) -> str:
    return "it" if page.jobs == 1 else "they"


# The figure of a user's days ------------------------------------------------------------------------------------------

TB: Final = 1e12
MOST_LABELS: Final = 10
WIDTH: Final = 0.8  # of a day


def trend(page: UserPage) -> Figure:
    """By day or week: the share of the disk time of each file system, or bytes where no share is known."""
    days = page.days
    dates = sorted({day.day for day in days})
    every = -(-len(dates) // MOST_LABELS)
    ticks = tuple((float(place), date.strftime("%m-%d")) for place, date in enumerate(dates) if place % every == 0)
    x = Axis("day" if page.days_each == 1 else "week from", low=-0.6, high=len(dates) - 0.4, ticks=ticks)
    names = list(dict.fromkeys(day.filesystem for day in days))
    is_share = any(day.share_pct is not None for day in days)
    y = Axis("share of the disk time (%)" if is_share else "read and written (TB)", low=0.0)
    width = WIDTH / len(names)
    marks = []
    for number, name in enumerate(names):
        heights = {day.day: _height(day, is_share) for day in days if day.filesystem == name}
        starts = np.arange(len(dates)) - WIDTH / 2 + number * width
        values = np.array([heights.get(date, 0.0) for date in dates])
        colour = WRITE if len(names) == 1 else NAMES[number % len(NAMES)]
        labels = tuple(date.isoformat() for date in dates)
        marks.append(Bars(starts, starts + width, values, name or "by the logs", colour, labels))
    heading = "Share of the disk time by day" if is_share else "Bytes by day"
    return Figure("trend", heading, (Panel("", x, y, tuple(marks)),))


def _height(day: UserDay, is_share: bool) -> float:
    return (day.share_pct or 0.0) if is_share else (day.moved_bytes or 0) / TB


# The page of a user ---------------------------------------------------------------------------------------------------
# The answer first, then jobs, days, advice, slow runs, and what is not known.

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
        yield _chapter("Whose disk time it was", *_costs_section(page))
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


def _costs_section(page: UserPage) -> Iterator[Part]:
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
