"""Whole designs for tests: the published one, one from made-up telemetry, one with parts missing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from iolens.models.dom import METHODS
from iolens.plans.capacity import CapacityPlan, plan_capacity
from iolens.plans.cases import Input, value
from iolens.plans.endurance import plan_endurance
from iolens.plans.metadata import StripeLayout, plan_metadata
from iolens.plans.performance import plan_performance
from iolens.plans.rationale import DocumentInfo, Missing, Rationale, design_capacity, make_rationale
from iolens.plans.specification import Stripe
from tests.plans.test_capacity import grown
from tests.plans.test_endurance import HIGH, LOW, measured
from tests.plans.test_metadata import made_up
from tests.plans.test_performance import asked

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ABOUT = DocumentInfo(
    "Design rationale", "The storage group", MADE, "1.2.3", "iolens plan rationale -o plan.pdf", "centre"
)
SPEEDS = [value("ssi", 3, "option --ssi"), value("ssi", 4, "option --ssi")]
STRIPES = [Stripe(3, StripeLayout(10, 2), "option --case"), Stripe(4, StripeLayout(8, 2), "option --case")]
MDT = Stripe(None, StripeLayout(5, 5), "default, as in the published study")
MISSING = [Missing("performance", "the store knows no demand", "counters of targets, or --demand")]


def capacity_inputs(**given: Input) -> dict[str, list[Input]]:
    """Both speeds, 28 days, one half."""
    days, half = value("purge_days", 28, "default"), value("purge_fraction", 0.5, "default")
    return {"ssi": SPEEDS, "purge_days": [days], "purge_fraction": [half], **{n: [item] for n, item in given.items()}}


def published_capacity() -> CapacityPlan:
    """133 TB a day."""
    return plan_capacity(
        capacity_inputs(daily_growth_bytes=value("daily_growth_bytes", 133e12, "option --daily-growth"))
    )


def published(**changes: Any) -> Rationale:
    """The study's capacity and endurance; sizes that are made up; no performance."""
    capacity = published_capacity()
    plans = {
        "capacity": capacity,
        "what_if": capacity.cases,
        "endurance": plan_endurance([LOW, HIGH]),
        "metadata": plan_metadata(made_up(dir={4096: 500}), design_capacity(None, capacity)),
        "missing": MISSING,
        "stripes": STRIPES,
        "mdt_stripe": MDT,
    }
    return make_rationale(ABOUT, **{**plans, **changes})


def from_telemetry() -> Rationale:
    """Every part, every input a distribution where it can be one."""
    capacity = plan_capacity(capacity_inputs(), growth=grown())
    return make_rationale(
        ABOUT,
        capacity=capacity,
        what_if=capacity.cases,
        endurance=measured(),
        metadata=plan_metadata(
            made_up(dir={4096: 500, 1 << 24: 1}, fifo={0: 3}), design_capacity(None, capacity), methods=METHODS[:1]
        ),
        performance=plan_performance(SPEEDS, asked()),
        stripes=STRIPES,
        mdt_stripe=MDT,
    )
