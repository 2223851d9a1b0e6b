"""The three sentences of a rationale carry the numbers of the table below them, whichever parts are missing."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.demand import Demand
from iolens.plans.capacity import plan_capacity
from iolens.plans.cases import Input, between, value
from iolens.plans.endurance import plan_endurance
from iolens.plans.metadata import StripeLayout, plan_metadata
from iolens.plans.performance import plan_performance
from iolens.plans.plausibility import PARTS
from iolens.plans.rationale import NEEDED, Missing, Rationale, design_capacity, make_rationale
from iolens.plans.specification import Stripe
from iolens.views.plan_rationale.chapters import document, purchase_words
from iolens.views.plan_rationale.document import BulletList
from iolens.views.plan_rationale.tables import purchase
from iolens.views.render import tables as t
from tests.plans.designs import ABOUT
from tests.plans.test_endurance import case
from tests.plans.test_metadata import made_up
from tests.plans.test_performance import asked

from .generated import QUICK, check_language, numbers

SPEEDS = st.lists(st.sampled_from([1.0, 1.5, 3.0, 4.0, 10.0]), min_size=1, max_size=3, unique=True)
PURGE_DAYS = st.lists(st.sampled_from([1, 28, 90]), min_size=1, unique=True)
LAYOUTS = st.sampled_from([StripeLayout(10, 2), StripeLayout(8, 2), StripeLayout(5, 5)])
MEASURES = ("bytes_per_s", "read_bytes_per_s", "write_bytes_per_s", "ops_per_s", "read_ops_per_s", "disk_ios_per_s",
            "metadata_ops_per_s")  # fmt: skip


@cache
def measured() -> Demand:
    return asked(2)


@cache
def metadata_of(files: tuple[tuple[int, int], ...], capacity: float, thresholds: tuple[int, ...]) -> Any:
    return plan_metadata(made_up(dict(files)), value("capacity_bytes", capacity, "test"), list(thresholds))


def amounts(name: str, least: float, most: float) -> st.SearchStrategy[Input]:
    """A value or a range."""
    numbers_of = st.floats(least, most, allow_nan=False)
    ranges = st.tuples(numbers_of, numbers_of).map(lambda ends: between(name, min(ends), max(ends), "test"))
    return st.one_of(numbers_of.map(lambda number: value(name, number, "test")), ranges)


@st.composite
def designs(draw: st.DrawFn) -> Rationale:
    """Whole designs; each part is there, missing, or was not asked for."""
    state = {part: draw(st.sampled_from(["there", "there", "missing", "not asked for"])) for part in PARTS}
    speeds = [value("ssi", speed, "test") for speed in draw(SPEEDS)]
    stripes = [Stripe(draw(st.sampled_from([None, speeds[0].expected])), draw(LAYOUTS), "test")]
    plans: dict[str, Any] = {}
    if state["capacity"] == "there":
        plans["capacity"] = plan_capacity({
            "ssi": speeds,
            "purge_days": [value("purge_days", days, "test") for days in draw(PURGE_DAYS)],
            "purge_fraction": [draw(amounts("purge_fraction", 0.1, 1.0))],
            "daily_growth_bytes": [draw(amounts("daily_growth_bytes", 1.0, 1e15))],
        })  # fmt: skip
    if state["endurance"] == "there":
        layouts = draw(st.lists(LAYOUTS, min_size=1, max_size=2))
        wanted = [
            case(
                layout.data,
                layout.parity,
                ssi=speed.expected,
                fswpd=draw(st.floats(1e-4, 20)),
                waf=draw(st.floats(1, 12)),
            )
            for speed in speeds[:2]
            for layout in layouts
        ]
        plans["endurance"] = plan_endurance(wanted)
    if state["metadata"] == "there":
        files = draw(st.sampled_from([((4096, 900), (1 << 20, 200), (1 << 30, 9)), ((1 << 20, 3),)]))
        capacity = design_capacity(None, plans["capacity"]).expected if "capacity" in plans else 30e15
        thresholds = draw(st.sampled_from([(65536,), (65536, 1 << 20), (0, 4096)]))
        plans["metadata"] = metadata_of(files, capacity, thresholds)
    if state["performance"] == "there":
        names = draw(st.lists(st.sampled_from(MEASURES), min_size=1, unique=True))
        demand = draw(st.sampled_from([None, measured()]))
        rates = [draw(amounts(name, 0.001, 1e12)) for name in names]
        plans["performance"] = plan_performance(
            speeds, demand, given=rates, percentiles=draw(st.sampled_from([[95.0], [99.0, 100.0], [100.0]]))
        )
    missing = [Missing(part, "no readings of 7 targets", NEEDED[part]) for part in PARTS if state[part] == "missing"]
    mdt_stripe = draw(st.sampled_from([None, Stripe(None, StripeLayout(5, 5), "test")]))
    return make_rationale(ABOUT, **plans, missing=missing, stripes=stripes, mdt_stripe=mdt_stripe)


@QUICK
@given(designs())
def test_the_three_sentences_carry_the_numbers_of_the_table(result: Rationale) -> None:
    sentences = purchase_words(result)
    assert len(sentences) == 3
    table = purchase(result)
    rows = t.body(table)
    for line, row in zip(result.purchase, rows, strict=True):
        said = sentences[{"capacity": 0, "performance": 1, "endurance": 2, "metadata": 2}[line.part]]
        amount = row[2].removesuffix(" /s")
        assert amount in said or (amount == "none suffices" and "no class of drives on offer suffices" in said.lower())
    undecided = [line.part == "metadata" and line.expected is None for line in result.purchase]
    cells = [cell for row, is_open in zip(rows, undecided, strict=True) if not is_open for cell in row[:3]]
    cells += [row[4] for row, is_open in zip(rows, undecided, strict=True) if is_open][:1]  # each threshold instead
    table_numbers = {number for cell in cells for number in numbers(cell)}
    assert {number for sentence in sentences for number in numbers(sentence)} == table_numbers
    for sentence in sentences:
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        check_language(sentence)


@QUICK
@given(designs())
def test_a_part_without_an_answer_has_no_number_and_says_why(result: Rationale) -> None:
    sentences = purchase_words(result)
    clauses = {"capacity": sentences[0], "performance": sentences[1]}
    clauses["endurance"], _, clauses["metadata"] = sentences[2].partition("; ")
    asked_for = {missing.part for missing in result.missing}
    for part, words in clauses.items():
        if getattr(result, part) is not None:
            assert "inputs are missing" not in words
        else:
            assert not numbers(words)
            assert ("inputs are missing" in words) == (part in asked_for)
            assert ("not part of this plan" in words) == (part not in asked_for)


@QUICK
@given(designs())
def test_the_chosen_case_is_the_one_that_asks_for_most_capacity(result: Rationale) -> None:
    for line in result.purchase:
        assert all(line.case != other.case for other in line.others)
        if line.part == "capacity":
            assert all((line.expected or 0) >= (other.expected or 0) for other in line.others)
    lines = {line.name: line for line in result.purchase}
    if "class of drives" in lines:
        rating, need = lines["class of drives"].expected, lines["drive writes per day, high end"].expected
        assert need is not None
        assert rating is None or rating >= need
        said = float(numbers(t.body(purchase(result))[list(lines).index("drive writes per day, high end")][2])[0])
        assert rating is None or rating >= said


def test_the_document_begins_with_the_sentences_and_then_the_table() -> None:
    result = make_rationale(ABOUT, endurance=plan_endurance([case()]))
    first, second, *_ = document(result).chapters[0].parts
    assert first == BulletList(purchase_words(result))
    assert isinstance(second, t.TableView)
    assert second.title == "Requirements"
    assert re.match(r"Choose drives of at least 0\.3 DWPD, for a need of up to 0\.232 DWPD ", purchase_words(result)[2])
