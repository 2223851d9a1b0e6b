"""A document as PDF on A4, with ReportLab: text to select, figures as vectors, tables that break between their lines.

The fonts are the ones matplotlib brings along, so that it looks the same everywhere.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape as escaped_markup

from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    KeepInFrame,
    KeepTogether,
    ListFlowable,
    ListItem,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
)

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
from iolens.views.render.reportlab_figure import FigureOnPage
from iolens.visible_text import shown_lines, shown_name

REGULAR: Final = "iolens-regular"
BOLD: Final = "iolens-bold"
FIXED: Final = "iolens-fixed"
FONTS: Final = {REGULAR: "DejaVuSans.ttf", BOLD: "DejaVuSans-Bold.ttf", FIXED: "DejaVuSansMono.ttf"}
INK, QUIET, LINE, WASH, ACCENT, ALARM = map(
    colors.HexColor, ("#1b1f24", "#57606a", "#d0d7de", "#f6f8fa", "#0b5cad", "#b35900")
)
WIDTH, HEIGHT = A4
MARGIN: Final = 18 * mm
FOOT: Final = 10 * mm
COLUMN: Final = WIDTH - 2 * MARGIN
MOST_FIGURE: Final = 0.75 * COLUMN, 0.4 * HEIGHT  # a tall figure is made narrower rather than given a page
TOGETHER: Final = 22  # lines of a table that are kept on one page
SIZES: Final = (7.5, 7.0, 6.5, 6.0, 5.5)  # of letters in a table: the first that fits
GUTTER: Final = 11.0  # points between two columns
STEP: Final = 4.0  # points by which columns give way in turn
TINY: Final = 0.01
_TIES: Final = re.compile(
    r"(?:(?<=[0-9]) (?=(?:%|days|DWPD|[kKMGTPE]?i?B(?:/s)?)(?!\w)))|(?:(?:(?<=SSI)|(?<=WAF)|(?<=fraction)) (?=[0-9]))"
)
LONGEST: Final = 24  # characters of a word that are kept on one line
SHORT: Final = 16  # characters: a cell of words no longer than this is not broken

_BODY: Final = ParagraphStyle("body", fontName=REGULAR, fontSize=8.5, leading=12, textColor=INK, spaceAfter=5)
_STYLES: Final = {
    "body": _BODY,
    "title": ParagraphStyle("title", _BODY, fontName=BOLD, fontSize=17, leading=21, spaceAfter=8),
    "chapter": ParagraphStyle("chapter", _BODY, fontName=BOLD, fontSize=12, leading=15, spaceBefore=14, spaceAfter=3),
    "table": ParagraphStyle("table", _BODY, fontName=BOLD, spaceBefore=4, spaceAfter=2),
    "note": ParagraphStyle("note", _BODY, fontSize=7, leading=9.5, textColor=QUIET, spaceAfter=1),
    "caption": ParagraphStyle("caption", _BODY, fontSize=7.5, leading=10, textColor=QUIET, spaceAfter=8),
    "symbols": ParagraphStyle("symbols", _BODY, fontName=BOLD, fontSize=8, leading=11.5, spaceAfter=0),
    "equation": ParagraphStyle("equation", _BODY, fontSize=8, leading=11.5, spaceAfter=0),
    "command": ParagraphStyle("command", _BODY, fontName=FIXED, fontSize=7.5, leading=10.5, spaceAfter=0),
    "point": ParagraphStyle("point", _BODY, spaceAfter=2),
}


def to_pdf(document: RationaleDocument, made: datetime) -> bytes:
    """The content of the file; the same document gives the same bytes."""
    _register_fonts()
    out = io.BytesIO()
    template = _Template(
        out,
        pagesize=A4,
        title=shown_name(document.title),
        author=shown_name(document.author or ""),
        creator=document.maker,
        producer=document.maker,
        invariant=1,
    )
    template.foot = f"{shown_name(document.title)} · {document.maker}"
    template.build(list(_story(document)), canvasmaker=_canvas_of(made))
    return out.getvalue()


def _register_fonts() -> None:
    import matplotlib as mpl

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    for name, file in FONTS.items():
        if name not in pdfmetrics.getRegisteredFontNames():
            pdfmetrics.registerFont(TTFont(name, str(folder / file)))
    pdfmetrics.registerFontFamily(REGULAR, normal=REGULAR, bold=BOLD, italic=REGULAR, boldItalic=BOLD)


# Pages.


class _Template(BaseDocTemplate):  # type: ignore[misc]
    """One column on every page; chapters are bookmarks."""

    foot = ""

    def __init__(self, out: io.BytesIO, **settings: Any) -> None:
        super().__init__(out, **settings)
        frame = Frame(MARGIN, MARGIN, COLUMN, HEIGHT - 2 * MARGIN, 0, 0, 0, 0)
        self.addPageTemplates(PageTemplate("page", [frame], onPage=self._footed))

    def _footed(self, canvas: Any, _: object) -> None:
        canvas.foot = self.foot

    def afterFlowable(self, flowable: Any) -> None:
        """A chapter's heading is on its page now."""
        if getattr(flowable, "style", None) is _STYLES["chapter"]:
            key = f"chapter-{flowable.getPlainText()}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(flowable.getPlainText(), key)


