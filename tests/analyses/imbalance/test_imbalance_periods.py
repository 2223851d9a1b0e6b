"""Lifetimes and distances of imbalance against a count one by one, gaps included."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from iolens.analyses.imbalance.spreads import Durations, periods

BALANCED, UNBALANCED, GAP = range(3)


def one_by_one(states: list[int]) -> tuple[list[int], list[int], int]:
    """Walk along the ticks, with a stop-watch for each of the two and one eye on gaps."""
    lifetimes, distances, cut = [], [], 0
    running, since_end, open_start = 0, None, True
    started_open = False
    for state in [*states, GAP]:
        if state == UNBALANCED:
            if not running:
                started_open = open_start
                if since_end:
                    distances.append(since_end)
            running += 1
            open_start = False
            continue
        if running:
            lifetimes.append(running)
            cut += started_open or state == GAP
            since_end = 0
        running = 0
        if state == GAP:
            since_end, open_start = None, True
        else:
            open_start = False
            since_end = None if since_end is None else since_end + 1
    return lifetimes, distances, cut


@given(st.lists(st.sampled_from([BALANCED, UNBALANCED, UNBALANCED, GAP]), max_size=60))
@example([UNBALANCED, GAP, UNBALANCED])
@example([BALANCED, UNBALANCED, UNBALANCED, BALANCED, UNBALANCED, BALANCED])
def test_lifetimes_and_distances_are_those_of_a_count_one_by_one(states: list[int]) -> None:
    ticks = [place for place, state in enumerate(states) if state != GAP]
    follows = np.array([place > 0 and states[place - 1] != GAP for place in ticks], bool)
    result = periods(np.array([states[place] == UNBALANCED for place in ticks], bool), follows)
    lifetimes, distances, cut = one_by_one(states)
    assert result.lifetimes.tolist() == lifetimes
    assert result.distances.tolist() == distances
    assert result.cut == cut


def test_lifetime_is_samples_times_the_interval_and_distance_is_from_end_to_start() -> None:
    """Two ticks of 2 s unbalanced, three balanced, one unbalanced."""
    unbalanced = np.array([0, 1, 1, 0, 0, 0, 1, 0], bool)
    follows = np.array([0, 1, 1, 1, 1, 1, 1, 1], bool)
    result = periods(unbalanced, follows)
    assert Durations.of(result.lifetimes, 2.0) == Durations(2, 3.0, 3.0, 3.8, 3.98, 4.0)
    assert Durations.of(result.distances, 2.0).max_s == 6.0
    assert result.cut == 0


def test_a_gap_breaks_both() -> None:
    unbalanced = np.array([0, 1, 1, 0, 1, 0], bool)
    follows = np.array([0, 1, 0, 1, 1, 1], bool)
    result = periods(unbalanced, follows)
    assert (result.lifetimes.tolist(), result.distances.tolist(), result.cut) == ([1, 1, 1], [1], 2)


def test_without_imbalance_there_is_nothing() -> None:
    result = periods(np.zeros(5, bool), np.array([0, 1, 1, 1, 1], bool))
    assert Durations.of(result.lifetimes, 2.0) == Durations(0, None, None, None, None, None)
