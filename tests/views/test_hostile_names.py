"""The same hostile names in every output: shown, never obeyed."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from iolens.analyses.utilization.targets import target_outliers
from iolens.views.plan_rationale.document import (
    BulletList,
    Caution,
    Command,
    DocumentChapter,
    Equation,
    Equations,
    Part,
    RationaleDocument,
)
from iolens.views.plan_rationale.document import to_html as rationale_html
from iolens.views.plan_rationale.document import to_markdown as rationale_markdown
from iolens.views.plan_rationale.pdf import to_pdf
from iolens.views.render import bokeh_figure, json_text, matplotlib_figure
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.report.centre import report_html
from iolens.views.report.page import still
from iolens.visible_text import LONGEST_NAME, shortened, shown_name, visible, with_short_words
from tests.hostile_names import HOSTILE, SOURCES_OF_TROUBLE
from tests.plans.designs import MADE
from tests.views.results import busy_day
from tests.views.test_report import ABOUT as REPORT_ABOUT
from tests.views.test_report import Page

COLUMNS = (t.text("owner", "Owner"), t.count("files", "Files"))
EVERY = pytest.mark.parametrize("name", SOURCES_OF_TROUBLE, ids=list(HOSTILE))


def table_of(name: str) -> t.TableView:
    """The name in every place a table has."""
    rows: list[t.Row] = [(name, 1), ([name, name], 2)]
    return t.TableView(f"Files of {name}", COLUMNS, rows, f"{name} has most.")


def is_harmless(text: str) -> bool:
    """Whether a terminal, or a reader, is shown all there is."""
    return all(unicodedata.category(item) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or item in "\n\t" for item in text)


# Tables, text for people and for programs -----------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("width", [None, 40])
def test_terminal(name: str, width: int | None) -> None:
    text = t.to_terminal([table_of(name), replace(table_of(name), sideways=True)], width)
    assert is_harmless(text)
    assert len(text) < 20_000
    if width is None:
        assert shown_name(name) in text


@EVERY
def test_terminal_with_colour_has_no_codes_but_its_own(name: str) -> None:
    text = t.to_terminal([table_of(name)], 80, colour=True)
    assert is_harmless(re.sub(r"\x1b\[[0-9;]*m", "", text))


@EVERY
def test_csv(name: str) -> None:
    header, first, second = csv.reader(io.StringIO(t.to_csv(table_of(name))))
    assert header == ["owner", "files"]
    assert first[1] == "1"
    for cell in (first[0], second[0]):
        assert is_harmless(cell)
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert first[0].removeprefix("'") == visible(name)  # not shortened: it is data
    assert t.to_csv(table_of(name)).encode()


def test_csv_leaves_numbers_alone() -> None:
    columns = (t.text("name", "Name"), t.number("change", "Change"), t.count("files", "Files"))
    text = t.to_csv(t.TableView("", columns, [("-5", -5.25, -3)]))
    assert text == "name,change,files\n'-5,-5.25,-3\n"


@EVERY
def test_parquet_keeps_the_name(name: str) -> None:
    import pyarrow.parquet as pq

    first, _ = pq.read_table(io.BytesIO(t.to_parquet(table_of(name)))).column("owner").to_pylist()
    assert first == name.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class Named:
    """A result."""

    name: str


@EVERY
def test_json_is_the_same_name_again_and_no_terminal_obeys_it(name: str) -> None:
    text = json_text.to_json(Named(name))
    assert is_harmless(text)
    assert text.encode()
    assert json.loads(text) == {"name": name}


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("gfm-like").parse(text):
        yield token
        yield from token.children or ()


@EVERY
@pytest.mark.parametrize("sideways", [False, True])
def test_markdown(name: str, sideways: bool) -> None:
    text = t.to_markdown([replace(table_of(name), sideways=sideways)])
    assert is_harmless(text)
    result = list(tokens(text))
    kinds = {token.type for token in result}
    assert kinds <= {
        "heading_open", "heading_close", "inline", "text", "table_open", "table_close", "thead_open", "thead_close",
        "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close",
        "paragraph_open", "paragraph_close", "text_special", "softbreak", "hardbreak",
    }  # fmt: skip
    assert sum(token.type == "table_open" for token in result) == 1
    assert sum(token.type == "heading_open" for token in result) == 1
    shown = ["".join(child.content for child in token.children or ()) for token in result if token.type == "inline"]
    assert " ".join(shown_name(name).split()) in [" ".join(cell.split()) for cell in shown]


# Figures --------------------------------------------------------------------------------------------------------------


def marks_of(name: str) -> tuple[f.Mark, ...]:
    """The name in every mark that has a text, but for heat maps."""
    places = np.arange(2.0)
    return (
        *f.side_by_side([(name, f.READ, places + 1), ("b", f.WRITE, places)], (name, "b")),
        f.LineMark(places, places, name, f.FSU), f.PointsMark(places, places, name, f.FSU),
        f.BandMark(places, places, places + 1, name, f.NO_DATA), f.Span(0, 1, name, f.SATURATED, name),
        f.Rule(0.5, "horizontal", name), f.Rule(0.5, "vertical", name),
    )  # fmt: skip


def figure_of(name: str) -> f.Figure:
    """The name as title, label, tick, text of a span and of a rule."""
    axis = f.Axis(name, ticks=((0, name), (1, "b")))
    return f.Figure("hostile", name, (f.Panel(name, axis, f.Axis(name), marks_of(name), right=f.Axis(name)),))


@pytest.fixture(scope="module")
def all_names() -> f.Figure:
    """All of them as rows of a heat map, names of bars and messages."""
    count = len(SOURCES_OF_TROUBLE)
    heat = f.HeatMapMark(0, 2, SOURCES_OF_TROUBLE, np.ones((count, 2)), 1.0, 4.0, SOURCES_OF_TROUBLE[0])
    rows = f.Axis("target", ticks=tuple((count - 1 - place, name) for place, name in enumerate(SOURCES_OF_TROUBLE)))
    bars = f.side_by_side([("files", f.READ, np.arange(float(count)))], SOURCES_OF_TROUBLE)
    across = f.Axis("owner", ticks=tuple(enumerate(SOURCES_OF_TROUBLE)))
    panels = (
        f.Panel("targets", f.Axis("time"), rows, (heat,), height=2.0),
        f.Panel("owners", across, f.Axis("files"), bars),
        *(f.Panel("none", f.Axis("x"), f.Axis("y"), message=name, height=0.2) for name in SOURCES_OF_TROUBLE[:5]),
    )
    return f.Figure("hostile", "all of them", panels)


def texts_of(svg: bytes) -> list[str]:
    """What is written in a drawing, which is parsed as XML."""
    root = ElementTree.fromstring(svg)
    kinds = {item.tag.partition("}")[2] for item in root.iter()}
    assert kinds.isdisjoint({"script", "a", "foreignObject", "iframe"})
    return ["".join(item.itertext()) for item in root.iter("{http://www.w3.org/2000/svg}text")]


@EVERY
def test_svg_is_well_formed_and_says_the_name(name: str, recwarn: pytest.WarningsRecorder) -> None:
    texts = texts_of(matplotlib_figure.to_bytes(figure_of(name), "svg"))
    assert sum(text.startswith(visible(name)[:20].rstrip()) for text in texts) >= 5
    assert all(is_harmless(text) and len(text) <= f.LONGEST_TITLE for text in texts)
    assert [str(item.message) for item in recwarn] == []


def test_every_kind_of_drawing_is_made_of_all_of_them(all_names: f.Figure, recwarn: pytest.WarningsRecorder) -> None:
    import pypdf

    texts = texts_of(matplotlib_figure.to_bytes(all_names, "svg"))
    for name in SOURCES_OF_TROUBLE:
        assert any(text.split() == shortened(visible(name), f.LONGEST_NAME).split() for text in texts), name
    assert matplotlib_figure.to_bytes(all_names, "png").startswith(b"\x89PNG")
    pdf = matplotlib_figure.to_bytes(all_names, "pdf")
    assert len(pypdf.PdfReader(io.BytesIO(pdf)).pages) == 1
    _, _, content = still(all_names).partition(",")
    assert texts_of(base64.b64decode(content))
    assert [str(item.message) for item in recwarn] == []


@EVERY
def test_the_page_of_a_figure_has_no_element_that_a_name_brought(name: str) -> None:
    tags = [Counter(_Tags(bokeh_figure.to_html(figure_of(item))).seen) for item in (name, "plain")]
    assert tags[0] == tags[1]


class _Tags(HTMLParser):
    """Elements of a page, and attributes that could run something."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen += [tag, *(name for name, _ in attrs if name.startswith("on"))]


