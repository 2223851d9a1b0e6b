"""Runs down columns against a count one by one, however the rows are cut."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.imbalance.spreads import Stretches, runs_of

matrices = st.integers(1, 4).flatmap(
    lambda columns: st.lists(st.lists(st.booleans(), min_size=columns, max_size=columns), min_size=1, max_size=25)
)


def runs_one_by_one(column: list[bool], follows: list[bool]) -> list[tuple[int, int]]:
    """First and last row of every maximal run."""
    pairs: list[tuple[int, int]] = []
    for row, on in enumerate(column):
        if on and pairs and pairs[-1][1] == row - 1 and follows[row]:
            pairs[-1] = pairs[-1][0], row
        elif on:
            pairs.append((row, row))
    return pairs


@given(matrices, st.data())
def test_every_run_is_found(rows: list[list[bool]], data: st.DataObject) -> None:
    follows = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    column, first, last = runs_of(np.array(rows).T, np.array(follows))
    expected = [(number, *run) for number, item in enumerate(zip(*rows, strict=True))
                for run in runs_one_by_one(list(item), follows)]  # fmt: skip
    assert list(zip(column.tolist(), first.tolist(), last.tolist(), strict=True)) == expected


@given(matrices, st.lists(st.integers(0, 25), max_size=3), st.booleans(), st.data())
def test_the_longest_run_of_every_column_survives_any_cut(
    rows: list[list[bool]], cuts: list[int], by_column: bool, data: st.DataObject
) -> None:
    item = st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))
    follows = data.draw(
        st.lists(item, min_size=len(rows[0]), max_size=len(rows[0])) if by_column else item.map(lambda x: [x])
    )
    numbers = np.cumsum(np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))))
    after = np.array(follows).T if by_column else np.array(follows[0])
    result = Stretches(len(rows[0]))
    for part in np.split(np.arange(len(rows)), sorted(cut for cut in cuts if cut <= len(rows))):
        result.add(np.array(rows)[part], numbers[part], after[part])
    each = follows if by_column else follows * len(rows[0])
    assert_counted_one_by_one(result, rows, numbers, each)


@given(
    st.integers(1, 25), st.integers(1, 3), st.floats(0.3, 1.0), st.floats(0.5, 1.0), st.lists(st.integers(1, 24)),
    st.integers(0, 1 << 30),
)  # fmt: skip
@settings(max_examples=300)
def test_parts_are_taken_together_in_any_grouping(
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
    assert_counted_one_by_one(parts[0][0], true.tolist(), numbers, follows.T.tolist())


def assert_counted_one_by_one(
    result: Stretches, rows: list[list[bool]], numbers: np.ndarray, follows: list[list[bool]]
) -> None:
    for column, on in enumerate(zip(*rows, strict=True)):
        runs = runs_one_by_one(list(on), follows[column])
        places = [row for row, is_on in enumerate(on) if is_on]
        best = max(runs, key=lambda run: (run[1] - run[0], -run[0]), default=None)
        assert result.rows[column] == len(places)
        assert result.first[column] == (numbers[places[0]] if places else -1)
        assert result.last[column] == (numbers[places[-1]] if places else -1)
        assert result.longest[column] == (best[1] - best[0] + 1 if best else 0)
        assert result.longest_first[column] == (numbers[best[0]] if best else -1)
        assert result.longest_last[column] == (numbers[best[1]] if best else -1)
        assert result.open[column] == (runs[-1][1] - runs[-1][0] + 1 if on[-1] else 0)
