"""Distributions that can be drawn from, and a model whose mix comes out."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.models.workload_model import SHARES, DirectionModel, Marginal, WorkloadModel

MIDDLES = (np.arange(100_000) + 0.5) / 100_000
MARGINALS = [
    Marginal.pareto(1.24, 45e6, 2.7e9),
    Marginal.pareto(0.8, 2.0, 3600.0),
    Marginal.pareto(1.0, 0.5, 50.0),
    Marginal.pareto(2.6, 3.0),
    Marginal.of_quantiles(tuple((1.0 + 9.0 * np.array(SHARES) ** 3).tolist())),
    Marginal.of_quantiles((5.0,) * len(SHARES)),
]


def direction(**changes: object) -> DirectionModel:
    """Reads of a busy controller, sampled every 2 s."""
    usual = DirectionModel(
        Marginal.pareto(1.24, 45e6, 2.7e9), Marginal.pareto(1.17, 0.002), Marginal.pareto(1.36, 2.0, 3600.0), 4.0,
        ((16384, 0.25), (1 << 20, 0.75)),
    )  # fmt: skip
    return replace(usual, **changes)  # type: ignore[arg-type]


def model(**changes: object) -> WorkloadModel:
    """Both directions alike, without a rhythm."""
    usual = WorkloadModel("made-up", 4, 2.0, "UTC", direction(), direction(), 50.0, 0.3, (1.0,) * 24, (1.0,) * 7)
    return replace(usual, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("marginal", MARGINALS)
def test_the_mean_is_that_of_what_is_drawn(marginal: Marginal) -> None:
    drawn = marginal.quantile(MIDDLES)
    assert drawn.mean() == pytest.approx(marginal.mean(), rel=1e-3 if marginal.maximum < inf else 2e-2)
    assert drawn.min() >= marginal.xm
    assert drawn.max() <= marginal.maximum


@pytest.mark.parametrize("marginal", MARGINALS[:-1])
def test_shares_and_values_are_each_others_inverse(marginal: Marginal) -> None:
    assert marginal.cdf(marginal.quantile(MIDDLES)) == pytest.approx(MIDDLES, abs=1e-6)
    assert marginal.upper_quantile(1.0 - MIDDLES) == pytest.approx(marginal.quantile(MIDDLES), rel=1e-9)


def test_a_distribution_of_one_value() -> None:
    always = MARGINALS[-1]
    assert always.quantile(np.array([0.0, 0.4, 1.0])).tolist() == pytest.approx([5.0] * 3)
    assert always.cdf(np.array([4.9, 5.0, 6.0])).tolist() == [0.0, 1.0, 1.0]


def test_without_an_end_the_mean_may_be_infinite() -> None:
    assert Marginal.pareto(1.0, 1.0).mean() == inf
    assert Marginal.pareto(0.7, 1.0).mean() == inf
    assert Marginal.pareto(2.0, 1.0).mean() == pytest.approx(2.0)


def test_the_upper_tail_is_exact() -> None:
    """One in 10²⁰ of a Pareto distribution, where 1 − share is 1."""
    assert Marginal.pareto(2.0, 1.0).upper_quantile(np.array([1e-20]))[0] == pytest.approx(1e10)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pareto", 1.0, 0.0, 5.0), "above zero"),
        (("pareto", 1.0, 6.0, 5.0), "above zero"),
        (("pareto", None, 1.0, 5.0), "alpha above zero"),
        (("pareto", -1.0, 1.0, 5.0), "alpha above zero"),
        (("pareto", 1.0, 5.0, 5.0), "maximum above xm"),
        (("quantiles", None, 1.0, 5.0, (1.0, 5.0)), f"{len(SHARES)} rising"),
        (("quantiles", None, 1.0, 5.0, (*(2.0,) * (len(SHARES) - 1), 1.0)), "rising"),
    ],
)
def test_what_cannot_be_a_distribution(arguments: tuple[object, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Marginal(*arguments)  # type: ignore[arg-type]


def test_shares_rise_from_nothing_to_all() -> None:
    assert list(SHARES) == sorted(set(SHARES))
    assert (SHARES[0], SHARES[-1]) == (0.0, 1.0)


def test_silences_are_whole_ticks() -> None:
    lengths, likely = direction().idle_lengths(2.0)
    drawn = np.maximum(np.rint(direction().idle.quantile(MIDDLES) / 2.0), 1.0)  # type: ignore[union-attr]
    assert likely.sum() == pytest.approx(1.0)
    assert float(lengths @ likely) == pytest.approx(drawn.mean(), rel=1e-3)
    assert likely[0] == pytest.approx((drawn == 1).mean(), abs=1e-4)
    assert lengths[-1] == 1800


def test_a_direction_that_is_never_idle() -> None:
    lengths, _ = direction(idle=None).idle_lengths(2.0)
    assert not lengths.size
    assert direction(idle=None).busy_share(2.0) == 1.0


def test_every_sample_with_traffic_has_a_request() -> None:
    assert direction().requests(np.array([0.002, 0.5, 3.0, 1e9]), 2.0).tolist() == [1000, 4, 1, 1]
    assert direction().mean_requests(2.0) == pytest.approx(1000 * 1.17 / 2.17, rel=2e-3)
    assert direction().mean_size() == 0.25 * 16384 + 0.75 * (1 << 20)


@given(st.floats(20.0, 80.0))
def test_the_mix_comes_out(read_pct: float) -> None:
    balanced = model(read_requests_pct=read_pct).balanced()
    assert 100 * balanced.read_share() == pytest.approx(read_pct, abs=0.01)
    assert min(balanced.read.busy_run_s, balanced.write.busy_run_s) >= 2.0


def test_a_mix_that_cannot_be_is_refused() -> None:
    always = direction(idle=None)
    with pytest.raises(ValueError, match=r"80 % reads cannot come .* only 50.0 %"):
        model(read=always, write=always, read_requests_pct=80.0).balanced()
    assert model(read=always, write=always, read_requests_pct=50.3).balanced().read == always


def test_directions_by_name() -> None:
    item = model(write=direction(busy_run_s=9.0))
    assert (item.of("read").busy_run_s, item.of("write").busy_run_s) == (4.0, 9.0)
