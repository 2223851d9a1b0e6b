"""What the page cannot say, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolens.views.render import tables as t
from iolens.views.render.section import Part, ReportSection
from iolens.views.render.tables import sentence
from iolens.views.report.page import ReportChapter

if TYPE_CHECKING:
    from iolens.analyses.job_page.results import MissingPart


def missing_chapter(missing: Sequence[MissingPart], notes: Sequence[str] = ()) -> list[ReportChapter]:
    """The last chapter; none where nothing is missing."""
    if not missing and not notes:
        return []
    columns = (t.text("what", "Not known"), t.text("reason", "Because"))
    parts: list[Part] = [t.TableView("", columns, t.rows_of(missing, columns))] if missing else []
    parts += [sentence(note) for note in notes]
    return [ReportChapter("What is not known", "part", [ReportSection("", tuple(parts))])]
