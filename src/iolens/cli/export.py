"""Serve what is measured here to other monitoring systems."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("export", cls=LazyVerbs, under="export")
def COMMAND() -> None:
    """Serve the counters of this server, and its FSU, to other monitoring systems."""
