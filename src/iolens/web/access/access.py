"""How a server is protected: open to its own machine, or by tokens, sessions and a trusted proxy."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from iolens.agent.exporter.server import Address
from iolens.errors import UsageError
from iolens.units import KIB, MIB
from iolens.web.access.access_database import AccessDatabase
from iolens.web.access.attempts import Attempts, Pace
from iolens.web.access.audit import AuditLog
from iolens.web.access.bodies import BodyBounds
from iolens.web.access.permissions import HUB
from iolens.web.access.sessions import SessionBook
from iolens.web.access.tokens import TokenBook
from iolens.web.serve_config import ServeConfig

HUB_BODY_BYTES: Final = 64 * MIB
HUB_TIME_S: Final = 600.0
LOGIN_BODY_BYTES: Final = 64 * KIB
FAILURES: Final = (Pace(10, 0.1), Pace(200, 2.0))  # of wrong tokens: per address, and of all


@dataclass(frozen=True, slots=True)
class Access:
    """Who is let in, how much they may ask for, and where it is written down."""

    config: ServeConfig
    is_open: bool  # whoever asks from this machine needs no token
    has_tls: bool
    tokens: TokenBook
    sessions: SessionBook
    audit: AuditLog
    hub_bounds: BodyBounds = field(default=BodyBounds(HUB_BODY_BYTES, HUB_TIME_S))
    failures: Attempts = field(default_factory=lambda: Attempts(*FAILURES))

    @classmethod
    def of(
        cls,
        config: ServeConfig,
        state: Path,
        listen_address: Address,
        tls: bool,
        hub_body_bytes: int = HUB_BODY_BYTES,
    ) -> Access:
        """For a server at that address; UsageError if nothing would protect it."""
        database = AccessDatabase(state)
        tokens = TokenBook(database)
        is_open = opens_without_token(config, listen_address, tokens.has_valid())
        bounds = BodyBounds(hub_body_bytes, HUB_TIME_S)
        return cls(config, is_open, tls, tokens, SessionBook(database), AuditLog(state), bounds)

    def bounds_of(self, path: str) -> BodyBounds:
        """What the body of a request to that path may have."""
        if path.startswith(HUB):
            return self.hub_bounds
        limits = (self.config.body_limit_bytes, *([LOGIN_BODY_BYTES] if path == "/login" else []))
        return BodyBounds(min(limits), self.config.body_time_s)

    def concerns(self, listen_address: Address) -> list[str]:
        """What an administrator should know of it."""
        if is_loopback(listen_address.host) or self.has_tls or self.config.has_proxy:
            return []
        return ["tokens cross the network in the clear: see --tls-cert"]

    def close(self) -> None:
        """Let the files go."""
        self.tokens.database.close()


def opens_without_token(config: ServeConfig, address: Address, has_tokens: bool) -> bool:
    """Whether everybody who can connect is let in; UsageError where nobody could be, or everybody of a network.

    That is so on a loopback address, unless a token is required or a proxy says who asks.
    """
    if is_loopback(address.host):
        return not (config.require_token or config.has_proxy)
    if not has_tokens and not config.has_proxy:
        raise UsageError(
            f"--listen {address.host}:{address.port}: other machines can reach this address, and there is no token: "
            "add one with `iolens serve token add NAME --role viewer`, set proxy_user_header and proxy_addresses in "
            "[serve], or listen on 127.0.0.1"
        )
    return False


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address. Other names than localhost may lead anywhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
