"""A whole design in one place (SPEC P5, P6): what is specified, by which equation, from what, and how sure it is.

The four plans stand in it as they are; here are the specification that follows from them, what each number rests on,
and what could not be answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal

from iolens.analyses.growth import Growth
from iolens.errors import NotKnownError
from iolens.plans.capacity import CapacityPlan
from iolens.plans.cases import CapacityCase, Input
from iolens.plans.endurance import EndurancePlan
from iolens.plans.metadata import MetadataPlan
from iolens.plans.performance import PerformancePlan
from iolens.plans.plausibility import PARTS, Part, PlanWarning, design_warnings
from iolens.plans.purchase import PurchaseLine, largest_case, purchase_lines
from iolens.plans.specification import (
    INPUT_NAMES,
    Requirement,
    Stripe,
    capacity_requirements,
    endurance_requirements,
    metadata_requirements,
    performance_requirements,
    shown,
)
from iolens.units import TICKS, format_bytes, tick_word

AnyPlan = CapacityPlan | EndurancePlan | MetadataPlan | PerformancePlan

FILES_INPUT: Final = "files"  # the input of the metadata plan that says where its sizes of files are from
NEEDED: Final[dict[Part, str]] = {
    "capacity": "readings of used bytes per target over some weeks (`iolens ingest lfs-df` or any source with "
    "capacity), or --daily-growth",
    "endurance": "bytes written per target and the capacity, or --fswpd; host and flash counters of drives, or --waf",
    "metadata": "the capacity of the new system, and a scan with sizes of inodes or --file-sizes",
    "performance": "bytes and operations of targets over some weeks, or --demand",
}
ASSUMED: Final[dict[Part, tuple[str, ...]]] = {
    "capacity": (
        "the new system grows SSI times as fast as the reference system; days on which usage fell are not counted",
        "purges are the only large deletions: growth is net of what users delete themselves",
    ),
    "endurance": (
        "bytes written per day grow with SSI and are spread evenly over all drives",
        "the new drives have the write amplification of the reference system's drives",
    ),
    "metadata": ("the new file system is full, and its inodes have the types and sizes of the reference system's",),
    "performance": (
        "a system that does SSI times the work needs SSI times the bandwidth and operations per second",
        "the counters show what the reference system served; demand that it could not serve is not in them",
    ),
}


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """Whose document it is, when and by what it was made, and how to make it again."""

    title: str
    author: str | None
    made: datetime
    version: str
    command: str
    store: str | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A part that has no answer: why not, and what would give one."""

    part: Part
    reason: str
    needed: str


@dataclass(frozen=True, slots=True)
class InputData:
    """Data behind a number: what was counted, between which days, and what was left out of it."""

    input: str
    origin: str
    first_day: date | None
    last_day: date | None
    samples: int
    samples_of: str
    left_out: list[str]


@dataclass(frozen=True, slots=True)
class Rationale:
    """The design: what to buy, every requirement, the plans behind it, their data and assumptions, what is missing."""

    about: DocumentInfo
    filesystem: str | None
    warnings: list[PlanWarning]
    purchase: list[PurchaseLine]
    requirements: list[Requirement]
    missing: list[Missing]
    capacity: CapacityPlan | None
    what_if: list[CapacityCase]
    endurance: EndurancePlan | None
    metadata: MetadataPlan | None
    performance: PerformancePlan | None
    evidence: list[InputData]
    assumptions: list[str]
    notes: list[str]


def make_rationale(
    about: DocumentInfo,
    *,
    capacity: CapacityPlan | None = None,
    what_if: Sequence[CapacityCase] = (),
    endurance: EndurancePlan | None = None,
    metadata: MetadataPlan | None = None,
    performance: PerformancePlan | None = None,
    missing: Sequence[Missing] = (),
    stripes: Sequence[Stripe] = (),
    mdt_stripe: Stripe | None = None,
) -> Rationale:
    """The specification that follows from the plans there are; stripes turn usable into raw."""
    requirements: list[Requirement] = []
    if capacity is not None:
        requirements += capacity_requirements(capacity, stripes)
    if endurance is not None:
        requirements += endurance_requirements(endurance)
    if metadata is not None:
        requirements += metadata_requirements(metadata, mdt_stripe)
    if performance is not None:
        requirements += performance_requirements(performance)
    plans = [plan for plan in (capacity, endurance, metadata, performance) if plan is not None]
    return Rationale(
        about=about,
        filesystem=next((plan.filesystem for plan in plans if plan.filesystem), None),
        warnings=[
            *(warning for plan in plans for warning in plan.warnings),
            *(design_warnings(capacity.cases, metadata.capacity_bytes) if capacity and metadata else []),
        ],
        purchase=purchase_lines(requirements, capacity, endurance, metadata, performance),
        requirements=requirements,
        missing=list(missing),
        capacity=capacity,
        what_if=list(what_if),
        endurance=endurance,
        metadata=metadata,
        performance=performance,
        evidence=list(_evidence(capacity, endurance, metadata, performance)),
        assumptions=_assumptions(
            {"capacity": capacity, "endurance": endurance, "metadata": metadata, "performance": performance},
            [*stripes, *([mdt_stripe] if mdt_stripe is not None and metadata is not None else [])],
        ),
        notes=list(dict.fromkeys(note for plan in plans for note in plan.notes)),
    )


