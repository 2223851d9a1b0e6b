"""Parts of a section as the templates want them: plain dictionaries of texts, with numbers kept beside their units."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.doubts import warned
from iolens.views.render.escaped_text import html_text, with_commands
from iolens.views.render.figures import Figure, HeatMapMark, Panel
from iolens.views.render.section import (
    Fact,
    Facts,
    OverviewLine,
    OverviewLines,
    Part,
    PartHeading,
    Question,
    ReportSection,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Environment

    from iolens.views.render.tables import TableView


NO_DATA: Final = "no data"
Link = Callable[[t.TableView, str, Any], str]  # table, column and value → where its cell leads; "": nowhere
_BEFORE_UNIT: Final = re.compile(r"(?<=[0-9]) (?=%|×|(?:[kMGTPE]?i?B(?:/s)?|h|min|s)\b)")


def _nowhere(*_: object) -> str:
    return ""


def template_part(part: Part, figure: Callable[[Figure], dict[str, Any]], link: Link = _nowhere) -> dict[str, Any]:
    """What the macro `part` of `parts.html.jinja` takes; `figure` draws one, `link` says where a cell leads."""
    if isinstance(part, str):
        return {"kind": "words", "text": _tied(part)}
    if isinstance(part, PartHeading):
        return {"kind": "heading", "text": part.text, "level": part.level}
    if isinstance(part, Facts):
        return {"kind": "facts", "facts": [_fact(fact) for fact in part.facts]}
    if isinstance(part, OverviewLines):
        return {"kind": "lines", "lines": [(label, [_line(line) for line in lines]) for label, lines in part.lines]}
    if isinstance(part, t.TableView):
        return {"kind": "table", "table": _table(part, link)}
    return figure(part)


def _fact(fact: Fact) -> Fact:
    """A dash in large type says nothing."""
    return replace(fact, value=NO_DATA) if fact.value == t.MISSING else fact


def _line(line: OverviewLine) -> dict[str, Any]:
    return {
        "words": _tied(line.words),
        "anchor": line.anchor,
        "command": line.command,
        "severity": line.severity,
        "address": line.address,
    }


def _tied(text: str) -> str:
    """The text with numbers and units kept on one line."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _table(table: t.TableView, link: Link) -> dict[str, Any]:
    head, body = _sideways(table) if table.sideways else _upright(table, link)
    return {
        "title": table.title,
        "warnings": [_tied(warned(line)) for line in table.warnings],
        "head": head,
        "body": body,
        "notes": [_tied(line) for line in table.note.splitlines()],
    }


def _upright(table: t.TableView, link: Link) -> tuple[list[dict[str, str]], list[list[dict[str, str]]]]:
    looks = ["right" if column.align == "right" else "" for column in table.columns]
    head = [_cell(column.heading_with_unit, look) for column, look in zip(table.columns, looks, strict=True)]
    body = [
        [
            _cell(column.cell(value), look or _look(column.cell(value)), link(table, column.name, value))
            for column, value, look in zip(table.columns, row, looks, strict=True)
        ]
        for row in table.rows
    ]
    return head, body


def _sideways(table: t.TableView) -> tuple[list[dict[str, str]], list[list[dict[str, str]]]]:
    """Headings at the left, one column of values per row."""
    first, *rest = table.columns
    head = [_cell(first.heading), *(_cell(first.cell(row[0]), _look(first.cell(row[0]))) for row in table.rows)]
    body = []
    for place, column in enumerate(rest, 1):
        shown = [column.cell_with_unit(row[place]) for row in table.rows]
        body.append([_cell(column.heading), *(_cell(text, _look(text)) for text in shown)])
    return head, body


def _cell(text: str, look: str = "", href: str = "") -> dict[str, str]:
    return {"text": text, "look": look, "href": href}


def _look(text: str) -> str:
    """Long texts may be broken, short ones not."""
    return "words" if len(text) > 28 else ""


# Figures of a report --------------------------------------------------------------------------------------------------
# A still picture for paper and for browsers without JavaScript, and data to draw it live.

MOST_CELLS: Final = 150_000  # of a heat map; more would only make the file larger than a screen can show


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One figure as the page holds it; `live_json` is safe inside a script element; empty: still only."""

    title: str
    alternative: str
    still: str
    live_json: str


def report_figure(figure: Figure) -> ReportFigure:
    """Draw the figure both ways."""
    from iolens.views.render.bokeh_figure import item, json_for_script

    drawn = bounded(figure)
    return ReportFigure(figure.title, alternative(figure), still(drawn), json_for_script(item(drawn)))


def still_figure(figure: Figure) -> ReportFigure:
    """Draw the still picture only."""
    return ReportFigure(figure.title, alternative(figure), still(figure), "")


def alternative(figure: Figure) -> str:
    """What is read out in place of the picture."""
    return f"{figure.title}: {'; '.join(dict.fromkeys(panel.title for panel in figure.panels))}"


def bounded(figure: Figure) -> Figure:
    """The figure with heat maps no finer than a screen can show."""
    return replace(figure, panels=tuple(_bounded(panel) for panel in figure.panels))


def bokeh_script() -> str:
    """The program that draws figures, once for the whole page."""
    from iolens.views.render.bokeh_figure import program

    return program()


def still(figure: Figure) -> str:
    """A data URI; the title stands in the page already."""
    from iolens.views.render.matplotlib_figure import to_bytes

    picture = to_bytes(replace(figure, title=""), "svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"


def _bounded(panel: Panel) -> Panel:
    return replace(panel, marks=tuple(_merged(mark) if isinstance(mark, HeatMapMark) else mark for mark in panel.marks))


def _merged(mark: HeatMapMark) -> HeatMapMark:
    """The heat map with neighbouring columns averaged until it is small enough."""
    rows, columns = mark.values.shape
    every = -(-rows * columns // MOST_CELLS)
    if every < 2:
        return mark
    wide = -(-columns // every) * every
    padded = np.pad(mark.values, ((0, 0), (0, wide - columns)), constant_values=np.nan)
    groups = padded.reshape(rows, -1, every)
    known = np.isfinite(groups)
    counts = known.sum(axis=2)
    sums = np.where(known, groups, 0.0).sum(axis=2)
    values = np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    step = (mark.end - mark.start) / columns
    return replace(mark, values=values, end=mark.start + step * wide)


# Chapters as one self-contained HTML page (B3) ------------------------------------------------------------------------
# Opens from disk, fetches nothing, prints well.
#
# What stands in it is described by `views.render.section`; the report of a centre is put together in `centre`.

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
