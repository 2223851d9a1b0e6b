"""How a request is refused: a status and one sentence, as JSON for programs and as a small page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from http import HTTPStatus
from typing import Final

from iolens import __version__

Header = tuple[bytes, bytes]

_PAGE: Final = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
    f'<link rel="stylesheet" href="/static/{__version__}/dashboard.css">{{head}}</head>'
    '<body><main><h1>{title}</h1><p>{reason}</p><p><a href="/">Start page</a></p></main></body></html>\n'
)


class Refusal(Exception):
    """Why a request is not answered. The reason is shown: it says nothing of what there is."""

    def __init__(self, status: int, reason: str, *headers: tuple[str, str]) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


def refusal_answer(refusal: Refusal, *, is_json: bool) -> tuple[list[Header], bytes]:
    """Headers and body."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in refusal.headers]
    if is_json:
        return _answer("application/json", json.dumps({"error": refusal.reason}) + "\n", headers)
    title = f"{refusal.status} {HTTPStatus(refusal.status).phrase}"
    return _answer(
        "text/html; charset=utf-8", _PAGE.format(title=title, reason=escape(refusal.reason), head=""), headers
    )


def second_look(target: str) -> tuple[list[Header], bytes]:
    """A page that asks for itself again.

    Browsers do not send a SameSite=Strict cookie when a link on another site leads here, but they do on this step.
    """
    head = f'<meta http-equiv="refresh" content="0;url={escape(target)}">'
    return _answer("text/html; charset=utf-8", _PAGE.format(title="iolens", reason="Opening the page …", head=head), [])


def _answer(kind: str, text: str, headers: Iterable[Header]) -> tuple[list[Header], bytes]:
    body = text.encode()
    length = str(len(body)).encode()
    return [(b"content-type", kind.encode()), (b"content-length", length), *headers], body
