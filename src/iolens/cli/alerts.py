"""Alerts: check rules, list and silence alerts, try the receivers."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("alerts", cls=LazyVerbs, under="alerts")
def COMMAND() -> None:
    """Alerts from rules in the configuration: check them, list them, silence them, try the receivers."""
