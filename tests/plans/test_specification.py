"""Lines of a specification: the published numbers, the values put in, the origins."""

from __future__ import annotations

import re

import pytest

from iolens.plans.cases import between, value
from iolens.plans.endurance import plan_endurance
from iolens.plans.metadata import Prices, StripeLayout, plan_metadata
from iolens.plans.performance import plan_performance
from iolens.plans.rationale import Rationale, design_capacity
from iolens.plans.specification import Requirement, Stripe, capacity_requirements, performance_requirements
from tests.plans.designs import from_telemetry, published, published_capacity
from tests.plans.test_endurance import LOW, case
from tests.plans.test_metadata import made_up
from tests.plans.test_performance import asked

SI = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}
TWO = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50}


def lines(result: Rationale, name: str) -> list[Requirement]:
    return [requirement for requirement in result.requirements if requirement.name == name]


def recomputed(working: str) -> tuple[float, float]:
    """Both sides of the last equation of a working, by whoever checks it with a calculator."""
    _, *sides = working.rpartition("; ")[2].split(" = ")
    answer = re.sub(r"\(.*\)$", "", sides[-1])  # the same in other units

    def amount(match: re.Match[str]) -> str:
        unit = (match[2] or "").removesuffix("/s")
        return str(float(match[1].replace(",", "")) * {**SI, **TWO, "": 1.0}[unit])

    left, right = (
        re.sub(r"([0-9][0-9.,]*(?:e[+-]?[0-9]+)?)(?: ([kKMGTPE]?i?B(?:/s)?))?", amount, side).replace("·", "*")
        for side in (sides[-2], answer)
    )
    assert not re.search(r"[^0-9.e+\-*/() ]", left + right)
    return eval(left), eval(right)  # numbers and signs alone, as just seen


def test_published_numbers_and_the_values_put_in() -> None:
    """22.3 and 29.8 PB; 0.23 and 0.38 DWPD."""
    result = published()
    usable = lines(result, "usable capacity")
    assert [item.working for item in usable] == [
        "C = 3 · (28 / 0.5) · 133 TB = 22.34 PB",
        "C = 4 · (28 / 0.5) · 133 TB = 29.79 PB",
    ]
    assert [line.working for line in lines(result, "drive writes per day, published")] == [
        "DWPD = 3 · 0.024 · (10 + 2)/10 · 2.68 = 0.2316",
        "DWPD = 4 · 0.024 · (8 + 2)/8 · 3.17 = 0.3804",
    ]
    assert [line.expected for line in lines(result, "class of drives")] == [0.3, 1.0]
    assert usable[0].origins == [
        "ssi: option --ssi",
        "purge_days: default",
        "purge_fraction: default",
        "daily_growth_bytes: option --daily-growth",
    ]


def test_every_working_gives_the_printed_answer() -> None:
    for result in (published(), from_telemetry()):
        checked = [requirement for requirement in result.requirements if requirement.name != "class of drives"]
        assert len(checked) >= 12
        for item in checked:
            left, right = recomputed(item.working)
            assert left == pytest.approx(right, rel=2e-3), item.working
            assert item.expected == pytest.approx(left, rel=2e-3), item.working


def test_raw_capacity_has_the_parity_of_its_own_case() -> None:
    low, high = lines(published(), "raw capacity with parity")
    assert low.expected == pytest.approx(22.344e15 * 1.2)
    assert high.expected == pytest.approx(29.792e15 * 1.25)
    assert low.case.endswith("10+2")
    assert high.origins[-1] == "layout: option --case"


def test_stripes_of_no_case_hold_for_all() -> None:
    everywhere = [Stripe(None, StripeLayout(4, 1), "option --layout")]
    raw = [
        capacity_requirement
        for capacity_requirement in capacity_requirements(published_capacity(), everywhere)
        if "raw" in capacity_requirement.name
    ]
    assert [item.working.split(" = ")[1] for item in raw] == ["22.34 PB · (4 + 1)/4", "29.79 PB · (4 + 1)/4"]
    other = [Stripe(7.0, StripeLayout(4, 1), "option --case")]  # no case of capacity has this speed
    assert (
        len(
            [
                capacity_requirement
                for capacity_requirement in capacity_requirements(published_capacity(), other)
                if "raw" in capacity_requirement.name
            ]
        )
        == 2
    )


def test_uncertain_inputs_make_ranges_and_parity_widens_them() -> None:
    result = from_telemetry()
    usable, raw = lines(result, "usable capacity")[0], lines(result, "raw capacity with parity")[0]
    assert usable.ci95 is not None
    assert usable.low is not None
    assert usable.low < usable.expected < usable.high  # type: ignore[operator]
    assert raw.ci95 == pytest.approx((usable.ci95[0] * 1.2, usable.ci95[1] * 1.2))
    assert any("days of growth" in origin for origin in usable.origins)
    assert published().requirements[0].ci95 is None


def test_metadata_has_every_threshold_and_the_knee_once() -> None:
    capacity = design_capacity(None, published_capacity())
    prices = Prices(400.0, 100.0, StripeLayout(5, 5), StripeLayout(8, 2))
    result = published(metadata=plan_metadata(made_up(), capacity, [4096, 1 << 20], prices=prices))
    names = [line.case for line in lines(result, "capacity of metadata targets")]
    assert names == ["DOM up to 4 KiB", "DOM up to 1 MiB"]  # the knee is one of them
    apart = published(metadata=plan_metadata(made_up(), capacity, [4096], prices=prices))
    assert [line.case for line in lines(apart, "capacity of metadata targets")][-1] == "DOM up to 1 MiB (knee)"
    raw = lines(apart, "raw capacity of metadata targets")[0]
    assert raw.expected == pytest.approx(2 * (lines(apart, "capacity of metadata targets")[0].expected or 0))
    assert raw.origins[-1].startswith("layout_mdt: default")
    assert not lines(published(mdt_stripe=None), "raw capacity of metadata targets")


def test_no_class_that_suffices_is_no_number() -> None:
    (item,) = lines(published(endurance=plan_endurance([case(fswpd=20.0)])), "class of drives")
    assert item.expected is None
    assert item.working.endswith("none suffices")


def test_strict_writes_say_what_is_assumed() -> None:
    (item,) = lines(published(endurance=plan_endurance([LOW])), "drive writes per day, strict")
    assert item.working == "strict_host = 3 · 0.024 · 1 · 1 = 0.072"
    assert "rmw: not measured: assumed to be 1" in item.origins


def test_performance_is_specified_at_the_usual_percentile_and_as_given() -> None:
    speed = [value("ssi", 4, "option --ssi")]
    result = list(performance_requirements(plan_performance(speed, asked())))
    assert {item.case for item in result} == {"SSI 4, 99 % of ticks"}
    only = list(performance_requirements(plan_performance(speed, asked(), percentiles=[50.0])))
    assert {item.case for item in only} == {"SSI 4, 50 % of ticks"}
    given = [between("ops_per_s", 1e6, 2e6, "option --demand"), value("bytes_per_s", 9e10, "option --demand")]
    operations, rate = performance_requirements(plan_performance(speed, given=given))
    assert operations.working == "required = 4 · 1,500,000 = 6,000,000"
    assert rate.working == "required = 4 · 90 GB/s = 360 GB/s"
    assert (operations.unit, rate.unit) == ("1/s", "bytes/s")
    assert operations.low == 4e6
