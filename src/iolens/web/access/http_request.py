"""The head of a request: path, query and headers, refused where they are malformed or ambiguous."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from iolens.web.access.refusals import Refusal

Scope = MutableMapping[str, Any]

LONGEST_PATH: Final = 2048
LONGEST_QUERY: Final = 8192
MOST_HEADERS: Final = 100
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PATH: Final = re.compile(rb"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_QUERY: Final = re.compile(rb"[!-~]*")
# An encoded slash, backslash or NUL, and what would be one of them or a dot after a second decoding.
_TRICKS: Final = re.compile(rb"%(?:2f|5c|00|25[0-9a-f]{2})", re.IGNORECASE)
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f\\\\]")
_ONLY_ONCE: Final = ("host", "authorization", "origin", "content-length", "content-type", "sec-fetch-site")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Method, path (decoded), target (path and query as sent) and headers by lower-case name."""

    method: str
    path: str
    target: str
    headers: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, scope: Scope) -> HttpRequest:
        """From an ASGI scope, or a Refusal."""
        raw, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
        path = decoded_path(raw)
        check_query(query)
        target = (raw + (b"?" + query if query else b"")).decode("ascii")
        return cls(scope["method"], path, target, _headers(scope["headers"]))

    def header(self, name: str) -> str | None:
        """The value of a header that is there once."""
        values = self.headers.get(name.lower(), ())
        if len(values) > 1:
            raise Refusal(400, "A header is there twice.")
        return values[0] if values else None

    @property
    def is_safe(self) -> bool:
        """Whether the method changes nothing."""
        return self.method in SAFE_METHODS

    @property
    def wants_page(self) -> bool:
        """Whether a person with a browser asks."""
        return self.method in ("GET", "HEAD") and "text/html" in " ".join(self.headers.get("accept", ()))


def decoded_path(raw: bytes) -> str:
    """The path that the bytes of a request mean, if they mean one alone; a Refusal otherwise."""
    if len(raw) > LONGEST_PATH:
        raise Refusal(414, "The path is too long.")
    if not _PATH.fullmatch(raw) or _TRICKS.search(raw):
        raise Refusal(400, "The path is malformed.")
    try:
        path = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise Refusal(400, "The path is not UTF-8.") from None
    inner = path.split("/")[1:-1]
    if _CONTROLS.search(path) or "" in inner or {".", ".."} & set(path.split("/")):
        raise Refusal(400, "The path is malformed.")
    return path


def check_query(query: bytes) -> None:
    """A Refusal unless it is short, printable, and UTF-8 without NUL where it is decoded."""
    if len(query) > LONGEST_QUERY:
        raise Refusal(414, "The query is too long.")
    try:
        text = unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        text = "\0"
    if not _QUERY.fullmatch(query) or "\0" in text:
        raise Refusal(400, "The query is malformed.")


def _headers(given: list[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    if len(given) > MOST_HEADERS:
        raise Refusal(431, "Too many headers.")
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in given:
        values[name.decode("latin-1").lower()].append(value.decode("latin-1"))
    if any(len(values.get(name, ())) > 1 for name in _ONLY_ONCE):
        raise Refusal(400, "A header is there twice.")
    if "content-length" in values and "transfer-encoding" in values:  # where a proxy and we could see different ends
        raise Refusal(400, "The length of the body is stated in two ways.")
    return {name: tuple(items) for name, items in values.items()}
