"""Text of others in pages and documents: visible, and never taken for markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from iolens.visible_text import shown_lines, visible, with_short_words

if TYPE_CHECKING:
    from markupsafe import Markup


# Text in pages --------------------------------------------------------------------------------------------------------
# Jinja escapes what is markup, this makes visible what a page would obey or not show.

_COMMAND: Final = re.compile(r"`((?:iolens|lfs|lctl|printf)\b(?:'[^']*'|[^`'])*)`")
"""A command in a sentence, as a terminal shows it; what a shell quotes may hold a backtick of its own."""


def html_text(value: Any) -> Any:
    """Whatever a template prints: plain text is made visible, what is marked as safe stays as it is."""
    return shown_lines(value) if type(value) is str else value


def with_commands(text: str, said: Callable[[str], str] = str) -> Markup:
    """A sentence with its commands as code, all else as it is `said` there, escaped; only commands that iolens writes
    itself are known.
    """
    from markupsafe import Markup

    pieces = _COMMAND.split(shown_lines(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else said(piece) for place, piece in enumerate(pieces)
    )


# Text as GitHub-flavoured Markdown that no reader takes for markup ----------------------------------------------------
# No link, picture, HTML, mathematics or new table.
#
# Names of file systems, owners, jobs and paths may hold anything.

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
