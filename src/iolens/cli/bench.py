"""Measure storage: bandwidth, latency, cache, stripes, metadata."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("bench", "Measure storage: bandwidth, latency, cache, stripes, metadata")
def bench() -> None:
    """Measure storage by studies: planned, interrupted, resumed, moved, compared."""