def design_capacity(given: Input | None, plan: CapacityPlan | None) -> Input:
    """The capacity that drives and metadata targets are sized for: as given, else the largest case of the plan."""
    if given is not None:
        return given
    if plan is None:
        raise NotKnownError("the capacity of the new system is not known; give --capacity")
    largest = largest_case(plan)
    kind: Literal["value", "range"] = "value" if largest.low_bytes == largest.high_bytes else "range"
    low, expected, high = (float(end) for end in (largest.low_bytes, largest.capacity_bytes, largest.high_bytes))
    words = "this plan's usable capacity" + (f", largest case: SSI {largest.ssi:g}" if len(plan.cases) > 1 else "")
    return Input("capacity_bytes", kind, low, expected, high, words)


# What it rests on.


def _evidence(
    capacity: CapacityPlan | None,
    endurance: EndurancePlan | None,
    metadata: MetadataPlan | None,
    performance: PerformancePlan | None,
) -> Iterator[InputData]:
    if capacity is not None and capacity.growth is not None:
        yield _growth_evidence(capacity.growth)
    if endurance is not None and endurance.fswpd.days:
        writes = endurance.fswpd
        left = [f"less than complete: {_days(writes.days_left_out)}"] if writes.days_left_out else []
        ends = writes.first_day, writes.last_day
        yield InputData("file-system writes per day", writes.origin or "", *ends, writes.days, "days", left)
    if endurance is not None and endurance.waf.drives:
        drives = endurance.waf
        yield InputData("write amplification", drives.origin or "", None, None, drives.drives, "drives", [])
    if metadata is not None:
        yield _scan_evidence(metadata)
    if performance is not None:
        yield from _demand_evidence(performance)


def _growth_evidence(growth: Growth) -> InputData:
    reasons = {
        "usage fell": growth.days_shrinking,
        "after a gap": growth.days_after_gap,
        "other targets": growth.days_targets_changed,
        "before the cut-off": growth.days_before_cutoff,
        "no complete reading": growth.incomplete_days,
    }
    left = [f"{reason}: {_days(count)}" for reason, count in reasons.items() if count]
    days = [day.date for day in growth.daily]
    first, last = (days[0], days[-1]) if days else (None, None)
    origin = f"{growth.filesystem}: {growth.samples:,} readings, method {growth.method} ({', '.join(growth.sources)})"
    return InputData("daily growth", origin, first, last, growth.days_with_growth, "days of growth", left)


def _scan_evidence(plan: MetadataPlan) -> InputData:
    day = plan.scanned.date() if plan.scanned is not None else None
    origin = next((parameter.origin for parameter in plan.inputs if parameter.name == FILES_INPUT), "")
    return InputData("sizes of inodes", origin, day, day, sum(inode.count for inode in plan.inodes), "inodes", [])


def _demand_evidence(plan: PerformancePlan) -> Iterator[InputData]:
    if not plan.demand or plan.window_start is None or plan.window_end is None:
        return
    first, last = plan.window_start.date(), (plan.window_end - timedelta(microseconds=1)).date()
    ticks = max(measure.ticks for measure in plan.demand)
    word = tick_word(plan.tick_s)
    length = f" of {plan.tick_s:g} s" if plan.tick_s is not None and plan.tick_s not in TICKS else ""
    left = [note for note in plan.notes if "left out" in note]
    yield InputData("demand", plan.origin or "", first, last, ticks, f"{word}s{length}", left)


def _assumptions(plans: Mapping[Part, AnyPlan | None], stripes: Sequence[Stripe]) -> list[str]:
    made = [words for part in PARTS if plans[part] is not None for words in ASSUMED[part]]
    inputs = [parameter for plan in plans.values() if plan is not None for parameter in plan.inputs]
    made += [
        f"{INPUT_NAMES.get(parameter.name, parameter.name)}: {_amount(parameter)}, {parameter.origin}"
        for parameter in inputs
        if _is_taken(parameter)
    ]
    return list(
        dict.fromkeys(
            [*made, *(f"stripes of {stripe.layout}: {stripe.origin}" for stripe in stripes if _is_taken(stripe))]
        )
    )


def _is_taken(parameter: Input | Stripe) -> bool:
    """Whether nobody measured it or said it."""
    return parameter.origin.startswith(("default", "assumed", "not measured"))


def _days(count: int) -> str:
    return f"{count:,} day{'s' * (count != 1)}"


def _amount(parameter: Input) -> str:
    return format_bytes(parameter.expected) if parameter.name.endswith("_bytes") else shown(parameter.expected)
