"""Parts of a section as the templates want them: plain dictionaries of texts, with numbers kept beside their units."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from iolens.views.render import tables as t
from iolens.views.render.doubts import warned
from iolens.views.render.figures import Figure
from iolens.views.render.section import Fact, Facts, OverviewLine, OverviewLines, Part, PartHeading

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
