"""The report in a real browser without a network: it draws, zooms, asks for nothing and runs no script of the data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iolens.views.render.figures import LONGEST_NAME
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo
from iolens.visible_text import shortened, visible
from tests.hostile_names import HOSTILE as MARKUP
from tests.live.browser import NARROW, WIDE, Visit
from tests.views.results import busy_day
from tests.views.test_hostile_names import hostile_day

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.live

HOSTILE = """x"><script>alert(1)</script><img src=https://example.org/x onerror=alert(2)>'&$$\\frac{1}{2}$${{7*7}}"""
ABOUT = ReportInfo("1.2.3", datetime(2026, 1, 2, tzinfo=UTC), refused=(f"blame of {HOSTILE} is not here",))
X_RANGE = """() => {
  const plot = Bokeh.documents.flatMap((one) => one.roots()).find((root) => root.children)?.children[0];
  return [plot.x_range.start, plot.x_range.end];
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two file systems, one with a name that tries everything."""
    strange = busy_day(HOSTILE, 300, targets=6, seed=7)
    coverage = replace(strange.coverage, notes=[f"note {HOSTILE}"], sources=[HOSTILE])
    path = tmp_path_factory.mktemp("report") / "report.html"
    results = [busy_day("scratch", 30), replace(strange, coverage=coverage)]
    path.write_text(report_html(results, ABOUT, full=True), "utf-8")
    return path


@pytest.fixture(scope="module")
def drawn(browser: Browser, report: Path) -> Iterator[Visit]:
    """The report in a wide window with every figure drawn, for tests that only look at it."""
    with Visit(browser, report) as visit:
        visit.draw_all()
        yield visit


INKED = """() => [...document.querySelectorAll("figure .live")].every((box) => {
    const layers = [];
    const walk = (node) => {
      if (node.tagName === "CANVAS") layers.push(node);
      for (const below of [...(node.children ?? []), ...(node.shadowRoot?.children ?? [])]) walk(below);
    };
    walk(box);
    return layers.some((one) => one.width && one.getContext("2d")
      .getImageData(0, 0, one.width, one.height).data.some((value) => value));
})"""


def assert_drawn(visit: Visit, report: Path) -> None:
    assert visit.page.locator("figure").count() == 8
    assert visit.page.evaluate(INKED)
    assert visit.requests == [report.as_uri()]
    assert visit.complaints == []
    width, window = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= window


def test_every_figure_draws_and_nothing_is_asked_for(drawn: Visit, report: Path) -> None:
    assert_drawn(drawn, report)


def test_every_figure_draws_in_a_narrow_window_too(browser: Browser, report: Path) -> None:
    with Visit(browser, report, NARROW) as visit:
        visit.draw_all()
        assert_drawn(visit, report)


def test_no_section_is_empty(drawn: Visit) -> None:
    empty = drawn.page.evaluate("""() => [...document.querySelectorAll("section section")]
        .filter((one) => one.querySelectorAll("p, table, figure, dl").length === 0
          || one.innerText.trim() === one.querySelector("h3").innerText.trim())
        .map((one) => one.querySelector("h3").innerText)""")
    assert empty == []
    assert drawn.page.locator("section section").count() > 15


def test_drag_zooms_and_reset_goes_back(browser: Browser, report: Path) -> None:
    with Visit(browser, report) as visit:
        visit.page.locator("#figure-1").scroll_into_view_if_needed()
        visit.page.locator("#figure-1 .live canvas").first.wait_for(state="visible")
        visit.page.wait_for_timeout(500)
        before = visit.page.evaluate(X_RANGE)
        box = visit.page.locator("#figure-1 .live").bounding_box()
        assert box is not None
        left, right, middle = box["x"] + box["width"] * 0.3, box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 4
        visit.page.mouse.move(left, middle - 40)
        visit.page.mouse.down()
        visit.page.mouse.move(right, middle + 40, steps=8)
        visit.page.mouse.up()
        visit.page.wait_for_function(f"(before) => ({X_RANGE})()[0] > before[0]", arg=before)
        after = visit.page.evaluate(X_RANGE)
        assert before[0] < after[0] < after[1] < before[1]
        visit.page.locator('#figure-1 [title^="Reset"]').first.click()
        visit.page.wait_for_function(f"(before) => ({X_RANGE})()[0] === before[0]", arg=before)
        assert visit.complaints == []


