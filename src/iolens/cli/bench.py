"""Measure storage: bandwidth, latency, cache, stripes, metadata."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("bench", cls=LazyVerbs, under="bench")
def COMMAND() -> None:
    """Measure storage by studies: planned, interrupted, resumed, moved, compared."""
