"""Pages of a job and a user in a real browser without a network: they fit a telephone and paper, and load nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iolens.views.job_page import job_page_html
from iolens.views.user_page import user_page_html
from tests.hostile_names import HOSTILE
from tests.live.browser import Visit
from tests.views.test_sent_pages import ABOUT, a_job, a_user

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.live

NAMES = {"plain": "blastn", "markup": HOSTILE["markup of pages"], "long": HOSTILE["three thousand characters"]}
TELEPHONE, SCREEN = (360, 740), (1280, 900)


@pytest.fixture(scope="module", params=[f"{kind} {name}" for kind in ("job", "user") for name in NAMES])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kind, name = request.param.split()
    html = job_page_html(a_job(NAMES[name]), ABOUT) if kind == "job" else user_page_html(a_user(NAMES[name]), ABOUT)
    path = tmp_path_factory.mktemp("page") / f"{kind}.html"
    path.write_text(html, "utf-8")
    return path


@pytest.mark.parametrize("size", [TELEPHONE, SCREEN], ids=["telephone", "screen"])
def test_it_fits_the_window_and_asks_for_nothing(browser: Browser, page: Path, size: tuple[int, int]) -> None:
    with Visit(browser, page, size) as visit:
        width, window = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= window
        assert visit.requests == [page.as_uri()]
        assert visit.complaints == []
        assert visit.page.evaluate("window.owned") is None
        widths = visit.page.evaluate("[...document.images].map((one) => one.naturalWidth)")
        assert all(width > 0 for width in widths)


def test_on_paper_it_has_at_most_three_pages(browser: Browser, page: Path) -> None:
    with Visit(browser, page, SCREEN) as visit:
        paper = visit.page.pdf(prefer_css_page_size=True)
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 3
