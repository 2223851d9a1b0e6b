"""A notification: the document that receivers get, and the same for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from iolens.alerts.alert_document import alert_document, alert_of
from iolens.alerts.quantities import quantity_text
from iolens.alerts.results import Alert
from iolens.units import iso
from iolens.visible_text import shortened, visible

Event = Literal["firing", "resolved", "repeat", "renewal", "test"]
VERSION: Final = 1
LONGEST_TITLE: Final = 200
_LONGEST_LINE: Final = 500
_BEGINNINGS: Final = {"resolved": "RESOLVED", "test": "TEST"}


@dataclass(frozen=True, slots=True)
class Notification:
    """One event of one alert. `id` is the same however often it is sent: a receiver may drop the second."""

    id: str
    event: Event
    created_at: datetime
    alert: Alert

    @property
    def title(self) -> str:
        """One line, whatever the names in it hold."""
        alert = self.alert
        where = (
            f"{alert.filesystem} {alert.subject}" if alert.filesystem not in (None, alert.subject) else alert.subject
        )
        begins = _BEGINNINGS.get(self.event, "FIRING")
        return shortened(visible(f"[{begins}] {alert.severity}: {alert.rule}: {where}"), LONGEST_TITLE)

    def document(self) -> dict[str, Any]:
        """As webhooks and commands get it."""
        return {
            "version": VERSION,
            "id": self.id,
            "event": self.event,
            "created_at": iso(self.created_at),
            "title": self.title,
            "alert": alert_document(self.alert),
        }

    def json_bytes(self) -> bytes:
        """The document in ASCII."""
        return json.dumps(self.document(), allow_nan=False).encode("ascii")

    def text(self) -> str:
        """For a person to read; each name stands on one line, whatever it holds."""
        alert = self.alert
        value, threshold = (quantity_text(number, alert.unit) for number in (alert.value, alert.threshold))
        facts = {
            "Why": alert.why,
            "State": f"{alert.state}, {alert.severity}",
            "Since": iso(alert.since),
            "Resolved": None if alert.resolved_at is None else iso(alert.resolved_at),
            "File system": alert.filesystem,
            "Subject": alert.subject,
            "Value": f"{value}, threshold {threshold}",
            "Who": who_text(alert),
            "Link": alert.link,
            "Command": alert.command,
            "Rule": f"{alert.rule} ({alert.kind})",
            "Notification": self.id,
        }
        lines = [f"{name}: {shortened(visible(fact), _LONGEST_LINE)}" for name, fact in facts.items() if fact]
        return "\n".join([self.title, "", *lines, ""])


def who_text(alert: Alert) -> str | None:
    """`4711 of ana 61.0 %, 4712 12.0 %`; None where it is not known."""
    if alert.who is None:
        return None
    return ", ".join(
        f"{took.name}{f' of {took.user}' if took.user else ''} {quantity_text(took.share_pct, '%')}"
        for took in alert.who
    )


def notification_of(document: dict[str, Any]) -> Notification:
    """The notification of a document that was kept."""
    created = datetime.fromisoformat(document["created_at"])
    return Notification(document["id"], document["event"], created, alert_of(document["alert"]))
