"""Text as GitHub-flavoured Markdown that no reader takes for markup: no link, picture, HTML, mathematics or new table.

Names of file systems, owners, jobs and paths may hold anything.
"""

from __future__ import annotations

import re
from typing import Final

from iolens.visible_text import shown_lines, visible, with_short_words

# A backslash that would escape what follows, and signs that begin or end markup.
_MARKUP: Final = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])|[`*|<$~]|(?<=\])[(\[:]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|(?<=\b(?:http|ftps)):(?=//)|(?<=\bhttps):(?=//)|(?<=\bftp):(?=//)|(?<=\bwww)\.",
    re.IGNORECASE,
)
_ENTITY: Final = re.compile(r"&(?=#?[A-Za-z0-9]+;)")
_LINE_BEGINS: Final = re.compile(r"^(\s*)([#>+=:-]|\d{1,9}(?=[.)]))")


def markdown_cell(text: str) -> str:
    """A name or a cell of a table, in one line."""
    return _escaped(with_short_words(visible(text)))


def markdown_line(text: str) -> str:
    """A line of sentences: nothing at its beginning makes it a heading, list or quotation."""
    line = _escaped(shown_lines(text).replace("\n", " "))
    return _LINE_BEGINS.sub(lambda begin: f"{begin[1]}{_line_begin(begin[2])}", line)


def markdown_lines(text: str) -> list[str]:
    """Every line of some sentences."""
    return [markdown_line(line) for line in text.split("\n")] if text else []


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda sign: "&lt;" if sign[0] == "<" else f"\\{sign[0]}", _ENTITY.sub("&amp;", text))


def _line_begin(sign: str) -> str:
    return f"{sign}\\" if sign.isdigit() else f"\\{sign}"