# Pages and documents --------------------------------------------------------------------------------------------------


def hostile_day(filesystem: str) -> Any:
    """A file system of that name, whose targets have all the names."""
    result = busy_day(filesystem=filesystem, interval_s=1800, targets=len(SOURCES_OF_TROUBLE))
    assert result.heat_map is not None
    targets = [replace(item, target=name) for item, name in zip(result.per_target, SOURCES_OF_TROUBLE, strict=True)]
    notes = [f"{name} is odd" for name in SOURCES_OF_TROUBLE]
    coverage = replace(result.coverage, missing_targets=list(SOURCES_OF_TROUBLE), notes=notes)
    heat = replace(result.heat_map, targets=list(SOURCES_OF_TROUBLE))
    outliers = target_outliers(targets)
    return replace(result, per_target=targets, target_outliers=outliers, coverage=coverage, heat_map=heat)


def test_the_report() -> None:
    whole = "".join(HOSTILE[name] for name in ("clear the screen", "markup of pages", "a byte that is no text"))
    html = report_html([hostile_day(whole)], REPORT_ABOUT, full=True)
    assert is_harmless(html)
    assert html.encode()
    page = Page(html)
    assert page.headings.count(with_short_words(visible(whole))) >= 1
    for name in SOURCES_OF_TROUBLE:
        assert " ".join(shown_name(name).split()) in " ".join(page.text.split()), name
    assert Counter(_Tags(html).seen) == Counter(
        _Tags(report_html([hostile_day("plain")], REPORT_ABOUT, full=True)).seen
    )
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert len(pictures) >= 4
    for picture in pictures:
        assert texts_of(base64.b64decode(picture))


