"""What iolens can notice: rules, thresholds, what to do."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("findings", cls=LazyVerbs, under="findings")
def COMMAND() -> None:
    """What iolens can notice: the rules, their thresholds, and what to do."""
