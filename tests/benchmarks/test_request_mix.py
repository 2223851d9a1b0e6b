"""Sizes a benchmark can ask for, in whole blocks and whole per cents, whose average is the model's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.benchmarks.synthetic_fio import (
    WholePercents,
    apportioned,
    mean_bytes,
    most_bytes,
    most_requests,
    request_sizes,
)
from iolens.units import KIB, MIB
from tests.benchmarks.made_models import model


def test_a_bin_is_asked_for_by_its_upper_end() -> None:
    made = model().read
    sizes = request_sizes(made, 4 * KIB, 50)
    assert [size for size, _ in sizes] == [16 * KIB, 512 * KIB, MIB]
    assert mean_bytes(sizes) == pytest.approx(made.mean_size())


def test_sizes_are_whole_blocks_and_none_is_lost() -> None:
    odd = replace(model().read, sizes=((512, 0.1), (1000, 0.1), (5000, 0.3), (8192, 0.5)))
    assert dict(request_sizes(odd, 4096, 50)) == pytest.approx({4096: 0.5, 8192: 0.5})
    assert [size for size, _ in request_sizes(odd, 512, 50)] == [512, 4608, 8192]


def test_rare_neighbours_are_joined_until_they_are_few_enough() -> None:
    many = replace(model().read, sizes=tuple((16 * KIB * (item + 1), 1 / 256) for item in range(256)))
    sizes = request_sizes(many, 4096, 50)
    assert len(sizes) == 50
    assert sum(share for _, share in sizes) == pytest.approx(1.0)
    assert mean_bytes(sizes) == pytest.approx(many.mean_size(), rel=0.05)
    few = request_sizes(replace(many, sizes=((4096, 0.9), (8192, 0.04), (16384, 0.06))), 4096, 2)
    assert dict(few) == pytest.approx({4096: 0.9, 16384: 0.1})


def test_bytes_and_requests_have_favourites_of_their_own() -> None:
    sizes = ((4096, 0.6), (64 * KIB, 0.3), (MIB, 0.1))
    assert (most_requests(sizes), most_bytes(sizes)) == (4096, MIB)


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=64), st.lists(st.floats(1.0, 1e5), min_size=1, max_size=12))
def test_per_cents_are_whole_and_no_size_gets_much_more_than_its_share(weights: list[float], jobs: list[float]) -> None:
    sizes = tuple((4096 * (place + 1), weight / sum(weights)) for place, weight in enumerate(weights))
    percents = WholePercents(sizes)
    got = dict.fromkeys((size for size, _ in sizes), 0.0)
    for requests in jobs:
        given_ = percents.next(requests)
        assert sum(given_.values()) == 100
        assert min(given_.values()) >= 1
        for size, percent in given_.items():
            got[size] += requests * percent / 100
    total = sum(jobs)
    for size, share in sizes:  # one per cent of one job too many, over all jobs; what is missing is what others have
        assert got[size] - share * total <= max(jobs) / 100 * (1 + 1e-6)


def test_half_a_per_cent_is_one_in_every_other_job() -> None:
    percents = WholePercents(((4096, 0.995), (8192, 0.005)))
    assert [percents.next(1000).get(8192, 0) for _ in range(6)].count(1) == 3


def test_the_largest_remainders_get_the_rest() -> None:
    assert apportioned([33.4, 33.3, 33.3], 100) == [34, 33, 33]
    assert apportioned([50.0, 50.0], 100) == [50, 50]
    assert apportioned([100.0], 100) == [100]
