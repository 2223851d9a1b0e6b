"""Results as one self-contained HTML page (B3): opens from disk, fetches nothing, prints well.

What stands in it is described by `report_section`; every analysis brings its own sections, found by its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.results import OverIntervals
from iolens.views.render import tables as t
from iolens.views.render.figures import Figure
from iolens.views.render.html_text import html_text
from iolens.views.render.resolution import on_section, warnings
from iolens.views.render.section import Facts, Part, ReportSection
from iolens.views.render.shown_times import shown_in, time_with_zone
from iolens.views.render.view_names import view_name, view_of
from iolens.views.report.figures import bokeh_script, report_figure, still_figure
from iolens.visible_text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HERE: Final = Path(__file__).parent
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
NO_RESULTS: Final = "This store holds no data to report on. Load some with `iolens ingest`."
USUAL_ORDER: Final = 100
NAMES_SHOWN: Final = 6
_BEFORE_UNIT: Final = re.compile(r"(?<=[0-9]) (?=%|×|(?:[kMGTPE]?i?B(?:/s)?|h|min|s)\b)")


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
    """A heading of the first order."""

    title: str
    kind: str
    sections: list[ReportSection]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Numbers:
    """Figures are counted through the whole report; `live` ones can be zoomed."""

    figures: int = 0
    live: bool = True


def report_html(results: Sequence[Any], about: ReportInfo) -> str:
    """The whole page, from results of any analyses and file systems."""
    names = _filesystems(results)
    title = f"Storage report: {listed(names, NAMES_SHOWN)}" if names else "Storage report"
    with shown_in(about.timezone):
        return page_html(title, about, _title_block(results, names, about), _chapters(results, about))


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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    numbers = Numbers(live=not brief)
    drawn = [_chapter(place, chapter, numbers) for place, chapter in enumerate(chapters, 1)]
    page = Environment(autoescape=True, loader=FileSystemLoader(HERE), undefined=StrictUndefined, finalize=html_text)
    return page.get_template("report.html.jinja").render(
        title=title,
        brief=brief,
        policy=POLICY,
        about=about,
        facts=facts,
        chapters=drawn,
        style=Markup(_beside("report.css")),  # noqa: S704 (our own files and Bokeh's, no data)
        bokeh=Markup(bokeh_script() if numbers.figures and numbers.live else ""),  # noqa: S704
        program=Markup(_beside("report.js") if numbers.figures and numbers.live else ""),  # noqa: S704
    )


def _beside(name: str) -> str:
    return (HERE / name).read_text("utf-8")


def _filesystems(results: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(result.filesystem for result in results if result.filesystem is not None))


def _title_block(results: Sequence[Any], names: list[str], about: ReportInfo) -> list[tuple[str, str]]:
    """The window is that of the intervals: a reading or scan of another time is named beside it."""
    of_intervals = [result for result in results if isinstance(result, OverIntervals)]
    readings = [result for result in results if not isinstance(result, OverIntervals)]
    first, last = _extent(of_intervals)
    start, end = about.window[0] or first, about.window[1] or last
    if start is None or end is None:
        start, end = _extent(results)
    return [
        ("File systems" if len(names) != 1 else "File system", ", ".join(names) or "none"),
        ("Window", _window(start, end)),
        *_outside(readings, start, end),
        ("Generated", f"{time_with_zone(about.generated)} by iolens {about.version}"),
    ]


def _extent(results: Sequence[Any]) -> tuple[datetime | None, datetime | None]:
    """From the first start to the last end."""
    starts, ends = (
        [end for result in results if (end := getattr(result, name, None)) is not None]
        for name in ("window_start", "window_end")
    )
    return min(starts, default=None), max(ends, default=None)


def _outside(readings: Sequence[Any], start: datetime | None, end: datetime | None) -> list[tuple[str, str]]:
    """Readings and scans that reach beyond the window, by analysis."""
    windows: dict[str, list[str]] = {}
    for name in dict.fromkeys(map(view_name, readings)):
        first, last = _extent([result for result in readings if view_name(result) == name])
        if first and last and start and end and (first < start or last > end):
            windows.setdefault(_window(first, last), []).append(name)
    words = {window: " and ".join(names).replace("_", " ") for window, names in windows.items()}
    return [(f"Readings for {names}", window) for window, names in words.items()]


def _window(start: datetime | None, end: datetime | None) -> str:
    if start is None or end is None:
        return "no data"
    return f"{t.show_time(start)} to {time_with_zone(end)}"


# Which sections there are.


def _chapters(results: Sequence[Any], about: ReportInfo) -> Iterator[ReportChapter]:
    ordered = sorted(results, key=lambda result: getattr(_module(result), "REPORT_ORDER", USUAL_ORDER))
    names = _filesystems(results)
    yield ReportChapter("Summary", "summary", list(_summary(ordered, names)), about.refused)
    if len(names) > 1:
        compared = [section for module, same in _by_analysis(ordered) for section in _call(module, "comparison", same)]
        if compared:
            yield ReportChapter("Side by side", "comparison", compared)
    for name in names:
        mine = [result for result in ordered if result.filesystem == name]
        yield ReportChapter(name, "filesystem", [section for result in mine for section in _sections(result)])
    for result in _of_the_centre(ordered):
        yield ReportChapter(_module(result).REPORT_CHAPTER, "centre", _sections(result))
    methods = [section for module, same in _by_analysis(ordered) for section in _call(module, "methods", same)]
    if methods:
        yield ReportChapter("How to read this", "methods", methods)


def _summary(ordered: Sequence[Any], names: list[str]) -> Iterator[ReportSection]:
    if not ordered:
        yield ReportSection("Nothing to report", (NO_RESULTS,))
    for name in names:
        mine = [result for result in ordered if result.filesystem == name]
        warned = dict.fromkeys(warning for result in mine for warning in warnings(result))
        parts = (part for result in mine for part in _call(_module(result), "summary", result))
        yield ReportSection(name, (*warned, *parts))
    for result in _of_the_centre(ordered):
        module = _module(result)
        yield ReportSection(module.REPORT_CHAPTER, tuple(_call(module, "summary", result)))


def _of_the_centre(results: Sequence[Any]) -> list[Any]:
    """Results that belong to no file system; their view has a `REPORT_CHAPTER`."""
    return [result for result in results if result.filesystem is None]


def _by_analysis(ordered: Sequence[Any]) -> list[tuple[Any, list[Any]]]:
    results: dict[type, list[Any]] = {}
    for result in ordered:
        results.setdefault(type(result), []).append(result)
    return [(_module(same[0]), same) for same in results.values()]


def _module(result: object) -> Any:
    return view_of(result, "report", "tables")


def _call(module: Any, what: str, argument: object) -> list[Any]:
    function = getattr(module, f"report_{what}", None)
    return [] if function is None else list(function(argument))


def _sections(result: Any) -> list[ReportSection]:
    return [on_section(result, section) for section in _plain_sections(result)]


def _plain_sections(result: Any) -> list[ReportSection]:
    module = _module(result)
    if hasattr(module, "report_sections"):
        return _call(module, "sections", result)
    title = view_name(result).replace("_", " ").capitalize()
    drawn = [describe() for describe in view_of(result, "figures", "tables").figures(result).values()]
    return [ReportSection(title, (*drawn, *module.tables(result)))]


# The same, as the template wants it. Ids are numbers: a name may hold anything.


def _chapter(place: int, chapter: ReportChapter, numbers: Numbers) -> dict[str, Any]:
    sections = [
        {
            "id": f"section-{place}-{number}",
            "title": section.title,
            "parts": [_part(part, numbers) for part in section.parts],
        }
        for number, section in enumerate(chapter.sections, 1)
    ]
    return {
        "id": f"section-{place}",
        "title": chapter.title,
        "kind": chapter.kind,
        "warnings": chapter.warnings,
        "sections": sections,
    }


def _part(part: Part, numbers: Numbers) -> dict[str, Any]:
    if isinstance(part, str):
        return {"kind": "words", "text": _tied(part)}
    if isinstance(part, Facts):
        return {"kind": "facts", "facts": part.facts}
    if isinstance(part, t.TableView):
        return {"kind": "table", "table": _table(part)}
    return _figure(part, numbers)


def _tied(text: str) -> str:
    """The text with numbers and units kept on one line."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _figure(figure: Figure, numbers: Numbers) -> dict[str, Any]:
    from markupsafe import Markup

    numbers.figures += 1
    drawn = report_figure(figure) if numbers.live else still_figure(figure)
    live = Markup(drawn.live_json)  # noqa: S704 (escaped for a script element)
    still = Markup(drawn.still)  # noqa: S704 (base64)
    return {"kind": "figure", "number": numbers.figures, "drawn": drawn, "still": still, "live_json": live}


def _table(table: t.TableView) -> dict[str, Any]:
    head, body = _sideways(table) if table.sideways else _upright(table)
    return {
        "title": table.title,
        "head": head,
        "body": body,
        "notes": [_tied(line) for line in table.note.splitlines()],
    }


def _upright(table: t.TableView) -> tuple[list[dict[str, str]], list[list[dict[str, str]]]]:
    looks = ["right" if column.align == "right" else "" for column in table.columns]
    head = [_cell(column.heading_with_unit, look) for column, look in zip(table.columns, looks, strict=True)]
    body = [
        [
            _cell(column.cell(value), look or _look(column.cell(value)))
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


def _cell(text: str, look: str = "") -> dict[str, str]:
    return {"text": text, "look": look}


def _look(text: str) -> str:
    """Long texts may be broken, short ones not."""
    return "words" if len(text) > 28 else ""
