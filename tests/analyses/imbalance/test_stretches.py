"""Runs of each column against a count one by one, however the rows are divided and put together."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.imbalance.stretches import Stretches


def one_by_one(true: np.ndarray, numbers: np.ndarray, follows: np.ndarray) -> tuple[int, ...]:
    """Of one column: true rows, first and last of them; length, first and last row of the longest run; the open one."""
    runs: list[list[int]] = []
    for place, (is_true, goes_on) in enumerate(zip(true, follows, strict=True)):
        if is_true and runs and goes_on and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        elif is_true:
            runs.append([place])
    if not runs:
        return 0, -1, -1, 0, -1, -1, 0
    longest = max(runs, key=len)
    still_open = len(runs[-1]) if true[-1] else 0
    ends = numbers[runs[0][0]], numbers[runs[-1][-1]], len(longest), numbers[longest[0]], numbers[longest[-1]]
    return int(true.sum()), *map(int, ends), still_open


@given(
    st.integers(1, 25), st.integers(1, 3), st.floats(0.3, 1.0), st.floats(0.5, 1.0), st.lists(st.integers(1, 24)),
    st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_stretches_are_those_of_a_count_one_by_one(
    rows: int, columns: int, busy: float, joined: float, cuts: list[int], seed: int
) -> None:
    generator, random = np.random.default_rng(seed), Random(seed)
    true, follows = generator.random((rows, columns)) < busy, generator.random((rows, columns)) < joined
    numbers = np.sort(generator.choice(3 * rows, rows, replace=False))
    parts = [
        (Stretches.of(true[part], numbers[part], follows[part]), follows[part[0]])
        for part in np.split(np.arange(rows), sorted({cut for cut in cuts if cut < rows}))
    ]
    while len(parts) > 1:
        place = random.randrange(len(parts) - 1)
        parts[place][0].take(*parts.pop(place + 1))
    ((result, _),) = parts
    for column in range(columns):
        said = (
            result.rows, result.first, result.last, result.longest, result.longest_first, result.longest_last,
            result.open,
        )  # fmt: skip
        expected = one_by_one(true[:, column], numbers, follows[:, column])
        assert tuple(int(values[column]) for values in said) == expected
