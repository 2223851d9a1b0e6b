"""Which targets are called far slower: hardly ever one of equals, always one that takes four times as long."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from iolens.analyses.latency.part import TimedPeers, WaitingPeers, percentile_interval

EDGES = 2 ** np.arange(17)
RUNS = 200
GRID = np.linspace(-12, 16, 4001)  # logarithms of milliseconds
NORMAL = statistics.NormalDist()


def lognormal(sigma: float, mean: float = 1.5) -> np.ndarray:
    """Shares of I/Os that take longer, on the grid."""
    return np.array([1 - NORMAL.cdf((place - mean) / sigma) for place in GRID.tolist()])


def pareto(alpha: float) -> np.ndarray:
    return np.minimum(np.exp(-alpha * (GRID - 0.7)), 1.0)


SHAPES = {
    "narrow": lognormal(0.5),
    "usual": lognormal(1.2),
    "wide": lognormal(2.0),
    "heavy": pareto(1.0),
    "light": pareto(2.5),
    "two speeds": 0.98 * lognormal(0.4, 1.1) + 0.02 * lognormal(0.5, 6.0),  # flat in between
}


def drawn(
    random: np.random.Generator, longer: np.ndarray, slower: list[float], periods: int, ios: int, burst: float = 0.0
) -> TimedPeers:
    """I/Os of targets that are so many times slower; in every period each is off by chance, as e^N(0, burst)."""
    shift = np.log(slower)[:, None] + random.normal(0, burst, (len(slower), periods))
    above = np.interp(np.log(EDGES[:-1]) - shift[:, :, None], GRID, longer)
    shares = -np.diff(above, axis=2, prepend=1.0, append=0.0)
    return TimedPeers(random.multinomial(random.poisson(ios, shift.shape), shares).astype(float), EDGES)


def called(peers: TimedPeers) -> list[int]:
    """Places of targets that are called slower, reads and writes being judged."""
    targets = len(peers.counts)
    return [place for place in range(targets) if peers.judge(place, 2 * targets).finding == "slower"]


@pytest.mark.parametrize("burst", [0.0, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_targets_are_called_slower_in_one_of_a_hundred_runs_at_most(shape: str, burst: float) -> None:
    random = np.random.default_rng(11)
    wrong = 0
    for _ in range(RUNS):
        targets, periods, ios = (int(random.integers(low, high)) for low, high in ((3, 9), (12, 30), (100, 500)))
        wrong += bool(called(drawn(random, SHAPES[shape], [1.0] * targets, periods, ios, burst)))
    assert wrong <= RUNS // 100


@pytest.mark.parametrize("shape", SHAPES)
def test_a_target_four_times_slower_is_found_and_no_other(shape: str) -> None:
    random = np.random.default_rng(12)
    for _ in range(40):
        offset = float(random.uniform(1, 2))  # wherever the percentile lies in its bin
        assert called(drawn(random, SHAPES[shape], [offset, 4 * offset, *[offset] * 4], 24, 400)) == [1]


def test_thirteen_writes_one_bin_apart_are_no_evidence() -> None:
    """Seen in a real capture: called far slower, from 13 writes of a quarter of an hour."""
    counts = np.zeros((3, 1, 3))
    counts[:, 0, 0] = 5_000, 5_000, 8
    counts[2, 0, 1] = 5
    result = TimedPeers(counts, np.array([1, 2, 4])).judge(2, 6)
    assert (result.finding, result.reason) == ("unknown", "13 I/Os; 1,000 are needed")


def test_a_target_one_bin_apart_is_usual_however_many_ios_there_are() -> None:
    """All I/Os of its peers take up to 4 ms, all of its own up to 8: it may be a hair apart."""
    counts = np.zeros((4, 20, 4))
    counts[:3, :, 2] = 1e6
    counts[3, :, 3] = 1e6
    assert TimedPeers(counts, np.array([1, 2, 4, 8])).judge(3, 8).finding == "usual"


def test_one_bad_hour_is_not_a_slow_target() -> None:
    """A tenth of all its I/Os take 1 s, all of them in one of 24 periods."""
    counts = np.zeros((4, 24, 2))
    counts[:, :, 0] = 1000
    counts[2, 7, 1] = 2400
    result = TimedPeers(counts, np.array([4, 1024])).judge(2, 8)
    assert result.finding == "usual"
    assert result.evidence is not None
    assert result.evidence.beyond_twice_pct == pytest.approx(9.09, abs=0.01)
    assert (result.evidence.periods, result.evidence.periods_slower, result.evidence.periods_needed) == (
        24,
        1,
        21,
    )  # 20 of 24 have 0.077 %


def test_the_evidence_is_what_was_counted() -> None:
    """Peers: 1 % beyond 8 ms. The target: a fifth beyond 16 ms, in every one of 20 periods."""
    counts = np.zeros((4, 20, 4))
    counts[:3, :] = [900, 90, 10, 0]
    counts[3, :] = [700, 50, 50, 200]
    result = TimedPeers(counts, np.array([4, 8, 16, 32])).judge(3, 8)
    assert result.finding == "slower"
    evidence = result.evidence
    assert evidence is not None
    assert (evidence.peers, evidence.tail_pct, evidence.tail_ms) == (3, 95, 8.0)
    assert (evidence.beyond_twice_pct, evidence.peers_beyond_pct) == (20.0, 1.0)
    assert 19 < evidence.beyond_twice_low_pct < 20
    assert (evidence.periods, evidence.periods_slower) == (20, 20)
    assert evidence.periods_needed == 18  # fair coins give 17 of 20 with 0.13 %, 18 with 0.02 %; 1 %/16 is allowed


def test_few_periods_cannot_agree() -> None:
    counts = np.zeros((4, 6, 3))
    counts[:3, :, 0] = 1000
    counts[3, :, 2] = 1000
    result = TimedPeers(counts, np.array([1, 2, 64])).judge(3, 8)
    assert (result.finding, result.reason) == ("unknown", "6 periods with enough I/Os are too few to agree")


def test_mean_waits_must_be_twice_as_long_and_agree() -> None:
    random = np.random.default_rng(3)
    ops = np.full((5, 24), 400.0)
    wait_us = ops * random.lognormal(7, 0.5, ops.shape)
    peers = WaitingPeers(wait_us, ops)
    assert [peers.judge(place, 10).finding for place in range(5)] == ["usual"] * 5
    wait_us[2] *= 4
    slow = WaitingPeers(wait_us, ops)
    assert [slow.judge(place, 10).finding for place in range(5)] == ["usual", "usual", "slower", "usual", "usual"]
    burst = ops * 1000.0
    burst[2, 5] *= 100  # its mean wait is five times as long, by one period
    assert WaitingPeers(burst, ops).judge(2, 10).finding != "slower"


def test_equal_mean_waits_are_called_slower_in_one_of_a_hundred_runs_at_most() -> None:
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(1000):
        ops = random.poisson(300, (6, 20)).astype(float)
        peers = WaitingPeers(ops * random.lognormal(7, 1.5, ops.shape), ops)
        wrong += any(peers.judge(place, 12).finding == "slower" for place in range(6))
    assert wrong <= 10


def test_a_percentile_has_an_interval_of_bins() -> None:
    """Of 10,000 I/Os the 99th percentile is the 9,900th; between the 9,874th and the 9,926th with 99 % confidence."""
    assert percentile_interval({4: 9_870, 8: 60, 16: 70}, 99) == (8.0, 8.0)
    assert percentile_interval({4: 9_880, 8: 40, 16: 80}, 99) == (4.0, 16.0)
    assert percentile_interval({4: 12, 8: 1}, 99) == (4.0, None)
