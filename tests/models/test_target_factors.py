"""Factors of targets against their class, from made-up queued ticks and busy seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from iolens.models.cost_estimate import TelemetryTicks
from iolens.models.drift import TargetFactor, busy_factors, queued_factors, target_factors

SIZES = np.array([4096.0, 65536.0, float(1 << 20)])


@dataclass
class Ticks:
    """Slow ticks with nothing in flight, and ticks at the limit; the first target may be slow for some days."""

    targets: int = 4
    days: int = 12
    slow: float = 1.0
    first: int = 0
    until: int = 10**6
    drift: float = 0.0  # of all, a day
    rows: list[np.ndarray] = field(default_factory=list)

    def made(self, seed: int = 1) -> TelemetryTicks:
        random = np.random.default_rng(seed)
        for target in range(self.targets):
            for day in range(self.days):
                factor = self.slow if target == 0 and self.first <= day < self.until else 1.0
                limit = 1 / (1e-3 + 2e-9 * SIZES) / factor / (1 + self.drift) ** day * np.exp(random.normal(0, 0.02))
                for share, depth in [(0.1, 1.1), (0.3, 1.5), *((1.0, deep) for deep in random.uniform(12, 30, 8))]:
                    rate = limit * share * np.exp(random.normal(0, 0.02, SIZES.size))
                    self.rows += [np.array([target, day, r, b, depth]) for r, b in zip(rate, SIZES, strict=True)]
        target, day, rate, size, depth = np.array(self.rows).T
        ones = np.ones(rate.size)
        return TelemetryTicks(day.astype(int), target.astype(int), ones, rate, size, depth, ones < 0)

    def factors(self) -> list[TargetFactor]:
        return target_factors(queued_factors(self.made()))


def test_a_slow_target_differs_and_others_do_not() -> None:
    factors = Ticks(slow=1.6).factors()
    assert factors[0].factor == pytest.approx(1.6, rel=0.05)
    assert [item.differs for item in factors] == [True, False, False, False]
    assert factors[0].sure_low is not None
    assert 1.25 < factors[0].sure_low < (factors[0].low or 0.0) < (factors[0].high or 9.0)
    assert (factors[0].step, factors[0].since) == (None, None)


def test_a_target_a_little_slower_than_its_class_is_not_named() -> None:
    factors = Ticks(slow=1.2).factors()
    assert factors[0].factor == pytest.approx(1.2, rel=0.05)
    assert not factors[0].differs


def test_a_step_gives_the_factor_since_and_before() -> None:
    factors = Ticks(days=14, slow=2.0, first=8).factors()
    assert (factors[0].step, factors[0].since, factors[0].days) == (8, 8, 6)
    assert factors[0].before == pytest.approx(1.0, rel=0.05)
    assert factors[0].factor == pytest.approx(2.0, rel=0.05)
    assert factors[0].differs


def test_a_target_that_was_slow_is_none_now() -> None:
    factors = Ticks(days=14, slow=2.0, until=7).factors()
    assert (factors[0].step, factors[0].since, factors[0].differs) == (7, None, False)
    assert factors[0].before == pytest.approx(2.0, rel=0.05)


def test_a_drift_of_all_is_nobodys() -> None:
    factors = Ticks(days=90, targets=3, drift=0.005).factors()
    assert [item.differs for item in factors] == [False] * 3
    assert all(item.factor == pytest.approx(1.0, abs=0.05) for item in factors)


def test_two_targets_are_not_compared_and_four_days_are_too_few() -> None:
    assert Ticks(targets=2).factors() == []
    assert {(item.days, item.factor) for item in Ticks(days=4).factors()} == {(4, None)}


def test_busy_seconds_give_the_factor_of_a_device() -> None:
    random = np.random.default_rng(2)
    cost = np.array([1.2e-3, 2e-9, 1e-3, 1e-9])
    target, day = (values.ravel() for values in np.meshgrid(np.arange(3), np.arange(10), indexing="ij"))
    ios = random.uniform(100, 400, (30, 20, 2))
    terms = np.stack([ios[..., 0], ios[..., 0] * 65536, ios[..., 1], ios[..., 1] * 4096], axis=-1)
    busy = terms @ cost * np.where(target == 0, 1.7, 1.0)[:, None] * np.exp(random.normal(0, 0.02, (30, 20)))
    squares, products = np.einsum("rti,rtj->rij", terms, terms), np.einsum("rti,rt->ri", terms, busy)
    factors = target_factors(busy_factors(target, day, np.full(30, 20.0), squares, products))
    assert factors[0].factor == pytest.approx(1.7, rel=0.03)
    assert [item.differs for item in factors] == [True, False, False]
