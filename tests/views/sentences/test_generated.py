"""The checks themselves: what they refuse, and what they let pass."""

from __future__ import annotations

import pytest

from .generated import check_language, numbers


@pytest.mark.parametrize("text", ["1 days", "0 day", "12 file", "1,000 run", "1 hours", "a  b", "x .", "nan %",
                                  "1 of 1 periods of 1 hours", "none..", "2 core-hour lost"])  # fmt: skip
def test_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        check_language(text)


@pytest.mark.parametrize("text", ["1 day", "0 days", "1,001 runs", "0.1 times", "21 files", "1 of 3 targets", "1.5 s.",
                                  "1 process count", "7 process counts", "2 core-hours", "12 … 13 B"])  # fmt: skip
def test_let_pass(text: str) -> None:
    check_language(text)


def test_numbers_are_taken_as_written() -> None:
    assert numbers("1,234.5 of 12 %, −3e-05 and +0.10 (p95: OST0001)") == ["1234.5", "12", "3e-05", "0.10"]
