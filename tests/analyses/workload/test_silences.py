"""Runs of samples against a count one by one, however the window is cut."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.workload.arrivals import Runs, run_sample

BUSY, IDLE, MISSING = range(3)

columns = st.lists(
    st.lists(st.sampled_from([BUSY, IDLE, IDLE, MISSING]), min_size=1, max_size=30), min_size=1, max_size=4
)


def one_by_one(
    states: list[list[int]], gaps: set[int], ticks: list[list[int]]
) -> tuple[list[Counter[int]], Counter[int], Counter[int]]:
    """The definition: maximal runs; a gap or a missing sample ends one; what touches a gap or an end is apart."""
    records: list[Counter[int]] = []
    at_ends: Counter[int] = Counter()
    at_gaps: Counter[int] = Counter()
    for column, long in zip(states, ticks, strict=True):
        mine: Counter[int] = Counter()
        start = None
        for place, state in enumerate([*column, BUSY]):
            ends = state != IDLE or place in gaps
            if start is not None and ends:
                beside = {column[edge] for edge in (start - 1, place) if 0 <= edge < len(column)}
                gap = MISSING in beside or start in gaps or place in gaps or set(long[start:place]) != {1}
                kind = at_ends if start == 0 or place == len(column) else at_gaps if gap else mine
                kind[sum(long[start:place])] += 1
                start = None
            if state == IDLE and start is None and place < len(column):
                start = place
        records.append(mine)
    return records, at_ends, at_gaps


def runs(states: list[list[int]], gaps: set[int], cuts: list[int], ticks: list[list[int]]) -> Runs:
    matrix = np.array(states).T
    follows = np.array([place not in gaps for place in range(len(matrix))])
    follows[0] = False
    result = Runs(len(states))
    for part in np.split(np.arange(len(matrix)), cuts):
        result.add(matrix[part] == IDLE, matrix[part] == MISSING, follows[part], np.array(ticks).T[part])
    result.finish()
    return result


@given(
    columns, st.sets(st.integers(1, 29)), st.lists(st.integers(0, 30), max_size=3), st.randoms(use_true_random=False)
)
@settings(derandomize=True, max_examples=400)
def test_runs_are_those_of_a_count_one_by_one(
    states: list[list[int]], gaps: set[int], cuts: list[int], random: Random
) -> None:
    rows = min(len(column) for column in states)
    states = [column[:rows] for column in states]
    gaps = {gap for gap in gaps if gap < rows}
    ticks = [random.choices([1, 2, 0], [12, 1, 1], k=rows) for _ in states]
    expected, at_ends, at_gaps = one_by_one(states, gaps, ticks)
    result = runs(states, gaps, sorted(cut for cut in cuts if cut <= rows), ticks)
    assert result.lengths == sum(expected, Counter())
    assert result.at_ends == at_ends
    assert result.at_gaps == at_gaps


@given(
    columns, st.sets(st.integers(1, 29)), st.lists(st.integers(0, 30), max_size=6), st.randoms(use_true_random=False)
)
@settings(derandomize=True, max_examples=400)
def test_runs_of_parts_are_taken_together_in_any_grouping(
    states: list[list[int]], gaps: set[int], cuts: list[int], random: Random
) -> None:
    rows = min(len(column) for column in states)
    matrix = np.array([column[:rows] for column in states]).T
    follows = np.array([place not in gaps for place in range(rows)])
    borders = sorted({cut for cut in cuts if 0 < cut < rows})
    parts = [
        (Runs.of(matrix[part] == IDLE, matrix[part] == MISSING, follows[part]), bool(follows[part[0]]))
        for part in np.split(np.arange(rows), borders)
    ]
    while len(parts) > 1:
        place = random.randrange(len(parts) - 1)
        parts[place][0].take(*parts.pop(place + 1))
    ((result, _),) = parts
    result.finish()
    expected, at_ends, at_gaps = one_by_one(
        [column[:rows] for column in states], {gap for gap in gaps if gap < rows}, [[1] * rows for _ in states]
    )
    assert (result.lengths, result.at_ends, result.at_gaps) == (sum(expected, Counter()), at_ends, at_gaps)


def test_a_zero_sample_after_a_gap_is_not_one_tick_of_idle() -> None:
    """Busy, missing, nothing in a sample that spans both ticks, busy: at least two ticks, and nobody knows how many."""
    result = runs([[BUSY, MISSING, IDLE, BUSY]], set(), [], [[1, 1, 2, 1]])
    assert result.lengths == Counter()
    assert result.at_gaps == Counter({2: 1})


def test_a_run_between_two_requests_beside_a_gap_elsewhere_is_whole() -> None:
    result = runs([[BUSY, IDLE, IDLE, BUSY, MISSING, IDLE, BUSY]], set(), [], [[1] * 7])
    assert result.lengths == Counter({2: 1})
    assert result.at_gaps == Counter({1: 1})


def test_lengths_become_seconds() -> None:
    sample = run_sample(Counter({1: 3, 2: 1, 5: 1}), 2.0)
    assert sample.size == 5
    assert np.exp(sample.mean_log).round(6).tolist() == [2.0, 4.0, 10.0]
