"""Eq. 1 of paper P, its uncertainty against brute force, and purge policies on ages."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from iolens.analyses.contents.scans import Ages
from iolens.analyses.growth import Growth, growth
from iolens.errors import UsageError
from iolens.models.growth import AgeDistribution
from iolens.plans.capacity import CapacityPlan, plan_capacity
from iolens.plans.cases import Input, between, value
from iolens.views.render.json_text import to_plain
from tests.analyses.capacity_rows import readings, selection

TB, PB = 1e12, 1e15


def inputs(**given: float | tuple[float, float]) -> dict[str, list[Input]]:
    known = {"ssi": 3.0, "purge_days": 28.0, "purge_fraction": 0.5, **given}
    return {
        name: [between(name, *item, "test") if isinstance(item, tuple) else value(name, item, "test")]
        for name, item in known.items()
    }


def grown(days: int = 60, seed: int = 1) -> Growth:
    random = np.random.default_rng(seed)
    return growth(selection(readings(range(days), np.cumsum(random.integers(100, 900, days)), total=10**9)))


def scanned() -> Ages:
    distribution = AgeDistribution(
        np.array([0.0, 7.0, 28.0, 56.0]), np.array([7.0, 28.0, 56.0, np.inf]), np.array([700.0, 2100.0, 560.0, 640.0])
    )
    return Ages("atime", datetime(2020, 9, 14, tzinfo=UTC), "scan", "scan", distribution)


@pytest.mark.parametrize(("ssi", "published"), [(3.0, 22.3), (4.0, 29.8)])
def test_published_capacities(ssi: float, published: float) -> None:
    (case,) = plan_capacity(inputs(ssi=ssi, daily_growth_bytes=133 * TB)).cases
    assert case.capacity_bytes / PB == pytest.approx(published, abs=0.05)
    assert case.capacity_bytes == ssi * 56 * 133 * 10**12
    assert (case.low_bytes, case.high_bytes, case.ci95) == (case.capacity_bytes, case.capacity_bytes, None)


def test_ranges_give_the_corners() -> None:
    (case,) = plan_capacity(
        inputs(ssi=(3.0, 4.0), purge_fraction=(0.4, 0.5), daily_growth_bytes=(100 * TB, 150 * TB))
    ).cases
    assert case.capacity_bytes == pytest.approx(3.5 * 28 / 0.45 * 125 * TB)
    assert case.low_bytes == pytest.approx(3 * 28 / 0.5 * 100 * TB)
    assert case.high_bytes == pytest.approx(4 * 28 / 0.4 * 150 * TB)
    assert case.ci95 is not None
    assert case.low_bytes < case.ci95[0] < case.capacity_bytes < case.ci95[1] < case.high_bytes


def test_the_interval_of_one_range_is_that_of_even_draws() -> None:
    (case,) = plan_capacity(inputs(daily_growth_bytes=(100 * TB, 200 * TB))).cases
    assert case.ci95 == pytest.approx((168 * 102.5 * TB, 168 * 197.5 * TB), rel=0.01)


def test_growth_of_the_store_is_a_distribution() -> None:
    result = grown()
    plan = plan_capacity(inputs(), growth=result)
    (case,) = plan.cases
    assert case.daily_growth_bytes == round(np.mean(result.kept))
    random = np.random.default_rng(9)
    means = [random.choice(result.kept, len(result.kept)).mean() for _ in range(5000)]
    assert case.ci95 == pytest.approx(tuple(168 * np.percentile(means, (2.5, 97.5))), rel=0.01)
    assert plan.growth is result
    origin = plan.inputs[-1].origin
    assert origin == "scratch: 59 days of growth, 2020-09-15 to 2020-11-12, method strict (frame)"
    assert plan_capacity(inputs(), growth=result).cases == plan.cases


def test_every_combination_is_a_case() -> None:
    given = inputs(daily_growth_bytes=1 * TB)
    given["ssi"] = [value("ssi", item, "test") for item in (3, 4)]
    given["purge_days"] = [value("purge_days", item, "test") for item in (14, 28, 56)]
    plan = plan_capacity(given)
    assert [(case.ssi, case.purge_days) for case in plan.cases] == [(s, d) for s in (3, 4) for d in (14, 28, 56)]
    assert [case.capacity_bytes for case in plan.cases] == [s * d * 2 * 10**12 for s in (3, 4) for d in (14, 28, 56)]
    assert [(purge.ssi, purge.keep_days) for purge in plan.purges] == [(s, d) for s in (3, 4) for d in (14, 28, 56)]


@pytest.mark.parametrize(
    "wrong",
    [{"ssi": 0.0}, {"purge_fraction": 1.5}, {"purge_fraction": (0.0, 0.5)}, {"purge_days": -1.0},
     {"daily_growth_bytes": 0.0}, {"ssi": float("inf")}, {"ssi": float("nan")}],
)  # fmt: skip
def test_impossible_inputs_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} must be above 0"):
        plan_capacity(inputs(**{"daily_growth_bytes": TB, **wrong}))


def test_a_capacity_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(UsageError, match=r"purge_fraction .* give a capacity beyond all numbers"):
        plan_capacity(inputs(daily_growth_bytes=TB, purge_fraction=1e-320))


def test_without_growth_there_is_no_plan() -> None:
    with pytest.raises(UsageError, match="no daily growth"):
        plan_capacity(inputs())
    with pytest.raises(UsageError, match="no day of growth among 20 readings"):
        plan_capacity(inputs(), growth=growth(selection(readings(range(20), range(20, 0, -1)))))
    with pytest.raises(UsageError, match="too little data: 1 day of 7; give --daily-growth"):
        plan_capacity(inputs(), growth=growth(selection(readings(np.arange(24) / 24, range(24)))))


def purge_plan(**settings: int) -> CapacityPlan:
    given = inputs(ssi=2.0, daily_growth_bytes=100.0)
    given["purge_days"] = [value("purge_days", item, "test") for item in (14, 28)]
    return plan_capacity(given, ages=[scanned()], **settings)


def test_what_a_purge_leaves_now() -> None:
    """Of 4,000 bytes: 700 in a week, 2,100 in the next three; a third of those within fourteen days, likely."""
    fortnight, month = purge_plan().purges
    assert (fortnight.survive_bytes, fortnight.survive_low_bytes, fortnight.survive_high_bytes) == (1400, 700, 2800)
    assert (month.survive_bytes, month.survive_low_bytes, month.survive_high_bytes) == (2800, 2800, 2800)
    assert month.survive_pct == pytest.approx(70)
    assert month.freed_bytes == 1200
    assert month.clock == "atime"


def test_where_the_new_system_settles() -> None:
    month = purge_plan().purges[1]
    assert (month.every_days, month.steady_trough_bytes, month.steady_peak_bytes) == (28, 2 * 2800, 2 * 5600)
    assert month.freed_fraction == 0.5
    assert month.peak_from_ages_bytes == 2 * (2800 + 28 * 100)
    weekly = purge_plan(purge_every_days=7).purges[1]
    assert (weekly.every_days, weekly.steady_peak_bytes) == (7, 2 * 3500)
    assert weekly.freed_fraction == pytest.approx(0.2)
    assert weekly.peak_from_ages_bytes == 2 * (2800 + 700)


def test_the_course_begins_with_the_bytes_of_the_scan_and_settles() -> None:
    courses = purge_plan().courses
    assert courses is not None
    assert [course.policy.keep_days for course in courses] == [14, 28]
    for item in courses:
        assert item.course.before[0] == 4000
        assert item.course.before[-56:].max() == 100 * 2 * item.policy.keep_days


def test_ages_are_a_curve() -> None:
    (curve,) = purge_plan().ages
    assert [(point.age_days, point.bytes) for point in curve.points] == [
        (7.0, 700), (28.0, 2800), (56.0, 3360), (None, 4000)
    ]  # fmt: skip
    assert curve.points[-1].pct == 100


def test_keys_of_the_interface() -> None:
    plain = to_plain(plan_capacity(inputs(), growth=grown()))
    assert {"ssi", "purge_days", "purge_fraction", "daily_growth_bytes", "capacity_bytes", "ci95"} <= set(
        plain["cases"][0]
    )
    assert {
        "method", "mean_bytes_per_day", "median_bytes_per_day", "days_with_growth", "days_excluded", "incomplete_days"
    } <= set(plain["growth"])  # fmt: skip
    assert all(isinstance(end, int) for end in plain["cases"][0]["ci95"])
    assert "courses" not in plain
