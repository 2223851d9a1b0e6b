"""The section `[serve]` of the configuration: where the server listens, and whom it lets in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final

from iolens.agent.exporter.server import Address
from iolens.config import POSITIVE, SECTION, TEXT, TEXTS, TRUTH, Config, checked_section, parsed_value
from iolens.errors import InputError
from iolens.units import MIB, parse_capacity, parse_duration
from iolens.web.access.principal import ROLES, Role

Network = IPv4Network | IPv6Network

DEFAULT_LISTEN: Final = Address("127.0.0.1", 8470)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9.:-]{1,253}")
_KEYS: Final = {
    "listen": TEXT, "tls_cert": TEXT, "tls_key": TEXT, "hosts": TEXTS, "require_token": TRUTH,
    "proxy_addresses": TEXTS, "proxy_user_header": TEXT, "proxy_role_header": TEXT, "proxy_roles": SECTION,
    "requests_per_address": POSITIVE, "questions_per_reader": POSITIVE, "body_limit": TEXT, "body_time": TEXT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """`[serve]`, checked; every key has a default."""

    listen: Address = DEFAULT_LISTEN
    tls_cert: Path | None = None
    tls_key: Path | None = None
    hosts: tuple[str, ...] = ()  # names by which browsers reach the server, without port, in lower case
    require_token: bool = False  # also of those who ask from this machine
    proxy_addresses: tuple[Network, ...] = ()  # whose word on users is believed
    proxy_user_header: str | None = None
    proxy_role_header: str | None = None
    proxy_roles: Mapping[str, Role] = field(default_factory=dict)  # by login name
    requests_per_address: int = 1000  # at a time
    questions_per_reader: int = 2  # that the store is asked at a time
    body_limit_bytes: int = MIB
    body_time_s: float = 30.0

    @property
    def has_proxy(self) -> bool:
        """Whether a reverse proxy says who asks."""
        return self.proxy_user_header is not None


def serve_config(config: Config) -> ServeConfig:
    """What `[serve]` says, or an error that names the key."""
    path = config.path or Path("configuration")
    values = checked_section(path, "serve", config.serve, _KEYS)
    result = ServeConfig(
        **_given(values, "require_token", "proxy_user_header", "proxy_role_header"),
        **_parsed(path, values),
        hosts=tuple(_host(path, name) for name in values.get("hosts", ())),
        proxy_addresses=tuple(_network(path, text) for text in values.get("proxy_addresses", ())),
        proxy_roles=_roles(path, values.get("proxy_roles", {})),
    )
    _refuse_contradictions(path, result)
    return result


def _given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _parsed(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys whose text has a form of its own."""
    result: dict[str, Any] = {key: Path(values[key]) for key in ("tls_cert", "tls_key") if key in values}
    if "listen" in values:
        result["listen"] = parsed_value(path, "serve.listen", values["listen"], Address.parse)
    for key in ("requests_per_address", "questions_per_reader"):
        if key in values:
            result[key] = max(int(values[key]), 1)
    if "body_limit" in values:
        result["body_limit_bytes"] = parsed_value(path, "serve.body_limit", values["body_limit"], parse_capacity)
    if "body_time" in values:
        result["body_time_s"] = parsed_value(path, "serve.body_time", values["body_time"], parse_duration)
    return result


def _host(path: Path, name: str) -> str:
    if not _HOST_NAME.fullmatch(name):
        raise InputError(str(path), f"serve.hosts: {name!r} is no host", "a name or address without port")
    return name.lower()


def _network(path: Path, text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        expected = "an address such as 10.0.0.5, or a network such as 10.0.0.0/24"
        raise InputError(str(path), f"serve.proxy_addresses: {text!r}", expected) from None


def _roles(path: Path, part: Mapping[str, Any]) -> dict[str, Role]:
    roles = checked_section(path, "serve.proxy_roles", part, dict.fromkeys(part, TEXT))
    if wrong := next((user for user, role in roles.items() if role not in ROLES), None):
        raise InputError(str(path), f"serve.proxy_roles.{wrong} = {roles[wrong]!r}", f"one of {', '.join(ROLES)}")
    return roles


def _refuse_contradictions(path: Path, config: ServeConfig) -> None:
    for key in ("proxy_user_header", "proxy_role_header"):
        name = getattr(config, key)
        if name is not None and not _HEADER_NAME.fullmatch(name):
            raise InputError(str(path), f"serve.{key} = {name!r}", "the name of a header, such as X-Remote-User")
    if config.has_proxy != bool(config.proxy_addresses):
        expected = "both: which header names the user, and from which addresses it is believed"
        raise InputError(str(path), "serve.proxy_user_header and serve.proxy_addresses go together", expected)
    if (config.proxy_role_header or config.proxy_roles) and not config.has_proxy:
        raise InputError(
            str(path), "serve.proxy_role_header and serve.proxy_roles", "serve.proxy_user_header with them"
        )
    if (config.tls_cert is None) != (config.tls_key is None):
        raise InputError(str(path), "serve.tls_cert and serve.tls_key go together", "both")
