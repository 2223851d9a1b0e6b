"""Saturation plateaus (DEFINITIONS, U10): ten minutes, spread at most a quarter of a median of 30 or more."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.intervals.tick_totals import PlateauFinder

TICK_US = 5_000_000


def ticks(count: int, first: int = 0) -> np.ndarray:
    return (np.arange(count, dtype=np.int64) + first + 1) * TICK_US


def detected(fsu: np.ndarray, time_us: np.ndarray | None = None, pieces: int = 1) -> list[tuple[float, float, float]]:
    finder = PlateauFinder(TICK_US)
    time_us = ticks(len(fsu)) if time_us is None else time_us
    for part in np.array_split(np.arange(len(fsu)), pieces):
        finder.feed(time_us[part], fsu[part])
    return [(item.start_us / 1e6, item.end_us / 1e6, item.median) for item in finder.finish()]


def noisy(level: float, count: int, seed: int = 0, width: float = 0.05) -> np.ndarray:
    return level * (1 + width * np.random.default_rng(seed).normal(size=count))


def test_a_narrow_hour_at_seventy_is_one_plateau() -> None:
    """Fig. 8: fully engaged though the value is 70, not 100."""
    fsu = np.concatenate([noisy(5, 500, width=0.5), noisy(70, 720), noisy(5, 500, width=0.5)])
    ((start, end, median),) = detected(fsu)
    assert start == pytest.approx(500 * 5, abs=300)
    assert end == pytest.approx(1220 * 5, abs=300)
    assert median == pytest.approx(70, rel=0.02)


@pytest.mark.parametrize("fsu", [noisy(25, 500), noisy(60, 110), noisy(60, 500, width=0.6), np.zeros(500)])
def test_low_short_wide_and_idle_stretches_are_not_plateaus(fsu: np.ndarray) -> None:
    assert detected(fsu) == []


def test_exactly_ten_minutes_suffice() -> None:
    fsu = np.concatenate([np.zeros(200), np.full(120, 50.0), np.zeros(200)])
    ((start, end, _),) = detected(fsu)
    assert (start, end) == (pytest.approx(1000, abs=300), pytest.approx(1600, abs=300))


def test_two_levels_are_two_plateaus() -> None:
    levels = [median for _, _, median in detected(np.concatenate([noisy(40, 400), noisy(120, 400)]))]
    assert levels == pytest.approx([40, 120], rel=0.05)


def test_a_gap_breaks_a_plateau() -> None:
    time_us = np.concatenate([ticks(200), ticks(200, first=5000)])
    assert len(detected(noisy(50, 400), time_us)) == 2


@pytest.mark.parametrize("pieces", [2, 3, 17, 200])
def test_the_pieces_it_is_fed_in_do_not_matter(pieces: int) -> None:
    parts = [noisy(5, 300, 1), noisy(70, 700, 2), noisy(10, 100, 3), noisy(45, 400, 4), noisy(90, 300, 5)]
    fsu = np.concatenate(parts)
    assert detected(fsu, pieces=pieces) == detected(fsu)


@pytest.mark.parametrize("seed", range(8))
def test_every_stretch_meets_the_definition_and_no_qualifying_window_is_missed(seed: int) -> None:
    random = np.random.default_rng(seed)
    fsu = np.concatenate(
        [
            noisy(random.uniform(10, 100), int(random.integers(50, 400)), seed, random.choice([0.05, 0.4]))
            for _ in range(6)
        ]
    )
    time_us = ticks(len(fsu))
    stretches = detected(fsu)
    covered = np.zeros(len(fsu), bool)
    for start, end, median in stretches:
        inside = (time_us / 1e6 > start) & (time_us / 1e6 <= end)
        covered |= inside
        low, middle, high = np.percentile(fsu[inside], [25, 50, 75])
        assert end - start >= 600
        assert middle == pytest.approx(median)
        assert median >= 30
        assert (high - low) / middle <= 0.25
    for first in range(len(fsu) - 119):
        low, middle, high = np.percentile(fsu[first : first + 120], [25, 50, 75])
        if middle >= 30 and (high - low) <= 0.25 * middle:
            assert covered[first : first + 120].any()


def test_idle_ticks_at_the_ends_are_not_part_of_it() -> None:
    """Twenty minutes in all, of which the first and last 150 s are idle: the quartiles alone would not notice."""
    fsu = np.concatenate([np.full(30, 1.0), np.full(180, 70.0), np.full(30, 1.0)])
    assert detected(fsu) == [(150.0, 1050.0, 70.0)]


def test_a_minute_away_from_its_level_ends_it() -> None:
    fsu = np.concatenate(
        [np.full(180, 70.0), np.full(15, 1.0), np.full(30, 70.0), np.full(15, 1.0), np.full(150, 70.0)]
    )
    assert detected(fsu) == [(0.0, 900.0, 70.0), (1200.0, 1950.0, 70.0)]
