"""What to buy: of every requirement the number of the chosen case, and the other cases beside it.

Chosen are the case with the largest capacity, which drives and metadata targets are sized for as well, its SSI for
everything else, the knee of the metadata curve where prices are given, and the usual percentile of demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iolens.plans.capacity import CapacityPlan
from iolens.plans.cases import CapacityCase, EnduranceCase, PerformanceCase
from iolens.plans.endurance import EndurancePlan
from iolens.plans.metadata import MetadataPlan
from iolens.plans.performance import PerformancePlan
from iolens.plans.plausibility import Part
from iolens.plans.specification import Requirement, usual_percentile
from iolens.units import format_bytes_si

DRIVE_WRITES: Final = "drive writes per day, high end"
DRIVE_CLASS: Final = "class of drives"
METADATA: Final = "capacity of metadata targets"
HEADLINE_MEASURES: Final = (  # of each group the first list of which a measure is known
    (("bytes_per_s", "read_bytes_per_s", "write_bytes_per_s"),),
    (
        ("ops_per_s",),
        ("read_ops_per_s", "write_ops_per_s"),
        ("disk_ios_per_s",),
        ("disk_read_ios_per_s", "disk_write_ios_per_s"),
    ),
    (("metadata_ops_per_s",),),
)


@dataclass(frozen=True, slots=True)
class Alternative:
    """The same requirement in another case, which is named by what differs."""

    case: str
    expected: float | None


@dataclass(frozen=True, slots=True)
class PurchaseLine:
    """One requirement of the chosen case; units as in `Requirement`. `expected` is null where nothing on offer does, or
    nothing is decided.
    """

    part: Part
    name: str
    case: str
    unit: str
    low: float | None
    expected: float | None
    high: float | None
    others: list[Alternative]


def largest_case(plan: CapacityPlan) -> CapacityCase:
    """The case that asks for most."""
    return max(plan.cases, key=lambda case: case.capacity_bytes)


def purchase_lines(
    requirements: Sequence[Requirement],
    capacity: CapacityPlan | None,
    endurance: EndurancePlan | None,
    metadata: MetadataPlan | None,
    performance: PerformancePlan | None,
) -> list[PurchaseLine]:
    """The lines that there are plans for: capacity, performance, endurance, metadata."""
    largest = largest_case(capacity) if capacity is not None else None
    lines: list[PurchaseLine] = []
    if largest is not None:
        lines += _capacity_lines(requirements, largest)
    if performance is not None:
        lines += _performance_lines(performance, largest.ssi if largest is not None else None)
    if endurance is not None:
        lines += _endurance_lines(endurance, largest.ssi if largest is not None else None)
    if metadata is not None:
        lines += _metadata_lines(requirements, metadata, largest)
    return lines


def _capacity_lines(requirements: Sequence[Requirement], chosen: CapacityCase) -> Iterator[PurchaseLine]:
    usable = [requirement for requirement in requirements if requirement.name == "usable capacity"]
    raw = [requirement for requirement in requirements if requirement.name == "raw capacity with parity"]
    yield _line(max(usable, key=lambda requirement: requirement.expected or 0.0), usable)
    own = [requirement for requirement in raw if requirement.case.startswith(f"{chosen.name}, ")]
    if own:
        yield _line(max(own, key=lambda requirement: requirement.expected or 0.0), raw)


def _performance_lines(plan: PerformancePlan, ssi: float | None) -> Iterator[PurchaseLine]:
    speed = _nearest_speed([case.ssi for case in plan.cases], ssi)
    wanted = usual_percentile(plan)
    known = {case.measure for case in plan.cases}
    for lists in HEADLINE_MEASURES:
        for measure in next((names for names in lists if known.intersection(names)), ()):
            cases = [case for case in plan.cases if case.measure == measure]
            chosen = next((case for case in cases if case.ssi == speed and case.percentile in (None, wanted)), None)
            if chosen is not None:
                yield _rate_line(chosen, cases)


def _rate_line(chosen: PerformanceCase, cases: Sequence[PerformanceCase]) -> PurchaseLine:
    """Other speeds at the same percentile, and other percentiles at the same speed."""
    others = [
        Alternative(_difference(case.name, chosen.name), case.required)
        for case in cases
        if (case.ssi == chosen.ssi) != (case.percentile == chosen.percentile)
    ]
    ends = chosen.low_required, chosen.required, chosen.high_required
    return PurchaseLine("performance", chosen.measure, chosen.name, chosen.unit, *ends, others)


def _endurance_lines(plan: EndurancePlan, ssi: float | None) -> Iterator[PurchaseLine]:
    """The larger of the two counts, and the class that suffices for both."""
    speed = _nearest_speed([case.ssi for case in plan.cases], ssi)
    chosen = max((case for case in plan.cases if case.ssi == speed), key=_need)
    rest = [(case, _difference(case.name, chosen.name)) for case in plan.cases if case is not chosen]
    needs = [Alternative(name, _need(case)) for case, name in rest]
    classes = [Alternative(name, case.needed_class_dwpd) for case, name in rest]
    yield PurchaseLine("endurance", DRIVE_WRITES, chosen.name, "DWPD", None, _need(chosen), None, needs)
    yield PurchaseLine("endurance", DRIVE_CLASS, chosen.name, "DWPD", None, chosen.needed_class_dwpd, None, classes)


def _need(case: EnduranceCase) -> float:
    return max(case.published_need_dwpd, case.strict_need_dwpd)


def _metadata_lines(
    requirements: Sequence[Requirement], plan: MetadataPlan, largest: CapacityCase | None
) -> Iterator[PurchaseLine]:
    """Of the knee by prices, or of the only threshold; else nothing is decided, and all of them are shown.

    The capacity is said where it is not the one just asked for.
    """
    known = [threshold for threshold in plan.thresholds if threshold.total_avg_bytes is not None] or plan.thresholds
    largest_asked = max(known, key=lambda item: item.dom_bytes)
    threshold = None if plan.undecided else plan.knee or largest_asked
    is_planned = largest is not None and largest.capacity_bytes == plan.capacity_bytes
    sized_for = "" if is_planned else f", file system of {format_bytes_si(plan.capacity_bytes)}"
    for name in (METADATA, f"raw {METADATA}"):
        named = [requirement for requirement in requirements if requirement.name == name]
        if threshold is None:
            yield from [_undecided(named, sized_for)] if named else ()
            continue
        chosen = next((item for item in named if _is_of(item.case, threshold.name)), None)
        if chosen is not None:
            yield _line(chosen, named, sized_for)


def _undecided(named: Sequence[Requirement], more: str) -> PurchaseLine:
    """From the least that any threshold asks for to the most."""
    asked = [item.expected for item in named if item.expected is not None]
    others = [Alternative(item.case, item.expected) for item in named]
    first, case = named[0], f"{len(named)} thresholds of DOM{more}"
    return PurchaseLine(
        first.part, first.name, case, first.unit, min(asked, default=None), None, max(asked, default=None), others
    )


def _is_of(case: str, threshold: str) -> bool:
    return case.split(",")[0].removesuffix(" (knee)") == threshold


def _line(chosen: Requirement, all_cases: Sequence[Requirement], more: str = "") -> PurchaseLine:
    others = [
        Alternative(_difference(requirement.case, chosen.case), requirement.expected)
        for requirement in all_cases
        if requirement is not chosen
    ]
    ends = chosen.low, chosen.expected, chosen.high
    return PurchaseLine(chosen.part, chosen.name, f"{chosen.case}{more}", chosen.unit, *ends, others)


def _nearest_speed(speeds: Sequence[float], ssi: float | None) -> float:
    """That of the capacity where the plan has it, else the largest."""
    return ssi if ssi is not None and ssi in speeds else max(speeds)


def _difference(case: str, chosen: str) -> str:
    """`SSI 3` beside `SSI 4, 28 days`: what is not the same."""
    same = chosen.split(", ")
    return ", ".join(part for part in case.split(", ") if part not in same) or case
