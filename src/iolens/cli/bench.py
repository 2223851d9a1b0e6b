"""Measurements of storage: bandwidth, latency, cache, stripes, metadata."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("bench", cls=LazyVerbs, under="bench")
def COMMAND() -> None:
    """Measure storage: studies that can be planned, interrupted, resumed, moved and compared."""
