"""Which factors are named: beyond the tenth or ninetieth percentile, with a ρ that makes it slow, after Holm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from iolens.analyses.explain.results import SYSTEM, ExplainedFactor, FactorValues, judged, verdict_of
from iolens.analyses.explain.system_factors import OTHERS_RATE, SystemState

RISING = np.arange(20.0)


def factor(value: float, history: np.ndarray, performance: np.ndarray = -RISING, **more: Any) -> FactorValues:
    return FactorValues("fsu_others_pct", value, history, history, performance, **more)


def is_named(*factors: FactorValues, is_slow: bool = True) -> list[bool]:
    return [line.named for line in judged(factors, is_enough=True, is_slow=is_slow)]


@pytest.mark.parametrize(
    ("value", "sign", "named"),
    [(30.0, -1, True), (30.0, 1, False), (-1.0, 1, True), (-1.0, -1, False), (17.5, -1, False), (18.5, -1, True)],
)
def test_a_factor_is_named_in_the_direction_that_makes_runs_slow(value: float, sign: int, named: bool) -> None:
    """18 of 20 values are below 17.5, which is the ninetieth percentile; beyond it is more than that."""
    assert is_named(factor(value, RISING, sign * RISING)) == [named]


def test_nothing_is_named_of_a_run_that_is_not_slow() -> None:
    assert is_named(factor(30.0, RISING), is_slow=False) == [False]


def test_holm_counts_every_factor_that_has_a_rho() -> None:
    """ρ = −0.5 of 20 runs has p = 0.025: enough alone, too much beside others."""
    random = np.random.default_rng(0)
    weak = next(
        order for _ in range(1000) if abs(np.corrcoef(order := random.permutation(20), RISING)[0, 1] + 0.5) < 0.005
    ).astype(float)
    alone = judged([factor(30.0, RISING, weak)], is_enough=True, is_slow=True)[0]
    assert alone.p is not None
    assert 0.02 < alone.p < 0.03
    assert (alone.p_holm, alone.named) == (alone.p, True)
    noise = [factor(5.0, RISING, random.permutation(20).astype(float)) for _ in range(4)]
    together = judged([factor(30.0, RISING, weak), *noise], is_enough=True, is_slow=True)[0]
    assert together.p_holm == pytest.approx(min(5 * alone.p, 1.0))
    assert not together.named
    constant = factor(5.0, np.ones(20))
    assert is_named(factor(30.0, RISING, weak), constant) == [True, False]


def test_a_run_within_one_per_cent_of_its_like_is_as_usual() -> None:
    assert is_named(factor(30.0, RISING, least_difference=25.0)) == [False]
    assert is_named(factor(30.0, RISING, least_difference=20.0)) == [True]


def test_coverage_explains_only_where_others_did_more_per_second() -> None:
    """A run that is slow for any reason lasts longer, and others move more bytes in that time."""
    low = factor(-1.0, RISING, RISING)
    assert is_named(replace(low, others_rate=5.0, others_rates=RISING)) == [False]
    assert is_named(replace(low, others_rate=19.5, others_rates=RISING)) == [True]
    assert is_named(replace(low, others_rate=float("nan"), others_rates=RISING)) == [False]


def test_runs_without_the_factor_do_not_count() -> None:
    history = np.where(RISING % 2 == 0, RISING, np.nan)
    line = judged([factor(30.0, history)], is_enough=True, is_slow=True)[0]
    assert (line.rho_runs, line.percentile, line.named) == (10, 100.0, True)
    assert judged([factor(float("nan"), history)], is_enough=True, is_slow=True)[0].value is None


def line(named: bool) -> ExplainedFactor:
    return ExplainedFactor("opens", 1, 50.0, None, None, None, 0, named)


@pytest.mark.parametrize(
    ("own", "system", "slow", "verdict"),
    [
        (True, False, True, "own"), (False, True, True, "system"), (True, True, True, "both"),
        (False, False, True, "unexplained"), (False, False, False, "not slow"),
        (False, False, None, "too little history"),
    ],
)  # fmt: skip
def test_verdicts(own: bool, system: bool, slow: bool | None, verdict: str) -> None:
    assert verdict_of([line(own)], [line(system)], slow) == verdict


@pytest.mark.parametrize(("fsu", "named"), [(95.0, True), (50.0, False), (float("nan"), True)])
def test_others_are_judged_by_their_fsu_and_without_it_by_their_bytes(fsu: float, named: bool) -> None:
    """Both of the run, whose bytes of others are more than those of any other run."""
    columns = {name: np.append(np.nan, np.full(20, np.nan)) for name in SYSTEM}
    columns |= {"coverage_factor": np.append(-1.0, RISING), OTHERS_RATE: np.append(30.0, RISING)}
    columns["fsu_others_pct"] = np.append(fsu, np.linspace(1, 90, 20))
    state = SystemState(columns, [], True, "job_stats", [])
    factors = state.factors(RISING)
    assert is_named(factors[SYSTEM.index("coverage_factor")]) == [named]


@pytest.mark.parametrize(("full", "named"), [(41.2, False), (93.0, True)])
def test_fullness_counts_where_osts_are_full(full: float, named: bool) -> None:
    columns = {name: np.append(np.nan, np.full(20, np.nan)) for name in (*SYSTEM, OTHERS_RATE)}
    columns["fullness_pct"] = np.append(full, full - 1 + RISING / 100)
    factors = SystemState(columns, [], True, "job_stats", []).factors(-RISING)
    assert is_named(factors[SYSTEM.index("fullness_pct")]) == [named]


@pytest.mark.parametrize(("metadata_time_pct", "named"), [(1.0, False), (25.0, True), (float("nan"), True)])
def test_busy_metadata_servers_count_for_runs_with_metadata(metadata_time_pct: float, named: bool) -> None:
    columns = {name: np.append(np.nan, np.full(20, np.nan)) for name in (*SYSTEM, OTHERS_RATE)}
    columns["mdt_ops_per_s"] = np.append(30.0, RISING)
    factors = SystemState(columns, [], True, "job_stats", []).factors(-RISING, metadata_time_pct)
    assert is_named(factors[SYSTEM.index("mdt_ops_per_s")]) == [named]


@pytest.mark.parametrize(("value", "sign", "named"), [(30.0, -1, True), (-1.0, 1, False)])
def test_a_low_load_of_others_explains_nothing(value: float, sign: int, named: bool) -> None:
    values = {name: np.full(21, np.nan) for name in (*SYSTEM, OTHERS_RATE)}
    values["fsu_others_pct"] = np.array([value, *RISING])
    state = SystemState(values, (), False, "job_stats", ())
    lines = judged(state.factors(sign * RISING), is_enough=True, is_slow=True)
    assert [line.named for line in lines if line.factor == "fsu_others_pct"] == [named]
