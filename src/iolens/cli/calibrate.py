"""What a disk I/O costs: measured, fitted, stored, compared."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("calibrate", cls=LazyVerbs, under="calibrate")
def COMMAND() -> None:
    """Measure what a disk I/O costs, fit it, store it, compare it."""
