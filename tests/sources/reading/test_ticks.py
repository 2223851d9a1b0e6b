"""The tick of a saved sample (DEFINITIONS, "Time")."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from iolens.sources.reading.ticks import Grid, Ticker, find_interval_us, grid_of, round_to

S = 1_000_000


def test_the_interval_is_the_median_spacing_in_whole_seconds() -> None:
    jitter = [0, 5_010_000, 9_990_000, 15_000_000, 60_000_000]
    assert find_interval_us([jitter]) == 5 * S


def test_below_a_second_the_interval_is_not_rounded() -> None:
    assert find_interval_us([[0, 250_000, 500_000]]) == 250_000


def test_a_single_sample_is_rounded_to_the_second() -> None:
    assert find_interval_us([[1_600_000_000_400_000]]) == S
    assert grid_of({"a": [1_600_000_000_400_000]}, None).tick(1_600_000_000_400_000) == 1_600_000_000 * S


def test_servers_sampled_at_the_same_time_do_not_shorten_the_interval() -> None:
    assert find_interval_us([[0, 5 * S, 10 * S], [20_000, 5 * S + 20_000, 10 * S + 20_000]]) == 5 * S


def test_the_interval_given_wins() -> None:
    assert grid_of({"a": [0, 5 * S]}, 60.0).interval_us == 60 * S


def test_ticks_are_multiples_of_the_interval() -> None:
    grid = Grid(1_600_000_003 * S, 5 * S)
    assert grid.tick(1_600_000_003 * S) == 1_600_000_005 * S
    assert grid.tick(1_600_000_008 * S + 40_000) == 1_600_000_010 * S


@given(st.integers(0, 5 * S - 1), st.lists(st.integers(-2_400_000, 2_400_000), min_size=2, max_size=20))
def test_jitter_around_half_a_tick_never_puts_two_samples_on_one(phase: int, jitter: list[int]) -> None:
    origin = 1_600_000_000 * S + phase
    grid = Grid(origin, 5 * S)
    ticks = [grid.tick(origin), *(grid.tick(origin + k * 5 * S + j) for k, j in enumerate(jitter, 1))]
    assert [later - earlier for earlier, later in pairwise(ticks)] == [5 * S] * len(jitter)


def test_a_second_sample_on_a_tick_keeps_its_own_time() -> None:
    ticker = Ticker(Grid(10 * S, 5 * S))
    assert [ticker.tick(time, "oss1") for time in (10 * S, 11 * S, 15 * S)] == [10 * S, 11 * S, 15 * S]


def test_another_server_may_share_the_tick() -> None:
    ticker = Ticker(Grid(10 * S, 5 * S))
    assert [ticker.tick(10 * S, "oss1"), ticker.tick(10 * S + 9, "oss2")] == [10 * S, 10 * S]


def test_a_copy_goes_on_alone() -> None:
    ticker = Ticker(Grid(0, 5 * S))
    copy = ticker.copy()
    assert ticker.tick(0, "a") == copy.tick(0, "a") == 0


def test_rounding_is_exact_and_halves_go_up() -> None:
    assert round_to(25, 10) == 30
    assert round_to(-25, 10) == -20
    assert round_to(10**20 + 4, 10) == 10**20


def test_a_pause_of_years_is_no_sampling_interval() -> None:
    """Times rounded to years would be off by months."""
    day, year = 86_400 * S, 365 * 86_400 * S
    assert find_interval_us([[0, year, 2 * year]]) == S
    assert find_interval_us([[0, year, year + 5 * S]]) == 5 * S
    assert find_interval_us([[0, day, 2 * day + 60 * S, 3 * day]]) == day
