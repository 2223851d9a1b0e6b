"""Every page of `iolens serve` in a real Chromium: filled, quiet, alone with its server, for every reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.live.axe import axe_script, barriers
from tests.live.served_pages import INKED, PageVisit, RunningServer, page_paths
from tests.live.spark_cluster import ComponentMissing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.live

WIDTHS = (360, 2560, 1280)
LACKING = ("scratch2 has no job_stats", "too little data: 2 days of 7", "such as 30PB")  # what pages say they lack
EMPTY = """() => [...document.querySelectorAll("[data-block]")]
    .filter((block) => !(block instanceof HTMLDetailsElement))
    .filter((block) => block.querySelector(".contents").dataset.filled !== "yes"
      || !block.querySelector("dl, table, figure, .contents p:not(.note), .table"))
    .map((block) => block.dataset.block)"""
FITS = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module", params=page_paths())
def visit(request: pytest.FixtureRequest, browser: Browser, server: RunningServer) -> Iterator[PageVisit]:
    """A page, opened once for all that is looked at."""
    with PageVisit(browser, server) as opened:
        yield opened.open(page_paths()[request.param])


def test_the_page_is_filled_and_asks_nobody_else(visit: PageVisit) -> None:
    assert visit.page.evaluate(EMPTY) == []
    troubles = visit.page.locator(".trouble").all_inner_texts()
    assert [words for words in troubles if not any(lack in words for lack in LACKING)] == []
    assert visit.page.evaluate(INKED)
    assert visit.foreign == []
    assert visit.complaints == []


def test_what_is_closed_opens_and_is_filled(visit: PageVisit) -> None:
    for block in visit.page.locator("details.block").all():
        block.locator("summary").first.click()
        block.locator(".contents[data-filled=yes]").wait_for()
        assert len(block.inner_text().splitlines()) > 1
    assert visit.complaints == []


def test_no_width_needs_sideways_scrolling(visit: PageVisit) -> None:
    for width in WIDTHS:
        visit.page.set_viewport_size({"width": width, "height": 900})
        visit.until(FITS)
    assert visit.complaints == []


def test_no_serious_barrier_in_light_and_dark(visit: PageVisit) -> None:
    try:
        axe_script()
    except ComponentMissing as missing:
        pytest.skip(str(missing))
    assert barriers(visit.page) == []
    visit.toggle_theme()
    assert visit.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert barriers(visit.page) == []
