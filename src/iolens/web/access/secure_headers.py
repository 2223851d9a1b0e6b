"""Headers of every answer that keep browsers from doing more with it than was meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Header = tuple[bytes, bytes]

# BokehJS sets styles of elements; there is no inline script and no eval.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURE_HEADERS: Final[dict[bytes, bytes]] = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # with no-referrer, browsers say `Origin: null` of our own forms
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    b"cache-control": b"private, no-cache",
}
TLS_HEADER: Final[Header] = (b"strict-transport-security", b"max-age=31536000")
_UNWANTED: Final = frozenset({b"server", b"x-powered-by"})


def secured(headers: Iterable[Header], *, is_secure: bool) -> list[Header]:
    """The headers of an answer and those that are missing; what the page itself states stays."""
    given = [(name.lower(), value) for name, value in headers if name.lower() not in _UNWANTED]
    names = {name for name, _ in given}
    added = [*SECURE_HEADERS.items(), *([TLS_HEADER] if is_secure else [])]
    return given + [(name, value) for name, value in added if name not in names]
