"""Text in pages: Jinja escapes what is markup, this makes visible what a page would obey or not show."""

from __future__ import annotations

from typing import Any

from iolens.visible_text import shown_lines


def html_text(value: Any) -> Any:
    """Whatever a template prints: plain text is made visible, what is marked as safe stays as it is."""
    return shown_lines(value) if type(value) is str else value
