"""A notification: the document that receivers get, where it leads, and an alert as plain values."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from iolens.alerts.results import Alert, WhoTook, quantity_text
from iolens.alerts.rule import Page, RuleKind
from iolens.units import iso
from iolens.visible_text import shortened, visible

# An alert as plain values for JSON, and back --------------------------------------------------------------------------
# For the state file and for receivers.

_TIMES: Final = frozenset(
    ("since", "fired_at", "resolved_at", "checked_at", "window_start", "window_end", "unknown_since")
)


def alert_document(alert: Alert) -> dict[str, Any]:
    """Field names are the keys; times are ISO-8601 with Z."""
    values = {field.name: getattr(alert, field.name) for field in fields(alert)}
    who = None if alert.who is None else [_took(took) for took in alert.who]
    times = {name: None if values[name] is None else iso(values[name]) for name in _TIMES}
    return {**values, **times, "who": who}


def alert_of(document: dict[str, Any]) -> Alert:
    """The alert that was written so; keys of another version are left out."""
    known = {field.name: document[field.name] for field in fields(Alert) if field.name in document}
    times = {name: datetime.fromisoformat(known[name]) for name in _TIMES if known.get(name) is not None}
    who = None if known.get("who") is None else [WhoTook(**took) for took in known["who"]]
    return Alert(**{**known, **times, "who": who})


def _took(took: WhoTook) -> dict[str, Any]:
    return {"name": took.name, "user": took.user, "share_pct": took.share_pct}


# Where an alert leads -------------------------------------------------------------------------------------------------
# The page of the dashboard and the command that show the same.

Stretch = tuple[datetime, datetime]
_PLACES: Final[dict[Page, str]] = {
    "filesystem": "/filesystems/{filesystem}",
    "target": "/filesystems/{filesystem}/targets/{subject}",
    "job": "/jobs/{subject}",
    "contents": "/filesystems/{filesystem}/contents",
    "data": "/data",
}
_WITH_TIMES: Final = ("filesystem", "target")


def link_of(base: str | None, page: Page, filesystem: str | None, subject: str, stretch: Stretch) -> str | None:
    """The address of the page; None without the address of a dashboard."""
    if base is None:
        return None
    place = _PLACES[page].format(filesystem=quote(filesystem or "", safe=""), subject=quote(subject, safe=""))
    times = f"?{urlencode({'from': iso(stretch[0]), 'to': iso(stretch[1])})}" if page in _WITH_TIMES else ""
    return f"{base}{place}{times}"


def command_of(kind: RuleKind, filesystem: str | None, stretch: Stretch) -> str:
    """The command line; names are quoted as a shell needs it."""
    words = ["iolens", *kind.verb]
    if filesystem is not None and not kind.of_store:
        words += ["-f", filesystem, "--from", iso(stretch[0]), "--to", iso(stretch[1])]
    return shlex.join(words)


# A notification -------------------------------------------------------------------------------------------------------
# The document that receivers get, and the same for people.

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
