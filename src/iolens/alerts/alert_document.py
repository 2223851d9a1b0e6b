"""An alert as plain values for JSON, and back: for the state file and for receivers."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from iolens.alerts.results import Alert, WhoTook
from iolens.units import iso

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
