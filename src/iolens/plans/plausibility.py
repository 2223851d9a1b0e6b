"""Inputs and answers of a plan against what the store knows of the reference system: what does not fit is a warning.

Every plan carries its warnings, and every view shows them before the numbers. A check without its facts says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from iolens.errors import UsageError
from iolens.units import TICKS, format_bytes_si, tick_word

if TYPE_CHECKING:
    from iolens.analyses.contents.scans import Ages, InodeSizes
    from iolens.analyses.demand import Demand, SystemUsage
    from iolens.analyses.growth import Growth
    from iolens.plans.cases import (
        CapacityCase,
        DomThreshold,
        EnduranceCase,
        FileSystemWrites,
        Input,
        PerformanceCase,
        WriteAmplification,
    )

Part = Literal["capacity", "endurance", "metadata", "performance"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)

LEAST_WINDOW_DAYS: Final = 28  # of growth: four weeks, and the usual purge
LEAST_GROWTH_DAYS: Final = 14
LEAST_WRITE_DAYS: Final = 14  # complete ones, behind file-system writes per day
LEAST_DEMAND_DAYS: Final = 7  # complete ones: every day of the week
LONGEST_TICK_S: Final = 60.0  # longer ones hide bursts
LEAST_DRIVES: Final = 10  # behind a write amplification
FAR_OFF: Final = 2.0  # a given number this many times larger or smaller than the measured one
SAME: Final = 0.2  # share by which two counts of the same bytes may differ
SHOWN: Final = 3  # rows named in a message; `facts` has them all
BELOW_USED: Final = "capacity_below_used"

Fact = float | str | list[str]


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """Something that does not fit, in a sentence, with the numbers behind it (units in their names)."""

    part: Part
    code: str
    message: str
    facts: dict[str, Fact]

    def __str__(self) -> str:
        return self.message


def check_size(warnings: Sequence[PlanWarning]) -> None:
    """Refuse a plan that asks for less than is used today (DEFINITIONS "Forecasts")."""
    below = next((warning for warning in warnings if warning.code == BELOW_USED), None)
    if below is not None:
        raise UsageError(f"{below} To plan it all the same, say that a smaller system is meant: option smaller")


# Capacity.


def capacity_warnings(
    cases: Sequence[CapacityCase],
    given: Sequence[Input],
    growth: Growth | None,
    usage: SystemUsage | None,
    ages: Ages | None,
) -> list[PlanWarning]:
    """Against the bytes used and the capacity there is, the days of growth, and the scan."""
    warnings = [*_against_usage(cases, usage)]
    if growth is not None and growth.daily:
        measured = any(value.kind == "distribution" for value in given)
        warnings += _of_growth(cases, growth) if measured else _given_growth(given, growth)
        warnings += _given_capacity("capacity", growth.capacity_bytes, growth.capacity_origin == "given", usage)
    if ages is not None:
        words = f"the scan of {ages.time:%Y-%m-%d}, which the purges start from,"
        warnings += _scanned("capacity", ages.distribution.total, words, usage)
    return warnings


def _against_usage(cases: Sequence[CapacityCase], usage: SystemUsage | None) -> Iterator[PlanWarning]:
    if usage is None:
        return
    held = f"{format_bytes_si(usage.used_bytes)} that {usage.filesystem} held on {usage.time:%Y-%m-%d}"
    small = [case for case in cases if case.capacity_bytes < usage.used_bytes]
    if small:
        least = min(small, key=lambda case: case.capacity_bytes)
        yield PlanWarning(
            "capacity",
            BELOW_USED,
            f"{_of_all(len(small), len(cases), 'capacity', 'capacities')} less than the {held}:"
            f"{' the smallest is' * (len(cases) > 1)} {format_bytes_si(least.capacity_bytes)} ({least.name}). The "
            f"equation counts only what {least.purge_days / least.purge_fraction:g} days of growth add; older data "
            "must fit too or be deleted first.",
            {
                "used_bytes": usage.used_bytes,
                "smallest_capacity_bytes": least.capacity_bytes,
                "cases": [case.name for case in small],
            },
        )
    fair = [case for case in cases if case not in small]
    alone = [case for case in fair if case.capacity_bytes / case.ssi < usage.used_bytes]
    if alone:
        least = min(alone, key=lambda case: case.capacity_bytes / case.ssi)
        bare = least.capacity_bytes / least.ssi
        yield PlanWarning(
            "capacity",
            "reference_above_policy",
            f"At SSI 1 the equation gives {format_bytes_si(bare)} ({least.purge_days:g} days, fraction "
            f"{least.purge_fraction:g}), less than the {held}: the reference system itself is not purged by this rule.",
            {"used_bytes": usage.used_bytes, "capacity_at_ssi_1_bytes": bare, "cases": [case.name for case in alone]},
        )
    total = usage.total_bytes
    below = [case for case in fair if total is not None and case.capacity_bytes < total]
    if below and total is not None:
        yield PlanWarning(
            "capacity",
            "capacity_below_reference",
            f"{_of_all(len(below), len(cases), 'capacity', 'capacities')} less than the reference system has, "
            f"{format_bytes_si(total)}: {_named([case.name for case in below])}.",
            {"reference_capacity_bytes": total, "cases": [case.name for case in below]},
        )


def _of_growth(cases: Sequence[CapacityCase], growth: Growth) -> Iterator[PlanWarning]:
    days = (growth.daily[-1].date - growth.daily[0].date).days + 1
    ends = f"{growth.daily[0].date} to {growth.daily[-1].date}"
    longest = max(case.purge_days for case in cases)
    facts: dict[str, Fact] = {
        "window_days": days,
        "days_with_growth": growth.days_with_growth,
        "purge_days": longest,
    }
    if days < LEAST_WINDOW_DAYS:
        yield PlanWarning(
            "capacity",
            "growth_window_short",
            f"Daily growth comes from {_counted(days, 'day')} ({ends}), less than {LEAST_WINDOW_DAYS}: another month "
            "may differ.",
            {**facts, "least_days": LEAST_WINDOW_DAYS},
        )
        return
    if growth.days_with_growth < LEAST_GROWTH_DAYS:
        yield PlanWarning(
            "capacity",
            "growth_few_days",
            f"Only {_counted(growth.days_with_growth, 'day')} of {days} ({ends}) had net growth: the mean rests on "
            "few days.",
            {**facts, "least_days": LEAST_GROWTH_DAYS},
        )
    if longest > days:
        yield PlanWarning(
            "capacity",
            "purge_longer_than_window",
            f"Files may stay {longest:g} days, but growth was observed for {_counted(days, 'day')} ({ends}): less than "
            "one purge cycle.",
            facts,
        )


def _given_growth(given: Sequence[Input], growth: Growth) -> Iterator[PlanWarning]:
    mean = growth.mean_bytes_per_day
    if not mean:
        return
    off = [value for value in given if value.high * FAR_OFF < mean or value.low > FAR_OFF * mean]
    if off:
        first = off[0]
        yield PlanWarning(
            "capacity",
            "growth_given_differs",
            f"The growth given, {format_bytes_si(first.expected)} a day, is {_times(first.expected, mean)} the "
            f"{format_bytes_si(mean)} a day that {growth.filesystem} shows.",
            {"given_bytes_per_day": first.expected, "measured_bytes_per_day": mean},
        )


def _given_capacity(part: Part, capacity: float | None, is_given: bool, usage: SystemUsage | None) -> list[PlanWarning]:
    """The reference system's capacity as an option says it, against what its targets report."""
    if not is_given or not capacity or usage is None or not usage.total_bytes:
        return []
    if abs(capacity / usage.total_bytes - 1.0) <= SAME:
        return []
    return [
        PlanWarning(
            part,
            "reference_capacity_differs",
            f"The capacity given for the reference system, {format_bytes_si(capacity)}, is "
            f"{_times(capacity, usage.total_bytes)} the {format_bytes_si(usage.total_bytes)} that its targets reported "
            f"on {usage.time:%Y-%m-%d}.",
            {"given_bytes": capacity, "reported_bytes": usage.total_bytes},
        )
    ]


