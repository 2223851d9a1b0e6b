"""The rationale as PDF, read back with another library: text, pages, bookmarks, columns that fit."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.views.plan_rationale.chapters import document
from iolens.views.plan_rationale.document import DocumentChapter, RationaleDocument
from iolens.views.plan_rationale.pdf import COLUMN, MARGIN, SIZES, _least, _register_fonts, _widths, to_pdf
from iolens.views.render import tables as t
from tests.plans.designs import ABOUT, MADE, from_telemetry, published

pypdf = pytest.importorskip("pypdf")

CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=60)


def text_of(content: bytes) -> str:
    return " ".join(" ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages).split())


@pytest.fixture(scope="module")
def whole() -> bytes:
    return to_pdf(document(from_telemetry()), MADE)


def test_words_numbers_and_signs_can_be_copied(whole: bytes) -> None:
    text = text_of(whole)
    for words in (
        "Usable capacity SSI 3, 28 days, fraction 0.5",
        "C = SSI · (purge_days / purge_fraction) · daily_growth",
        "C_DOM = C · Σ min(s, S0) / Σ s",
        "WAF, flash bytes ÷ host bytes",
        "iolens plan rationale -o plan.pdf",
    ):
        assert words in text


def test_text_of_figures_can_be_copied_too(whole: bytes) -> None:
    text = text_of(whole)
    assert "Figure 2. Distribution of file-system writes per day." in text
    assert "days, log scale" in text
    assert "MDT capacity (TiB), log scale" in text


def test_a_few_pages_with_numbers_and_bookmarks(whole: bytes) -> None:
    reader = pypdf.PdfReader(io.BytesIO(whole))
    assert 5 <= len(reader.pages) <= 11
    for number, page in enumerate(reader.pages, 1):
        assert f"{number} / {len(reader.pages)}" in page.extract_text()
    assert [item.title.split(maxsplit=1)[1] for item in reader.outline] == [
        chapter.title for chapter in document(from_telemetry()).chapters
    ]
    first, second = (page.extract_text() for page in reader.pages[:2])
    assert "1 What to buy" in " ".join(first.split())
    assert "Appendix" not in first.replace("The appendix", "")
    assert second.startswith("Appendix: how the numbers were found")
    assert reader.metadata.title == "Design rationale"
    assert reader.metadata.author == "The storage group"
    assert reader.metadata.creation_date.replace(tzinfo=None) == MADE.replace(tzinfo=None)


def test_figures_are_no_pixels(whole: bytes) -> None:
    assert [image for page in pypdf.PdfReader(io.BytesIO(whole)).pages for image in page.images] == []


def test_the_same_document_gives_the_same_bytes() -> None:
    result = document(published())
    assert to_pdf(result, MADE) == to_pdf(result, MADE)
    assert to_pdf(result, MADE) != to_pdf(result, MADE.replace(year=2027))


def test_names_are_no_markup() -> None:
    hostile = "<b>x</b> & <script> ]]> `tick é Σ"
    result = replace(from_telemetry(), filesystem=hostile, about=replace(ABOUT, title=hostile, command=hostile))
    text = text_of(to_pdf(document(result), MADE))
    assert hostile in text


def test_a_long_table_breaks_between_its_lines_and_repeats_its_heading() -> None:
    columns = (t.text("name", "Name of it"), t.count("size", "Size of it"))
    table = t.TableView("Long", columns, [(f"row-{number}", number) for number in range(150)])
    content = to_pdf(RationaleDocument("Long", None, (), (DocumentChapter("One", (table,)),), "iolens"), MADE)
    pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages]
    assert len(pages) > 2
    assert all("Name of it" in page for page in pages)
    text = " ".join(pages)
    assert all(f"row-{number}\n" in text or f"row-{number} " in text for number in range(150))


def test_a_wide_table_stays_on_the_page() -> None:
    columns = tuple(t.text(f"c{number}", f"Heading number {number}") for number in range(14))
    table = t.TableView("Wide", columns, [tuple("x" * 30 for _ in columns)] * 3)
    content = to_pdf(RationaleDocument("Wide", None, (), (DocumentChapter("One", (table,)),), "iolens"), MADE)
    places: list[float] = []
    page = pypdf.PdfReader(io.BytesIO(content)).pages[0]
    page.extract_text(
        visitor_text=lambda text, user, matrix, font, size: places.append(user[4]) if text.strip() else None
    )
    assert max(places) < MARGIN + COLUMN


@given(st.integers(1, 9).flatmap(lambda wide: st.lists(st.lists(CELLS, min_size=wide, max_size=wide), min_size=2)))
def test_columns_never_exceed_the_page(lines: list[list[str]]) -> None:
    _register_fonts()
    widths = _widths(lines, SIZES[-1])
    assert sum(widths) <= COLUMN + 0.1
    assert min(widths) > 0
    if sum(_least(lines, SIZES[-1])) <= COLUMN:
        assert all(wide >= least - 0.1 for wide, least in zip(widths, _least(lines, SIZES[-1]), strict=True))
