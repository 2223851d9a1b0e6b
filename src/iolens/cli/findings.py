"""What iolens can notice: rules, thresholds, what to do."""

from __future__ import annotations

from iolens.cli.lazy_verbs import verb_group


@verb_group("findings", "What iolens can notice: rules, thresholds, what to do")
def findings() -> None:
    """What iolens can notice: the rules, their thresholds, and what to do."""
