"""Runs of samples against a count one by one, however the window is cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.silences import Runs, run_sample

BUSY, IDLE, MISSING = range(3)

columns = st.lists(
    st.lists(st.sampled_from([BUSY, IDLE, IDLE, MISSING]), min_size=1, max_size=30), min_size=1, max_size=4
)


def one_by_one(states: list[list[int]], gaps: set[int]) -> tuple[list[Counter[int]], Counter[int]]:
    """The definition: maximal runs; a gap or a missing sample ends one; those at the ends are apart."""
    found: list[Counter[int]] = []
    censored: Counter[int] = Counter()
    for column in states:
        mine: Counter[int] = Counter()
        start = None
        for place, state in enumerate([*column, BUSY]):
            ends = state != IDLE or place in gaps
            if start is not None and ends:
                (censored if start == 0 or place == len(column) else mine)[place - start] += 1
                start = None
            if state == IDLE and start is None and place < len(column):
                start = place
        found.append(mine)
    return found, censored


def runs(states: list[list[int]], gaps: set[int], cuts: list[int]) -> Runs:
    matrix = np.array(states).T
    follows = np.array([place not in gaps for place in range(len(matrix))])
    follows[0] = False
    found = Runs(len(states))
    for part in np.split(np.arange(len(matrix)), cuts):
        found.add(matrix[part] == IDLE, matrix[part] == MISSING, follows[part])
    found.finish()
    return found


@given(columns, st.sets(st.integers(1, 29)), st.lists(st.integers(0, 30), max_size=3))
def test_runs_are_those_of_a_count_one_by_one(states: list[list[int]], gaps: set[int], cuts: list[int]) -> None:
    rows = min(len(column) for column in states)
    states = [column[:rows] for column in states]
    gaps = {gap for gap in gaps if gap < rows}
    expected, censored = one_by_one(states, gaps)
    found = runs(states, gaps, sorted(cut for cut in cuts if cut <= rows))
    assert found.lengths == expected
    assert found.censored == censored


def test_lengths_become_seconds() -> None:
    sample = run_sample(Counter({1: 3, 2: 1, 5: 1}), 2.0)
    assert sample.size == 5
    assert np.exp(sample.mean_log).round(6).tolist() == [2.0, 4.0, 10.0]
