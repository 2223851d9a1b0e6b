"""A short document as plain data: chapters of words, equations, tables and figures. Three writers print it.

`rationale_markdown`, `rationale_html` and `rationale_pdf` know how; what stands in it is `plan_rationale`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolens.views.render.figures import Figure
from iolens.views.render.tables import TableView

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
