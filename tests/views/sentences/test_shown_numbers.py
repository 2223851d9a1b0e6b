"""Numbers as all sentences and tables write them: never nothing for something, never all for less than all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.units import format_bytes, format_bytes_si
from iolens.views.render.tables import show_percent, show_seconds, show_whole_percent
from iolens.views.runs import shown_number
from iolens.visible_text import core_hours, times

from .generated import AMOUNTS, PERCENTS, QUICK

NOISE = 1e-8  # per cent: what arithmetic leaves of a hundred


@QUICK
@given(PERCENTS)
def test_percentages(value: float) -> None:
    for text in (show_percent(value), show_whole_percent(value), shown_number(value)):
        assert (float(text.replace(",", "")) == 0) == (value == 0)
        assert float(text) <= 100.0
        if value < 100.0 - NOISE:
            assert float(text) < 100.0
        assert float(text) == pytest.approx(value, abs=0.5001)
    assert float(show_percent(value)) == pytest.approx(value, abs=0.0501)


@QUICK
@given(PERCENTS, PERCENTS)
def test_order_is_kept(first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert float(show_percent(low)) <= float(show_percent(high))


@QUICK
@given(AMOUNTS)
def test_no_powers_of_ten_in_lengths_and_no_minus_zero(value: float) -> None:
    assert "e+" not in show_seconds(value)
    for show in (format_bytes, format_bytes_si):
        assert not show(-value).startswith("-0 ")
        assert show(-value).lstrip("-") == show(value)


@pytest.mark.parametrize(
    ("number", "words"), [("0", "0 times"), ("1", "once"), ("1.5", "1.5 times"), ("12", "12 times")]
)
def test_times(number: str, words: str) -> None:
    assert times(number) == words


@given(st.sampled_from(["0", "0.5", "1", "1.5", "1,504"]))
def test_core_hours(number: str) -> None:
    assert core_hours(number) == f"{number} core-hour{'s' * (number != '1')}"
