"""What is drawn from a model: silences, bandwidth and requests as it says, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from iolens.analyses.workload.arrivals import Runs
from iolens.models.workload_model import Marginal, WorkloadModel
from iolens.schema import DIRECTIONS
from iolens.simulator import synthetic
from iolens.simulator.synthetic import SyntheticActivity, dealt_out
from tests.models.test_workload_model import direction, model

FIRST = 1_350_864_000 // 2  # 2012-10-22
TICKS = 20_000


def drawn(made_of: WorkloadModel, targets: int = 4, seed: int = 1, ticks: int = TICKS) -> dict[str, np.ndarray]:
    """Bytes and requests by direction, ticks × targets."""
    blocks = list(SyntheticActivity(made_of, targets, seed, FIRST, ticks).blocks())
    result = {f"{side}_bytes": np.concatenate([block.bytes_[side] for block in blocks]) for side in DIRECTIONS}
    return result | {
        f"{side}_requests": np.concatenate([block.requests[side] for block in blocks]) for side in DIRECTIONS
    }


def silences(requests: np.ndarray) -> Counter[int]:
    """Lengths of runs without a request."""
    runs = Runs(requests.shape[1])
    runs.add(requests == 0, np.zeros(requests.shape, np.bool_), np.ones(len(requests), np.bool_))
    return runs.lengths


def test_the_same_seed_gives_the_same_numbers() -> None:
    item, same, other = (drawn(model(), seed=seed, ticks=3000) for seed in (5, 5, 6))
    assert all(np.array_equal(item[name], same[name]) for name in item)
    assert not np.array_equal(item["read_bytes"], other["read_bytes"])


def test_samples_have_bytes_and_requests_or_neither() -> None:
    result = drawn(model())
    for side in DIRECTIONS:
        assert np.array_equal(result[f"{side}_bytes"] > 0, result[f"{side}_requests"] > 0)
        assert result[f"{side}_requests"].max() <= 1000
        assert result[f"{side}_bytes"][result[f"{side}_bytes"] > 0].min() >= 90e6 - 1


def test_bandwidth_follows_its_distribution() -> None:
    result = drawn(model(correlation=0.0), targets=8)["read_bytes"] / 2.0
    busy = result[result > 0]
    for share in (0.1, 0.5, 0.9, 0.99):
        expected = direction().bandwidth.quantile(np.array([share]))[0]
        assert np.quantile(busy, share) == pytest.approx(expected, rel=0.05)


def test_the_mix_and_the_share_of_busy_samples() -> None:
    made_of = model(read_requests_pct=30.0)
    result = drawn(made_of, targets=8)
    read, write = result["read_requests"].sum(), result["write_requests"].sum()
    assert 100 * read / (read + write) == pytest.approx(30.0, abs=0.5)
    for side in DIRECTIONS:
        expected = made_of.balanced().of(side).busy_share(2.0)
        assert (result[f"{side}_requests"] > 0).mean() == pytest.approx(expected, abs=0.01)


def test_silences_follow_their_distribution() -> None:
    result = silences(drawn(model(), targets=8)["read_requests"])
    lengths, likely = direction().idle_lengths(2.0)
    total = sum(result.values())
    for length in (1, 2, 5):
        assert result[length] / total == pytest.approx(likely[lengths == length][0], abs=0.01)
    assert sum(length * count for length, count in result.items()) / total == pytest.approx(lengths @ likely, rel=0.1)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silences and busy runs go on from block to block: cut finely, their lengths are the same."""
    monkeypatch.setattr(synthetic, "ROWS_AT_ONCE", 1)
    finely = silences(drawn(model(), ticks=6000)["read_requests"])
    monkeypatch.undo()
    whole = silences(drawn(model(), ticks=6000)["read_requests"])
    for counts in (finely, whole):
        assert sum(counts.values()) > 3000
    means = [sum(length * count for length, count in item.items()) / sum(item.values()) for item in (finely, whole)]
    assert means[0] == pytest.approx(means[1], rel=0.15)
    assert max(finely) > 30  # longer than a block


def test_fast_samples_have_many_requests() -> None:
    result = drawn(model())
    busy = result["read_bytes"] > 0
    order = np.argsort(result["read_bytes"][busy], kind="stable")
    assert np.all(np.diff(result["read_requests"][busy][order]) >= 0)


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_targets_go_together(correlation: float) -> None:
    always = direction(idle=None)
    result = drawn(model(read=always, write=always, correlation=correlation), targets=2)["read_bytes"]
    ranks = result.argsort(axis=0).argsort(axis=0)
    expected = 6 / np.pi * np.arcsin(correlation / 2)  # Spearman's for normal scores
    assert float(np.atleast_2d(np.corrcoef(ranks.T))[0, 1]) == pytest.approx(expected, abs=0.02)


def test_a_direction_that_is_never_idle() -> None:
    result = drawn(model(read=direction(idle=None), read_requests_pct=60.0), ticks=2000)
    assert (result["read_requests"] > 0).all()
    assert not (result["write_requests"] > 0).all()


def test_hours_differ_and_the_whole_does_not() -> None:
    rhythm = tuple(0.7 if hour < 12 else 1.3 for hour in range(24))
    always = direction(idle=None, bandwidth=Marginal.pareto(1.6, 1e6, 1e8))
    result = drawn(model(read=always, write=always, hours=rhythm), targets=4, ticks=43_200)["read_bytes"]
    night, day = result[:21_600].mean(), result[21_600:].mean()
    assert night / day == pytest.approx(0.7 / 1.3, rel=0.03)
    assert np.quantile(result, 0.5) / 2.0 == pytest.approx(always.bandwidth.quantile(np.array([0.5]))[0], rel=0.02)


def test_requests_are_dealt_out_exactly() -> None:
    requests = np.random.default_rng(1).integers(0, 1000, (500, 7))
    requests[:3] = 0
    shares = np.array([0.2, 0.0, 0.5, 0.3])
    dealt = dealt_out(np.random.default_rng(2), requests, shares)
    assert np.array_equal(dealt.sum(axis=-1), requests)
    assert dealt.min() >= 0
    assert dealt.sum(axis=(0, 1)) / requests.sum() == pytest.approx(shares, abs=1e-3)


def test_one_request_is_of_a_size_as_often_as_its_share() -> None:
    dealt = dealt_out(np.random.default_rng(2), np.ones(20_000, np.int64), np.array([0.2, 0.5, 0.3]))
    assert dealt.mean(axis=0) == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_an_extreme_tail_stays_within_bounds() -> None:
    wild = direction(bandwidth=Marginal.pareto(0.05, 1.0), interarrival=Marginal.pareto(0.05, 1e-6))
    result = drawn(model(read=wild, write=wild), ticks=2000)
    assert result["read_bytes"].min() >= 0
    assert result["read_requests"].max() <= 2_000_000


def test_a_mix_that_cannot_be() -> None:
    always = direction(idle=None)
    with pytest.raises(ValueError, match="cannot come"):
        SyntheticActivity(replace(model(), read=always, write=always, read_requests_pct=90.0), 1, 1, FIRST, 10)