def test_the_wheel_scrolls_the_page_until_its_tool_is_chosen(browser: Browser, report: Path) -> None:
    with Visit(browser, report) as visit:
        visit.page.locator("#figure-1").scroll_into_view_if_needed()
        visit.page.locator("#figure-1 .live canvas").first.wait_for(state="visible")
        visit.page.wait_for_timeout(500)
        before = visit.page.evaluate(X_RANGE)
        box = visit.page.locator("#figure-1 .live").bounding_box()
        assert box is not None
        visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 4)  # in the upper panel
        visit.page.mouse.wheel(0, -40)
        visit.page.wait_for_timeout(300)
        assert visit.page.evaluate(X_RANGE) == before
        visit.page.locator('#figure-1 [title*="Wheel Zoom"]').first.click()
        box = visit.page.locator("#figure-1 .live").bounding_box()
        assert box is not None
        visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 4)  # in the upper panel
        visit.page.mouse.wheel(0, -200)
        visit.page.wait_for_function(f"(before) => ({X_RANGE})()[0] > before[0]", arg=before)


def test_the_heat_map_names_the_target_under_the_pointer(drawn: Visit) -> None:
    figure = drawn.page.locator("figure", has_text="Utilization of every target").first
    figure.scroll_into_view_if_needed()
    figure.locator(".live canvas").first.wait_for(state="visible")
    drawn.page.wait_for_timeout(500)
    box = figure.locator(".live").bounding_box()
    assert box is not None
    drawn.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)
    drawn.page.mouse.move(box["x"] + box["width"] * 0.4 + 3, box["y"] + box["height"] * 0.4)
    tip = drawn.page.locator(".bk-tooltip-content").first
    tip.wait_for(state="visible", timeout=5000)
    assert "OST00" in tip.inner_text()
    assert drawn.complaints == []


def test_hostile_names_are_shown_and_run_nothing(drawn: Visit, report: Path) -> None:
    assert HOSTILE in drawn.page.locator("h1").inner_text()
    assert drawn.page.locator("main img:not([src^='data:'])").count() == 0
    assert drawn.page.locator("body script").count() == 8 + 2
    assert drawn.complaints == []
    assert drawn.requests == [report.as_uri()]


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file system whose targets have all the hostile names there are."""
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(report_html([hostile_day(MARKUP["markup of pages"])], ABOUT, full=True), "utf-8")
    return path


def test_every_hostile_name_is_shown_in_tooltips_too_and_runs_nothing(browser: Browser, hostile_report: Path) -> None:
    """The pointer goes over every row of the heat map, whose names are the targets'."""
    with Visit(browser, hostile_report) as visit:
        visit.draw_all()
        for picture in visit.page.locator("img.still").all():
            assert picture.evaluate("one => one.naturalWidth") > 0  # the still picture is well-formed
        figure = visit.page.locator("figure", has_text="Utilization of every target").first
        figure.scroll_into_view_if_needed()
        figure.locator(".live canvas").first.wait_for(state="visible")
        visit.page.wait_for_timeout(500)
        box = figure.locator(".live").bounding_box()
        assert box is not None
        reported = set()
        for step in range(60):
            height = box["height"] * (0.1 + 0.75 * step / 60)
            visit.page.mouse.move(box["x"] + box["width"] * 0.6 + step % 2, box["y"] + height)
            visit.page.wait_for_timeout(30)
            reported |= set(visit.page.locator(".bk-tooltip-content").all_inner_texts())
        text = "\n".join(reported)
        seen = [name for name in MARKUP.values() if shortened(visible(name), LONGEST_NAME).split()[0][:12] in text]
        assert len(seen) >= len(MARKUP) - 2  # the pointer may miss a row
        assert "</script><script>" in text
        assert visit.page.evaluate("window.owned") is None
        assert visit.page.locator("img:not([src^='data:'])").count() == 0
        assert visit.complaints == []
        assert visit.requests == [hostile_report.as_uri()]


