"""How much capacity the next system needs (paper P, Eq. 1; SPEC P2, P5, B10).

C_new = SSI · (purge_days ÷ purge_fraction) · daily growth of the reference system. Beside it, what purge policies do to
the bytes there are now, and the level at which growth and purges balance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from iolens.analyses.contents.scans import Ages, Clock
from iolens.analyses.demand import SystemUsage
from iolens.analyses.growth import Growth
from iolens.analyses.results import not_in_json
from iolens.errors import NotKnownError, UsageError
from iolens.models.growth import OpenAmount, Policy, PurgeCourse, simulate, steady_peak, steady_trough
from iolens.models.resampling import SEED, interval95
from iolens.plans.cases import OPTION, CapacityCase, Input, distribution, parse_input
from iolens.plans.plausibility import PlanWarning, capacity_warnings
from iolens.units import format_bytes_si, parse_capacity
from iolens.visible_text import counted

EQUATION: Final = "C = SSI · (purge_days / purge_fraction) · daily_growth"
NAMES: Final = ("ssi", "purge_days", "purge_fraction", "daily_growth_bytes")  # in the order of the grid
HIGHEST: Final = {"purge_fraction": 1.0}  # of inputs that are shares; all are above 0
LEAST_COURSE_DAYS: Final = 180


@dataclass(frozen=True, slots=True)
class PurgeOutcome:
    """One purge policy: what it leaves of the reference system now, and where the new system settles.

    The new system grows by SSI times the daily growth and its bytes leave by purges alone: `steady_…`.
    `peak_from_ages_bytes` is SSI times the sum of what would survive now and what grows until the next purge.
    """

    ssi: float
    keep_days: int
    every_days: int
    steady_peak_bytes: int
    steady_trough_bytes: int
    freed_fraction: float
    clock: Clock | None
    survive_bytes: int | None
    survive_low_bytes: int | None
    survive_high_bytes: int | None
    survive_pct: float | None
    freed_bytes: int | None
    peak_from_ages_bytes: int | None


@dataclass(frozen=True, slots=True)
class TierSize:
    """Bytes used within the last `age_days`; the open last bin has none. What a fast tier of that age would hold."""

    age_days: float | None
    bytes: int
    pct: float | None


@dataclass(frozen=True, slots=True)
class AgeCurve:
    """Cumulative ages of one scan."""

    clock: Clock
    time: datetime
    scan: str | None
    source: str | None
    points: list[TierSize]


@dataclass(frozen=True, slots=True)
class UsageUnderPolicy:
    """Usage of the reference system (SSI 1) day by day under one policy, from the bytes of the scan on: for figures."""

    policy: Policy
    daily_growth_bytes: float
    course: PurgeCourse


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """Capacities for every combination of the inputs, and the purge policies behind them."""

    equation: str
    filesystem: str | None
    warnings: list[PlanWarning]
    cases: list[CapacityCase]
    growth: Growth | None
    inputs: list[Input]
    purges: list[PurgeOutcome]
    ages: list[AgeCurve]
    notes: list[str]
    courses: list[UsageUnderPolicy] | None = not_in_json()


def plan_capacity(
    inputs: Mapping[str, Sequence[Input]],
    *,
    growth: Growth | None = None,
    ages: Sequence[Ages] = (),
    purge_every_days: int | None = None,
    usage: SystemUsage | None = None,
) -> CapacityPlan:
    """A case for every combination of `inputs` (`ssi`, `purge_days`, `purge_fraction`, `daily_growth_bytes`).

    Without `daily_growth_bytes` the days of `growth` are its distribution. Policies purge every `purge_every_days`,
    or as often as `purge_days` says. `usage` is what the reference system holds: answers are held against it.
    """
    given = dict(inputs)
    if not given.get("daily_growth_bytes"):
        given["daily_growth_bytes"] = [growth_input(growth)]
    for name in NAMES:
        for parameter in given.get(name, ()):
            _check(parameter)
    grid = list(itertools.product(*(given[name] for name in NAMES)))
    for combination in grid:
        _check_size(*combination)
    policies = _policies(grid, purge_every_days)
    clock = ages[0] if ages else None
    several = len(given["daily_growth_bytes"]) > 1
    cases = [_case(_name(*combination, with_growth=several), *combination) for combination in grid]
    return CapacityPlan(
        equation=EQUATION,
        filesystem=growth.filesystem if growth is not None else None,
        warnings=capacity_warnings(cases, given["daily_growth_bytes"], growth, usage, clock),
        cases=cases,
        growth=growth,
        inputs=[parameter for name in NAMES for parameter in given[name]],
        purges=[_outcome(ssi, policy, daily, clock) for ssi, policy, daily in policies],
        ages=[_curve(age) for age in ages],
        notes=_notes(ages),
        courses=_courses(policies, clock) or None,
    )


def growth_input(growth: Growth | None) -> Input:
    """The store's days of growth as a distribution."""
    if growth is None:
        raise NotKnownError("no daily growth: give it with --daily-growth, or a store that has capacity readings")
    if growth.too_little_data is not None:
        raise NotKnownError(f"{growth.filesystem}: {growth.too_little_data}; give --daily-growth")
    if not growth.days_with_growth:
        raise NotKnownError(
            f"{growth.filesystem}: no day of growth among {growth.samples} readings; give --daily-growth"
        )
    first, last = growth.daily[0].date, growth.daily[-1].date
    days = counted(growth.days_with_growth, "day")
    words = f"{growth.filesystem}: {days} of growth, {first} to {last}, method {growth.method}"
    return distribution("daily_growth_bytes", growth.kept, f"{words} ({', '.join(growth.sources)})")


