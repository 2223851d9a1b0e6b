"""The figures of all plans of a design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iolens.plans.plausibility import PARTS
from iolens.views import plan_capacity as capacity_figures
from iolens.views import plan_endurance as endurance_figures
from iolens.views import plan_metadata as metadata_figures
from iolens.views import plan_performance as performance_figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.plans.rationale import Rationale
    from iolens.views.render.figures import Figure


def figures(result: Rationale) -> dict[str, Callable[[], Figure]]:
    """The figures of all plans, by plan and name."""
    views: dict[str, Any] = {
        "capacity": capacity_figures,
        "endurance": endurance_figures,
        "metadata": metadata_figures,
        "performance": performance_figures,
    }
    return {
        f"{part}-{name}": describe
        for part in PARTS
        if (plan := getattr(result, part)) is not None
        for name, describe in views[part].figures(plan).items()
    }
