"""Figures of a stripe study: those of the bandwidth behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iolens.views.bench_bandwidth import figures as bandwidth

if TYPE_CHECKING:
    from iolens.analyses.bench_stripe import StripeRecommendation
    from iolens.views.render.figures import Figure

FIGURES: Final = ("grid", "blocks", "improvement")


def figures(result: StripeRecommendation) -> dict[str, Callable[[], Figure]]:
    """By name."""
    drawn = bandwidth.figures(result.bandwidth)
    return {name: drawn[name] for name in FIGURES}
