"""Chapters as one self-contained HTML page (B3): opens from disk, fetches nothing, prints well.

What stands in it is described by `views.render.section`; the report of a centre is put together in `centre`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.views.render.figures import Figure
from iolens.views.render.html_text import html_text, with_commands
from iolens.views.render.section import Part, Question, ReportSection
from iolens.views.report.figures import bokeh_script, report_figure, still_figure
from iolens.views.report.template_parts import template_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Environment

    from iolens.views.render.tables import TableView

HERE: Final = Path(__file__).parent
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class ReportInfo:
    """What the title block says besides the results: the window as asked for, when, by what, and what failed."""

    version: str
    generated: datetime
    window: tuple[datetime | None, datetime | None] = (None, None)
    timezone: str | None = None
    refused: tuple[str, ...] = ()


@dataclass(slots=True)
class ReportChapter:
    """A heading of the first order: what opens it, then its sections; closed ones open at a click."""

    title: str
    kind: str
    sections: list[ReportSection]
    warnings: tuple[str, ...] = ()
    opening: tuple[Part, ...] = ()
    anchor: str = ""
    is_closed: bool = False
    figures_left_out: int = 0
    question: Question | None = None


@dataclass(slots=True)
class Numbers:
    """Figures are counted through the whole report; `live` ones can be zoomed."""

    figures: int = 0
    live: bool = True


def page_html(
    title: str,
    about: ReportInfo,
    facts: Sequence[tuple[str, str]],
    chapters: Iterable[ReportChapter],
    *,
    brief: bool = False,
) -> str:
    """A page of chapters below a title and what stands beside it, in the style of the report.

    A `brief` one, to send by mail, has no menu and still figures only: it is small and has no program.
    """
    from markupsafe import Markup

    numbers = Numbers(live=not brief)
    drawn = [_chapter(place, chapter, numbers) for place, chapter in enumerate(chapters, 1)]
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            title=title,
            brief=brief,
            policy=POLICY,
            about=about,
            facts=facts,
            chapters=drawn,
            style=Markup(_beside("parts.css") + _beside("report.css")),  # noqa: S704 (our own files and Bokeh's, no data)
            bokeh=Markup(bokeh_script() if numbers.figures and numbers.live else ""),  # noqa: S704
            program=Markup(_beside("report.js") if numbers.figures and numbers.live else ""),  # noqa: S704
        )
    )


def table_html(table: TableView) -> str:
    """A table for the page of somebody else: without the style of the report."""
    page = _environment().from_string('{% from "parts.html.jinja" import part %}{{ part(table) }}')
    return page.render(table=template_part(table, lambda _: {}))


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    pages = Environment(autoescape=True, loader=FileSystemLoader(HERE), undefined=StrictUndefined, finalize=html_text)
    pages.filters |= {"with_commands": with_commands, "said": with_commands}
    return pages


def _beside(name: str) -> str:
    return (HERE / name).read_text("utf-8")


# The same, as the template wants it. Ids are numbers: a name may hold anything.


def _chapter(place: int, chapter: ReportChapter, numbers: Numbers) -> dict[str, Any]:
    def draw(figure: Figure) -> dict[str, Any]:
        return _figure(figure, numbers)

    opening = [template_part(part, draw) for part in chapter.opening]
    sections = [
        {
            "id": f"section-{place}-{number}",
            "title": section.title,
            "parts": [template_part(part, draw) for part in section.parts],
        }
        for number, section in enumerate(chapter.sections, 1)
    ]
    return {
        "id": chapter.anchor or f"section-{place}",
        "title": chapter.title,
        "kind": chapter.kind,
        "warnings": chapter.warnings,
        "opening": opening,
        "sections": sections,
        "is_closed": chapter.is_closed,
        "figures_left_out": chapter.figures_left_out,
    }


def _figure(figure: Figure, numbers: Numbers) -> dict[str, Any]:
    from markupsafe import Markup

    numbers.figures += 1
    drawn = report_figure(figure) if numbers.live else still_figure(figure)
    live = Markup(drawn.live_json)  # noqa: S704 (escaped for a script element)
    still = Markup(drawn.still)  # noqa: S704 (base64)
    return {"kind": "figure", "number": numbers.figures, "drawn": drawn, "still": still, "live_json": live}
