"""Eqs. 5–11 of paper P against brute force: bounds hold the truth, are reached, and rise with the threshold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.errors import UsageError
from iolens.models.dom import (
    METHODS,
    AnswerRange,
    Bin,
    Method,
    SizeBins,
    dom_band,
    inode_band,
    knee,
    resampled_totals,
    thresholds_of,
)

C = 1e9
CAPACITY = AnswerRange(C, C, C)
EDGES = {
    "powers of two": [0, *(2**power for power in range(22))],
    "coarse": [0, 1000, 4096, 100_000, 2**21],
    "empty files among the others": [4096, 65536, 2**21],
}

sizes = st.lists(st.integers(0, 2**21) | st.sampled_from([0, 1, 4095, 4096, 4097, 65536]), min_size=1, max_size=12)
edges = st.sampled_from(sorted(EDGES))
thresholds = st.integers(0, 2**22)


def binned(files: list[int], edges_: list[int], *, with_bytes: bool = False) -> SizeBins:
    """The histogram of a tree of files."""
    bins = []
    for above, up_to in zip([None, *edges_], edges_, strict=False):
        mine = [size for size in files if (-1 if above is None else above) < size <= up_to]
        bins.append(Bin(above, up_to, len(mine), sum(mine) if with_bytes else None))
    return SizeBins.of(bins)


def dom_truth(files: list[int], s0: int) -> float:
    """What the MDTs of a full system of capacity C hold, when it is filled with copies of these files."""
    return C * sum(min(size, s0) for size in files) / sum(files)


def has_published_band(bins: SizeBins) -> bool:
    """Whether the published way divides by something: it needs a file that is larger than nothing for certain."""
    return bool((bins.count * bins.low).sum())


def assert_holds(band: AnswerRange, truth: float) -> None:
    assert band.low <= truth * (1 + 1e-9) + 1e-6
    assert band.high >= truth * (1 - 1e-9) - 1e-6


@settings(max_examples=300)
@given(sizes.filter(any), edges, thresholds, st.booleans())
def test_the_bands_hold_the_truth_for_any_files_of_the_bins(
    files: list[int], name: str, s0: int, with_bytes: bool
) -> None:
    bins = binned(files, EDGES[name], with_bytes=with_bytes)
    for method in METHODS:
        if method == "tight" or has_published_band(bins):
            assert_holds(dom_band(method, bins, CAPACITY, s0), dom_truth(files, s0))


@settings(max_examples=200)
@given(sizes.filter(any), edges, thresholds, thresholds, st.booleans())
def test_more_of_every_file_never_takes_less_space(
    files: list[int], name: str, value: int, other: int, with_bytes: bool
) -> None:
    bins = binned(files, EDGES[name], with_bytes=with_bytes)
    smaller, larger = sorted((value, other))
    for method in METHODS:
        if method == "paper" and not has_published_band(bins):
            continue
        below, above = (dom_band(method, bins, CAPACITY, s0) for s0 in (smaller, larger))
        for a, b in zip(below, above, strict=True):
            assert a <= b * (1 + 1e-9) + 1e-6


@settings(max_examples=150)
@given(sizes.filter(any), edges, thresholds)
def test_the_tight_band_lies_in_the_published_one_around_the_same_average(files: list[int], name: str, s0: int) -> None:
    bins = binned(files, EDGES[name])
    if not bins.mass.low:
        return
    tight, paper = (dom_band(method, bins, CAPACITY, s0) for method in METHODS)
    assert tight.avg == pytest.approx(paper.avg, rel=1e-9, abs=1e-6)
    ordered = (paper.low, tight.low, tight.avg, tight.high, paper.high)
    assert all(a <= b * (1 + 1e-9) + 1e-6 for a, b in itertools.pairwise(ordered))


@settings(max_examples=120)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=3).filter(any), st.integers(0, 10))
def test_the_tight_band_is_reached_by_some_files_of_the_bins(files: list[int], s0: int) -> None:
    """Brute force over every tree with the same histogram."""
    small = [0, 1, 2, 4, 8]
    bins = binned(files, small)
    spaces = [
        range(low + 1, high + 1) if high else range(1)
        for size in files
        for low, high in [next((a, b) for a, b in zip([-1, *small], small, strict=False) if a < size <= b)]
    ]
    every = [dom_truth(list(tree), s0) for tree in itertools.product(*spaces) if any(tree)]
    band = dom_band("tight", bins, CAPACITY, s0)
    assert band.low == pytest.approx(min(every), rel=1e-9, abs=1e-6)
    assert band.high == pytest.approx(max(every), rel=1e-9, abs=1e-6)


@settings(max_examples=200)
@given(sizes.filter(any), st.lists(st.integers(0, 2**21), max_size=8), edges, st.booleans())
def test_inodes_of_all_types_are_within_the_tight_band(
    files: list[int], directories: list[int], name: str, with_bytes: bool
) -> None:
    bins = binned(files, EDGES[name], with_bytes=with_bytes)
    if not bins.mass.low:
        return
    others = {"dir": binned(directories, EDGES[name], with_bytes=with_bytes)}
    needed = 4096 * len(files) + sum(max(size, 4096) for size in directories)
    assert_holds(inode_band("tight", bins, others, CAPACITY), C / sum(files) * needed)


def test_bytes_known_at_the_edge_of_a_bin_leave_no_doubt() -> None:
    files = [10, 3000, 4096, 5000, 90_000]
    band = dom_band("tight", binned(files, EDGES["powers of two"], with_bytes=True), CAPACITY, 4096)
    assert band.low == pytest.approx(band.high)
    assert band.avg == pytest.approx(dom_truth(files, 4096))
    inside = dom_band("tight", binned(files, EDGES["powers of two"], with_bytes=True), CAPACITY, 3500)
    assert inside.low < inside.avg < inside.high


def test_a_threshold_above_every_file_is_all_data() -> None:
    bins = binned([5, 4096, 1_000_000], EDGES["powers of two"])
    assert dom_band("tight", bins, CAPACITY, 2**40) == pytest.approx((C, C, C))
    paper = dom_band("paper", bins, CAPACITY, 2**40)
    assert paper.avg == pytest.approx(C)
    assert paper.low == pytest.approx(C / 2, rel=0.01)  # the published ends are half and twice of it
    assert paper.high == pytest.approx(C * 2, rel=0.01)


def test_a_range_of_capacities_widens_the_band() -> None:
    bins = binned([5, 4096, 1_000_000], EDGES["powers of two"])
    item, several = (dom_band("tight", bins, capacity, 4096) for capacity in (CAPACITY, AnswerRange(C / 2, C, 2 * C)))
    assert (several.low, several.avg, several.high) == pytest.approx((item.low / 2, item.avg, 2 * item.high))


def test_files_without_a_byte_have_no_distribution_of_bytes() -> None:
    empty = binned([0, 0], EDGES["powers of two"])
    for method in METHODS:
        assert all(math.isnan(end) for end in dom_band(method, empty, CAPACITY, 4096))
    assert all(math.isnan(end) for end in inode_band("tight", empty, {}, CAPACITY))


def test_the_published_way_loses_empty_files_and_types_in_bins_without_files() -> None:
    files = SizeBins.of([Bin(None, 0, 3), Bin(4096, 8192, 10)])
    others = {"dir": SizeBins.of([Bin(4096, 8192, 5), Bin(8192, 16384, 7)]), "fifo": SizeBins.of([Bin(None, 0, 2)])}
    middle = (4097 + 8192) / 2
    k = C / (10 * middle)
    paper, ours = (inode_band(method, files, others, CAPACITY) for method in ("paper", "tight"))
    assert paper.avg == pytest.approx(k * (10 * 4096 + 5 * middle))
    assert ours.avg == pytest.approx(k * (13 * 4096 + 5 * middle + 7 * (8193 + 16384) / 2 + 2 * 4096))


def test_the_same_bin_of_several_owners_adds_up_and_order_is_of_no_matter() -> None:
    whole = SizeBins.of([Bin(0, 1, 3, 3), Bin(1, 2, 4, 8)])
    parts = SizeBins.of([Bin(1, 2, 1, 2), Bin(0, 1, 3, 3), Bin(1, 2, 3, 6), Bin(2, 4, 0)])
    for column in ("low", "high", "count", "bytes"):
        assert getattr(whole, column).tolist() == getattr(parts, column).tolist()


def test_bytes_that_only_one_owner_knows_are_not_known() -> None:
    bins = SizeBins.of([Bin(1, 2, 1, 2), Bin(1, 2, 3)])
    assert not bins.has_bytes.any()
    assert bins.average.tolist() == [2.0]


def test_a_bin_without_a_lower_end_begins_above_the_one_below() -> None:
    bins = SizeBins.of([Bin(None, 4096, 1), Bin(None, 65536, 1), Bin(None, 0, 1)])
    assert bins.low.tolist() == [0, 1, 4097]


def test_the_open_last_bin_needs_its_bytes_or_the_largest_file() -> None:
    with pytest.raises(UsageError, match=r"no upper end: 458 inodes .*--largest-file"):
        SizeBins.of([Bin(0, 1, 1), Bin(2**40, None, 458)])
    assert SizeBins.of([Bin(2**40, None, 458)], 2**45).high.tolist() == [2**45]
    assert SizeBins.of([Bin(9, None, 3, 100)]).high.tolist() == [80]  # two of 10 leave 80 for the third


@pytest.mark.parametrize("wrong", [Bin(4, 8, 2, 9), Bin(4, 8, 2, 17), Bin(None, 0, 2, 1)])
def test_bytes_that_the_bin_cannot_hold_are_refused(wrong: Bin) -> None:
    with pytest.raises(UsageError, match="cannot have"):
        SizeBins.of([wrong])


def test_counts_below_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="less than nothing"):
        SizeBins.of([Bin(0, 1, -1)])


def test_huge_counts_and_sizes_stay_finite() -> None:
    bins = SizeBins.of([Bin(2**58, 2**59, 2**50), Bin(0, 1, 2**62)])
    for method in METHODS:
        assert all(np.isfinite(dom_band(method, bins, CAPACITY, 2**20)))


def test_resampling_files_shows_the_weight_of_a_few_huge_ones() -> None:
    many = SizeBins.of([Bin(512, 1024, 10**6), Bin(2**20, 2**21, 10**5)])
    few = SizeBins.of([Bin(512, 1024, 10**6), Bin(2**36, 2**37, 2)])
    spread = [
        float(np.std(drawn) / np.mean(drawn))
        for drawn in (resampled_totals(bins, {}, np.full(500, C), 65536) for bins in (many, few))
    ]
    assert spread[0] < 0.01
    assert spread[1] > 0.2
    again = resampled_totals(few, {}, np.full(500, C), 65536)
    assert again.tolist() == resampled_totals(few, {}, np.full(500, C), 65536).tolist()


def test_thresholds_go_up_to_the_largest_file() -> None:
    assert thresholds_of(SizeBins.of([Bin(0, 1, 1), Bin(30_000, 40_000, 1)])) == [4096, 8192, 16384, 32768, 65536]


def test_the_knee_is_where_the_benefit_is_furthest_ahead() -> None:
    assert knee(np.array([0.0, 80.0, 95.0, 99.0, 100.0]), np.array([0.0, 1.0, 5.0, 50.0, 100.0])) == 2
    assert knee(np.array([5.0, 5.0, 5.0]), np.array([1.0, 2.0, 3.0])) is None
    assert knee(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None


@pytest.mark.parametrize("method", METHODS)
def test_a_share_of_files_that_surely_fit(method: Method) -> None:
    bins = binned([1, 2, 3, 4, 5000], EDGES["powers of two"])
    assert bins.at_most(4) == 0.8
    assert bins.at_most(3) == 0.4  # those of the bin up to 4 may be 4
    assert dom_band(method, bins, CAPACITY, 0) == (0, 0, 0)
