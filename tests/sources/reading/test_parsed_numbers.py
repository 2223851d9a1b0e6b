"""One place for text that is to be a number: what Python's own conversions would take, and what a column can hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.sources.reading.parsed_numbers import (
    LARGEST,
    LARGEST_UNSIGNED,
    WrongNumber,
    count,
    count_in_json,
    count_or_none,
    grouped_count,
    number_in_json,
    real,
    real_or_none,
    shown,
)

NOT_COUNTS = ["", "-1", "+1", "1_0", " 1", "1 ", "٣", "²", "0x10", "1.0", "1e3", "nan", "9" * 21, "9" * 5000, "1\n"]


@pytest.mark.parametrize("text", NOT_COUNTS)
def test_what_is_no_count_is_refused_with_its_column(text: str) -> None:
    assert count_or_none(text) is None
    with pytest.raises(WrongNumber, match=r"^read_bytes '.*' is (not a count|out of range)$"):
        count(text, "read_bytes")


def test_a_count_ends_where_its_column_does() -> None:
    assert count("9223372036854775807", "x") == LARGEST
    assert count_or_none("9223372036854775808") is None
    assert count("18446744073709551615", "x", LARGEST_UNSIGNED) == LARGEST_UNSIGNED
    with pytest.raises(WrongNumber, match="out of range"):
        count("18446744073709551616", "x", LARGEST_UNSIGNED)
    assert count("007", "x") == 7


def test_thousands_may_be_grouped() -> None:
    assert grouped_count("1,234,567", "files") == 1_234_567
    with pytest.raises(WrongNumber):
        grouped_count("9," * 5000, "files")


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1_0", "٣", "1.2.3", "1e400", "0x1p3", "-0.5", "9" * 5000])
def test_what_is_no_number_is_refused(text: str) -> None:
    assert real_or_none(text) is None
    with pytest.raises(WrongNumber):
        real(text, "cpu_pct")


@settings(derandomize=True)
@given(st.floats(0, float(LARGEST)))
def test_numbers_are_those_python_prints(number: float) -> None:
    assert real_or_none(repr(number)) == number


@settings(derandomize=True)
@given(st.integers(0, LARGEST))
def test_counts_are_exact(number: int) -> None:
    assert count_or_none(str(number)) == number


def test_numbers_of_json() -> None:
    assert [number_in_json(item) for item in (1, 1.5, True, "1", None, math.nan, math.inf, -1, 10**30)] == [
        1, 1.5, None, None, None, None, None, None, None,
    ]  # fmt: skip
    assert [count_in_json(item) for item in (1, 1.0, True, 2**63, -1)] == [1, None, None, None, None]


def test_a_quotation_is_short() -> None:
    assert shown("  a text ") == "'a text'"
    assert len(shown("x" * 10_000_000)) == 62
