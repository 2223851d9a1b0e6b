"""Figures of the report in a real browser, for 1, 24 and 500 targets: no text over another, no panel empty."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import iolens
from iolens.api.report import write_report
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.store.scope import Scope
from iolens.units import parse_time
from tests.live.browser import Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.live

DAYS = {1: 3.0, 24: 0.75, 500: 0.5}  # by targets: more than 600 minutes, which are drawn as an envelope
PHONE, DESK = (360, 800), (1280, 900)

# A text is a box with four corners; two of them overlap where no side of either has all of the other beyond it.
OVERLAPS = """
const separated = (a, b) => [a, b].some((box) => box.some((corner, place) => {
  const next = box[(place + 1) % 4];
  const [nx, ny] = [next[1] - corner[1], corner[0] - next[0]];
  const [one, other] = [a, b].map((points) => points.map(([x, y]) => nx * x + ny * y));
  return Math.max(...one) <= Math.min(...other) || Math.max(...other) <= Math.min(...one);
}));
const overlaps = (boxes) => boxes.flatMap((one, place) => boxes.slice(place + 1)
  .filter((other) => !separated(one.corners, other.corners)).map((other) => `${one.text} | ${other.text}`));
const corners = (matrix, left, top, right, bottom) => [[left, top], [right, top], [right, bottom], [left, bottom]]
  .map(([x, y]) => [matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f]);
"""
# Of pictures: boxes of letters without the space above and below them.
IN_PICTURES = f"""() => {{
  {OVERLAPS}
  return [...document.querySelectorAll("svg")].flatMap((picture) => overlaps(
    [...picture.querySelectorAll("text")].filter((text) => text.textContent.trim()).map((text) => {{
      const {{ x, y, width, height }} = text.getBBox();
      const box = corners(text.getScreenCTM(), x + 1, y + height * 0.2, x + width - 1, y + height * 0.8);
      return {{ text: text.textContent, corners: box }};
    }})));
}}"""
# Of canvases: what was painted since they were last cleared.
RECORD = f"""
  {OVERLAPS}
  const painted = new Map();
  const {{ fillText, clearRect }} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...given) {{
    painted.delete(this.canvas);
    return clearRect.apply(this, given);
  }};
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {{
    const size = this.measureText(text);
    const box = corners(this.getTransform(), x - size.actualBoundingBoxLeft + 1, y - size.actualBoundingBoxAscent + 1,
      x + size.actualBoundingBoxRight - 1, y + size.actualBoundingBoxDescent - 1);
    if (text.trim() && this.canvas.isConnected) {{
      if (!painted.has(this.canvas)) painted.set(this.canvas, []);
      painted.get(this.canvas).push({{ text, corners: box }});
    }}
    return fillText.call(this, text, x, y, ...rest);
  }};
  window.textsThatOverlap = () => [...painted.values()].flatMap(overlaps);
  window.textsPainted = () => [...painted.values()].flat().length;
"""
# Of pictures: panels in which nothing but axes, texts and a legend is drawn.
EMPTY_PANELS = """() => [...document.querySelectorAll('svg g[id^="axes_"]')].filter((panel) =>
  ![...panel.children].some((part) => !/^(matplotlib|patch|text|legend)/.test(part.id)
    && (part.matches("image") || part.querySelector("path, image, use")))).length"""


@pytest.fixture(scope="module", params=DAYS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a simulated file system with so many targets, sampled every minute."""
    folder = tmp_path_factory.mktemp(f"targets-{request.param}")
    workload = replace(load_workload("scratch"), tick_s=60)
    simulate_telemetry(
        order_of(
            f"{folder}/store", workload, start=parse_time("2026-01-05"), days=DAYS[request.param], osts=request.param,
            with_jobs=False,
        )
    )  # fmt: skip
    with iolens.open(f"{folder}/store") as store:
        write_report(store, folder / "report.html", [], Scope(), full=True)
        write_report(store, folder / "short.html", [], Scope())
    return folder / "report.html"


@pytest.fixture(scope="module")
def stills(browser: Browser, report: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """All still pictures of the report as parts of one page, where their texts can be measured."""
    with Visit(browser, report, javascript=False) as visit:
        sources = [str(picture.get_attribute("src")) for picture in visit.page.locator("figure .still").all()]
    pictures = [base64.b64decode(source.partition("base64,")[2]).decode() for source in sources]
    page = tmp_path_factory.mktemp("stills") / "stills.html"
    page.write_text("<!DOCTYPE html><meta charset=utf-8>" + "".join(p[p.index("<svg") :] for p in pictures), "utf-8")
    with Visit(browser, page) as visit:
        assert visit.page.locator("svg").count() == len(pictures) >= 20
        yield visit


def test_no_text_of_a_still_picture_is_over_another(stills: Visit) -> None:
    assert stills.page.locator("svg text").count() > 400
    assert stills.page.evaluate(IN_PICTURES) == []


def test_every_panel_of_a_still_picture_has_something_to_show(stills: Visit) -> None:
    assert stills.page.evaluate(EMPTY_PANELS) == 0


def test_the_short_report_is_printed_on_few_pages(browser: Browser, report: Path) -> None:
    with Visit(browser, report.with_name("short.html")) as visit:
        paper = visit.page.pdf(prefer_css_page_size=True)
        assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
        assert visit.complaints == []


FINER = """() => {
  const plot = Bokeh.documents.flatMap((document) => document.roots()).flatMap((root) => root.children)
    .find((child) => child.renderers.some((mark) => mark.tags.length > 0));
  const shown = () => plot.renderers.filter((mark) => mark.tags.length > 0 && mark.visible).map((mark) => mark.tags[0]);
  const { start, end } = plot.x_range;
  const kinds = [shown()];
  plot.x_range.setv({ start, end: start + (end - start) / 20 });
  kinds.push(shown());
  plot.x_range.setv({ start, end });
  return [...kinds, shown()].map((several) => [...new Set(several)]);
}"""


@pytest.fixture(scope="module", params=[PHONE, DESK], ids=["phone", "desk"])
def live(browser: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """The report with every figure drawn, in a window of a phone and of a desk."""
    with Visit(browser, report, request.param, script=RECORD) as visit:
        visit.draw_all()
        visit.page.wait_for_timeout(300)
        yield visit
        assert visit.complaints == []


def test_no_text_of_a_live_figure_is_over_another(live: Visit) -> None:
    assert live.page.evaluate("textsPainted()") > 350  # of a few days there is no projection
    assert live.page.evaluate("textsThatOverlap()") == []


def test_the_page_is_no_wider_than_the_window(live: Visit) -> None:
    width, window = live.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= window


def test_zooming_in_shows_the_finer_series_and_zooming_out_the_envelope(live: Visit) -> None:
    """Without code made from text, which the page forbids."""
    assert live.page.evaluate(FINER) == [["out"], ["in"], ["out"]]