def _check(given: Input) -> None:
    highest = HIGHEST.get(given.name, float("inf"))
    if not (given.low > 0.0 and given.high <= highest and np.isfinite(given.high)):
        limits = f"above 0 and at most {highest:g}" if given.name in HIGHEST else "above 0"
        range_end = f" … {given.high:g}" * (given.low != given.high)
        raise UsageError(f"{given.name} must be {limits}, not {given.low:g}{range_end}")


def _check_size(ssi: Input, days: Input, fraction: Input, growth: Input) -> None:
    if not np.isfinite(capacity_of(ssi.high, days.high, fraction.low, growth.high)):
        parts = f"ssi {ssi.high:g}, purge_days {days.high:g}, purge_fraction {fraction.low:g}"
        raise UsageError(f"{parts} and a growth of {growth.high:g} bytes a day give a capacity beyond all numbers")


def _name(ssi: Input, days: Input, fraction: Input, growth: Input, *, with_growth: bool) -> str:
    """`SSI 3, 28 days, fraction 0.5`; with the growth where that is what tells cases apart."""
    name = f"SSI {ssi.expected:g}, {days.expected:g} days, fraction {fraction.expected:g}"
    return f"{name}, {format_bytes_si(growth.expected)}/day" if with_growth else name


def _case(name: str, ssi: Input, days: Input, fraction: Input, growth: Input) -> CapacityCase:
    inputs = (ssi, days, fraction, growth)
    uncertain = any(parameter.kind != "value" for parameter in inputs)
    random = np.random.default_rng(SEED)
    drawn = [parameter.draws(random) for parameter in inputs] if uncertain else None
    ends = interval95(drawn[0] * drawn[1] / drawn[2] * drawn[3]) if drawn is not None else None
    return CapacityCase(
        name=name,
        ssi=ssi.expected,
        purge_days=days.expected,
        purge_fraction=fraction.expected,
        daily_growth_bytes=round(growth.expected),
        capacity_bytes=round(capacity_of(ssi.expected, days.expected, fraction.expected, growth.expected)),
        low_bytes=round(capacity_of(ssi.low, days.low, fraction.high, growth.low)),
        high_bytes=round(capacity_of(ssi.high, days.high, fraction.low, growth.high)),
        ci95=(round(ends[0]), round(ends[1])) if ends is not None and ends[0] < ends[1] else None,
    )


def capacity_of(ssi: float, purge_days: float, purge_fraction: float, daily_growth_bytes: float) -> float:
    """Eq. 1."""
    return ssi * (purge_days / purge_fraction) * daily_growth_bytes


