"""Percentiles of many values in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.intervals.buckets import ERROR_PCT, EXACT_AT_MOST, Percentiles

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 0.99, 1.0])
def test_few_values_are_exact(share: float) -> None:
    values = RANDOM.lognormal(3, 2, 1000)
    result = Percentiles()
    for part in np.array_split(values, 7):
        result.add(part)
    assert result.at(share) == pytest.approx(np.quantile(values, share), rel=1e-12)
    assert result.error_pct == 0


@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_many_values_are_right_within_the_stated_error(zeros: float) -> None:
    values = RANDOM.lognormal(3, 2, EXACT_AT_MOST + 50_000)
    values[RANDOM.random(len(values)) < zeros] = 0.0
    whole, parts = Percentiles(), Percentiles()
    whole.add(values)
    for part in np.array_split(values, 13):
        parts.add(part)
    for share in (0.5, 0.95, 0.99, 1.0):
        assert whole.at(share) == parts.at(share)
        assert whole.at(share) == pytest.approx(np.quantile(values, share), rel=1.2 * ERROR_PCT / 100, abs=1e-12)
    assert whole.error_pct == ERROR_PCT
    assert sum(len(part) for part in parts._values) == 0  # nothing is kept but bins


@pytest.mark.parametrize("count", [0, 1000, EXACT_AT_MOST + 50_000])
def test_streams_that_are_put_together_are_one(count: int) -> None:
    values = RANDOM.lognormal(3, 2, count)
    values[: count // 9] = 0.0
    whole, first, *others = Percentiles(), *(Percentiles() for _ in range(5))
    whole.add(values)
    for stream, part in zip((first, *others), np.array_split(values, 5), strict=True):
        stream.add(part)
    others[2].take(others.pop(3))
    for other in others:
        first.take(other)
    assert (first.count, first.error_pct) == (whole.count, whole.error_pct)
    for share in (0.05, 0.5, 0.99, 1.0):
        assert first.at(share) == whole.at(share)


def test_nothing_has_no_percentile() -> None:
    assert Percentiles().at(0.5) is None
