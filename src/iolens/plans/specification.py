"""What a design asks for, line by line: every number with its equation, the values put in, and their origins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolens.plans.capacity import CapacityPlan
from iolens.plans.cases import CapacityCase, DomThreshold, EnduranceCase, Input, PerformanceCase
from iolens.plans.endurance import EndurancePlan
from iolens.plans.metadata import MetadataPlan, StripeLayout
from iolens.plans.performance import PerformancePlan
from iolens.plans.plausibility import Part
from iolens.units import format_bytes, format_bytes_si

Interval = tuple[float, float]

DIGITS: Final = 4  # of numbers put into equations: whoever checks them gets the printed answer
USUAL_PERCENTILE: Final = 99.0  # of ticks, for the specification; the other ones stand in the plan
INPUT_NAMES: Final = {
    "ssi": "SSI, work of the new system ÷ the old",
    "purge_days": "age in days at which files are purged",
    "purge_fraction": "fraction of the capacity that a purge frees",
    "daily_growth_bytes": "daily growth",
    "fswpd": "FSWPD, bytes written per day ÷ capacity",
    "waf": "WAF, flash bytes ÷ host bytes",
    "rmw": "RMW, bytes written to drives ÷ bytes of full stripes",
    "capacity_ratio": "C_ref/C_new, old ÷ new capacity",
    "capacity_bytes": "C, capacity of the new system",
    "inode_bytes": "space for an inode",
    "reference_drive_bytes": "size of a drive",
    "cost_mdt_per_raw_tb": "cost of a raw TB on MDTs",
    "cost_ost_per_raw_tb": "cost of a raw TB on OSTs",
    "layout": "D + P, stripes of data targets",
    "layout_mdt": "D + P, stripes of metadata targets",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the specification: a number, between what it lies, and how it was found.

    `unit` is `bytes`, `DWPD`, `bytes/s` or `1/s`. `expected` is null where nothing on offer does, the ends where there
    is nothing to span. `working` is `equation` with the values put in; `origins` says where each value comes from.
    """

    part: Part
    name: str
    case: str
    unit: str
    low: float | None
    expected: float | None
    high: float | None
    ci95: Interval | None
    equation: str
    working: str
    origins: list[str]


@dataclass(frozen=True, slots=True)
class Stripe:
    """How the targets of one case, or with no SSI of all, are striped; `origin` says who says so."""

    ssi: float | None
    layout: StripeLayout
    origin: str


def capacity_requirements(plan: CapacityPlan, stripes: Sequence[Stripe]) -> Iterator[Requirement]:
    """Usable capacity of every case, then raw capacity in every stripe of it."""
    yield from _usable(plan)
    yield from _raw(plan, stripes)


def _usable(plan: CapacityPlan) -> Iterator[Requirement]:
    for case in plan.cases:
        values = f"{case.ssi:g} · ({case.purge_days:g} / {case.purge_fraction:g}) · {_si(case.daily_growth_bytes)}"
        yield Requirement(
            "capacity",
            "usable capacity",
            case.name,
            "bytes",
            case.low_bytes,
            case.capacity_bytes,
            case.high_bytes,
            case.ci95,
            plan.equation,
            f"C = {values} = {_si(case.capacity_bytes)}",
            _capacity_origins(plan, case),
        )


def _capacity_origins(plan: CapacityPlan, case: CapacityCase) -> list[str]:
    return _origins(
        plan.inputs,
        {
            "ssi": case.ssi,
            "purge_days": case.purge_days,
            "purge_fraction": case.purge_fraction,
            "daily_growth_bytes": case.daily_growth_bytes,
        },
    )


def _raw(plan: CapacityPlan, stripes: Sequence[Stripe]) -> Iterator[Requirement]:
    for case in plan.cases:
        own = [stripe for stripe in stripes if stripe.ssi in (case.ssi, None)] or list(stripes)
        for layout, origin in dict.fromkeys((stripe.layout, stripe.origin) for stripe in own):
            factor = layout.overhead
            yield Requirement(
                "capacity",
                "raw capacity with parity",
                f"{case.name}, {layout}",
                "bytes",
                case.low_bytes * factor,
                case.capacity_bytes * factor,
                case.high_bytes * factor,
                _times(case.ci95, factor),
                "C_raw = C · (D + P)/D",
                f"C_raw = {_si(case.capacity_bytes)} · {_parity(layout)} = {_si(case.capacity_bytes * factor)}",
                [*_capacity_origins(plan, case), f"layout: {origin}"],
            )