def _scanned(part: Part, scanned: float, words: str, usage: SystemUsage | None) -> list[PlanWarning]:
    if usage is None or not usage.used_bytes or abs(scanned / usage.used_bytes - 1.0) <= SAME:
        return []
    return [
        PlanWarning(
            part,
            "scan_differs_from_used",
            f"{words[:1].upper()}{words[1:]} holds {format_bytes_si(scanned)}, {_times(scanned, usage.used_bytes)} the "
            f"{format_bytes_si(usage.used_bytes)} that the targets of {usage.filesystem} reported on "
            f"{usage.time:%Y-%m-%d}.",
            {"scanned_bytes": scanned, "used_bytes": usage.used_bytes},
        )
    ]


# Endurance.


def endurance_warnings(
    cases: Sequence[EnduranceCase],
    inputs: Sequence[Input],
    writes: FileSystemWrites | None,
    waf: WriteAmplification | None,
    usage: SystemUsage | None,
    new_capacity: Input | None,
) -> list[PlanWarning]:
    """Against the days and drives behind it, and the size of the new system."""
    return [
        *_new_capacity(new_capacity, usage),
        *_strict_above(cases),
        *_few_days(inputs, writes),
        *_of_drives(inputs, waf),
        *_given_capacity(
            "endurance",
            None if writes is None else writes.capacity_bytes,
            writes is not None and (writes.capacity_origin or "").startswith("option"),
            usage,
        ),
    ]


