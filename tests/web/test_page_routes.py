"""Pages of a running server and what fills their blocks, on the small centre."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from iolens.web.pages import PAGES, Page
from iolens.web.questions import QUESTIONS
from tests.web.served_centre import ServedCentre
from tests.web.small_centre import OTHER, OWN, OWN_JOB

NAMES = {"filesystem": "scratch", "target": "scratch-OST0001", "id": OWN_JOB, "name": OTHER}
NOTHING = "Nothing is stored of it in this window."
EMPTY = {("latency", None), ("alerts", "table:alerts,table:resolved")}  # nothing of it is in the small centre
TROUBLES = {  # what a block says instead, by question and file system
    ("plan/capacity", "scratch"): "scratch: too little data: 2 days of 7",
    ("plan/metadata", "scratch"): "plan/metadata needs capacity: Capacity of the new file system, such as 30PB",
    ("blame", "scratch2"): "scratch2 has no job_stats in this window",
}


def blocks_of(page: str) -> list[str]:
    return [html.unescape(address) for address in re.findall(r'data-block="([^"]+)"', page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_every_page_is_filled(centre: ServedCentre, page: Page) -> None:
    shown = centre.get(page.path.format(**NAMES))
    assert shown.status_code == 200
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    addresses = blocks_of(shown.text)
    assert len(addresses) == len(page.blocks) + 2 * len((*page.each, *page.glance))  # there are two file systems
    for address in addresses:
        block = centre.get(address)
        assert (block.status_code, block.headers["content-type"]) == (200, "text/html; charset=utf-8")
        check_block(address, block.text)


def check_block(address: str, text: str) -> None:
    question = urlsplit(address).path.removeprefix("/blocks/")
    given = parse_qs(urlsplit(address).query)
    filesystem, show = (given.get(name, [None])[0] for name in ("filesystem", "show"))
    trouble = re.search(r'<p class="trouble">(.*?)</p>', text)
    expected = TROUBLES.get((question, filesystem))
    if expected is not None:
        assert trouble is not None
        assert html.unescape(trouble[1]).startswith(expected)
        return
    assert trouble is None, text
    if show == "now":  # numbers at a glance: the blocks below say where they come from
        assert 'class="fact' in text
        return
    assert (NOTHING in text) is bool({(question, None), (question, show)} & EMPTY), address
    assert "As of 20" in text
    assert f'<a href="/api/v1/{question}?' in text
    assert ("<code>iolens " in text) is bool(QUESTIONS[question].command)


def test_a_page_says_what_its_blocks_take_from_its_address(centre: ServedCentre) -> None:
    page = centre.get("/filesystems/scratch").text
    first = parse_qs(urlsplit(blocks_of(page)[0]).query)
    assert first["last"] == ["1d"]
    assert first["takes"] == ["from,to,during,last,timezone"]
    capacity = next(address for address in blocks_of(centre.get("/").text) if "/blocks/capacity?" in address)
    fullness = parse_qs(urlsplit(capacity).query)
    assert (fullness["last"], fullness["takes"]) == (["90d"], ["timezone"])  # it has a window of its own


def test_a_page_has_menu_tabs_and_what_its_reader_set(centre: ServedCentre) -> None:
    text = centre.get("/filesystems/scratch2", params={"from": "2026-01-06", "to": '"><b>', "nonsense": "x"}).text
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', text) == ["/filesystems/scratch2"] * 2
    for address in ("/", "/filesystems/scratch", "/jobs", "/data", "/alerts", "/filesystems/scratch2/plan"):
        assert f'<a href="{address}"' in text
    assert 'value="2026-01-06"' in text
    assert 'value="&#34;&gt;&lt;b&gt;"' in text
    assert "nonsense" not in text
    assert 'aria-pressed="true"' not in text  # a window from when to when is none of the last parts


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/filesystems/scrath", "There is no file system &#39;scrath&#39; here; did you mean scratch"),
        ("/filesystems/%3Cb%3E/plan", "There is no file system &#39;&lt;b&gt;&#39; here"),
        ("/filesystems/scratch/nowhere", "There is no such page."),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(centre: ServedCentre, path: str, words: str) -> None:
    answer = centre.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert words in answer.text


@pytest.mark.parametrize(
    ("show", "words"),
    [("nonsense", "a block has no &#39;nonsense&#39;"), ("x" * 201, "show: 201 characters; at most 200"),
     ("<b>", "a block has no &#39;&lt;b&gt;&#39;"), ("chapters", "a block has no &#39;chapters&#39;")],
)  # fmt: skip
def test_a_block_does_not_show_what_there_is_not(centre: ServedCentre, show: str, words: str) -> None:
    answer = centre.get("/blocks/alerts", params={"show": show})
    assert (answer.status_code, answer.text) == (200, f'<p class="trouble">{words}</p>')


KINDS = ("facts", "lines", "words", "tables", "chapters", "answer:x", "figure:x", "table:x")


@pytest.mark.parametrize(
    ("name", "values"),
    [("job", {"id": OWN_JOB}), ("user", {"name": OTHER, "last": "7d"}), ("alerts", {}), ("agents", {}), ("sources", {}),
     ("filesystems", {}), ("utilization", {"filesystem": "scratch", "last": "1d", "resolution": "auto"})],
)  # fmt: skip
def test_any_kind_of_part_can_be_asked_of_any_question(centre: ServedCentre, name: str, values: dict[str, str]) -> None:
    """What a view does not have is nothing, or one line; never an error of the server."""
    for show in KINDS:
        answer = centre.get(f"/blocks/{name}", params={**values, "show": show})
        assert answer.status_code == 200, show
    answer = centre.get(f"/api/v1/{name}/figures/x.svg", params=values)
    assert answer.status_code == (400 if QUESTIONS[name].has_figures else 404)
    answer = centre.get(f"/api/v1/{name}.csv", params={**values, "table": "x"})
    assert (answer.status_code, answer.json()["error"][:17]) == (400, "no table 'x' here")


def test_a_block_leads_from_names_to_pages(centre: ServedCentre) -> None:
    values = {"filesystem": "scratch", "from": "2026-01-06T15:00", "to": "2026-01-06T16:00"}
    window = "?from=2026-01-06T15%3A00%3A00Z&amp;to=2026-01-06T16%3A00%3A00Z"
    blame = centre.get("/blocks/blame", params={**values, "by": "user", "show": "table:shares"}).text
    assert {f'<a href="/users/{name}">' in blame for name in (OWN, OTHER)} == {True}
    targets = centre.get("/blocks/utilization", params={**values, "show": "table:per_target"}).text
    assert f'<a href="/filesystems/scratch/targets/scratch-OST0001{window}">' in targets
    assert 'data-from="2026-01-06T15:00:00Z" data-to="2026-01-06T16:00:00Z"' in targets


@pytest.mark.parametrize("path", ["/", "/users", "/filesystems/scratch/targets"])
def test_no_window_is_named_before_one_is_known(centre: ServedCentre, path: str) -> None:
    """`From` and `To` are empty until the program of the page knows what its figures show."""
    fields = re.findall(r'<input[^>]*name="(?:from|to)"[^>]*>', centre.get(path).text)
    assert len(fields) == 2
    assert all("placeholder" not in field and 'value=""' in field for field in fields)