def endurance_requirements(plan: EndurancePlan) -> Iterator[Requirement]:
    """Drive writes per day by either way to count, and the class that suffices."""
    for case in plan.cases:
        yield _published_writes(plan, case)
    for case in plan.cases:
        yield _host_writes(plan, case)
    for case in plan.cases:
        yield _drive_class(plan, case)


def _published_writes(plan: EndurancePlan, case: EnduranceCase) -> Requirement:
    values = f"{case.ssi:g} · {shown(case.fswpd)} · {_parity(StripeLayout(case.data, case.parity))} · {shown(case.waf)}"
    return Requirement(
        "endurance",
        "drive writes per day, published",
        case.name,
        "DWPD",
        case.low_dwpd,
        case.dwpd,
        case.high_dwpd,
        case.ci95,
        plan.equations[0],
        f"DWPD = {values} = {shown(case.dwpd)}",
        _origins(plan.inputs, {"ssi": case.ssi, "fswpd": case.fswpd, "waf": case.waf}),
    )


def _host_writes(plan: EndurancePlan, case: EnduranceCase) -> Requirement:
    factors = case.ssi, case.fswpd, case.capacity_ratio, case.rmw
    values = " · ".join(map(shown, factors))
    names = ("ssi", "fswpd", "capacity_ratio", "rmw")
    return Requirement(
        "endurance",
        "drive writes per day, strict",
        case.name,
        "DWPD",
        case.strict_host_low_dwpd,
        case.strict_host_dwpd,
        case.strict_host_high_dwpd,
        case.strict_host_ci95,
        plan.equations[1],
        f"strict_host = {values} = {shown(case.strict_host_dwpd)}",
        _origins(plan.inputs, dict(zip(names, factors, strict=True))),
    )


def _drive_class(plan: EndurancePlan, case: EnduranceCase) -> Requirement:
    offered = ", ".join(f"{verdict.class_dwpd:g}" for verdict in case.classes)
    needs = f"{shown(case.published_need_dwpd)} (published) and {shown(case.strict_need_dwpd)} (strict)"
    verdict = "none suffices" if case.needed_class_dwpd is None else f"class {case.needed_class_dwpd:g}"
    return Requirement(
        "endurance",
        "class of drives",
        case.name,
        "DWPD",
        None,
        case.needed_class_dwpd,
        None,
        None,
        "class = the smallest class on offer that is not below the high end of either count",
        f"classes {offered} DWPD, needed {needs}: {verdict}",
        _origins(
            plan.inputs,
            {
                "ssi": case.ssi,
                "fswpd": case.fswpd,
                "waf": case.waf,
                "capacity_ratio": case.capacity_ratio,
                "rmw": case.rmw,
            },
        ),
    )


def metadata_requirements(plan: MetadataPlan, stripe: Stripe | None) -> Iterator[Requirement]:
    """Metadata capacity of every threshold and of the knee; raw as well where the stripes are known."""
    thresholds = [*plan.thresholds, *_knee_apart(plan)]
    for threshold in thresholds:
        yield _usable_metadata(plan, threshold)
    if stripe is not None:
        yield from (_raw_metadata(plan, threshold, stripe) for threshold in thresholds)


def _knee_apart(plan: MetadataPlan) -> list[DomThreshold]:
    """The knee, where it is none of the thresholds asked for."""
    asked = {threshold.dom_bytes for threshold in plan.thresholds}
    return [plan.knee] if plan.knee is not None and plan.knee.dom_bytes not in asked else []


