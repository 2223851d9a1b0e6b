"""A document as GitHub-flavoured Markdown; figures are files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from iolens.views.plan_rationale.document import (
    APPENDIX,
    BulletList,
    Caution,
    Command,
    DocumentChapter,
    Drawing,
    Equations,
    Part,
    RationaleDocument,
    runs,
)
from iolens.views.render import tables as t
from iolens.views.render.markdown_text import markdown_cell, markdown_line
from iolens.visible_text import visible, visible_lines

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
