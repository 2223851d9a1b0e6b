"""Made-up alerts and notifications."""

from __future__ import annotations

from typing import Any

from iolens.alerts.changes import notification
from iolens.alerts.notifications import Event, Notification
from iolens.alerts.results import Alert, WhoTook
from tests.alerts.centres import minute


def alert(**more: Any) -> Alert:
    """A firing alert of a busy file system."""
    values: dict[str, Any] = {
        "id": "0123456789abcdef0123456789abcdef", "rule": "busy", "kind": "fsu", "filesystem": "scratch",
        "subject": "scratch", "severity": "warning", "state": "firing", "since": minute(0), "fired_at": minute(10),
        "resolved_at": None, "checked_at": minute(10), "value": 91.25, "threshold": 80.0, "clear": 70.0, "unit": "%",
        "why": "The mean FSU of scratch is 91.2 %.", "who": [WhoTook("4711", "ana", 61.0)], "window_start": minute(-5),
        "window_end": minute(10), "link": "https://iolens.example.org/filesystems/scratch",
        "command": "iolens blame -f scratch", "receivers": ["hook"],
    }  # fmt: skip
    return Alert(**{**values, **more})


def sample_notification(event: Event = "firing", **more: Any) -> Notification:
    return notification(alert(**more), event, minute(10))
