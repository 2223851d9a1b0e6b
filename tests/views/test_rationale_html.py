"""The rationale as one page: everything in it, nothing from outside, names that are no markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from iolens.views.plan_rationale.chapters import document
from iolens.views.plan_rationale.document import to_html
from tests.plans.designs import ABOUT, from_telemetry, published

HOSTILE = """x"><script>alert(1)</script><img src=https://example.org/x onerror=alert(2)>'&{{7*7}}"""


class Elements(HTMLParser):
    """Start tags and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_chapters_tables_figures_and_equations_are_there() -> None:
    page = Elements(to_html(document(from_telemetry())))
    assert len(page.named("h2")) == 9
    assert len(page.named("figure")) == 7
    assert len(page.named("table")) > 12
    assert "1. What to buy" in page.texts
    assert any(text.startswith("SSI 3, 28 days, fraction 0.5: C = 3 · (28 / 0.5) · ") for text in page.texts)
    assert "Not answered" not in page.texts
    assert "Not answered" in Elements(to_html(document(published()))).texts


def test_nothing_comes_from_outside_and_nothing_runs() -> None:
    page = Elements(to_html(document(from_telemetry())))
    assert page.named("script") == page.named("link") == page.named("iframe") == []
    assert all((item["src"] or "").startswith("data:image/svg+xml;base64,") for item in page.named("img"))
    policy = next(item["content"] for item in page.named("meta") if item.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy


def test_names_are_no_markup() -> None:
    result = from_telemetry()
    about = replace(ABOUT, title=HOSTILE, author=HOSTILE, command=HOSTILE, store=HOSTILE)
    text = to_html(document(replace(result, filesystem=HOSTILE, about=about, notes=[HOSTILE])))
    page = Elements(text)
    assert page.named("script") == []
    assert all((item["src"] or "").startswith("data:") for item in page.named("img"))
    assert HOSTILE in page.texts
    assert "49" not in re.findall(r"x&#34;.{0,200}", text)[0]


def test_the_same_document_gives_the_same_page() -> None:
    assert to_html(document(published())) == to_html(document(published()))