def _new_capacity(new: Input | None, usage: SystemUsage | None) -> Iterator[PlanWarning]:
    if new is not None and usage is not None and new.expected < usage.used_bytes:
        yield PlanWarning(
            "endurance",
            BELOW_USED,
            f"The new system of {format_bytes_si(new.expected)} is smaller than the "
            f"{format_bytes_si(usage.used_bytes)} that {usage.filesystem} held on {usage.time:%Y-%m-%d}.",
            {"used_bytes": usage.used_bytes, "capacity_bytes": new.expected},
        )


def _strict_above(cases: Sequence[EnduranceCase]) -> Iterator[PlanWarning]:
    above = [case for case in cases if case.strict_need_dwpd > case.published_need_dwpd]
    if not above:
        return
    worst = max(above, key=lambda case: case.strict_need_dwpd)
    on_top = (worst.data + worst.parity) / worst.data * worst.waf
    reasons = [
        *([f"parity and amplification together are {on_top:.3g}"] * (on_top < 1.0)),
        *([f"the new file system is smaller (C_ref/C_new {worst.capacity_ratio:.3g})"] * (worst.capacity_ratio > 1.0)),
        *([f"writes are read-modify-write (RMW {worst.rmw:.3g})"] * (worst.rmw > 1.0)),
    ]
    because = f" because {' and '.join(reasons)}" if reasons else " because the ranges of its inputs are wider"
    yield PlanWarning(
        "endurance",
        "strict_above_published",
        f"The published equation is not on the safe side for {_named([case.name for case in above])}: host writes "
        f"strictly counted need up to {worst.strict_need_dwpd:.3g} DWPD, the equation asks for "
        f"{worst.published_need_dwpd:.3g},{because}.",
        {
            "strict_need_dwpd": worst.strict_need_dwpd,
            "published_need_dwpd": worst.published_need_dwpd,
            "capacity_ratio": worst.capacity_ratio,
            "rmw": worst.rmw,
            "cases": [case.name for case in above],
        },
    )


def _few_days(inputs: Sequence[Input], writes: FileSystemWrites | None) -> Iterator[PlanWarning]:
    used = any(value.name == "fswpd" and value.kind == "distribution" for value in inputs)
    if used and writes is not None and writes.days < LEAST_WRITE_DAYS:
        yield PlanWarning(
            "endurance",
            "fswpd_few_days",
            f"File-system writes per day come from {_counted(writes.days, 'day')} ({writes.first_day} to "
            f"{writes.last_day}), less than {LEAST_WRITE_DAYS}.",
            {"days": writes.days, "least_days": LEAST_WRITE_DAYS, "days_left_out": writes.days_left_out},
        )


