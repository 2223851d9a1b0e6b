"""What jobs did to the file system."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import LazyVerbs


@click.group("job", cls=LazyVerbs, under="job")
def COMMAND() -> None:
    """What jobs did to the file system: bytes, RPCs by size, metadata operations."""
