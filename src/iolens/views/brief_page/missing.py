"""What the page cannot say, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolens.views.render.section import ReportSection
from iolens.views.render.tables import sentence
from iolens.views.report.page import ReportChapter

if TYPE_CHECKING:
    from iolens.analyses.job_page import MissingPart


def missing_chapter(missing: Sequence[MissingPart], notes: Sequence[str] = ()) -> list[ReportChapter]:
    """The last chapter; none where nothing is missing."""
    said = [sentence(f"{item.what}: {item.reason}") for item in missing] + [sentence(note) for note in notes]
    return [ReportChapter("What is not known", "part", [ReportSection("", tuple(said))])] if said else []
