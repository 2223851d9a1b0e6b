"""What does not fit is said, with the numbers behind it; what fits is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from iolens.analyses.demand import Demand, SystemCapacity, SystemUsage
from iolens.plans.capacity import CapacityPlan, plan_capacity
from iolens.plans.cases import Input, WriteAmplification, between, statistic, value
from iolens.plans.endurance import file_system_writes, plan_endurance
from iolens.plans.metadata import plan_metadata
from iolens.plans.performance import plan_performance
from iolens.plans.plausibility import PlanWarning
from iolens.plans.rationale import make_rationale
from iolens.views.render.json_text import to_plain
from tests.plans.designs import ABOUT
from tests.plans.test_capacity import grown, inputs, scanned
from tests.plans.test_endurance import LOW, case, days
from tests.plans.test_metadata import made_up
from tests.plans.test_performance import asked

TB = 10**12
TIME = datetime(2026, 1, 8, tzinfo=UTC)


def usage(used: int, total: int | None = None) -> SystemUsage:
    return SystemUsage("scratch", TIME, used, total)


def codes(warnings: list[PlanWarning]) -> list[str]:
    return [warning.code for warning in warnings]


def the(warnings: list[PlanWarning], code: str) -> PlanWarning:
    (result,) = (warning for warning in warnings if warning.code == code)
    return result


# Capacity.


def capacity(usage: SystemUsage | None, ssi: float = 1.0, **more: Any) -> CapacityPlan:
    return plan_capacity(inputs(ssi=ssi, daily_growth_bytes=0.46 * TB, **more), usage=usage)


def test_26_tb_for_a_file_system_that_holds_131_is_said_first() -> None:
    """0.46 TB a day, 28 days, one half: 25.8 TB."""
    plan = capacity(usage(131 * TB))
    result = the(plan.warnings, "capacity_below_used")
    assert result.facts["used_bytes"] == 131 * TB
    assert result.facts["smallest_capacity_bytes"] == plan.cases[0].capacity_bytes == round(0.46 * TB * 56)
    assert result.facts["cases"] == ["SSI 1, 28 days, fraction 0.5"]
    assert "less than the 131 TB that scratch held on 2026-01-08: 25.8 TB (SSI 1, 28 days, fraction 0.5)" in str(result)
    assert list(to_plain(plan)).index("warnings") < list(to_plain(plan)).index("cases")


def test_a_capacity_above_what_is_used_is_no_warning() -> None:
    assert capacity(usage(20 * TB, 25 * TB)).warnings == []
    assert capacity(None).warnings == []


def test_only_the_cases_that_are_too_small_are_named() -> None:
    several = inputs(daily_growth_bytes=0.46 * TB)
    several["ssi"] = [value("ssi", item, "test") for item in (1, 3, 6)]
    result = plan_capacity(several, usage=usage(80 * TB)).warnings
    assert the(result, "capacity_below_used").facts["cases"] == [
        "SSI 1, 28 days, fraction 0.5", "SSI 3, 28 days, fraction 0.5",
    ]  # fmt: skip
    assert "2 of 3 capacities are less than the 80 TB" in str(result[0])


def test_a_reference_that_its_own_policy_does_not_hold_is_said_even_if_ssi_covers_it() -> None:
    plan = capacity(usage(131 * TB), ssi=6.0)  # 154.6 TB
    assert codes(plan.warnings) == ["reference_above_policy"]
    assert plan.warnings[0].facts["capacity_at_ssi_1_bytes"] == pytest.approx(0.46 * TB * 56)
    assert "not purged by this rule" in str(plan.warnings[0])


def test_less_than_the_reference_has_is_said() -> None:
    plan = capacity(usage(20 * TB, 35 * TB))
    assert codes(plan.warnings) == ["capacity_below_reference"]
    assert plan.warnings[0].facts["reference_capacity_bytes"] == 35 * TB


@pytest.mark.parametrize(
    ("days", "purge", "expected"),
    [
        (21, 28, ["growth_window_short"]),
        (28, 28, ["growth_window_short"]),
        (29, 28, []),
        (40, 56, ["purge_longer_than_window"]),
    ],
)
def test_a_short_window_of_growth_is_said(days: int, purge: float, expected: list[str]) -> None:
    """Readings of n days make n − 1 changes."""
    plan = plan_capacity(inputs(purge_days=purge), growth=grown(days))
    assert codes(plan.warnings) == expected
    if expected:
        assert plan.warnings[0].facts["window_days"] == days - 1
        assert f"{days - 1}" in str(plan.warnings[0])


def test_few_days_of_net_growth_in_a_long_window_are_said() -> None:
    growth = grown(60)
    shrinking = [replace(day, fate="shrank") if place % 8 else day for place, day in enumerate(growth.daily)]
    few = replace(growth, daily=shrinking, days_with_growth=8)
    result = the(plan_capacity(inputs(), growth=few).warnings, "growth_few_days")
    assert (result.facts["days_with_growth"], result.facts["window_days"]) == (8, 59)
    assert "Only 8 days of 59" in str(result)


@pytest.mark.parametrize(("factor", "is_said"), [(1.5, False), (0.6, False), (2.5, True), (0.3, True)])
def test_a_given_growth_far_from_the_measured_one_is_said(factor: float, is_said: bool) -> None:
    growth = grown(60)
    assert growth.mean_bytes_per_day is not None
    given = factor * growth.mean_bytes_per_day
    plan = plan_capacity(inputs(daily_growth_bytes=given), growth=growth)
    assert codes(plan.warnings) == ["growth_given_differs"] * is_said
    if is_said:
        assert plan.warnings[0].facts["given_bytes_per_day"] == pytest.approx(given)


def test_a_scan_that_holds_other_bytes_than_the_targets_is_said() -> None:
    same, other = (
        plan_capacity(inputs(daily_growth_bytes=1e9), ages=[scanned()], usage=usage(used)).warnings
        for used in (4100, 8000)
    )
    assert same == []
    assert the(other, "scan_differs_from_used").facts == {"scanned_bytes": 4000.0, "used_bytes": 8000}
    assert "holds 4 kB, 50 % of the 8 kB" in str(other[0])


def test_a_given_capacity_of_the_reference_is_held_against_its_targets() -> None:
    given = replace(grown(60), capacity_bytes=100 * TB, capacity_origin="given")
    assert codes(plan_capacity(inputs(), growth=given, usage=usage(1, 110 * TB)).warnings)[1:] == []
    result = plan_capacity(inputs(), growth=given, usage=usage(1, 30 * TB)).warnings
    assert the(result, "reference_capacity_differs").facts == {"given_bytes": 100 * TB, "reported_bytes": 30 * TB}


# Endurance.


def fswpd_of(count: int) -> tuple[Input, Any]:
    writes = file_system_writes(days(*[24.0] * count), SystemCapacity(1000, "test"))
    assert writes.daily is not None
    return statistic("fswpd", "mean", writes.daily.tolist(), "days"), writes


@pytest.mark.parametrize(("count", "expected"), [(13, ["fswpd_few_days"]), (14, [])])
def test_few_days_of_writes_are_said(count: int, expected: list[str]) -> None:
    fswpd, writes = fswpd_of(count)
    plan = plan_endurance([case(fswpd=fswpd)], writes=writes)
    assert codes(plan.warnings) == expected
    assert codes(plan_endurance([LOW], writes=writes).warnings) == []  # FSWPD was given: the days do not matter


@pytest.mark.parametrize(("drives", "later", "expected"), [
    (9, 0, ["waf_few_drives"]), (10, 0, []), (50, 3, ["drives_read_later"]),
])  # fmt: skip
def test_few_drives_and_drives_read_later_are_said(drives: int, later: int, expected: list[str]) -> None:
    waf = statistic("waf", "median", [2.0] * drives, "drives")
    result = WriteAmplification(drives=drives, drives_read_later=later)
    assert codes(plan_endurance([case(waf=waf)], waf=result).warnings) == expected
    assert codes(plan_endurance([LOW], waf=result).warnings) == []


def test_an_amplification_below_one_is_said() -> None:
    assert codes(plan_endurance([case(waf=0.9)]).warnings) == ["waf_below_one"]
    both = plan_endurance([case(waf=0.8)]).warnings  # 12/10 · 0.8 is less than 1
    assert "parity and amplification together are 0.96" in str(the(both, "strict_above_published"))


def test_a_smaller_new_system_is_not_on_the_safe_side() -> None:
    """C_ref/C_new of 4: 3 · 0.024 · 4 = 0.288 in host writes; the equation asks for 3 · 0.024 · 1.2 · 2.68 = 0.232."""
    plan = plan_endurance([LOW], capacity_ratio=value("capacity_ratio", 4.0, "test"))
    result = the(plan.warnings, "strict_above_published")
    assert result.facts["strict_need_dwpd"] == pytest.approx(0.288)
    assert result.facts["published_need_dwpd"] == pytest.approx(0.2315, abs=1e-4)
    assert "because the new file system is smaller (C_ref/C_new 4)" in str(result)
    assert codes(plan_endurance([LOW]).warnings) == []
    by_rmw = the(plan_endurance([case(rmw=(1.0, 5.0))]).warnings, "strict_above_published")
    assert "because writes are read-modify-write (RMW 3)" in str(by_rmw)


def test_a_new_system_smaller_than_what_is_used_is_said() -> None:
    new = value("capacity_bytes", 10 * TB, "test")
    result = plan_endurance([LOW], usage=usage(21 * TB), new_capacity=new).warnings
    assert the(result, "capacity_below_used").facts == {"used_bytes": 21 * TB, "capacity_bytes": 10 * TB}
    assert plan_endurance([LOW], usage=usage(9 * TB), new_capacity=new).warnings == []


# Metadata.


def test_metadata_for_less_than_there_is_is_said() -> None:
    sizes = made_up()
    held = sizes.files.mass.avg
    small = plan_metadata(sizes, value("capacity_bytes", held / 2, "test")).warnings
    assert the(small, "capacity_below_used").facts == {"used_bytes": held, "capacity_bytes": held / 2}
    enough = value("capacity_bytes", 2 * held, "test")
    assert plan_metadata(sizes, enough).warnings == []
    assert plan_metadata(sizes, enough, usage=usage(round(held))).warnings == []
    result = plan_metadata(sizes, enough, usage=usage(round(3 * held))).warnings
    assert codes(result) == ["capacity_below_used", "scan_differs_from_used"]


def test_metadata_larger_than_the_file_system_is_said() -> None:
    tiny = made_up({64: 10_000})
    result = plan_metadata(tiny, value("capacity_bytes", 1e9, "test")).warnings
    assert codes(result) == ["metadata_above_capacity"]
    assert result[0].facts["total_avg_bytes"] > 1e9


# Performance.


def whole_days(count: int) -> Demand:
    demand = asked()
    measures = [replace(measure, complete_days=count) for measure in demand.measures]
    return replace(demand, measures=measures, partial_days=[date(2020, 9, 20)])


@pytest.mark.parametrize(("count", "expected"), [(6, ["demand_short_window"]), (7, [])])
def test_less_than_a_week_of_demand_is_said(count: int, expected: list[str]) -> None:
    plan = plan_performance([value("ssi", 100, "test")], whole_days(count))
    assert codes(plan.warnings) == expected
    if expected:
        assert plan.warnings[0].facts["partial_days"] == ["2020-09-20"]
        assert "6 complete and 1 partial days" in str(plan.warnings[0])


@pytest.mark.parametrize(("tick_s", "expected"), [(60.0, []), (86_400.0, ["tick_long"])])
def test_ticks_that_hide_bursts_are_said(tick_s: float, expected: list[str]) -> None:
    plan = plan_performance([value("ssi", 100, "test")], replace(whole_days(30), tick_s=tick_s))
    assert codes(plan.warnings) == expected
    if expected:
        assert "Demand is known by the day: shorter bursts are averaged out" in str(plan.warnings[0])


def test_demand_of_a_rollup_is_said() -> None:
    plan = plan_performance([value("ssi", 100, "test")], replace(whole_days(30), resolution="1h"))
    assert codes(plan.warnings) == ["demand_from_rollup"]
    assert plan.resolution == "1h"


def test_requirements_below_the_references_own_peak_are_named() -> None:
    demand = whole_days(30)
    plan = plan_performance([value("ssi", 1, "test")], demand, percentiles=[95.0, 100.0])
    result = the(plan.warnings, "required_below_peak")
    largest = {measure.measure: measure.max for measure in demand.measures}
    below = [item for item in plan.cases if item.required < largest[item.measure]]
    assert len(result.facts["cases"]) == len(below) > 0
    assert {item.percentile for item in below} == {95.0}
    assert f"{len(below)} of {len(plan.cases)} requirements are less" in str(result)


def test_a_given_demand_below_what_is_measured_is_said() -> None:
    demand = whole_days(30)
    written = next(measure for measure in demand.measures if measure.measure == "write_bytes_per_s")
    speed = [value("ssi", 100, "test")]
    low = between("write_bytes_per_s", 1.0, written.p95 / 2, "test")
    fair = value("write_bytes_per_s", written.p99, "test")
    high = value("write_bytes_per_s", 3 * written.max, "test")
    assert codes(plan_performance(speed, demand, given=[fair]).warnings) == []
    for given in (low, high):
        result = the(plan_performance(speed, demand, given=[given]).warnings, "demand_given_differs")
        assert result.facts["given"] == given.expected
        assert result.facts["measured_max"] == written.max
    assert plan_performance(speed, given=[low]).warnings == []  # nothing is known to hold it against


# All together.


def test_a_rationale_has_the_warnings_of_all_its_plans_before_its_numbers() -> None:
    small = capacity(usage(131 * TB))
    lasting = plan_endurance([LOW], capacity_ratio=value("capacity_ratio", 4.0, "test"))
    plain = to_plain(make_rationale(ABOUT, capacity=small, endurance=lasting))
    assert [(item["part"], item["code"]) for item in plain["warnings"]] == [
        ("capacity", "capacity_below_used"), ("endurance", "strict_above_published"),
    ]  # fmt: skip
    assert list(plain).index("warnings") < list(plain).index("requirements")


def test_a_design_smaller_than_growth_asks_for_is_said() -> None:
    """25.8 TB by growth; metadata targets for 20 TB, then for 30."""
    plan = capacity(None)
    small, large = (
        make_rationale(ABOUT, capacity=plan, metadata=plan_metadata(made_up(), value("capacity_bytes", item, "test")))
        for item in (20 * TB, 30 * TB)
    )
    assert the(small.warnings, "design_below_plan").facts["capacity_bytes"] == plan.cases[0].capacity_bytes
    assert large.warnings == []
