"""Text in pages: Jinja escapes what is markup, this makes visible what a page would obey or not show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from iolens.visible_text import shown_lines

if TYPE_CHECKING:
    from markupsafe import Markup

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
