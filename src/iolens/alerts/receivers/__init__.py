"""Who is notified, one module for each kind of receiver: webhook, SMTP, Alertmanager, a command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from iolens.alerts.notifications import Notification
from iolens.errors import InputError
from iolens.registry import load, registered


class DeliveryError(Exception):
    """A notification did not arrive; `is_down`: nothing else would arrive there now either."""

    def __init__(self, problem: str, is_down: bool) -> None:
        super().__init__(problem)
        self.is_down = is_down


class Receiver(Protocol):
    """Takes notifications."""

    @property
    def name(self) -> str:
        """As rules name it."""

    @property
    def kind(self) -> str:
        """As the configuration names it."""

    @property
    def renew_s(self) -> float | None:
        """How often it wants to hear again of an alert that still fires; None: once is enough."""

    def deliver(self, notification: Notification) -> None:
        """Send it; DeliveryError if it was not taken."""


def receiver_of(path: Path, section: Mapping[str, Any]) -> Receiver:
    """The receiver that a section `[[alerts.receivers]]` of the configuration describes."""
    kinds = registered("iolens.receivers", "RECEIVER", "iolens.alerts.receivers")
    kind, name = section.get("kind"), section.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InputError(str(path), "[[alerts.receivers]] lacks name", "a text in quotes")
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(str(path), f"alerts.receivers {name!r}: kind = {kind!r}", f"one of {', '.join(kinds)}")
    receiver: Receiver = load(kinds[kind])(path, f"alerts.receivers {name!r}", section)
    return receiver
