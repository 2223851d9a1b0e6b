"""Studies in the report: what was measured with benchmarks, the newest of each kind and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render.section import Answer, ReportSection
from iolens.views.render.shown_times import show_time
from iolens.views.render.view_names import view_of

if TYPE_CHECKING:
    from iolens.analyses.bench_list import StoredStudy
    from iolens.analyses.bench_report import ReportedStudies


REPORT_ORDER: Final = 80
REPORT_CHAPTER: Final = "Benchmarks"
KINDS: Final = {"ior": "IOR", "stripe": "Stripes"}


def report_answers(result: ReportedStudies) -> list[Answer]:
    """A sentence of each study, and the first figure."""
    answers = []
    for study, measured in result.studies:
        drawn = [describe() for describe in view_of(measured, "figures").figures(measured).values()]
        figure = next((figure for figure in drawn if figure.has_content), None)
        words = f"{title(study)}: {view_of(measured, 'tables').headline(measured)}"
        answers.append(Answer("other", (words,), figure))
    return answers


def report_sections(result: ReportedStudies) -> list[ReportSection]:
    """A section for each study."""
    sections = []
    for study, measured in result.studies:
        drawn = [describe() for describe in view_of(measured, "figures").figures(measured).values()]
        sections.append(ReportSection(title(study), (*drawn, *view_of(measured, "tables").tables(measured))))
    return sections


def title(study: StoredStudy) -> str:
    """`Sequential on scratch, 2026-11-18 05:08:53`."""
    when = f", {show_time(study.ended)}" if study.ended is not None else ""
    kind = KINDS.get(study.kind, study.kind.capitalize())
    return f"{kind} on {' and '.join(study.places) or 'a place without name'}{when}"
