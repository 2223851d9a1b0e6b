"""What a trusted reverse proxy says of a request: from where it came, over TLS or not, and who asks."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

from iolens.web.access.http_request import HttpRequest
from iolens.web.access.principal import ROLES, Principal
from iolens.web.access.refusals import Refusal
from iolens.web.serve_config import ServeConfig

FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_USER: Final = re.compile(r"[^\s:/\x00-\x1f\x7f]{1,64}")


def is_trusted(peer: str, config: ServeConfig) -> bool:
    """Whether the address is a proxy's whose word is believed."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in config.proxy_addresses)


def client_address(peer: str, request: HttpRequest, config: ServeConfig) -> str:
    """The address of who asks: the last of X-Forwarded-For that is no proxy's, where a proxy brings the request."""
    if not is_trusted(peer, config):
        return peer
    forwarded = ",".join(request.headers.get("x-forwarded-for", ()))
    addresses = [item.strip() for item in forwarded.split(",") if item.strip()]
    return next((item[:64] for item in reversed(addresses) if not is_trusted(item, config)), peer)


def is_secure(peer: str, request: HttpRequest, config: ServeConfig) -> bool:
    """Whether a proxy took the request over TLS."""
    return is_trusted(peer, config) and request.headers.get("x-forwarded-proto") == ("https",)


def proxy_principal(peer: str, request: HttpRequest, config: ServeConfig) -> Principal | None:
    """Who asks, as a trusted proxy says; a role from its header, else from the table, else `user`."""
    if config.proxy_user_header is None or not is_trusted(peer, config):
        return None
    user = request.header(config.proxy_user_header)
    if not user:
        return None
    if not _USER.fullmatch(user):
        raise Refusal(400, "The proxy's name of the user is malformed.")
    stated = None if config.proxy_role_header is None else request.header(config.proxy_role_header)
    role = stated or config.proxy_roles.get(user, "user")
    if role not in ROLES:
        raise Refusal(403, "The proxy states a role that this server does not know.")
    return Principal(user, role, user if role == "user" else None)
