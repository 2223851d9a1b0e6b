"""Who asks: by a token, by the cookie of a session, by a trusted proxy, or from this machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from iolens.web.access.access import Access
from iolens.web.access.http_request import HttpRequest
from iolens.web.access.principal import LOCAL, Principal
from iolens.web.access.proxies import FORWARDED, client_address, is_secure, proxy_principal
from iolens.web.access.refusals import Refusal

CHALLENGE = ("WWW-Authenticate", 'Bearer realm="iolens"')
NO_TOKEN = "A token is needed."  # noqa: S105
WRONG_TOKEN = "The token is not valid."  # noqa: S105


@dataclass(frozen=True, slots=True)
class Client:
    """From where a request came: the address of who asks, and whether it came over TLS all the way."""

    peer: str
    address: str
    is_secure: bool

    @classmethod
    def of(cls, peer: str, request: HttpRequest, access: Access) -> Client:
        """As the connection shows it, and as a trusted proxy says."""
        config = access.config
        return cls(peer, client_address(peer, request, config), access.has_tls or is_secure(peer, request, config))

    @property
    def cookie_name(self) -> str:
        """With TLS, one that browsers take from this very host alone."""
        return "__Host-iolens" if self.is_secure else "iolens"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks; `is_ambient` where a browser says so by itself, so that a page of others could make it ask."""

    principal: Principal | None
    is_ambient: bool


def identity_of(request: HttpRequest, client: Client, access: Access) -> Identity:
    """Who asks; a Refusal where a wrong token is shown."""
    scheme, _, token = (request.header("authorization") or "").partition(" ")
    if scheme.lower() == "bearer":
        return Identity(_holder(token.strip(), client, access), is_ambient=False)
    cookie = cookie_of(request, client)
    session = access.sessions.holder(cookie) if cookie else None
    if session is not None:
        return Identity(session.principal, is_ambient=True)
    principal = proxy_principal(client.peer, request, access.config)
    if principal is None and access.is_open:
        return Identity(_local(request), is_ambient=True)
    return Identity(principal, is_ambient=True)


def refuse_wrong_token(client: Client, access: Access) -> Refusal:
    """What is said of a wrong token; many of them have to wait.

    A right token is never made to wait: one who guesses could lock out others at the same address, and 256 random bits
    are not guessed.
    """
    wait = access.failures.wait_s(client.address)
    if wait:
        return Refusal(429, "Too many wrong tokens; wait.", ("Retry-After", str(ceil(wait))))
    return Refusal(401, WRONG_TOKEN, CHALLENGE)


def cookie_of(request: HttpRequest, client: Client) -> str | None:
    """The value of the session's cookie."""
    for header in request.headers.get("cookie", ()):
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == client.cookie_name:
                return value
    return None


def _holder(secret: str, client: Client, access: Access) -> Principal:
    token = access.tokens.holder(secret)
    if token is None:
        raise refuse_wrong_token(client, access)
    return token.principal


def _local(request: HttpRequest) -> Principal:
    """Whoever asks from this machine; not a proxy that brings the requests of others."""
    if any(name in request.headers for name in FORWARDED):
        raise Refusal(403, "This server is open to its own machine alone; for a proxy, see [serve] proxy_user_header.")
    return LOCAL
