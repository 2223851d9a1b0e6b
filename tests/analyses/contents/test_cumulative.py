"""Histograms added up: against files counted one by one, and bounds that hold for any files of the bins."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.contents.distribution import CumulativeHistogram
from iolens.models.dom import Bin

ENDS = [0, 1, 2, 4, 8, 16, 64, 1024]
sizes_of_files = st.lists(st.integers(0, 5000), min_size=1, max_size=40)


def binned(sizes: list[int], reported: bool, *, lower_ends: bool = True) -> list[Bin]:
    """One bin for every file; the last bin has no end."""
    bins = []
    for size in sizes:
        place = bisect_left(ENDS, size)
        above = ENDS[place - 1] if place and lower_ends else None
        bins.append(Bin(above, ENDS[place] if place < len(ENDS) else None, 1, size if reported else None))
    return bins


def pct(part: float, whole: float) -> float:
    return 100.0 * part / whole


@given(sizes_of_files)
def test_reported_bytes_are_added_up_exactly(sizes: list[int]) -> None:
    result = CumulativeHistogram.of(binned(sizes, reported=True))
    assert result.total_bytes == sum(sizes)
    for item, count, size, share in zip(result.bins, result.counts, result.bytes, result.byte_shares(), strict=True):
        mine = [each for each in sizes if item.up_to is None or each <= item.up_to]
        assert (count, size) == (len(mine), sum(mine))
        if sum(sizes):
            assert share.low == share.high == pytest.approx(pct(sum(mine), sum(sizes)))


@given(sizes_of_files, st.booleans(), st.booleans())
def test_bounds_hold_for_any_files_of_the_bins(sizes: list[int], total_reported: bool, lower_ends: bool) -> None:
    result = CumulativeHistogram.of(
        binned(sizes, reported=False, lower_ends=lower_ends), sum(sizes) if total_reported else None
    )
    least, _, most = result.byte_range()
    assert least is not None
    assert least <= sum(sizes)
    assert most is None or sum(sizes) <= most
    for item, share in zip(result.bins, result.byte_shares(), strict=True):
        if not sum(sizes) or share.low is None or share.high is None:
            continue
        true = pct(sum(each for each in sizes if item.up_to is None or each <= item.up_to), sum(sizes))
        assert share.low - 1e-9 <= true <= share.high + 1e-9
        assert share.middle is None or share.low - 1e-9 <= share.middle <= share.high + 1e-9


@given(sizes_of_files, st.integers(0, 6000), st.booleans())
def test_shares_up_to_a_size_hold_too(sizes: list[int], limit: int, reported: bool) -> None:
    result = CumulativeHistogram.of(binned(sizes, reported=reported))
    low, high = result.files_at_most(limit)
    assert low is not None
    assert high is not None
    assert low - 1e-9 <= pct(sum(each <= limit for each in sizes), len(sizes)) <= high + 1e-9
    if limit in ENDS:
        assert low == high
    share = result.bytes_at_most(limit)
    if sum(sizes) and share.low is not None and share.high is not None:
        assert share.low - 1e-9 <= pct(sum(each for each in sizes if each <= limit), sum(sizes)) <= share.high + 1e-9


@given(sizes_of_files, st.sampled_from([1, 25, 50, 90, 99, 100]))
def test_a_percentile_is_the_upper_end_of_the_bin_that_reaches_it(sizes: list[int], share: int) -> None:
    result = CumulativeHistogram.of(binned(sizes, reported=True)).percentile(share)
    reached = [end for end in ENDS if 100 * sum(each <= end for each in sizes) >= share * len(sizes)]
    assert result == (reached[0] if reached else None)


def test_the_most_common_bin_tells_where_it_begins() -> None:
    result = CumulativeHistogram.of([Bin(None, 8, 5), Bin(None, 4, 1), Bin(8, 16, 5)])
    assert result.most_common == Bin(4, 8, 5)
    assert CumulativeHistogram.of([]).most_common is None


def test_an_open_bin_without_bytes_leaves_much_open() -> None:
    result = CumulativeHistogram.of([Bin(0, 10, 2), Bin(10, None, 1)])
    assert result.byte_range() == (2 + 11, None, None)
    first, last = result.byte_shares()
    assert (first.low, first.middle) == (0.0, None)
    assert first.high == pytest.approx(pct(20, 31))
    assert (last.low, last.high) == (100.0, 100.0)
    bounded = CumulativeHistogram.of([Bin(0, 10, 2), Bin(10, None, 1)], 100).byte_shares()[0]
    assert (bounded.low, bounded.high) == (2.0, 20.0)
    assert bounded.middle == pytest.approx(2 + 18 * 87 / (18 + 87))  # 87 of 105 bytes of space are taken, in both alike


def test_a_reported_total_moves_the_middle_of_all_bins_alike() -> None:
    bins = [Bin(0, 10, 1), Bin(10, 20, 1)]
    assert CumulativeHistogram.of(bins).byte_shares()[0].middle == pytest.approx(pct(5.5, 21))
    assert CumulativeHistogram.of(bins, 12).byte_shares()[0].middle == pytest.approx(pct(1, 12))
    assert CumulativeHistogram.of(bins, 30).byte_shares()[0].middle == pytest.approx(pct(10, 30))
    assert CumulativeHistogram.of(bins, 21).byte_shares()[0].middle == pytest.approx(pct(5.5, 21))


def test_reported_bytes_have_no_band_however_large() -> None:
    large = 2**60 + 1
    result = CumulativeHistogram.of([Bin(2**59, 2**60 + 1, 3, 3 * large), Bin(2**60 + 1, None, 7, 7 * large + 7)])
    share = result.bytes_at_most(2**60 + 1)
    assert share.low == share.middle == share.high == pytest.approx(30)


def test_nothing_has_no_shares() -> None:
    result = CumulativeHistogram.of([])
    assert (result.total, result.total_bytes, result.percentile(50), result.files_at_most(5)) == (
        0,
        0,
        None,
        (None, None),
    )
    empty = CumulativeHistogram.of([Bin(None, 0, 3, 0)])
    assert empty.byte_shares()[0].low is None
    assert empty.percentile(50) == 0
