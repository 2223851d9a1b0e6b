"""Stripes of data and parity."""

from __future__ import annotations

import pytest

from iolens.errors import UsageError
from iolens.plans.metadata import StripeLayout, layout, parse_layout


def test_a_stripe_is_written_as_data_plus_parity() -> None:
    assert parse_layout(" 8 + 2 ") == StripeLayout(8, 2)
    assert str(StripeLayout(10, 2)) == "10+2"
    assert StripeLayout(10, 2).overhead == 1.2
    assert StripeLayout(5, 5).overhead == 2


@pytest.mark.parametrize("text", ["", "8", "8+", "0+2", "8-2", "8+2+1", "99999+1", "８+2"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_layout(text)


def test_parity_alone_is_refused() -> None:
    with pytest.raises(UsageError, match="needs data"):
        layout(0, 2)
