"""Look after the store: size, upkeep, checks, repair, export."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("store", "Look after the store: size, upkeep, checks, repair, export")
def store() -> None:
    """Look after a store of telemetry."""
