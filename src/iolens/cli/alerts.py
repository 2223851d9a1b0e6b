"""Alerts: check rules, list and silence alerts, try the receivers."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("alerts", "Alerts: check rules, list and silence alerts, try the receivers")
def alerts() -> None:
    """Alerts from rules in the configuration: check them, list them, silence them, try the receivers."""
