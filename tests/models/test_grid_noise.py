"""Noise of a measured grid: against simulation, and how often chance is taken for a difference."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from iolens.models.resampling import geometric_mean, grid_noise


@pytest.mark.parametrize(("cells", "repeats"), [(2, 3), (4, 5), (12, 3), (60, 5)])
def test_the_largest_difference_of_equal_cells_is_more_than_noise_in_one_grid_of_twenty(
    cells: int, repeats: int
) -> None:
    random = np.random.default_rng(cells)
    alarms, grids = 0, 2000 if cells < 20 else 600
    for values in np.exp(0.1 * random.standard_normal((grids, cells, repeats))):
        means = [geometric_mean(cell) for cell in values]
        factor = grid_noise(values.tolist()).factor
        assert factor is not None
        alarms += max(means) > factor * min(means)
    assert 0.03 <= alarms / grids <= 0.07


def test_the_limit_is_that_of_brute_force() -> None:
    """Without estimating the noise: the 95th percentile of the range of means, by simulation."""
    cells, repeats, noise = 6, 40, 0.2
    random = np.random.default_rng(1)
    means = noise * random.standard_normal((200_000, cells)) / repeats**0.5
    simulated = float(np.quantile(means.max(axis=1) - means.min(axis=1), 0.95))
    # Repeats whose standard deviation is exactly that of the simulation.
    cell = np.linspace(-1, 1, repeats)
    cell *= noise / cell.std(ddof=1)
    factor = grid_noise([np.exp(cell).tolist()] * cells).factor
    assert factor is not None
    assert log(factor) == pytest.approx(simulated, rel=0.02)


def test_noise_is_the_spread_of_a_single_run_whatever_the_cells_differ_by() -> None:
    random = np.random.default_rng(2)
    levels = np.exp(random.uniform(0, 5, size=(50, 1)))
    noise = grid_noise((levels * np.exp(0.1 * random.standard_normal((50, 20)))).tolist())
    assert noise.noise_pct == pytest.approx(100 * (exp(0.1) - 1), rel=0.05)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e12])
def test_units_do_not_matter(scale: float) -> None:
    cells = [[1.0, 1.1, 0.9], [2.0, 2.2, 1.9]]
    plain, scaled = grid_noise(cells), grid_noise([[scale * value for value in cell] for cell in cells])
    assert scaled == pytest.approx(plain)


@pytest.mark.parametrize("cells", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[1.0]]])
def test_without_repeats_or_with_one_cell_nothing_is_known(cells: list[list[float]]) -> None:
    assert grid_noise(cells) == (None, None)


def test_cells_of_one_run_borrow_the_noise_of_others_and_need_larger_differences() -> None:
    repeated = [[1.0, 1.1], [1.05, 0.95]]
    whole, ragged = grid_noise(repeated), grid_noise([*repeated, [1.0]])
    assert whole.noise_pct == ragged.noise_pct
    assert whole.factor is not None
    assert ragged.factor is not None
    assert ragged.factor > whole.factor


def test_repeats_that_are_all_alike_have_no_noise() -> None:
    assert grid_noise([[2.0, 2.0], [3.0, 3.0]]) == pytest.approx((1.0, 0.0))


def test_the_geometric_mean() -> None:
    assert geometric_mean([1.0, 100.0]) == pytest.approx(10.0)
