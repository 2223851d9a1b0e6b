"""The live line of `iolens top`, and published numbers against recomputed ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.live.analysis import LiveReading
from iolens.validation import Validation
from iolens.validation.checks import CheckedNumber
from iolens.views.top import columns as words
from iolens.views.top.summary import coverage, totals
from iolens.views.validation import checks, notes

from .generated import AMOUNTS, NAMES, PERCENTS, QUICK, check_language, lists_of, numbers, results_of

MISSING = {"missing_targets": st.lists(NAMES, max_size=3), "course": st.just(())}
READINGS = st.integers(0, 3).flatmap(
    lambda known: results_of(
        LiveReading, targets_known=st.just(known), targets_reporting=st.integers(0, known), **MISSING
    )
)


@QUICK
@given(PERCENTS, AMOUNTS)
def test_cells_are_not_nothing_and_not_all(share: float, amount: float) -> None:
    text = words.per_cent(share)
    assert (text == "0.0") == (share == 0)
    assert (text == "100") == (share == 100)
    assert (words.short(amount) == "0") == (amount == 0)


@QUICK
@given(READINGS)
def test_the_line_has_the_numbers_of_the_reading(reading: LiveReading) -> None:
    said = coverage(reading, 500).plain
    assert f"{reading.targets_reporting} of {reading.targets_known} target" in said
    check_language(said.strip())
    line = totals(reading, 500).plain
    mean = reading.mean_fsu_pct if reading.mean_fsu_pct is not None else reading.mean_fsu_bytes_pct
    assert words.per_cent(mean) in line
    assert ("FSUb" in line) == (reading.mean_fsu_pct is None and reading.mean_fsu_bytes_pct is not None)


@st.composite
def validations(draw: st.DrawFn) -> Validation:
    checked = draw(lists_of(CheckedNumber))
    verdicts: dict[str, int] = dict(Counter(item.verdict for item in checked))
    own: dict[str, Any] = {"checks": st.just(checked), "verdicts": st.just(verdicts)}
    return draw(results_of(Validation, **own))


@QUICK
@given(validations())
def test_the_sum_is_that_of_the_lines(result: Validation) -> None:
    said = notes(result)[0]
    table = checks(result)
    place = [column.name for column in table.columns].index("verdict")
    counts = Counter(row[place] for row in table.rows)
    assert sorted(numbers(said)) == sorted([str(len(table.rows)), *map(str, counts.values())] if counts else [])
    for verdict, count in counts.items():
        assert f"{count} {verdict}" in said
    check_language(said)