def _canvas_of(made: datetime) -> type[Canvas]:
    """A canvas that knows when the document was made, and how many pages there are before it writes the first foot."""

    class FootedCanvas(Canvas):  # type: ignore[misc]
        foot = ""

        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            self._pages: list[dict[str, Any]] = []
            stamp = self._doc._timeStamp
            stamp.t, stamp.lt = made.timestamp(), made.utctimetuple()
            stamp.YMDhms = tuple(stamp.lt)[:6]

        def showPage(self) -> None:
            self._pages.append(dict(self.__dict__))
            self._startPage()

        def save(self) -> None:
            for number, page in enumerate(self._pages, 1):
                self.__dict__.update(page)
                _draw_foot(self, self.foot, f"{number} / {len(self._pages)}")
                super().showPage()
            super().save()

    return FootedCanvas


def _draw_foot(canvas: Any, left: str, right: str) -> None:
    canvas.setStrokeColor(LINE)
    canvas.setLineWidth(0.5)
    canvas.line(MARGIN, FOOT + 10, WIDTH - MARGIN, FOOT + 10)
    canvas.setFillColor(QUIET)
    canvas.setFont(REGULAR, 7)
    canvas.drawString(MARGIN, FOOT, left)
    canvas.drawRightString(WIDTH - MARGIN, FOOT, right)


# What stands on them.


def _story(document: RationaleDocument) -> Iterator[Flowable]:
    yield _words(document.title, "title")
    if document.facts:
        yield _facts(document.facts)
    writer, has_appendix = _PdfWriter(), len(document.first_page) < len(document.chapters)
    for label, chapter in document.labelled():
        if label == "A1":
            yield PageBreak()
            yield _words(APPENDIX, "title")
        yield from writer.chapter(label, chapter, on_one_page=has_appendix and not chapter.is_appendix)


def _words(text: str, style: str = "body") -> Paragraph:
    pieces = runs(_tied(text))
    marked = (f'<font name="{FIXED}">{_xml(run)}</font>' if is_code else _xml(run) for run, is_code in pieces)
    return Paragraph("".join(marked), _STYLES[style])


def _xml(text: str) -> str:
    """Text of a paragraph: no markup, nothing unseen."""
    return escaped_markup(shown_lines(text))


def _tied(text: str) -> str:
    """The text with numbers kept on one line with their units and names."""
    return _TIES.sub("\N{NO-BREAK SPACE}", text)


def _facts(facts: tuple[tuple[str, str], ...]) -> Table:
    rows = [[Paragraph(_xml(name), _STYLES["note"]), _words(value, "point")] for name, value in facts]
    bare = [
        ("LEFTPADDING", (0, 0), (-1, -1), 0), ("TOPPADDING", (0, 0), (-1, -1), 0),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 0), ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ]  # fmt: skip
    return Table(rows, [32 * mm, COLUMN - 32 * mm], style=bare)


class _PdfWriter:
    """Counts the figures through the whole document."""

    def __init__(self) -> None:
        self.figures = 0

    def chapter(self, label: str, chapter: DocumentChapter, *, on_one_page: bool = False) -> Iterator[Flowable]:
        """What must stand on one page is made as small as it takes."""
        yield CondPageBreak(60 * mm)
        yield _words(f"{label}  {chapter.title}", "chapter")
        yield _rule()
        parts = [flowable for part in chapter.parts for flowable in self._part(part)]
        yield from [KeepInFrame(COLUMN, 0, list(_unbound(parts)), mode="shrink")] if on_one_page else parts

    def _part(self, part: Part) -> Iterator[Flowable]:
        if isinstance(part, Drawing):
            self.figures += 1
            drawn = FigureOnPage(_without_title(part), (REGULAR, BOLD), MOST_FIGURE)
            caption = f"<b>Figure {self.figures}.</b> {_xml(part.figure.title)}."
            yield KeepTogether([Spacer(0, 4), drawn, Paragraph(caption, _STYLES["caption"])])
        elif isinstance(part, t.TableView):
            yield from _table(part)
        elif isinstance(part, Equations):
            lines = [
                line
                for equation in part.equations
                for line in (
                    _words(equation.symbols, "symbols"),
                    *(_words(each, "equation") for each in equation.workings),
                )
            ]
            yield KeepTogether(_boxed(lines, ACCENT))
        elif isinstance(part, Command):
            yield _boxed([_words(part.text, "command")], LINE)
        elif isinstance(part, Caution):
            yield _boxed([_words(part.text, "equation")], ALARM)
        elif isinstance(part, BulletList):
            points = [ListItem(_words(point, "point"), leftIndent=10) for point in part.points]
            yield ListFlowable(points, bulletType="bullet", start="•", bulletFontName=REGULAR, leftIndent=10)
        else:
            yield _words(part)


def _unbound(flowables: list[Flowable]) -> Iterator[Flowable]:
    """Without what holds them together or breaks a page: they stand on one page anyway."""
    for flowable in flowables:
        if isinstance(flowable, KeepTogether):
            yield from flowable._content
        elif not isinstance(flowable, CondPageBreak):
            yield flowable