def _of_drives(inputs: Sequence[Input], waf: WriteAmplification | None) -> Iterator[PlanWarning]:
    used = [value for value in inputs if value.name == "waf"]
    if waf is not None and any(value.kind == "distribution" for value in used):
        if waf.drives < LEAST_DRIVES:
            yield PlanWarning(
                "endurance",
                "waf_few_drives",
                f"Write amplification comes from {_counted(waf.drives, 'drive')}, less than {LEAST_DRIVES}.",
                {"drives": waf.drives, "least_drives": LEAST_DRIVES},
            )
        if waf.drives_read_later:
            yield PlanWarning(
                "endurance",
                "drives_read_later",
                f"{_counted(waf.drives_read_later, 'drive')} had no reading before the end of the window: the first "
                "reading after it is used, which includes later writes.",
                {"drives_read_later": waf.drives_read_later, "drives": waf.drives},
            )
    low = [value for value in used if value.expected < 1.0]
    if low:
        yield PlanWarning(
            "endurance",
            "waf_below_one",
            f"A write amplification of {low[0].expected:.3g} is below 1: drives that compress, or counters that do not "
            "count the same bytes.",
            {"waf": low[0].expected},
        )


# Metadata.


def metadata_warnings(
    sizes: InodeSizes, capacity: Input, thresholds: Sequence[DomThreshold], usage: SystemUsage | None
) -> list[PlanWarning]:
    """Against the bytes scanned and used, and the capacity itself."""
    scanned = sizes.files.mass.avg
    held, words = scanned, "files of the scan hold"
    if usage is not None and usage.used_bytes > scanned:
        held, words = float(usage.used_bytes), f"targets of {usage.filesystem} held on {usage.time:%Y-%m-%d}"
    warnings = []
    if capacity.expected < held:
        warnings.append(
            PlanWarning(
                "metadata",
                BELOW_USED,
                f"The new system of {format_bytes_si(capacity.expected)} is smaller than the {format_bytes_si(held)} "
                f"that the {words}.",
                {"used_bytes": held, "capacity_bytes": capacity.expected},
            )
        )
    warnings += _scanned("metadata", scanned, f"the sizes ({sizes.origin})", usage)
    too_large = [answer for answer in thresholds if (answer.capacity_pct or 0.0) > 100.0]
    if too_large:
        most = max(too_large, key=lambda answer: answer.total_avg_bytes or 0)
        warnings.append(
            PlanWarning(
                "metadata",
                "metadata_above_capacity",
                f"Metadata targets of {format_bytes_si(most.total_avg_bytes or 0)} would be larger than the file "
                f"system, {format_bytes_si(capacity.expected)} ({_named([answer.name for answer in too_large])}): the "
                "files are smaller than their inodes.",
                {"total_avg_bytes": float(most.total_avg_bytes or 0), "capacity_bytes": capacity.expected},
            )
        )
    return warnings


# Performance.


def performance_warnings(
    cases: Sequence[PerformanceCase], given: Sequence[Input], demand: Demand | None
) -> list[PlanWarning]:
    """Against the days behind the demand, and the largest tick the reference system served itself."""
    if demand is None:
        return []
    return [
        *_long_ticks(cases, demand),
        *_rolled_up(cases, demand),
        *_given_demand(given, demand),
        *_below_own_peak(cases, demand),
        *_short_demand(cases, demand),
    ]


def _long_ticks(cases: Sequence[PerformanceCase], demand: Demand) -> Iterator[PlanWarning]:
    tick_s = demand.tick_s
    if tick_s is not None and tick_s > LONGEST_TICK_S and any(case.percentile is not None for case in cases):
        yield PlanWarning(
            "performance",
            "tick_long",
            f"Demand is known by the {tick_word(tick_s)}{'' if tick_s in TICKS else f' of {tick_s:,.0f} s'}: shorter "
            "bursts are averaged out, and it is understated.",
            {"tick_s": tick_s, "longest_s": LONGEST_TICK_S},
        )