def _usable_metadata(plan: MetadataPlan, threshold: DomThreshold) -> Requirement:
    amounts = [threshold.dom_avg_bytes, threshold.inode_avg_bytes, threshold.total_avg_bytes]
    dom, inodes, total = (None if amount is None else _two(amount) for amount in amounts)
    share = None if threshold.dom_avg_bytes is None else 100.0 * threshold.dom_avg_bytes / plan.capacity_bytes
    names = [
        f"C_DOM = {_si(plan.capacity_bytes)} · {share:.{DIGITS}g} % = {dom}" if share is not None else "C_DOM unknown",
        f"C_MDT = {dom} + {inodes} = {total}"
        + (f" ({_si(threshold.total_avg_bytes)})" if threshold.total_avg_bytes else ""),
    ]
    return Requirement(
        "metadata",
        "capacity of metadata targets",
        _threshold_name(plan, threshold),
        "bytes",
        threshold.total_min_bytes,
        threshold.total_avg_bytes,
        threshold.total_max_bytes,
        threshold.total_ci95,
        f"{plan.equation}, C_DOM = C · Σ min(s, S0) / Σ s",
        "; ".join(names),
        _metadata_origins(plan),
    )


def _metadata_origins(plan: MetadataPlan) -> list[str]:
    return _origins(plan.inputs, {"capacity_bytes": None, "files": None, "inode_bytes": None})


def _raw_metadata(plan: MetadataPlan, threshold: DomThreshold, stripe: Stripe) -> Requirement:
    layout, factor = stripe.layout, stripe.layout.overhead
    total = threshold.total_avg_bytes
    raw = None if total is None else total * factor
    return Requirement(
        "metadata",
        "raw capacity of metadata targets",
        f"{_threshold_name(plan, threshold)}, {layout}",
        "bytes",
        None if threshold.total_min_bytes is None else threshold.total_min_bytes * factor,
        raw,
        None if threshold.total_max_bytes is None else threshold.total_max_bytes * factor,
        _times(threshold.total_ci95, factor),
        "C_raw = C_MDT · (D + P)/D",
        "unknown"
        if raw is None or total is None
        else f"C_raw = {_two(total)} · {_parity(layout)} = {_two(raw)} ({_si(raw)})",
        [*_metadata_origins(plan), f"layout_mdt: {stripe.origin}"],
    )


def performance_requirements(plan: PerformancePlan) -> Iterator[Requirement]:
    """At the usual percentile, or the one nearest to it that was asked for; and demands that were given."""
    wanted = usual_percentile(plan)
    for case in plan.cases:
        if case.percentile in (None, wanted):
            yield _rate(plan, case)


def usual_percentile(plan: PerformancePlan) -> float | None:
    """The usual percentile, or the nearest to it that was asked for; None where all demands were given."""
    shares = {case.percentile for case in plan.cases if case.percentile is not None}
    return min(shares, key=lambda value: abs(value - USUAL_PERCENTILE), default=None)


def _rate(plan: PerformancePlan, case: PerformanceCase) -> Requirement:
    show = _per_second if case.unit == "bytes/s" else shown
    return Requirement(
        "performance",
        case.measure,
        case.name,
        case.unit,
        case.low_required,
        case.required,
        case.high_required,
        case.ci95,
        plan.equation,
        f"required = {case.ssi:g} · {show(case.demand)} = {show(case.required)}",
        _origins(plan.inputs, {"ssi": case.ssi, case.measure: None}),
    )


def _threshold_name(plan: MetadataPlan, threshold: DomThreshold) -> str:
    return threshold.name + (" (knee)" if threshold is plan.knee else "")


def _origins(inputs: Sequence[Input], wanted: Mapping[str, float | None]) -> list[str]:
    """Where the inputs of these names come from, and where one has several values, of this value."""
    names = [
        f"{parameter.name}: {parameter.origin}"
        for name, amount in wanted.items()
        for parameter in inputs
        if parameter.name == name and (amount is None or _same(parameter.expected, amount))
    ]
    return list(dict.fromkeys(names))


def _same(value: float, other: float) -> bool:
    return abs(value - other) <= 1e-9 * max(abs(value), abs(other)) or round(value) == other


def _times(ends: Interval | None, factor: float) -> Interval | None:
    return None if ends is None else (ends[0] * factor, ends[1] * factor)


def _parity(layout: StripeLayout) -> str:
    return f"({layout.data} + {layout.parity})/{layout.data}"


def shown(amount: float) -> str:
    """A plain number as it stands in an equation."""
    return f"{amount:,.0f}" if abs(amount) >= 10**DIGITS else f"{amount:.{DIGITS}g}"


def _si(amount: float) -> str:
    return format_bytes_si(amount, DIGITS)


def _two(amount: float) -> str:
    return format_bytes(amount, DIGITS)


def _per_second(amount: float) -> str:
    return f"{_si(amount)}/s"
