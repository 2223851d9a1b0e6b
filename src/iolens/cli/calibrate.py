"""What a disk I/O costs: measured, fitted, stored, compared."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("calibrate", "What a disk I/O costs: measured, fitted, stored, compared")
def calibrate() -> None:
    """Measure what a disk I/O costs, fit it, store it, compare it."""
