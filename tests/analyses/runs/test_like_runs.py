"""Like runs are grouped as the definition says, whatever the order and however large the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.runs.like_runs import like_groups


def brute_force(same: list[tuple[int, ...]], read: list[int], written: list[int]) -> list[list[int]]:
    """Sorted by bytes, cut where one has more than 1.01 times the first of its part; read first, then written."""

    def cut(members: list[int], values: list[int]) -> list[list[int]]:
        parts: list[list[int]] = []
        for number in sorted(members, key=lambda member: values[member]):
            if not parts or 100 * values[number] > 101 * values[parts[-1][0]]:
                parts.append([])
            parts[-1].append(number)
        return parts

    groups: dict[tuple[int, ...], list[int]] = {}
    for number, key in enumerate(same):
        groups.setdefault(key, []).append(number)
    by_read = [part for members in groups.values() for part in cut(members, read)]
    return sorted(sorted(part) for members in by_read for part in cut(members, written))


def parts_of(numbers: np.ndarray) -> list[list[int]]:
    return sorted(sorted(np.flatnonzero(numbers == group).tolist()) for group in np.unique(numbers))


@pytest.mark.parametrize("seed", range(30))
def test_as_a_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 300))
    columns = [random.integers(0, 3, count) for _ in range(3)]
    scale = int(10 ** random.integers(0, 18))
    moved = [
        np.where(random.random(count) < 0.2, 0, (scale * random.uniform(1, 1.08, count)).astype(np.int64))
        for _ in range(2)
    ]
    numbers = like_groups(columns, moved)
    same = list(zip(*(column.tolist() for column in columns), strict=True))
    assert parts_of(numbers) == brute_force(same, moved[0].tolist(), moved[1].tolist())


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([100, 101, 102], [[0, 1], [2]]),  # 1.01 times as much is within, one byte more is not
        ([0, 1, 0], [[0, 2], [1]]),  # zero matches only zero
        ([99, 100], [[0], [1]]),
        ([2**62, 2**62 + 2**62 // 100, 2**62 + 2**62 // 100 + 1], [[0, 1], [2]]),
        ([], []),
    ],
)
def test_where_a_group_is_cut(values: list[int], groups: list[list[int]]) -> None:
    same = np.zeros(len(values), dtype=np.int64)
    assert parts_of(like_groups([same], [np.array(values, dtype=np.int64)])) == groups
