"""A synthetic centre whose truth is known: store or live server."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("simulate", cls=LazyVerbs, under="simulate")
def COMMAND() -> None:
    """Simulate a file system whose true utilization is known, to check what is measured."""
