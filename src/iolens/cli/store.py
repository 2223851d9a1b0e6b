"""Look after the store: size, upkeep, checks, repair, export."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("store", cls=LazyVerbs, under="store")
def COMMAND() -> None:
    """Look after a store of telemetry."""