def _rolled_up(cases: Sequence[PerformanceCase], demand: Demand) -> Iterator[PlanWarning]:
    if demand.resolution != "raw" and any(case.percentile is not None for case in cases):
        yield PlanWarning(
            "performance",
            "demand_from_rollup",
            f"Demand comes from the {demand.resolution} rollup: percentiles and the largest "
            f"{tick_word(demand.tick_s)} are those of means over that time, and smaller than those of raw samples.",
            {"resolution": demand.resolution},
        )


def _given_demand(given: Sequence[Input], demand: Demand) -> Iterator[PlanWarning]:
    measured, tick = {measure.measure: measure for measure in demand.measures}, tick_word(demand.tick_s)
    for value in given:
        known = measured.get(value.name)
        if known is None or not (value.high < known.p95 or value.low > FAR_OFF * known.max):
            continue
        amount = format_bytes_si if known.unit == "bytes/s" else "{:,.4g}".format
        beside = (
            f"less than {demand.filesystem} serves in one {tick} in twenty, {amount(known.p95)}/s"
            if value.high < known.p95
            else f"{_times(value.expected, known.max)} the largest {tick} of {demand.filesystem}, {amount(known.max)}/s"
        )
        yield PlanWarning(
            "performance",
            "demand_given_differs",
            f"The demand given for {value.name}, {amount(value.expected)}/s, is {beside}.",
            {"measure": value.name, "given": value.expected, "measured_p95": known.p95, "measured_max": known.max},
        )


def _below_own_peak(cases: Sequence[PerformanceCase], demand: Demand) -> Iterator[PlanWarning]:
    largest = {measure.measure: measure.max for measure in demand.measures}
    below = [case for case in cases if case.required < largest.get(case.measure, 0.0)]
    if below:
        names = [f"{case.measure.removesuffix('_per_s').replace('_', ' ')}, {case.name}" for case in below]
        yield PlanWarning(
            "performance",
            "required_below_peak",
            f"{_of_all(len(below), len(cases), 'requirement', 'requirements')} less than {demand.filesystem} itself "
            f"served in its largest {tick_word(demand.tick_s)}: {_named(names)}.",
            {"cases": names},
        )


def _short_demand(cases: Sequence[PerformanceCase], demand: Demand) -> Iterator[PlanWarning]:
    if demand.complete_days < LEAST_DEMAND_DAYS and any(case.percentile is not None for case in cases):
        partial = f" and {len(demand.partial_days)} partial" if demand.partial_days else ""
        yield PlanWarning(
            "performance",
            "demand_short_window",
            f"Demand comes from {demand.complete_days} complete{partial} days, less than a week: weekends or days "
            "with more I/O may be missing.",
            {
                "complete_days": demand.complete_days,
                "partial_days": [str(day) for day in demand.partial_days],
                "least_days": LEAST_DEMAND_DAYS,
            },
        )


# The whole design.


def design_warnings(cases: Sequence[CapacityCase], designed_bytes: int) -> list[PlanWarning]:
    """The capacity that drives and metadata targets are sized for, against what growth asks for."""
    above = [case for case in cases if case.capacity_bytes > designed_bytes]
    if not above:
        return []
    most = max(above, key=lambda case: case.capacity_bytes)
    return [
        PlanWarning(
            "capacity",
            "design_below_plan",
            f"Metadata targets are sized for {format_bytes_si(designed_bytes)}, less than growth asks for: "
            f"{format_bytes_si(most.capacity_bytes)} ({most.name}).",
            {
                "designed_bytes": designed_bytes,
                "capacity_bytes": most.capacity_bytes,
                "cases": [case.name for case in above],
            },
        )
    ]


# Words.


def _of_all(some: int, everything: int, singular: str, many: str) -> str:
    if some == everything:
        return f"The {singular} is" if everything == 1 else f"All {everything} {many} are"
    return f"{some} of {everything} {many} {'is' if some == 1 else 'are'}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _named(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return "; ".join(names[:SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def _times(amount: float, reference: float) -> str:
    ratio = amount / reference
    if ratio >= 1.0:
        return f"{ratio:.3g} times"
    return f"{100.0 * ratio:.2g} % of" if ratio >= 0.001 else "less than 0.1 % of"
