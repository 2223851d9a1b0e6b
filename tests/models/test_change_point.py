"""One lasting change of a level: where it is, its levels, and that chance does not make one."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.models.drift import change_point, relative_clearness


def test_a_step_is_where_it_is_made() -> None:
    random = np.random.default_rng(1)
    values = np.where(np.arange(40) < 29, 100.0, 60.0) + random.normal(0, 2, 40)
    change = change_point(values)
    assert change is not None
    assert (change.place, change.before, change.after) == (29, np.median(values[:29]), np.median(values[29:]))
    assert change.p == 1 / 5000


@pytest.mark.parametrize("last", [1, 2, 3])
def test_three_values_are_a_change_and_two_are_not(last: int) -> None:
    values = np.append(np.arange(30) % 5 + 100.0, np.full(last, 50.0))
    change = change_point(values)
    assert change is not None
    assert (change.place == 30 and change.p < 0.01) == (last == 3)


def test_chance_makes_few_steps() -> None:
    """Of 200 series without any, about two in a hundred may be below p = 0.02."""
    random = np.random.default_rng(2)
    changes = [change_point(random.normal(size=20)) for _ in range(200)]
    assert sum(item is not None and item.p < 0.02 for item in changes) <= 10


@pytest.mark.parametrize("values", [[], [1.0] * 5, [3.0] * 20, [0.1 + 0.2] * 9 + [0.3] * 9])
def test_too_few_or_equal_values_have_none(values: list[float]) -> None:
    assert change_point(np.array(values)) is None


def test_a_place_near_the_step_is_nearly_as_clear() -> None:
    values = np.where(np.arange(55) < 40, 100.0, 60.0)
    clear = [relative_clearness(values, place) for place in (40, 38, 30, 2, 53)]
    assert clear[0] == 1.0
    assert clear[1] == pytest.approx(38 / 40 * np.sqrt(40 * 15 / (38 * 17)))
    assert clear[2] < 0.7
    assert clear[3:] == [0.0, 0.0]
