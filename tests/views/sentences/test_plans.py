"""Plans: which class of drives suffices, where the knee is, and what does not fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.plans.cases import value
from iolens.plans.endurance import EndurancePlan, plan_endurance
from iolens.plans.metadata import Prices, plan_metadata
from iolens.plans.rationale import make_rationale
from iolens.views import plan_endurance as endurance
from iolens.views import plan_metadata as metadata
from iolens.views.plan_rationale.chapters import document
from tests.plans.designs import ABOUT
from tests.plans.test_endurance import case
from tests.plans.test_metadata import PRICES, made_up

from .generated import QUICK, check, check_language, numbers

WRITES = st.one_of(st.floats(1e-6, 20), st.sampled_from([0.3 / 3, 0.1, 1.0 / 3, 1.0, 10.0 / 3]))
CASES = st.lists(st.tuples(st.sampled_from([1.0, 3.0]), WRITES, st.floats(1, 12)), min_size=1, max_size=3)


def plan_of(cases: list[tuple[float, float, float]], ratio: float) -> EndurancePlan:
    made = [case(ssi=ssi, fswpd=writes, waf=waf) for ssi, writes, waf in cases]
    return plan_endurance(made, capacity_ratio=value("capacity_ratio", ratio, "test"))


@QUICK
@given(CASES, st.sampled_from([0.1, 1.0, 8.0]))
def test_the_class_that_suffices_is_not_below_the_need(cases: list[tuple[float, float, float]], ratio: float) -> None:
    plan = plan_of(cases, ratio)
    said = endurance.verdict(plan)
    needed = [item.needed_class_dwpd for item in plan.cases]
    names = {number for item in plan.cases for number in numbers(item.name)}
    rated = {f"{rating.class_dwpd:g}" for item in plan.cases for rating in item.classes}
    needs = {endurance.need(plan, need) for item in plan.cases
             for need in (item.published_need_dwpd, item.strict_need_dwpd)}  # fmt: skip
    assert set(numbers(said)) <= names | rated | needs
    assert ("suffice for every case" in said) == all(item is not None for item in needed)
    assert said.startswith("No class on offer") == (None in needed)
    if None not in needed:
        most = max(item for item in needed if item is not None)
        assert f"Drives of {most:g} DWPD" in said
        largest = max(max(item.published_need_dwpd, item.strict_need_dwpd) for item in plan.cases)
        assert float(endurance.need(plan, largest)) <= most
    check_language(endurance.classes(plan).note)


@QUICK
@given(CASES, st.sampled_from([0.1, 1.0, 8.0]))
def test_the_larger_count_is_the_larger(cases: list[tuple[float, float, float]], ratio: float) -> None:
    plan = plan_of(cases, ratio)
    chapters = {chapter.title: chapter for chapter in document(make_rationale(ABOUT, endurance=plan)).chapters}
    introduction = chapters["Endurance"].parts[0]
    assert isinstance(introduction, str)
    said = introduction.partition("In this plan ")[2]
    larger = [item.strict_need_dwpd > item.published_need_dwpd for item in plan.cases]
    smaller = [item.strict_need_dwpd < item.published_need_dwpd for item in plan.cases]
    assert ("strict number is larger in every case" in said) == all(larger)
    assert ("published number is larger in every case" in said) == all(smaller)
    assert ("equal" in said) == any(not more and not less for more, less in zip(larger, smaller, strict=True))


@QUICK
@given(
    st.sampled_from([((4096, 900), (1 << 20, 200), (1 << 30, 9)), ((1 << 20, 3),), ((512, 7), (4096, 1))]),
    st.sampled_from([None, PRICES]),
)
def test_the_knee_is_that_of_the_table(files: tuple[tuple[int, int], ...], prices: Prices | None) -> None:
    plan = plan_metadata(made_up(dict(files)), value("capacity_bytes", 30e15, "test"), prices=prices)
    said = metadata.verdict(plan)
    assert ("is not decided without the price" in said) == (prices is None)
    assert (said == metadata.NO_KNEE) == (prices is not None and plan.knee is None)
    assert said.startswith("The knee is at ") == (plan.knee is not None)
    check(said, metadata.knee(plan))
