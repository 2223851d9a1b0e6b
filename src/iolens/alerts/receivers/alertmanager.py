"""Prometheus Alertmanager, by its API v2: it groups and routes alerts on its own.

Alertmanager keeps alerts in memory only and drops those of which it hears no more: they are renewed while they fire.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from iolens.alerts.notifications import Notification, who_text
from iolens.alerts.receivers.exchange import HttpAddress, http_address, needed_text, timeout_of
from iolens.alerts.receivers.webhook import bearer
from iolens.alerts.results import quantity_text
from iolens.config import SECTION, TEXT, checked_section, parsed_value
from iolens.errors import InputError
from iolens.units import iso, parse_duration
from iolens.visible_text import shown_lines, shown_name

KEYS: Final = {
    **dict.fromkeys(("name", "kind", "url", "token_env", "token_file", "ca", "timeout", "renew", "valid"), TEXT),
    "labels": SECTION,
}
PLACE: Final = "/api/v2/alerts"
RENEW_S, VALID_S = 600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """Posts alerts to one Alertmanager; without a renewal it takes an alert as over after `valid_s`."""

    name: str
    address: HttpAddress
    values: dict[str, Any]
    labels: Mapping[str, str]
    renew_s: float | None = RENEW_S
    valid_s: float = VALID_S
    kind: str = "alertmanager"

    def deliver(self, notification: Notification) -> None:
        """Post a list of one alert."""
        self.address.post(json.dumps([self.document(notification)]).encode("ascii"), bearer(self.values))

    def document(self, notification: Notification) -> dict[str, Any]:
        """One alert as Alertmanager reads it. Labels say which alert it is: values that change are annotations."""
        alert = notification.alert
        ends = alert.resolved_at if notification.event == "resolved" else None
        ends = ends or notification.created_at + timedelta(seconds=self.valid_s if notification.event != "test" else 60)
        labels = {
            "alertname": alert.rule,
            "kind": alert.kind,
            "filesystem": alert.filesystem,
            "subject": alert.subject,
            "severity": alert.severity,
        }
        annotations = {
            "summary": notification.title,
            "description": alert.why,
            "value": quantity_text(alert.value, alert.unit),
            "who": who_text(alert),
            "command": alert.command,
            "id": notification.id,
        }
        return {
            "labels": {**self.labels, **{name: shown_name(text) for name, text in labels.items() if text}},
            "annotations": {name: shown_lines(text) for name, text in annotations.items() if text},
            "startsAt": iso(min(alert.since, ends)),
            "endsAt": iso(ends),
            **({"generatorURL": alert.link} if alert.link else {}),
        }


def alertmanager(path: Path, where: str, section: Mapping[str, Any]) -> Alertmanager:
    """From its section; `url` is that of the server."""
    values = checked_section(path, where, section, KEYS)
    url = needed_text(path, where, values, "url").rstrip("/")
    address = http_address(path, f"{where}.url", url + PLACE, timeout_of(path, where, values), values.get("ca"))
    renew, valid = (
        parsed_value(path, f"{where}.{key}", values[key], parse_duration) if key in values else usual
        for key, usual in (("renew", RENEW_S), ("valid", VALID_S))
    )
    if not 0 < renew < valid:
        raise InputError(str(path), f"{where}: renew = {renew:g} s, valid = {valid:g} s", "renew shorter than valid")
    labels = checked_section(
        path, f"{where}.labels", values.get("labels", {}), dict.fromkeys(values.get("labels", {}), TEXT)
    )
    return Alertmanager(values["name"], address, values, labels, renew, valid)


RECEIVER = alertmanager
