"""A JSON document by HTTP POST to any address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iolens import __version__
from iolens.alerts.notifications import Notification
from iolens.alerts.receivers.exchange import HttpAddress, http_address, needed_text, secret, timeout_of
from iolens.config import TEXT, checked_section

KEYS: Final = dict.fromkeys(("name", "kind", "url", "token_env", "token_file", "ca", "timeout"), TEXT)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts the notification; a token, if there is one, goes into `Authorization: Bearer`."""

    name: str
    address: HttpAddress
    values: dict[str, Any]
    kind: str = "webhook"
    renew_s: float | None = None

    def deliver(self, notification: Notification) -> None:
        """One POST; any answer 2xx is success."""
        self.address.post(notification.json_bytes(), bearer(self.values) | {"Idempotency-Key": notification.id})


def bearer(values: dict[str, Any]) -> dict[str, str]:
    """The headers that say who asks."""
    token = secret(values, "token")
    agent = {"User-Agent": f"iolens/{__version__}"}
    return agent if token is None else agent | {"Authorization": f"Bearer {token}"}


def webhook(path: Path, where: str, section: Mapping[str, Any]) -> Webhook:
    """From its section."""
    values = checked_section(path, where, section, KEYS)
    url = needed_text(path, where, values, "url")
    address = http_address(path, f"{where}.url", url, timeout_of(path, where, values), values.get("ca"))
    return Webhook(values["name"], address, values)


RECEIVER = webhook
