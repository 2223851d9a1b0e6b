"""A synthetic centre whose truth is known: store or live server."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("simulate", "A synthetic centre whose truth is known: store or live server")
def simulate() -> None:
    """Simulate a file system whose true utilization is known, to check what is measured."""
