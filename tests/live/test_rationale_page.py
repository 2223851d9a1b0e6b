"""The rationale in a real browser without a network: it shows everything, asks for nothing, and prints."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iolens.views.plan_rationale.chapters import document
from iolens.views.plan_rationale.document import to_html
from tests.live.browser import NARROW, WIDE, Visit
from tests.plans.designs import ABOUT, MISSING, from_telemetry
from tests.views.test_rationale_html import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every plan, of a file system whose name tries everything."""
    about = replace(ABOUT, author=HOSTILE, command=HOSTILE)
    result = replace(from_telemetry(), filesystem=HOSTILE, about=about, missing=MISSING, notes=[HOSTILE])
    path = tmp_path_factory.mktemp("rationale") / "plan.html"
    path.write_text(to_html(document(result)), "utf-8")
    return path


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_everything_shows_and_nothing_is_asked_for(browser: Browser, page: Path, size: tuple[int, int]) -> None:
    with Visit(browser, page, size) as visit:
        asked = [address for address in visit.requests if not address.startswith("data:")]
        assert asked == [page.as_uri()]
        assert visit.complaints == []
        widths = visit.page.evaluate("[...document.querySelectorAll('figure img')].map((one) => one.naturalWidth)")
        assert len(widths) == 7
        assert all(width > 0 for width in widths)
        width, window = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= window
        assert visit.page.locator("script").count() == 0
        assert "Performance is not answered" in " ".join(visit.page.locator(".warning").all_inner_texts())


def test_no_chapter_is_empty(browser: Browser, page: Path) -> None:
    with Visit(browser, page, javascript=True) as visit:
        lengths = visit.page.evaluate("[...document.querySelectorAll('section')].map((one) => one.innerText.length)")
        assert len(lengths) == 9
        assert min(lengths) > 100


def test_the_specification_fits_a_screen_without_scrolling_sideways(browser: Browser, page: Path) -> None:
    with Visit(browser, page, WIDE) as visit:
        inside, shown = visit.page.evaluate(
            "(() => { const box = document.querySelector('.scroll'); return [box.scrollWidth, box.clientWidth]; })()"
        )
        assert inside <= shown


def test_it_prints_on_a_few_pages_with_no_table_beyond_the_paper(browser: Browser, page: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    with Visit(browser, page, WIDE) as visit:
        content = visit.page.pdf(prefer_css_page_size=True)
        reader = pypdf.PdfReader(io.BytesIO(content))
        assert 4 <= len(reader.pages) <= 14
        text = " ".join(item.extract_text() for item in reader.pages)
        assert "Usable capacity" in text
        visit.page.emulate_media(media="print")
        visit.page.set_viewport_size({"width": 680, "height": 960})  # the width of A4 between its margins
        beyond = visit.page.evaluate(
            "[...document.querySelectorAll('table')].filter((one) => one.getBoundingClientRect().right > 681).length"
        )
        assert beyond == 0