def _without_title(drawing: Drawing) -> Any:
    """The caption has it."""
    from dataclasses import replace

    return replace(drawing.figure, title="")


def _rule() -> Table:
    return Table([[""]], [COLUMN], [3], style=[("LINEABOVE", (0, 0), (-1, 0), 1, INK)])


def _boxed(lines: list[Paragraph], colour: Any) -> Table:
    style = [
        ("BACKGROUND", (0, 0), (-1, -1), WASH), ("LINEBEFORE", (0, 0), (0, -1), 2.5, colour),
        ("LEFTPADDING", (0, 0), (-1, -1), 9), ("TOPPADDING", (0, 0), (-1, -1), 1.5),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 1.5),
    ]  # fmt: skip
    return Table([[line] for line in lines], [COLUMN], style=style, spaceBefore=4, spaceAfter=8)


# Tables.


def _table(table: t.TableView) -> Iterator[Flowable]:
    heading = _words(table.title, "table")
    notes = [_words(line, "note") for line in table.note.splitlines()]
    if not table.rows:
        yield KeepTogether([heading, *notes, Spacer(0, 6)])
        return
    grid, lines = _grid(table)
    if lines <= TOGETHER:
        yield KeepTogether([heading, grid, *notes, Spacer(0, 6)])
    else:
        yield CondPageBreak(40 * mm)
        yield heading
        yield grid
        yield from notes
        yield Spacer(0, 6)


def _grid(table: t.TableView) -> tuple[Table, int]:
    """The table with columns as wide as they need to be, in the largest letters in which it fits."""
    lines = [list(map(_tied, line)) for line in (t.headings(table), *t.body(table))]
    aligns = t.aligns(table)
    size = next((value for value in SIZES if sum(_least(lines, value)) <= COLUMN), SIZES[-1])
    widths = _widths(lines, size)
    styles = [
        ParagraphStyle(name, _BODY, fontName=font, fontSize=size, leading=1.3 * size, textColor=ink, alignment=lean)
        for name, font, ink in (("head", BOLD, QUIET), ("cell", REGULAR, INK))
        for lean in (0, TA_RIGHT)
    ]
    rows = [
        [
            Paragraph(_xml(cell), styles[2 * (number > 0) + (align == "right")])
            for cell, align in zip(line, aligns, strict=True)
        ]
        for number, line in enumerate(lines)
    ]
    look = [
        ("LINEABOVE", (0, 0), (-1, 0), 0.8, INK), ("LINEBELOW", (0, 0), (-1, 0), 0.5, QUIET),
        ("LINEBELOW", (0, 1), (-1, -1), 0.3, LINE), ("VALIGN", (0, 0), (-1, 0), "BOTTOM"),
        ("VALIGN", (0, 1), (-1, -1), "TOP"), ("LEFTPADDING", (0, 0), (-1, -1), 0),
        ("RIGHTPADDING", (0, 0), (-1, -1), GUTTER), ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5), ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
    ]  # fmt: skip
    return Table(rows, widths, style=look, repeatRows=1, hAlign="LEFT", spaceAfter=3), len(rows)


def _least(lines: list[list[str]], size: float) -> list[float]:
    """Widths below which words would be broken; numbers and short words stay on one line."""
    return [
        max(_wide(part, size, bold=number == 0) for number, cell in enumerate(column) for part in _whole(cell, number))
        + GUTTER
        for column in zip(*lines, strict=True)
    ]


def _whole(cell: str, number: int) -> list[str]:
    """What is not broken: words of a heading or a long text, else the cell. Of paths, only the beginning."""
    return [cell] if number and len(cell) <= SHORT else [word[:LONGEST] for word in cell.split(" ")]


def _widths(lines: list[list[str]], size: float) -> list[float]:
    """As wide as the longest cell. Where that is too much, headings are broken first, then long texts."""
    columns = list(zip(*lines, strict=True))
    least = _least(lines, size)
    cells = [max(_wide(cell, size) for cell in column[1:]) + GUTTER for column in columns]
    wide = [max(cell, _wide(column[0], size, bold=True) + GUTTER) for cell, column in zip(cells, columns, strict=True)]
    for floor in ([max(pair) for pair in zip(cells, least, strict=True)], least):
        wide = _narrowed(wide, floor)
    excess = max(sum(wide) / COLUMN, 1.0)
    return [value / excess for value in wide]  # words that no letters are small enough for are broken


def _narrowed(wide: list[float], floor: list[float]) -> list[float]:
    """Widths that add up to the column, as far as none goes below its floor; the widest give way first."""
    values = list(wide)
    while (excess := sum(values) - COLUMN) > TINY:
        spacious = [place for place in range(len(values)) if values[place] > floor[place] + TINY]
        if not spacious:
            break
        place = max(spacious, key=lambda value: values[value])
        values[place] -= min(excess, values[place] - floor[place], STEP)
    return values


def _wide(text: str, size: float, bold: bool = False) -> float:
    width: float = pdfmetrics.stringWidth(text, BOLD if bold else REGULAR, size)
    return width + 0.5
