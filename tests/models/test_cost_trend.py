"""Change of a cost with age and fullness: laws that are known, and what cannot be said."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.models.drift import Change, cost_trend

YEARS = np.arange(12) / 12
PURGED = 40 + 10 * (np.arange(12) % 4)


def trend_of(
    costs: np.ndarray, fullness: np.ndarray, years: np.ndarray = YEARS
) -> tuple[Change | None, Change | None, str]:
    result = cost_trend(years, fullness, costs, costs * 0.98, costs * 1.02)
    return result.per_year, result.per_10_points, result.note


def test_age_and_fullness_are_separated() -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.01, 12))
    year, full, note = trend_of(1e-3 * 1.2**YEARS * 1.05 ** (PURGED / 10) * noise, PURGED.astype(float))
    assert year is not None
    assert full is not None
    assert (year.low < 20 < year.high, full.low < 5 < full.high, note) == (True, True, "")
    assert year.high - year.low < 10
    assert year.pct == pytest.approx(20, abs=4)


def test_what_moved_together_is_said() -> None:
    year, full, note = trend_of(1e-3 * 1.2**YEARS, 40 + 40 * YEARS)
    assert year is not None
    assert full is not None
    assert year.pct == pytest.approx(20)
    assert note.startswith("age and fullness moved together")


@pytest.mark.parametrize(
    ("fullness", "why"),
    [(np.full(12, np.nan), "fullness is not known"), (np.full(12, 50.0), "fullness hardly changed")],
)
def test_without_a_change_of_fullness_there_is_age_alone(fullness: np.ndarray, why: str) -> None:
    year, full, note = trend_of(1e-3 * 0.9**YEARS, fullness)
    assert year is not None
    assert year.pct == pytest.approx(-10)
    assert year.low < -10 < year.high, "months on a line have intervals of their own"
    assert (full, note) == (None, why)


def test_two_months_are_too_little() -> None:
    assert trend_of(np.ones(2), np.full(2, 50.0), YEARS[:2]) == (
        None, None, "too little data: 2 of 3 identified months",
    )  # fmt: skip
