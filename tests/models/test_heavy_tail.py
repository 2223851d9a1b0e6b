"""Heavy tails: parameters that were put in come out, and what is not Pareto is not called so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from iolens.arrays import Floats
from iolens.models.heavy_tail import Contest, HeavyTail, fit_as_paper, fit_quantised, fit_tail, heavy_tail, multiples
from iolens.models.tails import FAMILIES, PERMILLES, TailSample, fit

MANY = 100_000


def pareto(alpha: float, xm: float = 1.0, size: int = MANY, seed: int = 1) -> Floats:
    return xm * (1.0 - np.random.default_rng(seed).random(size)) ** (-1.0 / alpha)


def tail_of(values: Floats, resamples: int = 0) -> HeavyTail:
    return heavy_tail(TailSample.of_values(values), "s", resamples)


@pytest.mark.parametrize("alpha", [1.24, 2.6, 1.17, 1.72, 1.36, 1.43])  # all that paper S prints
def test_alpha_comes_back_by_both_methods(alpha: float) -> None:
    result = tail_of(pareto(alpha, 2e6))
    assert result.paper is not None
    assert result.mle is not None
    assert result.paper.alpha == pytest.approx(alpha, rel=0.02)
    assert result.mle.alpha == pytest.approx(alpha, rel=0.02)
    assert result.paper.xm == pytest.approx(2e6, rel=1e-3)
    assert result.paper.r2 > 0.999
    assert result.best_model == "pareto"
    assert result.verdict.startswith("Pareto with alpha")


def rivals(seed: int) -> dict[str, Floats]:
    """Families with stated parameters."""
    random = np.random.default_rng(seed)
    cut = 100.0**-1.24
    return {
        "pareto": pareto(1.24, seed=seed),
        "truncated_pareto": (1.0 - random.random(MANY) * (1.0 - cut)) ** (-1.0 / 1.24),
        "exponential": random.exponential(3.0, MANY),
        "weibull": random.weibull(0.5, MANY),
        "lognormal": random.lognormal(0.0, 1.0, MANY),
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_distinguished(family: str, seed: int) -> None:
    result = tail_of(rivals(seed)[family])
    assert result.best_model == family
    if "pareto" not in family:
        assert result.verdict.startswith("not Pareto")


def test_parameters_of_the_rivals_come_back() -> None:
    samples = rivals(4)
    shown = {name: fit(name, TailSample.of_values(values)).parameters for name, values in samples.items()}
    assert shown["exponential"]["mean"] == pytest.approx(3.0, rel=0.02)
    assert shown["weibull"] == {"shape": pytest.approx(0.5, rel=0.02), "scale": pytest.approx(1.0, rel=0.03)}
    assert shown["lognormal"] == {"mu": pytest.approx(0.0, abs=0.02), "sigma": pytest.approx(1.0, rel=0.02)}
    assert shown["truncated_pareto"]["alpha"] == pytest.approx(1.24, rel=0.02)
    assert shown["truncated_pareto"]["maximum"] == pytest.approx(100.0, rel=0.01)


def test_likelihoods_are_those_of_scipy() -> None:
    """Given that a value is at least the smallest."""
    sample = TailSample.of_values(rivals(5)["lognormal"][:5000])
    values, start = sample.values, sample.smallest
    assert values is not None
    for name, frozen in {
        "lognormal": lambda p: stats.lognorm(p["sigma"], scale=np.exp(p["mu"])),
        "weibull": lambda p: stats.weibull_min(p["shape"], scale=p["scale"]),
        "exponential": lambda p: stats.expon(scale=p["mean"]),
        "pareto": lambda p: stats.pareto(p["alpha"], scale=p["xm"]),
    }.items():
        family = fit(name, sample)
        expected = frozen(family.parameters).logpdf(values) - frozen(family.parameters).logsf(start)
        assert family.log_likelihoods(sample) == pytest.approx(expected, rel=1e-6), name


def test_no_other_parameters_are_likelier() -> None:
    sample = TailSample.of_values(rivals(6)["weibull"][:3000])
    values = sample.values
    assert values is not None
    ours = fit("weibull", sample).log_likelihoods(sample).sum()
    for shape in (0.45, 0.5, 0.55):
        for scale in (0.9, 1.0, 1.1):
            other = stats.weibull_min(shape, scale=scale)
            assert ours >= (other.logpdf(values) - other.logsf(sample.smallest)).sum() - 1e-3


@given(st.integers(0, 10_000), st.floats(0.6, 4.0))
@settings(max_examples=25)
def test_the_paper_fit_has_the_least_squares(seed: int, alpha: float) -> None:
    sample = TailSample.of_values(pareto(alpha, size=500, seed=seed))
    best = fit_as_paper(sample)
    assert best is not None
    assert sample.values is not None
    quantiles = np.quantile(sample.values, PERMILLES)

    def squares(value: float) -> float:
        return float(np.sum((1.0 - (sample.smallest / quantiles) ** value - PERMILLES) ** 2))

    assert squares(best.alpha) <= min(squares(best.alpha * 0.99), squares(best.alpha * 1.01))
    assert best.r2 == pytest.approx(1.0 - squares(best.alpha) / np.sum((PERMILLES - 0.5) ** 2))


def by_brute_force(values: Floats) -> tuple[float, float, float]:
    """DEFINITIONS "Pareto" from every value: α, x_m and R², the lowest of many local searches."""
    xm, quantiles = values.min(), np.quantile(values, PERMILLES)

    def squares(log_alpha: float) -> float:
        return float(np.sum((1.0 - (xm / quantiles) ** np.exp(log_alpha) - PERMILLES) ** 2))

    starts = np.linspace(-7.0, 12.0, 40)
    options = {"xatol": 1e-12}
    tried = [
        optimize.minimize_scalar(squares, bounds=ends, method="bounded", options=options)
        for ends in pairwise(starts.tolist())
    ]
    best = min(tried, key=lambda item: item.fun)
    return float(np.exp(best.x)), xm, 1.0 - best.fun / np.sum((PERMILLES - PERMILLES.mean()) ** 2)


@given(
    st.integers(0, 10_000),
    st.floats(0.5, 4.0),
    st.sampled_from([np.rint, np.floor, np.ceil]),
    st.sampled_from([0.1, 1.0, 3.0]),
)
@settings(derandomize=True, max_examples=40)
def test_the_paper_fit_of_quantised_values_is_that_of_the_definition(
    seed: int, alpha: float, rounding: np.ufunc, mode: float
) -> None:
    """However idle times became multiples of the tick: x_m is the smallest of them, and R² that of the quantiles."""
    values = np.maximum(rounding(np.minimum(pareto(alpha, mode, 800, seed), 5e4)), 1.0) * 2.0
    if np.ptp(np.quantile(values, PERMILLES)) == 0:
        return
    fit = fit_as_paper(multiples(values, 2.0))
    assert fit is not None
    assert (fit.alpha, fit.xm, fit.r2) == pytest.approx(by_brute_force(values), rel=1e-5, abs=1e-9)


def test_of_two_minima_the_lower_one_counts() -> None:
    """Half of the values a permille above the smallest, a tail far beyond: a search from the middle misses it."""
    values = np.concatenate([[1.0], np.linspace(1.001, 1.002, 500), np.linspace(1e3, 1e6, 500)])
    fit = fit_as_paper(TailSample.of_values(values))
    assert fit is not None
    assert (fit.alpha, fit.xm, fit.r2) == pytest.approx(by_brute_force(values), rel=1e-5)


def test_one_tick_of_idle_most_of_the_time_has_a_negative_r2_and_says_so() -> None:
    """F(x_m) is 0 whatever alpha is, and nine in ten values are x_m: a constant would fit better, and R² says so."""
    values = np.concatenate([np.full(900, 2.0), 2.0 * np.arange(2, 102)])
    fit = fit_as_paper(multiples(values, 2.0))
    assert fit is not None
    assert fit.r2 == pytest.approx(by_brute_force(values)[2])
    assert fit.r2 < 0


def test_quantiles_of_counted_values_are_those_of_the_values() -> None:
    steps, often = np.array([1.0, 2.0, 7.0, 40.0]), np.array([13, 5, 2, 1])
    sample = TailSample.of_multiples(2.0 * steps, 2.0, "nearest", often)
    expected = np.quantile(np.repeat(2.0 * steps, often), PERMILLES)
    assert sample.quantiles(PERMILLES) == pytest.approx(expected, rel=1e-12)


def test_only_values_that_measuring_rounds_have_a_quantised_fit() -> None:
    values = pareto(1.5, size=1000)
    assert fit_quantised(TailSample.of_values(values)) is None
    assert tail_of(values).quantised is None
    edges = np.geomspace(1.0, values.max() * 1.01, 300)
    assert fit_quantised(TailSample.of_bins(edges[:-1], edges[1:], np.histogram(values, edges)[0])) is None


@given(st.integers(0, 10_000))
@settings(max_examples=6)
def test_x_m_has_the_smallest_distance_of_all_values(seed: int) -> None:
    """By brute force over every value, for a body that is not Pareto under a tail that is."""
    random = np.random.default_rng(seed)
    values = np.concatenate([random.uniform(0.1, 1.0, 200), pareto(1.5, size=200, seed=seed)])
    best = fit_tail(TailSample.of_values(values))
    assert best is not None
    distances = {}
    for xm in np.unique(values):
        tail = np.sort(values[values >= xm])
        if tail.size < 50:
            break
        alpha = tail.size / np.log(tail / xm).sum()
        distances[xm] = (stats.kstest(tail, stats.pareto(alpha, scale=xm).cdf).statistic, alpha, tail.size)
    xm = min(distances, key=lambda item: distances[item][0])
    assert (best.ks, best.alpha, best.n_tail) == pytest.approx(distances[xm], rel=1e-9)
    assert best.xm == xm


@pytest.mark.parametrize(("size", "searched"), [(400, 351), (5000, 500)])
def test_a_fit_says_among_how_many_values_it_looked_for_x_m(size: int, searched: int) -> None:
    """All that leave fifty values above, or as many as are compared."""
    best = fit_tail(TailSample.of_values(pareto(1.5, size=size)))
    assert best is not None
    assert (best.xm_candidates, best.xm_values) == (searched, size - 49)


def test_a_tail_below_a_body_is_found() -> None:
    random = np.random.default_rng(7)
    values = np.concatenate([random.uniform(0.1, 1.0, 20_000), pareto(1.5, size=20_000, seed=7)])
    result = tail_of(values)
    assert result.mle is not None
    assert result.mle.xm == pytest.approx(1.0, rel=0.2)
    assert result.mle.alpha == pytest.approx(1.5, rel=0.03)
    assert result.best_model not in ("pareto", "truncated_pareto")
    assert result.tail_best_model == "pareto"
    assert "the largest" in result.verdict


def test_p_values_of_true_pareto_samples_are_anywhere() -> None:
    values = [pareto(1.5, size=2000, seed=seed) for seed in range(20)]
    shares = [fit.p_value for value in values if (fit := fit_tail(TailSample.of_values(value), 50)) is not None]
    assert sum(share is not None and share < 0.1 for share in shares) <= 5
    assert max(share for share in shares if share is not None) > 0.5


def test_the_p_value_refuses_what_is_far_from_pareto() -> None:
    values = np.random.default_rng(8).uniform(1.0, 2.0, 5000)
    result = fit_tail(TailSample.of_values(values), 50)
    assert result is not None
    assert result.p_value == 0.0


def test_p_values_are_the_same_again() -> None:
    sample = TailSample.of_values(pareto(1.5, size=1000))
    assert fit_tail(sample, 30) == fit_tail(sample, 30)
    assert fit_tail(sample).p_value is None  # type: ignore[union-attr]


@pytest.mark.parametrize("rounding", [np.rint, np.floor, np.ceil])
@pytest.mark.parametrize("alpha", [1.36, 1.43])
def test_idle_times_seen_every_two_seconds(alpha: float, rounding: np.ufunc) -> None:
    """However the lengths became whole samples, and though most are just one or two of them.

    `paper` takes the multiples for the values themselves, as DEFINITIONS say, and is off; `quantised` is not.
    """
    seen = rounding(pareto(alpha, 2.0) / 2.0) * 2.0
    result = heavy_tail(multiples(seen, 2.0), "s")
    assert result.paper is not None
    assert result.quantised is not None
    assert result.mle is not None
    assert result.quantised.alpha == pytest.approx(alpha, rel=0.03)
    assert result.mle.alpha == pytest.approx(alpha, rel=0.03)
    assert result.quantised.r2 > 0.999
    assert result.best_model == "pareto"
    assert (result.paper.alpha, result.paper.xm, result.paper.r2) == pytest.approx(by_brute_force(seen), rel=1e-5)
    assert result.paper.r2 < 0.98


@pytest.mark.parametrize(("alpha", "mode_s"), [(1.17, 0.002), (1.72, 0.004)])
def test_spacings_of_requests_counted_every_two_seconds(alpha: float, mode_s: float) -> None:
    requests, samples = np.unique(np.rint(2.0 / pareto(alpha, mode_s)).astype(np.int64), return_counts=True)
    sample = TailSample.of_spacings(2.0, requests, samples)
    assert sample.zeros == samples[requests == 0].sum()
    result = heavy_tail(sample, "s")
    assert result.paper is not None
    assert result.mle is not None
    assert result.paper.alpha == pytest.approx(alpha, rel=0.02)
    assert result.paper.xm == pytest.approx(mode_s, rel=1e-3)
    assert result.mle.alpha == pytest.approx(alpha, rel=0.05)
    assert result.best_model in ("pareto", "truncated_pareto")  # nothing above 2 s is seen


def test_bins_tell_what_the_values_tell() -> None:
    values = pareto(1.3)
    edges = np.exp(np.arange(0.0, np.log(values.max()) + 0.02, 0.01))
    counts, _ = np.histogram(values, edges)
    binned = heavy_tail(TailSample.of_bins(edges[:-1], edges[1:], counts, zeros=MANY), "s")
    exact = tail_of(values)
    assert binned.paper is not None
    assert exact.paper is not None
    assert binned.paper.alpha == pytest.approx(exact.paper.alpha, rel=0.005)
    assert binned.best_model == exact.best_model == "pareto"
    assert binned.zero_share_pct == 50.0


def test_zeros_are_a_share_and_nothing_else() -> None:
    values = pareto(1.3, size=1000)
    with_zeros = tail_of(np.concatenate([np.zeros(3000), values]))
    assert with_zeros.zero_share_pct == 75.0
    assert with_zeros.samples == 1000
    assert with_zeros.paper == tail_of(values).paper


@pytest.mark.parametrize("values", [[], [1.0] * 10, [3.0] * 1000, [0.0] * 1000, [1.0, 2.0]])
def test_too_little_is_said_to_be_so(values: list[float]) -> None:
    result = tail_of(np.array(values))
    assert result.best_model is None
    assert result.paper is None
    assert "too few to tell" in result.verdict


def test_huge_and_tiny_values_do_no_harm() -> None:
    result = tail_of(np.concatenate([pareto(0.3, 1e-200, 500), pareto(0.3, 1e200, 500)]))
    assert result.best_model is not None
    assert all(np.isfinite(family.log_likelihood) for family in result.families)


@pytest.mark.parametrize("values", [[-1.0, 2.0], [np.nan], [np.inf]])
def test_what_is_no_sample_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite numbers, zero or more"):
        TailSample.of_values(np.array(values))


def test_gains_are_against_pareto() -> None:
    contest = Contest.over(TailSample.of_values(rivals(9)["lognormal"]))
    rows = {row.model: row for row in contest.table()}
    assert rows["pareto"].log_likelihood_gain == 0.0
    assert rows["pareto"].p_value is None
    assert rows["lognormal"].log_likelihood_gain == max(row.log_likelihood_gain for row in rows.values()) > 1000
    assert rows["lognormal"].p_value == pytest.approx(0.0, abs=1e-9)


def test_a_verdict_does_not_call_a_tail_pareto_that_the_test_refuses() -> None:
    """Best of five is not good: with a p-value below 0.1 the sentence says so."""
    refused = tail_of(np.random.default_rng(8).uniform(1.0, 2.0, 5000), resamples=20)
    assert refused.mle is not None
    assert refused.mle.p_value == 0.0
    assert refused.verdict.endswith("0 % of true Pareto samples fit worse: by this test not even its tail is Pareto")
    kept = tail_of(pareto(1.5, size=2000, seed=3), resamples=20)
    assert kept.mle is not None
    assert kept.mle.p_value is not None
    assert kept.mle.p_value >= 0.1
    assert "not even" not in kept.verdict


@pytest.mark.parametrize(
    ("values", "words"),
    [([], "0 positive values:"), ([2.0], "1 positive value:"), ([3.0] * 1000, "1,000 positive values, all alike:")],
)
def test_how_few_is_said_in_numbers(values: list[float], words: str) -> None:
    assert tail_of(np.array(values)).verdict.startswith(words)
