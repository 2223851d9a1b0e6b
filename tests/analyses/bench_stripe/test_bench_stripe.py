"""The recommendation of a stripe study: a known optimum is the answer, ties go to few stripes, chance is no optimum."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from iolens.analyses.bench_stripe import StripeChoice, stripe_recommendation
from iolens.errors import UsageError
from iolens.units import MIB
from iolens.views.bench_stripe import words
from tests.analyses.study_rows import grid

COUNTS, SIZES, BLOCKS = (1, 2, 4, 8, 16), (MIB, 4 * MIB), (MIB, 4 * MIB, 16 * MIB)
CELLS = list(product(COUNTS, SIZES, BLOCKS))
Cell = tuple[int, int, int]


def choices(rows: list[dict[str, object]]) -> dict[str, StripeChoice]:
    return {choice.aim: choice for choice in stripe_recommendation(rows).choices}


def noisy(
    levels: dict[Cell, float], seed: int, noise: float = 0.05, repeats: int = 5
) -> dict[tuple[int | None, int | None, int], list[float]]:
    random = np.random.default_rng(seed)
    return {
        cell: (1e8 * level * np.exp(noise * random.standard_normal(repeats))).tolist() for cell, level in levels.items()
    }


def cell_of(choice: StripeChoice) -> tuple[int | None, int | None, int | None]:
    cell = choice.recommended
    return cell.stripe_count, cell.stripe_bytes, cell.block_bytes


def test_a_known_optimum_is_recommended() -> None:
    """Three times as fast in one cell of thirty, at 5 % noise: none of 200 random grids misses it."""
    random = np.random.default_rng(1)
    for seed in range(200):
        best = CELLS[random.integers(len(CELLS))]
        chosen = choices(grid(noisy({cell: 3.0 if cell == best else 1.0 for cell in CELLS}, seed)))["write"]
        assert cell_of(chosen) == best
        assert (chosen.flat, chosen.as_good) == (False, 1)


def test_of_equal_cells_the_one_with_the_fewest_stripes_is_recommended() -> None:
    """From four stripes on nothing is gained; fewer cost half."""
    wrong = 0
    for seed in range(100):
        levels = {cell: 1.0 if cell[0] < 4 else 2.0 for cell in CELLS}
        chosen = choices(grid(noisy(levels, seed)))["write"]
        assert chosen.flat is False
        assert cell_of(chosen)[0] in (4, 8, 16)
        wrong += cell_of(chosen)[0] != 4
    assert wrong <= 5


def test_a_flat_grid_is_said_to_be_flat() -> None:
    """At most about one of twenty grids without any difference is taken for one with an optimum."""
    alarms = [choices(grid(noisy(dict.fromkeys(CELLS, 1.0), seed)))["write"].flat is False for seed in range(400)]
    assert sum(alarms) / len(alarms) <= 0.07


def test_without_repeats_nothing_is_known_of_the_noise() -> None:
    chosen = choices(grid({(1, MIB, MIB): [1e8], (4, MIB, MIB): [2e8], (16, MIB, MIB): [1.5e8]}))["write"]
    assert cell_of(chosen) == (4, MIB, MIB)
    assert (chosen.flat, chosen.noise_pct, chosen.least_difference_pct) == (None, None, None)
    assert "without repeats nothing is known of the noise" in words(chosen)


def test_writes_reads_and_both_have_their_own_answer() -> None:
    few, many = (1, MIB, MIB), (16, MIB, MIB)
    rows = [
        *grid({few: [100e6, 101e6, 99e6], many: [400e6, 401e6, 399e6]}, "write"),
        *grid({few: [900e6, 901e6, 899e6], many: [300e6, 301e6, 299e6]}, "read"),
    ]
    result = choices(rows)
    assert cell_of(result["write"])[0] == 16
    assert cell_of(result["read"])[0] == 1
    assert cell_of(result["both"])[0] == 16  # 2 ÷ (1/400 + 1/300) = 343 against 2 ÷ (1/100 + 1/900) = 180 MB/s
    assert result["both"].recommended.bytes_per_s == pytest.approx(2 / (1 / 400e6 + 1 / 300e6), rel=1e-3)


def test_evidence_is_the_best_and_the_worst_cell_and_how_many_are_as_good() -> None:
    cells = {(1, MIB, MIB): [100.0, 102.0, 98.0], (4, MIB, MIB): [200.0, 204.0, 196.0], (8, MIB, MIB): [202.0, 206.0, 198.0]}  # fmt: skip  # noqa: E501
    chosen = choices(grid(cells))["write"]
    assert (chosen.cells, chosen.as_good, chosen.flat) == (3, 2, False)
    assert (chosen.recommended.stripe_count, chosen.best.stripe_count, chosen.worst.stripe_count) == (4, 8, 1)
    assert chosen.noise_pct == pytest.approx(2.0, abs=0.1)


def test_blocks_alone_are_a_grid_too() -> None:
    rows = grid({(None, None, MIB): [1e8, 1.01e8], (None, None, 4 * MIB): [3e8, 3.01e8]})
    assert cell_of(choices(rows)["write"]) == (None, None, 4 * MIB)


def test_places_have_their_own_answers() -> None:
    rows = grid({(1, MIB, MIB): [1e8, 1.1e8], (4, MIB, MIB): [3e8, 3.1e8]})
    result = stripe_recommendation([*rows, *({**row, "place": "pond"} for row in rows)])
    assert [choice.place for choice in result.choices] == ["lake", "pond"]


def test_one_cell_is_no_grid() -> None:
    with pytest.raises(UsageError, match="needs at least two cells"):
        stripe_recommendation(grid({(1, MIB, MIB): [1e8, 1.1e8]}))
