"""A performance plan: demand from the store where none is given or a store is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iolens.api.plans.making import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem
from iolens.plans.cases import Input, rate_or_number
from iolens.plans.performance import PerformancePlan, given_demand, percentiles, plan_performance

if TYPE_CHECKING:
    from iolens.analyses.demand import Demand


def make(options: PlanOptions, reference_of: Callable[..., ReferenceSystem]) -> PerformancePlan:
    """The plan that the options ask for."""
    speeds = [rate_or_number("ssi", word, "--ssi") for word in options.required_text("ssi").split(",")]
    given, shares = given_demands(options), percentiles(options.words("percentile"))
    return performance_plan(speeds, given, shares, reference_of())


def given_demands(options: PlanOptions) -> list[Input]:
    """Demand known elsewhere, by measure."""
    texts = options.pairs("demands", lambda measure: "B/s" if "bytes" in measure else "")
    return [given_demand(text) for text in texts]


def performance_plan(
    speeds: Sequence[Input], given: Sequence[Input], shares: Sequence[float], reference: ReferenceSystem
) -> PerformancePlan:
    """The plan of these inputs, with what the store knows; `shares` are percentiles of ticks."""
    demand: Demand | None = None
    if not given or reference.is_named:
        demand = reference.demand()
    return plan_performance(speeds, demand, given=given, percentiles=shares)
