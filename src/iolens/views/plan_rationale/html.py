"""A document as one HTML page with its figures inside: opens from disk, fetches nothing, runs nothing, prints well."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from iolens.views.plan_rationale.document import (
    APPENDIX,
    BulletList,
    Caution,
    Command,
    Drawing,
    Equations,
    Part,
    RationaleDocument,
    runs,
)
from iolens.views.render import tables as t
from iolens.views.render.html_text import html_text
from iolens.views.report.figures import still

HERE: Final = Path(__file__).parent
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
SHORT: Final = 20  # characters: a longer cell may be broken


def to_html(document: RationaleDocument) -> str:
    """The whole page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    report = HERE.parent / "report"
    sheets = (report / "parts.css", report / "report.css", HERE / "rationale.css")
    style = "\n".join(sheet.read_text("utf-8") for sheet in sheets)
    figures = iter(range(1, len(document.drawings()) + 1))
    chapters = [
        {"label": label, "title": chapter.title, "parts": [_part(part, figures) for part in chapter.parts]}
        for label, chapter in document.labelled()
    ]
    page = Environment(autoescape=True, loader=FileSystemLoader(HERE), undefined=StrictUndefined, finalize=html_text)
    return page.get_template("rationale.html.jinja").render(
        document=document,
        policy=POLICY,
        chapters=chapters,
        appendix=APPENDIX,
        style=Markup(style),  # noqa: S704 (our own files, no data)
    )


def _part(part: Part, figures: Any) -> dict[str, Any]:
    if isinstance(part, Drawing):
        from markupsafe import Markup

        picture = Markup(still(part.figure))  # noqa: S704 (base64)
        return {"kind": "figure", "number": next(figures), "title": part.figure.title, "still": picture}
    if isinstance(part, t.TableView):
        return {"kind": "table", "title": part.title, **_cells(part), "notes": part.note.splitlines()}
    if isinstance(part, Equations):
        return {"kind": "equations", "equations": part.equations}
    if isinstance(part, BulletList):
        return {"kind": "points", "points": [runs(point) for point in part.points]}
    if isinstance(part, Command):
        return {"kind": "command", "text": part.text}
    if isinstance(part, Caution):
        return {"kind": "caution", "runs": runs(part.text)}
    return {"kind": "words", "runs": runs(part)}


def _cells(table: t.TableView) -> dict[str, Any]:
    looks = ["right" if align == "right" else "" for align in t.aligns(table)]
    head = list(zip(t.headings(table), looks, strict=True))
    body = [
        [(cell, look or ("words" if len(cell) > SHORT else "")) for cell, look in zip(line, looks, strict=True)]
        for line in t.body(table)
    ]
    return {"head": head, "body": body}
