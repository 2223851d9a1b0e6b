"""The inputs of a metadata plan: thresholds of Data-on-MDT, and prices of both kinds of targets."""

from __future__ import annotations

from collections.abc import Sequence

from iolens.errors import UsageError
from iolens.plans.layouts import parse_layout
from iolens.plans.metadata import Prices
from iolens.units import parse_bytes


def dom_thresholds(texts: Sequence[str]) -> list[int]:
    """DOM thresholds in bytes, each once."""
    try:
        return list(dict.fromkeys(parse_bytes(text) for text in texts))
    except ValueError as error:
        raise UsageError(f"--dom: {error}") from error


def prices_of(mdt: float | None, ost: float | None, layout_mdt: str, layout_ost: str) -> Prices | None:
    """Prices of a raw TB on both kinds of targets, or on neither."""
    layouts = parse_layout(layout_mdt), parse_layout(layout_ost)
    if mdt is None and ost is None:
        return None
    if mdt is None or ost is None:
        raise UsageError("a price needs both --cost-mdt and --cost-ost")
    return Prices(mdt, ost, *layouts)
