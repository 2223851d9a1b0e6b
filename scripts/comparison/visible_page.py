"""What a reader of an HTML page sees, as lines of text: words, cells of tables, addresses of links, figures as data."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Final

from comparison.product import PICTURE

INLINE: Final = frozenset(
    ("a", "abbr", "b", "bdi", "br", "button", "code", "em", "i", "small", "span", "strong", "wbr")
)
CELLS: Final = frozenset(("td", "th"))
SILENT: Final = frozenset(("style", "script"))
SHOWN: Final = (  # attributes that say or do something
    "href", "src", "alt", "title", "aria-label", "aria-current", "data-block", "data-last", "data-from", "data-to",
    "data-page", "data-filesystem", "action", "method", "name", "value", "placeholder", "content", "type", "open",
    "checked", "selected", "disabled", "class",
)  # fmt: skip
DATA: Final = re.compile(r"data:[^,]*;base64,")


def visible_page(html: str) -> str:
    """Lines of a page; programs and styles are left out."""
    page = _Page()
    page.feed(html)
    page.close()
    return page.text


def links_of(html: str) -> list[str]:
    """Addresses on this server that a page links to or fetches, each once, in order."""
    page = _Page()
    page.feed(html)
    page.close()
    return list(dict.fromkeys(page.links))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self._lines: list[str] = []
        self._words: list[str] = []
        self._within: list[str] = []  # elements whose text is not shown, or is data

    @property
    def text(self) -> str:
        self._end_line()
        return "\n".join(self._lines)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in SILENT:
            self._within.append("data" if given.get("type") == "application/json" else "silent")
            return
        if tag in CELLS:
            self._words.append("|")
        elif tag not in INLINE:
            self._end_line()
        shown = [name for name in SHOWN if name in given and (given[name] or name not in ("class", "type"))]
        self._words += [f"[{name}={_address(given[name])}]" for name in shown]
        self.links += [given[name] for name in ("href", "data-block") if given.get(name, "").startswith("/")]

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT and self._within:
            self._within.pop()
        elif tag not in INLINE and tag not in CELLS:
            self._end_line()

    def handle_data(self, data: str) -> None:
        if self._within:
            if self._within[-1] == "data":
                self._end_line()
                self._lines.append(data.strip())
            return
        self._words += data.split()

    def _end_line(self) -> None:
        if self._words:
            self._lines.append(" ".join(self._words))
            self._words = []


def _address(text: str) -> str:
    """An address; of a picture in the page what it describes."""
    if (match := DATA.match(text)) is None:
        return text
    content = base64.b64decode(text[match.end() :])
    return content.decode() if content.startswith(PICTURE) else f"a picture of {len(content)} bytes"
