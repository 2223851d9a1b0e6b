"""Under which names the server answers, and from where a browser may change something: against rebinding and CSRF."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from iolens.web.access.http_request import HttpRequest
from iolens.web.access.refusals import Refusal

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


def host_name(header: str | None) -> str | None:
    """The name or address in a `Host` header, without port; None if it is malformed."""
    match = _HOST.fullmatch(header or "")
    return (match[1] or match[2]).lower() if match else None


def check_host(request: HttpRequest, hosts: Collection[str], *, is_open: bool) -> None:
    """A Refusal where a browser was led here under another name, as a page does that rebinds its own name to us.

    With tokens and no list of names every name will do: the page of another name has no cookie of ours.
    """
    name = host_name(request.header("host"))
    if name is None and (is_open or request.header("host") is not None):
        raise Refusal(400, "The Host header is missing or malformed.")
    if (is_open or hosts) and name not in LOOPBACK_NAMES and name not in hosts:
        raise Refusal(421, "This server does not answer under that name; see [serve] hosts.")


def check_same_origin(request: HttpRequest, *, is_secure: bool) -> None:
    """A Refusal unless a page of our own asks.

    Browsers say so in Sec-Fetch-Site, which no page can set; over plain HTTP there is only Origin.
    """
    site = request.header("sec-fetch-site")
    is_ours = _is_own(request, is_secure) if site is None else site == "same-origin"
    if not is_ours:
        raise Refusal(403, "Changes need a request from a page of this server, or a token.")


def check_not_embedded(request: HttpRequest) -> None:
    """A Refusal where a page of another site has the browser load something of ours in the background."""
    is_foreign = request.header("sec-fetch-site") in ("cross-site", "same-site")
    if is_foreign and request.header("sec-fetch-mode") != "navigate":
        raise Refusal(403, "Pages of other sites cannot load this.")


def _is_own(request: HttpRequest, is_secure: bool) -> bool:
    try:
        origin = urlsplit(request.header("origin") or "")
    except ValueError:
        return False
    schemes = ("https",) if is_secure else ("http", "https")  # a proxy may have taken the TLS away
    return origin.scheme in schemes and origin.netloc.lower() == (request.header("host") or "").lower() != ""
