"""One run as a page that is complete in itself: what it did, what to change, and its activity over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views import runs_timeline as timeline_figures
from iolens.views import runs_timeline as timeline_tables
from iolens.views.render.section import Part, ReportSection
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.tables import sentence
from iolens.views.report.page import ReportChapter, ReportInfo, page_html
from iolens.views.runs_summary.report import page_facts, report_sections, title
from iolens.views.runs_summary.words import warnings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iolens.analyses.runs.summary import RunSummary
    from iolens.analyses.runs.timeline import RunTimeline


def run_page(run: RunSummary, timeline: RunTimeline, about: ReportInfo) -> str:
    """The page as HTML."""
    made = ("Generated", f"{time_with_zone(about.generated)} by iolens {about.version}")
    glance, advice, *rest = report_sections(run)
    chapters = [
        ReportChapter("Summary", "summary", [glance, advice], tuple(map(sentence, warnings_of(run)))),
        ReportChapter("Activity over time", "filesystem", [ReportSection("By rank", tuple(_activity(timeline)))]),
        ReportChapter("Details", "filesystem", rest),
    ]
    return page_html(title(run), about, [*page_facts(run), made], chapters)


def _activity(timeline: RunTimeline) -> Iterator[Part]:
    yield timeline_figures.activity(timeline)
    yield from timeline_tables.tables(timeline)
