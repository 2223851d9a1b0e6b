"""A short document as plain data: chapters of words, equations and tables; as Markdown, and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from iolens.views.render import tables as t
from iolens.views.render.escaped_text import html_text, markdown_cell, markdown_line
from iolens.views.render.figures import Figure
from iolens.views.render.tables import TableView
from iolens.views.report.page import still
from iolens.visible_text import visible, visible_lines

# A short document as plain data ---------------------------------------------------------------------------------------
# Chapters of words, equations, tables and figures. Three writers print it.
#
# `rationale_markdown`, `rationale_html` and `rationale_pdf` know how; what stands in it is `plan_rationale`'s business.

APPENDIX: Final = "Appendix: how the numbers were found"


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation, and below it the same with the values of each case put in."""

    symbols: str
    workings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Equations:
    """Equations set apart."""

    equations: tuple[Equation, ...]


@dataclass(frozen=True, slots=True)
class BulletList:
    """A list; each point a sentence."""

    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Caution:
    """A paragraph that must not be overlooked."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """What to type."""

    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure; `name` is that of its file, where a writer puts it into one."""

    name: str
    figure: Figure


def runs(text: str) -> list[tuple[str, bool]]:
    """Pieces of a text, and whether each is something to type: what stands between two backticks."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # one without its fellow is a character like any other
        return [(text, False)]
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


Part = str | Equations | BulletList | Caution | Command | TableView | Drawing


@dataclass(frozen=True, slots=True)
class DocumentChapter:
    """A heading and what stands below it, in reading order; a string is a paragraph.

    What is no appendix stands alone, on the first page.
    """

    title: str
    parts: tuple[Part, ...]
    is_appendix: bool = False


@dataclass(frozen=True, slots=True)
class RationaleDocument:
    """The whole; `facts` stand below the title, `maker` at the foot of every page."""

    title: str
    author: str | None
    facts: tuple[tuple[str, str], ...]
    chapters: tuple[DocumentChapter, ...]
    maker: str

    def labelled(self) -> list[tuple[str, DocumentChapter]]:
        """The chapters with their numbers: `1`, and `A1` in the appendix."""
        before = len(self.first_page)
        return [
            (f"A{number - before}" if chapter.is_appendix else str(number), chapter)
            for number, chapter in enumerate(self.chapters, 1)
        ]

    @property
    def first_page(self) -> tuple[DocumentChapter, ...]:
        """What stands before the appendix."""
        return tuple(chapter for chapter in self.chapters if not chapter.is_appendix)

    def drawings(self) -> list[Drawing]:
        """All figures, in reading order."""
        return [part for chapter in self.chapters for part in chapter.parts if isinstance(part, Drawing)]


# A document as GitHub-flavoured Markdown; figures are files beside it -------------------------------------------------

NO_FIGURES: Final = "Figures are drawn where the document is written to a file."


def write(document: RationaleDocument, path: Path) -> list[Path]:
    """The document at `path` and its figures in a folder beside it; what was written."""
    from iolens.views.render import atomic, figures

    drawings = document.drawings()
    folder = path.with_name(f"{path.stem}-figures")
    written = []
    if drawings:
        folder.mkdir(exist_ok=True)
    for drawing in drawings:
        written.append(folder / f"{drawing.name}.svg")
        figures.draw(drawing.figure, written[-1])
    atomic.write(path, to_markdown(document, folder.name))
    return [path, *written]


def to_markdown(document: RationaleDocument, figures_in: str | None = None) -> str:
    """The text; with a folder for figures it shows them, without one it says that they are left out."""
    writer = _MarkdownWriter(figures_in)
    blocks = [f"# {markdown_cell(document.title)}", _facts(document)]
    for label, chapter in document.labelled():
        blocks += [f"# {APPENDIX}"] if label == "A1" else []
        blocks += writer.chapter(label, chapter)
    if figures_in is None and document.drawings():
        blocks.append(f"*{NO_FIGURES}*")
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _facts(document: RationaleDocument) -> str:
    return "  \n".join(f"**{name}**: {_plain(value)}" for name, value in document.facts)


class _MarkdownWriter:
    """Counts the figures through the whole document."""

    def __init__(self, figures_in: str | None) -> None:
        self.figures_in = figures_in
        self.figures = 0

    def chapter(self, label: str, chapter: DocumentChapter) -> Iterator[str]:
        yield f"## {label}. {markdown_cell(chapter.title)}"
        for part in chapter.parts:
            yield self._part(part)

    def _part(self, part: Part) -> str:
        if isinstance(part, Drawing):
            return self._drawing(part)
        if isinstance(part, t.TableView):
            return t.to_markdown([part], level=3)
        if isinstance(part, Equations):
            lines = [
                line
                for equation in part.equations
                for line in (equation.symbols, *(f"    {each}" for each in equation.workings))
            ]
            return "\n".join(["```text", *map(_in_fence, lines), "```"])
        if isinstance(part, Command):
            return "\n".join(["```sh", *map(_in_fence, part.text.split("\n")), "```"])
        if isinstance(part, BulletList):
            return "\n".join(f"- {_plain(point)}" for point in part.points)
        return f"> **{_plain(part.text)}**" if isinstance(part, Caution) else _plain(part)

    def _drawing(self, drawing: Drawing) -> str:
        if self.figures_in is None:
            return ""
        self.figures += 1
        title = markdown_cell(drawing.figure.title)
        place = quote(f"{self.figures_in}/{drawing.name}.svg", errors="surrogateescape")
        return f"![{title}]({place})\n\n*Figure {self.figures}. {title}.*"


def _plain(text: str) -> str:
    """Text that no reader takes for markup, but for what stands between backticks: something to type."""
    pieces = [f"`{visible(run)}`" if is_code else markdown_line(run) for run, is_code in runs(text)]
    return "".join(pieces)


def _in_fence(line: str) -> str:
    """A line of a fenced block, which no line of its own can end."""
    seen = visible_lines(line)
    return f" {seen}" if seen.lstrip().startswith("```") else seen


# A document as one HTML page with its figures inside ------------------------------------------------------------------
# Opens from disk, fetches nothing, runs nothing, prints well.

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