@pytest.fixture(scope="module")
def papers() -> list[RationaleDocument]:
    """Documents in which every part has a hostile text, each name once."""
    result = []
    for name in SOURCES_OF_TROUBLE:
        parts: tuple[Part, ...] = (
            f"The system {name} is large.", BulletList((name, f"{name} again")), Caution(name), table_of(name),
            Equations((Equation(name, (name,)),)), Command(f"iolens plan --for {name}"),
        )  # fmt: skip
        result.append(
            RationaleDocument(name, name, (("System", name),), (DocumentChapter(f"About {name}", parts),), "iolens")
        )
    return result


def test_the_rationale_as_a_page(papers: list[RationaleDocument]) -> None:
    plain = Counter(_Tags(rationale_html(replace(papers[0], title="a", author="b"))).seen)
    for paper in papers:
        html = rationale_html(paper)
        assert is_harmless(html)
        seen = Counter(_Tags(html).seen)
        assert {tag: seen[tag] for tag in ("script", "img", "b", "a")} == {
            tag: plain[tag] for tag in ("script", "img", "b", "a")
        }


def test_the_rationale_as_markdown(papers: list[RationaleDocument]) -> None:
    for paper in papers:
        text = rationale_markdown(paper)
        assert is_harmless(text)
        result = list(tokens(text))
        kinds = {token.type for token in result}
        assert kinds.isdisjoint({"link_open", "image", "html_inline", "html_block", "s_open"}), paper.title
        assert sum(token.type == "heading_open" for token in result) == 3  # title, chapter, table
        assert sum(token.type == "fence" for token in result) == 2


def test_the_rationale_as_pdf(papers: list[RationaleDocument]) -> None:
    import pypdf

    whole = replace(papers[0], chapters=tuple(chapter for paper in papers for chapter in paper.chapters))
    pages = pypdf.PdfReader(io.BytesIO(to_pdf(whole, MADE))).pages
    text = " ".join(" ".join(page.extract_text() for page in pages).split())
    assert text.count("is large.") == len(papers)
    assert visible(HOSTILE["clear the screen"]) in text
    assert is_harmless(text.replace("\0", ""))  # what the fonts have no sign for is read back as that


def test_a_long_name_is_shortened_for_people_and_whole_for_programs() -> None:
    name = HOSTILE["three thousand characters"]
    assert name not in t.to_terminal([table_of(name)])
    assert shown_name(name) in t.to_terminal([table_of(name)])
    assert len(shown_name(name)) == LONGEST_NAME
    assert name in t.to_csv(table_of(name))
    assert name in json_text.to_json(Named(name))
