"""Serve what is measured here to other monitoring systems."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("export", "Serve what is measured here to other monitoring systems")
def export() -> None:
    """Serve the counters of this server, and its FSU, to other monitoring systems."""
