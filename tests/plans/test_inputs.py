"""A value, a range, a distribution: what each expects, and what it draws."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.errors import UsageError
from iolens.plans.cases import between, distribution, parse_input, value
from iolens.units import parse_bytes

RANDOM = np.random.default_rng(1)


def test_a_value_has_no_width() -> None:
    result = value("ssi", 3, "option --ssi")
    assert (result.kind, result.low, result.expected, result.high) == ("value", 3, 3, 3)
    assert set(result.draws(RANDOM, 50)) == {3.0}


def test_a_range_expects_its_middle_and_draws_anything_between() -> None:
    result = between("ssi", 3, 4, "option")
    assert (result.kind, result.low, result.expected, result.high) == ("range", 3, 3.5, 4)
    drawn = result.draws(RANDOM, 4000)
    assert 3 <= drawn.min() < 3.01
    assert 3.99 < drawn.max() <= 4
    assert drawn.mean() == pytest.approx(3.5, abs=0.02)
    with pytest.raises(UsageError, match="begins at 4 and ends below it, at 3"):
        between("ssi", 4, 3, "option")


def test_a_distribution_expects_its_mean_and_draws_resampled_means() -> None:
    samples = np.random.default_rng(2).exponential(100, 400)
    result = distribution("growth", samples, "store")
    error = samples.std(ddof=1) / 20
    assert result.expected == samples.mean()
    assert result.low == pytest.approx(result.expected - 1.96 * error, rel=0.05)
    assert result.high == pytest.approx(result.expected + 1.96 * error, rel=0.05)
    assert result.draws(RANDOM).std() == pytest.approx(error, rel=0.1)
    assert distribution("growth", samples, "store").low == result.low
    for nothing in ([], [float("nan")]):
        with pytest.raises(UsageError, match="no samples"):
            distribution("growth", nothing, "store")


def test_inputs_are_written_as_values_or_ranges() -> None:
    assert parse_input("g", "133TB", parse_bytes, "option").expected == 133e12
    result = parse_input("g", "100TB..150TB", parse_bytes, "option")
    assert (result.low, result.high, result.kind) == (100e12, 150e12, "range")
    for wrong in ("", "..", "1TB..", "a..b", "1TB...2TB"):
        with pytest.raises(UsageError, match="g: "):
            parse_input("g", wrong, parse_bytes, "option")
