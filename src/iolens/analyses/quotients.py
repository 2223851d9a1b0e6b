"""Quotients of what may be zero or unknown: None where there is nothing to say."""

from __future__ import annotations


def ratio(above: float, below: float) -> float | None:
    """Above ÷ below; None of nothing."""
    return above / below if below > 0 else None


def pct(part: int | None, whole: int | None) -> float | None:
    """A part in per cent; None of nothing, or where either is not known."""
    return 100.0 * part / whole if whole and part is not None else None


def not_nan(value: float) -> float | None:
    """The number; None for NaN."""
    return None if value != value else float(value)
