"""Writes smaller than a stripe write whole blocks and parity."""

from __future__ import annotations

import pytest

from iolens.models.dom import read_modify_write_factor, stripe_bytes_written

KIB = 1024


@pytest.mark.parametrize(
    ("size", "blocks"),
    [(1, 3), (128 * KIB, 3), (129 * KIB, 4), (7 * 128 * KIB, 9), (8 * 128 * KIB, 10), (9 * 128 * KIB, 13)],
)
def test_at_least_a_block_and_its_parity_is_written(size: int, blocks: int) -> None:
    assert stripe_bytes_written(size, 8, 2, 128 * KIB) == blocks * 128 * KIB


def test_full_stripes_cost_nothing_more() -> None:
    assert read_modify_write_factor({1024 * KIB: 7}, 8, 2, 128 * KIB) == 1


def test_a_thousand_single_bytes_cost_a_thousand_blocks() -> None:
    """The published example, with its parity: 1,000 bytes one by one."""
    assert read_modify_write_factor({1: 1000}, 1, 0, 4096) == 4096


def test_a_mixture_is_weighted_by_bytes() -> None:
    mixed = read_modify_write_factor({4 * KIB: 100, 1024 * KIB: 100}, 8, 2, 128 * KIB)
    assert mixed == pytest.approx((100 * 3 * 128 + 100 * 10 * 128) / (100 * 1028 * 1.25))


def test_without_writes_there_is_no_factor() -> None:
    assert read_modify_write_factor({}, 8, 2, 4096) is None