def _policies(grid: Sequence[tuple[Input, ...]], every_days: int | None) -> list[tuple[float, Policy, float]]:
    """SSI, policy and daily growth of every case, each once."""
    result = []
    for ssi, days, _, growth in grid:
        keep = max(round(days.expected), 1)
        result.append((ssi.expected, Policy(keep, every_days or keep), growth.expected))
    return list(dict.fromkeys(result))


def _outcome(ssi: float, policy: Policy, daily: float, ages: Ages | None) -> PurgeOutcome:
    left = ages.distribution.younger(float(policy.keep_days)) if ages is not None else None
    total = ages.distribution.total if ages is not None else 0.0
    peak, trough = steady_peak(ssi * daily, policy), steady_trough(ssi * daily, policy)
    return PurgeOutcome(
        ssi=ssi,
        keep_days=policy.keep_days,
        every_days=policy.every_days,
        steady_peak_bytes=round(peak),
        steady_trough_bytes=round(trough),
        freed_fraction=(peak - trough) / peak,
        clock=ages.clock if ages is not None else None,
        survive_bytes=round(left.likely) if left else None,
        survive_low_bytes=round(left.low) if left else None,
        survive_high_bytes=round(left.high) if left else None,
        survive_pct=100.0 * left.likely / total if left and total else None,
        freed_bytes=round(total - left.likely) if left else None,
        peak_from_ages_bytes=_from_ages(ssi, left, policy, daily),
    )


def _from_ages(ssi: float, left: OpenAmount | None, policy: Policy, daily: float) -> int | None:
    return round(ssi * (left.likely + policy.every_days * daily)) if left is not None else None


def _courses(policies: Sequence[tuple[float, Policy, float]], ages: Ages | None) -> list[UsageUnderPolicy]:
    """Each policy on the reference system itself: its own growth, from its own bytes on."""
    if ages is None:
        return []
    start = ages.distribution.by_day()
    alone = dict.fromkeys((policy, daily) for _, policy, daily in policies)
    longest = max(policy.keep_days + policy.every_days for policy, _ in alone)
    days = max(LEAST_COURSE_DAYS, 3 * longest)
    return [UsageUnderPolicy(policy, daily, simulate(start, daily, policy, days)) for policy, daily in alone]


def _curve(ages: Ages) -> AgeCurve:
    age_distribution, total = ages.distribution, ages.distribution.total
    sums = np.cumsum(age_distribution.bytes)
    points = [
        TierSize(
            float(end) if np.isfinite(end) else None, round(float(size)), 100.0 * float(size) / total if total else None
        )
        for end, size in zip(age_distribution.ends, sums, strict=True)
    ]
    return AgeCurve(ages.clock, ages.time, ages.scan, ages.source, points)


def _notes(ages: Sequence[Ages]) -> list[str]:
    if ages:
        return []
    return ["the ages of files are not known, nor what a purge would leave (`iolens scan` measures them)"]


# The inputs of a capacity plan from lists such as `3,4`, `3..4` and `100TB..150TB`, and from what-ifs -----------------


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number; write 28, 3,4 or 3..4") from None


PARSERS: Final[dict[str, Callable[[str], float]]] = {
    "ssi": _number,
    "purge_days": _number,
    "purge_fraction": _number,
    "daily_growth_bytes": parse_capacity,
}
OPTIONS: Final = {name.removesuffix("_bytes").replace("_", "-"): name for name in PARSERS}


def capacity_inputs(name: str, text: str, origin: str) -> list[Input]:
    """One input for each member of a list."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError(f"{name}: nothing is given")
    return [parse_input(name, word, PARSERS[name], origin) for word in words]


def what_ifs(texts: Sequence[str]) -> dict[str, list[Input]]:
    """Inputs by name from `NAME=LIST`."""
    inputs = {}
    for text in texts:
        option, equals, values = text.partition("=")
        if not equals or option.strip() not in OPTIONS:
            raise UsageError(f"--what-if {text!r}: write NAME=LIST, with NAME one of {', '.join(OPTIONS)}")
        name = OPTIONS[option.strip()]
        inputs[name] = capacity_inputs(name, values, f"{OPTION}--what-if {option.strip()}")
    return inputs
