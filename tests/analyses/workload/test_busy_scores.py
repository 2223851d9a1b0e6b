"""Correlation and rhythm from normal scores, against series made with known ones."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.analyses.workload.fit import BusyScores, day_and_week
from iolens.arrays import Floats
from iolens.models.workload_model import Marginal, hour_of_week, local_hours, standard_normal_cdf

TICK_US = 10_000_000
MONDAY_US = 1_767_571_200_000_000  # 2026-01-05
DAYS = 14
MARGINAL = Marginal.pareto(1.5, 1e6, 1e9)


def series(correlation: float, shift: Floats, busy: float = 0.6, targets: int = 6, seed: int = 1) -> TickMatrix:
    """Fourteen days; `shift` moves the scores of every hour of the week."""
    random = np.random.default_rng(seed)
    ticks = DAYS * 8640
    ends = MONDAY_US + (np.arange(ticks, dtype=np.int64) + 1) * TICK_US
    own, common = random.standard_normal((ticks, targets)), random.standard_normal((ticks, 1))
    scores = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * common
    scores += shift[hour_of_week(local_hours(ends, "UTC"))][:, None]
    rates = MARGINAL.quantile(standard_normal_cdf(scores / np.sqrt(1 + shift.var())))
    rates[random.random(rates.shape) > busy] = 0.0
    rates[random.random(rates.shape) < 0.01] = np.nan
    duration = np.where(np.isnan(rates), np.nan, TICK_US / 1e6)
    names = tuple(f"t{number}" for number in range(targets))
    return TickMatrix(ends, TICK_US, names, duration, {"read_bytes": rates * TICK_US / 1e6})


def scored(matrix: TickMatrix, timezone: str = "UTC", parts: int = 3) -> BusyScores:
    scores = BusyScores("read", MARGINAL)
    for part in np.array_split(np.arange(matrix.end_us.size), parts):
        measures = {"read_bytes": matrix.measures["read_bytes"][part]}
        piece = TickMatrix(matrix.end_us[part], TICK_US, matrix.targets, matrix.duration_s[part], measures)
        scores.add(piece, local_hours(piece.end_us, timezone))
    return scores


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9])
def test_the_correlation_of_two_targets(correlation: float) -> None:
    result, pairs = scored(series(correlation, np.zeros(168))).correlation()
    assert result == pytest.approx(correlation, abs=0.02)
    assert pairs == pytest.approx(DAYS * 8640 * 30 * (0.6 * 0.99) ** 2, rel=0.02)


def test_what_hours_have_in_common_is_no_correlation() -> None:
    shift = np.where(np.arange(168) % 24 < 12, -0.6, 0.6)
    assert scored(series(0.2, shift)).correlation()[0] == pytest.approx(0.2, abs=0.04)


def test_one_target_has_no_correlation() -> None:
    assert scored(series(0.5, np.zeros(168), targets=1)).correlation() == (0.0, 0.0)


def test_parts_add_up() -> None:
    matrix = series(0.3, np.zeros(168))
    assert scored(matrix, parts=1).correlation()[0] == pytest.approx(scored(matrix, parts=50).correlation()[0])


def test_a_rhythm_is_found() -> None:
    """Faster by day, and on two days of the week."""
    hour, day = np.arange(168) % 24, np.arange(168) // 24
    shift = 0.3 * np.where(hour < 12, -1.0, 1.0) + 0.2 * (day == 2)
    scores = scored(series(0.3, shift))
    hours, days = day_and_week({"read": scores.speeds()}, {"read": 1.0})
    night, noon = np.mean(hours[:12]), np.mean(hours[12:])
    rates = series(0.3, shift, busy=1.0).measures["read_bytes"]
    by_half = [np.nanmean(rates.reshape(DAYS, 2, 4320, -1)[:, half]) for half in range(2)]
    assert noon / night == pytest.approx(by_half[1] / by_half[0], rel=0.05)
    assert max(range(7), key=lambda item: days[item]) == 2
    assert np.mean(hours) == pytest.approx(1.0)


def test_chance_is_no_rhythm() -> None:
    scores = scored(series(0.6, np.zeros(168)))
    for factors in (scores.speeds(), scores.presence()):
        hours, days = day_and_week({"read": factors}, {"read": 1.0})
        assert hours == pytest.approx([1.0] * 24, abs=0.02)
        assert days == pytest.approx([1.0] * 7, abs=0.02)


def test_hours_are_local() -> None:
    """What is slow from midnight UTC is slow from one o'clock in Berlin."""
    scores = scored(series(0.0, np.where(np.arange(168) % 24 < 6, -0.8, 0.2)), "Europe/Berlin")
    hours, _ = day_and_week({"read": scores.speeds()}, {"read": 1.0})
    assert [place for place, hour in enumerate(hours) if hour < 0.9] == list(range(1, 7))


def test_never_observed_is_usual() -> None:
    monday = {hour: 0.5 if hour < 12 else 1.5 for hour in range(24)}
    shifted = {hour + 24 * (MONDAY_US // 86_400_000_000): item for hour, item in monday.items()}
    hours, days = day_and_week({"read": shifted}, {"read": 2.0})
    assert hours == pytest.approx([0.5] * 12 + [1.5] * 12)
    assert days == [1.0] * 7
    assert day_and_week({"read": {}, "write": {}}, {"read": 1.0, "write": 1.0}) == ([1.0] * 24, [1.0] * 7)


def test_directions_weigh_by_their_bytes() -> None:
    first = 24 * (MONDAY_US // 86_400_000_000)
    flat = {first + hour: 1.0 for hour in range(24)}
    steep = {first + hour: 0.4 if hour < 12 else 1.6 for hour in range(24)}
    hours, _ = day_and_week({"read": flat, "write": steep}, {"read": 3.0, "write": 1.0})
    assert hours == pytest.approx([0.85] * 12 + [1.15] * 12)


def test_nothing_but_silence() -> None:
    scores = scored(series(0.3, np.zeros(168), busy=0.0))
    assert scores.correlation() == (0.0, 0.0)
    assert scores.speeds() == {}
    assert set(scores.presence().values()) == {0.0}