INTRUDER = """<script>
  window.seen = [];
  document.addEventListener("securitypolicyviolation", (one) => seen.push(one.effectiveDirective));
  fetch("https://example.org/").catch(() => seen.push("fetch failed"));
  new Image().src = "https://example.org/a.png";
  try { new Function("seen.push('code ran')")(); } catch { seen.push("no code from text"); }
</script>"""


def test_even_a_script_that_got_in_could_reach_nobody(browser: Browser, report: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(report.read_text("utf-8").replace("</body>", f"{INTRUDER}</body>"), "utf-8")
    with Visit(browser, broken) as visit:
        visit.page.wait_for_function(
            "() => ['connect-src', 'img-src', 'fetch failed'].every((one) => seen.includes(one))"
        )
        assert "no code from text" in visit.page.evaluate("seen")


def test_without_javascript_words_tables_and_still_pictures_remain(browser: Browser, report: Path) -> None:
    with Visit(browser, report, javascript=False) as visit:
        stills = visit.page.locator("figure .still")
        assert stills.count() == 8
        assert all(stills.nth(number).is_visible() for number in range(8))
        assert visit.page.locator("figure .live").first.is_hidden()
        assert visit.page.locator(".hint").first.is_hidden()
        assert visit.page.locator("table").count() > 10


def test_paper_has_still_pictures_and_no_menu(browser: Browser, report: Path) -> None:
    with Visit(browser, report) as visit:
        visit.draw_all()
        visit.page.emulate_media(media="print")
        assert visit.page.locator("nav").is_hidden()
        assert visit.page.locator("figure .live").first.is_hidden()
        stills = visit.page.locator("figure .still")
        assert all(stills.nth(number).is_visible() for number in range(8))
        widths = visit.page.evaluate("[...document.querySelectorAll('.still')].map((one) => one.naturalWidth)")
        assert all(width > 0 for width in widths)
        assert visit.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_links_lead_to_their_section(browser: Browser, report: Path) -> None:
    with Visit(browser, report) as visit:
        link = visit.page.locator("nav a", has_text="Appendix")
        link.click()
        visit.page.wait_for_function("() => scrollY > 1000")
        section = visit.page.locator(str(link.get_attribute("href")))
        visit.page.wait_for_timeout(1500)
        box = section.bounding_box()
        assert box is not None
        assert box["y"] < WIDE[1]


@pytest.fixture(scope="module")
def brief_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file system, as `iolens report` writes it by default."""
    path = tmp_path_factory.mktemp("brief") / "report.html"
    path.write_text(report_html([busy_day("scratch", 30)], replace(ABOUT, refused=())), "utf-8")
    return path


def test_the_first_page_leads_to_the_evidence_and_details_open_at_a_click(browser: Browser, brief_report: Path) -> None:
    with Visit(browser, brief_report) as visit:
        labels = visit.page.locator("dl.lines dt").all_inner_texts()
        assert labels == ["What it is", "How busy", "What is wrong", "What to do next"]
        link = visit.page.locator("dl.lines a").first
        assert visit.page.locator(str(link.get_attribute("href"))).locator("h2").count() == 1
        details = visit.page.locator("details", has_text="Steady and saturated stretches").first
        assert details.locator("table").first.is_hidden()
        details.locator("summary").click()
        assert details.locator("table").first.is_visible()
        assert visit.complaints == []


def test_a_file_system_is_printed_on_few_pages(browser: Browser, brief_report: Path) -> None:
    with Visit(browser, brief_report) as visit:
        paper = visit.page.pdf(prefer_css_page_size=True)
        assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
