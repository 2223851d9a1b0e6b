"""What readers do on the pages of `iolens serve`, in a real Chromium: zoom, ask who, plan, search, follow, print."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from iolens.api.demo import CULPRIT_HOURS, CULPRIT_ID, demo_workload
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.units import format_bytes_si
from tests.cli.command import iolens
from tests.live.served_pages import FRAME, PageVisit, RunningServer, drag, page_paths, served
from tests.web.small_centre import DAYS, END, OSTS, OTHER, OWN_JOB, SEED, START

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.live

SCRATCH = page_paths()["filesystem"]
CULPRIT_FROM, CULPRIT_TO = (START + timedelta(hours=hour) for hour in CULPRIT_HOURS)
TICK_S = 5.0
SERIES = """() => {
  const [root] = document.querySelector("figure").roots.filter(({ model }) => model.children);
  const shown = root.model.children[0].renderers.filter(({ visible }) => visible);
  const times = shown.map(({ data_source: { data } }) => [...(data.x ?? data.base ?? data.left ?? [])]);
  const finest = times.filter((values) => values.length > 2).map((values) => values[2] - values[1]);
  return Math.min(...finest.filter((step) => step > 0)) / 1000;
}"""


@pytest.fixture
def visit(browser: Browser, server: RunningServer) -> Iterator[PageVisit]:
    """A reader; at the end nothing was complained about and nobody else was asked."""
    with PageVisit(browser, server) as opened:
        yield opened
        assert opened.complaints == []
        assert opened.foreign == []


def shown_window(visit: PageVisit) -> tuple[datetime, datetime]:
    """From when to when the first block is."""
    origin = visit.page.locator(".origin[data-from]").first
    first, last = (datetime.fromisoformat(origin.get_attribute(f"data-{end}") or "") for end in ("from", "to"))
    return first, last


def asked_windows(visit: PageVisit) -> list[str]:
    """The starts of windows of which utilization was asked."""
    queries = [parse_qs(urlsplit(url).query) for url in visit.requests if "/blocks/utilization" in url]
    return [query["from"][0] for query in queries if "from" in query]


# Zooming


def test_dragging_in_a_figure_asks_for_a_narrower_window_down_to_every_tick(visit: PageVisit) -> None:
    visit.open(SCRATCH)
    steps, windows = [], [shown_window(visit)]
    for _ in range(3):
        steps.append(visit.page.evaluate(SERIES))
        drag(visit, 0.3, 0.6)
        visit.wait()
        windows.append(shown_window(visit))
    steps.append(visit.page.evaluate(SERIES))
    lengths = [end - start for start, end in windows]
    assert lengths[0] == timedelta(days=1)
    assert all(narrow < wide / 2 for wide, narrow in pairwise(lengths))
    assert all(fine <= coarse for coarse, fine in pairwise(steps))
    assert steps[0] > 2 * TICK_S
    assert steps[-1] == TICK_S
    assert len(set(asked_windows(visit))) == 3  # each zoom asked the server
    for start, end in reversed(windows[:-1]):
        visit.page.go_back()
        visit.wait()
        visit.until("(from) => document.querySelector('.origin[data-from]').dataset.from === from", _iso(start))
        assert shown_window(visit) == (start, end)


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_windows_are_chosen_moved_and_typed(visit: PageVisit) -> None:
    visit.open(SCRATCH)
    visit.page.get_by_role("button", name="6 h").click()
    visit.wait()
    assert shown_window(visit) == (END - timedelta(hours=6), END)
    visit.page.get_by_role("button", name="Earlier").click()
    visit.wait()
    assert shown_window(visit) == (END - timedelta(hours=9), END - timedelta(hours=3))
    visit.page.get_by_role("button", name="Longer").click()
    visit.wait()
    assert shown_window(visit)[1] - shown_window(visit)[0] == timedelta(hours=18)
    shared = visit.page.url
    visit.open(shared.removeprefix(visit.server.url))  # an address is all that is needed to show it to others
    assert shown_window(visit)[1] - shown_window(visit)[0] == timedelta(hours=18)


# Whose I/O it was

MARKS = """() => document.querySelector(".group figure").roots[0].model.children[0].center
    .filter(({ name }) => name === "who").length"""


def first_who(visit: PageVisit) -> str:
    return visit.page.locator("#who tbody tr").first.locator("th").inner_text()


def test_a_brushed_stretch_names_the_culprit(visit: PageVisit) -> None:
    visit.open(SCRATCH)
    visit.page.get_by_label("asks whose I/O it was").check()
    start, end = shown_window(visit)
    shares = [(time - start) / (end - start) for time in (CULPRIT_FROM, CULPRIT_TO)]
    drag(visit, *shares)
    visit.page.locator("#who tbody tr").first.wait_for()
    visit.wait()
    assert first_who(visit) == CULPRIT_ID
    asked = parse_qs(urlsplit(visit.page.url).query)
    brushed = [datetime.fromisoformat(asked[name][0]) for name in ("who_from", "who_to")]
    assert all(
        abs(own - true) < timedelta(minutes=10) for own, true in zip(brushed, (CULPRIT_FROM, CULPRIT_TO), strict=True)
    )
    assert "from" not in asked  # the window of the page is as before
    visit.page.locator("#who-by").select_option("user")
    visit.until("(name) => document.querySelector('#who tbody tr th').innerText === name", OTHER)
    visit.open(visit.page.url.removeprefix(visit.server.url))
    visit.until("(name) => document.querySelector('#who tbody tr th')?.innerText === name", OTHER)
    visit.until(MARKS)
    visit.page.get_by_role("button", name="Close").click()
    visit.wait()
    assert not visit.page.locator("#who").is_visible()
    assert "who_from" not in visit.page.url
    assert not visit.page.evaluate(MARKS)


def test_the_keyboard_alone_names_the_culprit(visit: PageVisit) -> None:
    visit.open(SCRATCH)
    keyboard = visit.page.keyboard
    focus = "() => document.activeElement.name || document.activeElement.id"

    def tab_to(name: str) -> None:
        for _ in range(60):
            if visit.page.evaluate(focus) == name:
                return
            keyboard.press("Tab")
        raise AssertionError(f"{name} is not reached with the tabulator")

    for name, time in (("from", CULPRIT_FROM), ("to", CULPRIT_TO)):
        tab_to(name)
        keyboard.type(_iso(time))
    keyboard.press("Enter")
    visit.until("(from) => document.querySelector('.origin[data-from]').dataset.from === from", _iso(CULPRIT_FROM))
    visit.wait()
    tab_to("ask-who")
    keyboard.press("Enter")
    visit.page.locator("#who tbody tr").first.wait_for()
    assert first_who(visit) == CULPRIT_ID


# Plan

SLIDERS = ("ssi", "purge_days", "purge_fraction", "daily_growth", "dom", "classes")
OF_SLIDERS = {"dom": "Metadata targets", "classes": "Endurance of drives"}  # the others move the capacity


def printed(command: str, store: Path, kind: str = "json") -> str:
    """What the command line prints for the command of a block."""
    done = iolens(*shlex.split(command)[1:], "--store", store, "--format", kind)
    assert done.code == 0, done.err
    return done.out


def test_sliders_move_the_numbers_to_those_of_the_command(visit: PageVisit, small_store: Path) -> None:
    visit.open(page_paths()["plan"] + "?daily_growth=1TB")  # two days of readings say nothing of growth
    for name in SLIDERS:
        block = visit.block(OF_SLIDERS.get(name, "Capacity"))
        numbers = block.locator("table").first.inner_text()
        slider = visit.page.locator(f"label:has([name={name}]) input[type=range]")
        slider.press("ArrowLeft" if name == "classes" else "ArrowRight")
        value = visit.page.evaluate("(name) => new FormData(document.querySelector('#plan')).get(name)", name)
        visit.wait()
        command = visit.command(block)
        assert shlex.join([f"--{name.replace('_', '-')}", value]) in command
        assert block.locator("table").first.inner_text() != numbers or name == "classes"
        address = block.get_by_text("JSON", exact=True).get_attribute("href")
        answer = visit.page.request.get(visit.server.url + str(address)).json()
        assert answer.pop("as_of")
        assert answer == json.loads(printed(command, small_store))
        assert_same_table(block, command, small_store)


def assert_same_table(block: Locator, command: str, store: Path) -> None:
    """The cells of the first table are those that the command line shows."""
    cells = [
        text.replace("\N{NO-BREAK SPACE}", " ") for text in block.locator("table").first.locator("td").all_inner_texts()
    ]
    table = " ".join(printed(command, store, "markdown").split())
    assert [cell for cell in cells if cell not in table] == []


def test_the_capacity_is_that_of_the_model(visit: PageVisit, small_store: Path) -> None:
    visit.open(page_paths()["plan"] + "?ssi=4&purge_days=30&purge_fraction=0.5&daily_growth=1TB")
    block = visit.block("Capacity")
    (case,) = json.loads(printed(visit.command(block), small_store))["cases"]
    assert case["capacity_bytes"] == 4 * 30 / 0.5 * 10**12
    assert format_bytes_si(case["capacity_bytes"]) in block.locator("tbody tr").first.inner_text().replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_the_rationale_is_a_pdf(visit: PageVisit) -> None:
    visit.open(page_paths()["plan"])
    with visit.page.expect_download() as download:
        visit.page.get_by_role("link", name="Rationale as PDF").click()
    assert download.value.suggested_filename == "rationale.pdf"
    assert Path(download.value.path()).read_bytes().startswith(b"%PDF-")


# Jobs

LISTED = 50


def listed(visit: PageVisit) -> list[str]:
    return visit.page.locator("#main table tbody tr th:first-child").all_inner_texts()


def test_jobs_are_searched_sorted_and_opened(visit: PageVisit) -> None:
    visit.open(page_paths()["jobs"])
    newest = listed(visit)
    assert len(newest) == LISTED
    visit.page.get_by_role("button", name="Next").click()
    visit.until("() => location.search.includes('skip=50')")
    visit.wait()
    assert not set(newest) & set(listed(visit))
    visit.page.get_by_role("button", name="Previous").click()
    visit.until("() => !location.search.includes('skip')")
    visit.wait()
    assert listed(visit) == newest
    visit.page.get_by_label("Sort by").select_option("disk")
    visit.until("() => location.search.includes('sort=disk')")
    visit.wait()
    assert listed(visit)[0] == CULPRIT_ID
    assert listed(visit) != newest
    visit.page.get_by_label("Search").fill("wrf")
    visit.page.keyboard.press("Enter")
    visit.until("() => location.search.includes('text=wrf')")
    visit.wait()
    assert set(visit.page.locator("#main tbody td:nth-child(4)").all_inner_texts()) == {"wrf.exe"}
    visit.page.get_by_label("Search").fill(OWN_JOB)
    visit.page.keyboard.press("Enter")
    visit.until("(id) => location.search.includes(`text=${id}`)", OWN_JOB)
    visit.wait()
    assert listed(visit) == [OWN_JOB]
    visit.page.get_by_role("link", name=OWN_JOB).click()
    visit.wait()
    assert visit.page.locator("h1").inner_text() == f"Job {OWN_JOB}"
    report = visit.page.locator(".block").first.inner_text()
    assert "because of the system" in report
    assert CULPRIT_ID in report


# New data


def test_new_data_appear_without_reload_and_without_a_jump(browser: Browser, small_store: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(small_store, store)
    with served(store, tmp_path / "state", "--no-alerts") as running, PageVisit(browser, running) as visit:
        visit.open(SCRATCH)
        last = shown_window(visit)[1]
        visit.page.evaluate("window.kept = true")
        visit.page.locator(".origin").nth(1).locator("summary").click()
        visit.page.locator("#live", has_text="live").wait_for()
        visit.block("Metadata").scroll_into_view_if_needed()
        place, documents = visit.page.evaluate("[scrollY, Bokeh.documents.length]")
        assert place > 0
        order = order_of(str(store), demo_workload(START, DAYS), start=END, days=1 / 48, osts=OSTS, seed=SEED)
        simulate_telemetry(order, workers=1)
        visit.until("(last) => document.querySelector('.origin[data-to]').dataset.to > last", _iso(last))
        visit.wait()
        assert shown_window(visit)[1] == END + timedelta(minutes=30)
        assert visit.page.evaluate("[window.kept, scrollY, Bokeh.documents.length]") == [True, place, documents]
        assert visit.page.locator(".origin").nth(1).get_attribute("open") is not None
        assert visit.complaints == []


def test_an_update_waits_while_a_reader_drags(visit: PageVisit) -> None:
    visit.context.add_init_script(REACHABLE)
    visit.open(SCRATCH)
    visit.page.evaluate("() => { window.before = document.querySelector('figure'); }")
    left, width, middle = visit.until(FRAME)
    visit.page.mouse.move(left + width * 0.3, middle)
    visit.page.mouse.down()
    visit.page.evaluate(NEWS)
    visit.until("() => document.querySelector('.coming figure .live[data-drawn]')")  # it is drawn, and waits
    visit.page.mouse.move(left + width * 0.4, middle, steps=3)
    assert visit.page.evaluate("() => window.before === document.querySelector('figure')")
    assert visit.page.locator("main").get_attribute("aria-busy") == "true"
    visit.page.mouse.move(left + width * 0.3, middle, steps=3)
    visit.page.mouse.up()
    visit.wait()
    assert visit.page.evaluate("() => !window.before.isConnected")
    blocks = visit.page.locator(":not(details:not([open]))[data-block]")
    assert None not in blocks.evaluate_all("(blocks) => blocks.map((block) => block.dataset.shown)")


REACHABLE = "window.EventSource = class extends EventSource { constructor(url) { super(url); window.events = this; } }"
# The page hears of new data; what it has is forgotten, so that the same answer is shown anew.
NEWS = """() => {
  document.querySelectorAll("[data-tag]").forEach((block) => { delete block.dataset.tag; });
  window.events.dispatchEvent(new Event("changed"));
}"""


# Colours and paper

COLOURS = """() => [...document.querySelectorAll("figure")]
    .map((figure) => figure.roots[0].model.children[0].title.text_color)"""


def test_figures_follow_the_colours_of_the_page(visit: PageVisit) -> None:
    visit.open(page_paths()["centre"])
    light = visit.page.evaluate(COLOURS)
    visit.toggle_theme()
    dark = visit.page.evaluate(COLOURS)
    assert len(set(light)) == len(set(dark)) == 1
    assert set(light) != set(dark)
    background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background))) < 150
    visit.open(page_paths()["data"])
    assert visit.page.evaluate("document.documentElement.dataset.theme") == "dark"  # it stays so


PAPER = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (selector) => all(selector).filter((element) => element.checkVisibility()).length;
  const inks = all("canvas.paper").map((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let darkest = 255;
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) darkest = Math.min(darkest, data[at]);
    return darkest;
  });
  return { bars: seen(".bar, .control, button"), stills: seen("canvas.paper"), live: seen("figure .live"), inks };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_there_are_light_figures_and_no_controls(browser: Browser, server: RunningServer, scheme: Any) -> None:
    with PageVisit(browser, server, color_scheme=scheme) as visit:
        visit.open(SCRATCH)
        figures = visit.page.locator("figure").count()
        visit.page.emulate_media(media="print", color_scheme=scheme)
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        seen = visit.page.evaluate(PAPER)
        assert (seen["bars"], seen["stills"], seen["live"]) == (0, figures, 0)
        assert max(seen["inks"]) < 80  # words are dark
        ink = visit.page.evaluate("getComputedStyle(document.querySelector('h1')).color")
        assert sum(map(int, re.findall(r"\d+", ink))) < 150
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        visit.page.emulate_media(media="screen", color_scheme=scheme)
        visit.wait()
        paper = visit.page.pdf(prefer_css_page_size=True)
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 8
        visit.wait()
        assert visit.page.locator(".paper").count() == 0
        assert visit.complaints == []
