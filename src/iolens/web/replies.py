"""Replies: contents with a tag and, for those who take it, compressed; errors as a status and one line."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from iolens.errors import InputError, IolensError, NotKnownError, StoreError, UsageError
from iolens.views.dashboard.shell import message_html
from iolens.visible_text import visible_lines
from iolens.web.answers import NobodyWaitsError, TooManyInquiriesError
from iolens.web.permitted import NotPermittedError

WORTH_COMPRESSING: Final = 1024  # bytes
STATUS: Final[tuple[tuple[type[IolensError], int], ...]] = (
    (NotPermittedError, 403),
    (TooManyInquiriesError, 503),
    (NobodyWaitsError, 499),  # which nobody reads
    (NotKnownError, 404),
    (UsageError, 400),
    (StoreError, 503),
    (InputError, 404),  # a name that the store does not know
)


@dataclass(frozen=True, slots=True)
class ReplyBody:
    """Bytes of a reply, made once and sent often."""

    media_type: str
    plain: bytes
    zipped: bytes | None
    tag: str

    @classmethod
    def of(cls, body: str | bytes, media_type: str) -> ReplyBody:
        """Compressed where that is worth it."""
        plain = body.encode() if isinstance(body, str) else body
        zipped = gzip.compress(plain, 5, mtime=0) if len(plain) >= WORTH_COMPRESSING else None
        return cls(media_type, plain, zipped, f'"{hashlib.sha256(plain).hexdigest()[:32]}"')

    def reply(self, request: Request, headers: dict[str, str] | None = None) -> Response:
        """304 where the reader has it already."""
        more = {"ETag": self.tag, "Vary": "Accept-Encoding, Cookie, Authorization", **(headers or {})}
        if _names(request.headers.get("if-none-match", ""), self.tag):
            return Response(status_code=304, headers=more)
        if self.zipped is not None and _takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(self.zipped, headers={**more, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.plain, headers=more, media_type=self.media_type)


def _names(tags: str, own: str) -> bool:
    """Whether the list names the tag; proxies that compress call it weak."""
    return any(tag.strip().removeprefix("W/") in (own, "*") for tag in tags.split(","))


def _takes_gzip(codings: str) -> bool:
    """Whether gzip is among the codings, and not refused by `q=0`."""
    wanted = [coding.replace(" ", "").partition(";") for coding in codings.lower().split(",")]
    return any(name == "gzip" and not re.fullmatch(r"q=0(\.0*)?", rest) for name, _, rest in wanted)


def status_of(error: IolensError) -> int:
    """The HTTP status of an error that a reader can act on."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def message_of(error: IolensError, store_url: str) -> str:
    """Its one line, without the place of the store, which is nobody's business here."""
    return visible_lines(str(error)).replace(store_url, "the store")


def error_reply(error: IolensError, store_url: str, *, is_page: bool = False) -> Response:
    """The error as JSON, or as a page for people."""
    status, words = status_of(error), message_of(error, store_url)
    headers = {"Retry-After": "5"} if status == 503 else {}
    if is_page:
        return HTMLResponse(message_html(HTTPStatus(status).phrase, words), status, headers)
    return JSONResponse({"error": words}, status, headers)
