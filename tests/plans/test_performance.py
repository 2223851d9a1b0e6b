"""Bandwidth and operations of the next system: percentile demand × SSI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolens.analyses.demand import Demand, demand
from iolens.errors import UsageError
from iolens.plans.cases import PerformanceCase, between, value
from iolens.plans.performance import plan_performance
from iolens.store.frames import FrameSelection
from iolens.views.render.json_text import to_plain
from tests.analyses.telemetry import made_up, table_of

DAY_TICKS = 17_280
SSI3 = value("ssi", 3, "test")


def asked(days: int = 5) -> Demand:
    parts = [made_up(day, 50, 2, first_tick=day * DAY_TICKS, missing=0.0) for day in range(days)]
    rows = {"target_io": [row for part in parts for row in part.io]}
    return demand(FrameSelection({name: table_of(name, some) for name, some in rows.items()}, "scratch"))


def of(cases: list[PerformanceCase], measure: str, percentile: float | None) -> PerformanceCase:
    return next(case for case in cases if (case.measure, case.percentile) == (measure, percentile))


def test_required_is_demand_times_speed() -> None:
    result = asked()
    plan = plan_performance([SSI3, value("ssi", 4, "test")], result)
    assert len(plan.cases) == 2 * len(result.measures) * 3
    written = next(measure for measure in result.measures if measure.measure == "write_bytes_per_s")
    for percentile, level in ((95.0, written.p95), (99.0, written.p99), (100.0, written.max)):
        item = of(plan.cases, "write_bytes_per_s", percentile)
        assert (item.demand, item.required) == (level, pytest.approx(3 * level))


@pytest.mark.parametrize(
    ("tick_s", "words"), [(5.0, "99 % of ticks"), (60.0, "99 % of minutes"), (86_400.0, "99 % of days")]
)
def test_a_tick_that_is_a_day_is_called_a_day(tick_s: float, words: str) -> None:
    plan = plan_performance([SSI3], replace(asked(2), tick_s=tick_s))
    assert of(plan.cases, "bytes_per_s", 99.0).name == f"SSI 3, {words}"
    assert of(plan.cases, "bytes_per_s", 100.0).name == f"SSI 3, largest {words.split()[-1].removesuffix('s')}"


def test_days_make_an_interval_but_not_of_the_largest_tick() -> None:
    plan = plan_performance([SSI3], asked())
    p95, largest = (of(plan.cases, "bytes_per_s", share) for share in (95.0, 100.0))
    assert p95.ci95 is not None
    assert p95.low_required <= p95.ci95[0] <= p95.required * 1.01
    assert p95.ci95[1] <= p95.high_required
    assert (largest.ci95, largest.low_required, largest.high_required) == (None, largest.required, largest.required)


def test_a_range_of_speeds_widens_it() -> None:
    wide = plan_performance([between("ssi", 3, 4, "test")], asked())
    largest = of(wide.cases, "bytes_per_s", 100.0)
    assert largest.required == pytest.approx(3.5 * largest.demand)
    assert (largest.low_required, largest.high_required) == pytest.approx((3 * largest.demand, 4 * largest.demand))
    assert largest.ci95 is not None
    assert largest.low_required < largest.ci95[0] < largest.ci95[1] < largest.high_required


def test_demand_that_is_known_elsewhere() -> None:
    plan = plan_performance(
        [SSI3], given=[value("write_bytes_per_s", 90e9, "option"), between("ops_per_s", 1, 2, "option")]
    )
    written, operations = plan.cases
    assert (written.required, written.unit, written.ci95, written.percentile) == (270e9, "bytes/s", None, None)
    assert (operations.low_required, operations.high_required, operations.unit) == (3, 6, "1/s")
    assert operations.ci95 is not None


def test_what_is_given_stands_for_what_was_measured() -> None:
    plan = plan_performance([SSI3], asked(), given=[value("bytes_per_s", 5.0, "option")])
    assert [case.demand for case in plan.cases if case.measure == "bytes_per_s"] == [5.0]
    assert any(case.measure == "read_bytes_per_s" for case in plan.cases)


def test_inputs_say_where_they_come_from() -> None:
    plan = plan_performance([SSI3], asked())
    origins = {item.name: item.origin for item in plan.inputs}
    assert "95, 99 and 100 % over 250 ticks" in origins["bytes_per_s"]
    assert "ticks of 0 complete and 5 partial days" in origins["bytes_per_s"]  # fifty ticks each
    plain = to_plain(plan)
    assert set(plain["cases"][0]) >= {"ssi", "measure", "percentile", "demand", "required", "ci95"}
    assert "days_apart" not in plain["demand"][0]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="no percentile 42"):
        plan_performance([SSI3], asked(1), percentiles=[42])
    with pytest.raises(UsageError, match="no demand"):
        plan_performance([SSI3])
    with pytest.raises(UsageError, match="ssi must be above 0"):
        plan_performance([value("ssi", 0, "test")], asked(1))
