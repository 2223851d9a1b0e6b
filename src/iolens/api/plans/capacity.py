"""A capacity plan: growth and ages from the store where growth is not given or a store is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from iolens.api.plans.making import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem
from iolens.plans.capacity import CapacityPlan, capacity_inputs, plan_capacity, what_ifs
from iolens.plans.cases import Input

if TYPE_CHECKING:
    from iolens.analyses.contents.scans import Ages
    from iolens.analyses.growth import Growth


def make(options: PlanOptions, reference_of: Callable[..., ReferenceSystem]) -> CapacityPlan:
    """The plan that the options ask for."""
    inputs = {
        name: capacity_inputs(name, options.required_text(name), options.origin(name))
        for name in ("ssi", "purge_days", "purge_fraction")
    }
    inputs |= {**given_growth(options), **given_what_ifs(options)}
    return capacity_plan(inputs, reference_of(capacity=options["capacity"]), options)


def given_growth(options: PlanOptions) -> dict[str, list[Input]]:
    """Daily growth, where it need not come from the store."""
    text = options.text("daily_growth", "B")
    if text is None:
        return {}
    return {"daily_growth_bytes": capacity_inputs("daily_growth_bytes", text, options.origin("daily_growth"))}


def given_what_ifs(options: PlanOptions) -> dict[str, list[Input]]:
    """Inputs by name of the cases to compare; from Python by the names of the options."""
    if not isinstance(options["what_if"], Mapping):
        return what_ifs(options.pairs("what_if"))
    texts = options.pairs("what_if", lambda name: "B" if "growth" in name else "")
    return what_ifs([text.replace("_", "-") for text in texts])


def capacity_plan(inputs: Mapping[str, list[Input]], reference: ReferenceSystem, options: PlanOptions) -> CapacityPlan:
    """The plan of these inputs, with what the store knows."""
    growth: Growth | None = None
    ages: list[Ages] = []
    if "daily_growth_bytes" not in inputs or reference.is_named:
        growth = reference.growth(options["method"], options.day("cutoff"))
        ages = reference.ages(options["clock"])
    every = options["purge_every"]
    return plan_capacity(inputs, growth=growth, ages=ages, purge_every_days=every, usage=reference.usage())
