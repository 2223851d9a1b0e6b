"""Look after the store: info, compact, vacuum, verify, repair, rollup, retain, export."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("store", cls=LazyVerbs, under="store")
def COMMAND() -> None:
    """Look after a store of telemetry."""
