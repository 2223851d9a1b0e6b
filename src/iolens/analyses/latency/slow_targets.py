"""Which targets are far slower than their peers (SPEC B2, B8), with the evidence for it.

A target is far slower where more of its I/Os take longer than twice some time than of its peers' take longer than that
time itself, beyond chance, and in most parts of the window. Counts in bins that double are compared at edges of bins,
twice one edge is the next: no percentile is rounded to a bin on the way.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np

from iolens.arrays import Booleans, Floats, Integers

FEWEST_PEERS: Final = 3  # itself included: among fewer there is no middle
FEWEST_IOS: Final = 1_000  # of a target in the window: ten of them are beyond its 99th percentile
FEWEST_IN_PERIOD: Final = 100  # of a target in a period
TAILS_PCT: Final = (95, 99)  # percentiles of the peers beyond which I/Os are counted
FAMILY_ERROR: Final = 0.01  # chance that any of equal targets is called slower
FAR: Final = 2.0  # times the peers'

Finding = Literal["slower", "usual", "unknown"]


@dataclass(frozen=True, slots=True)
class SlownessEvidence:
    """Why a target is called slower or not; times in milliseconds, shares in per cent of I/Os.

    By mean wait there are no shares, and `tail_ms` is the peers' mean.
    """

    peers: int
    tail_pct: int | None
    tail_ms: float | None
    beyond_twice_pct: float | None
    beyond_twice_low_pct: float | None
    peers_beyond_pct: float | None
    periods: int
    periods_slower: int
    periods_needed: int | None


@dataclass(frozen=True, slots=True)
class Slowness:
    """What is said of one target; `reason` is why nothing can be said."""

    finding: Finding
    reason: str | None = None
    evidence: SlownessEvidence | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TimedPeers:
    """I/Os of targets that are peers: targets × periods × bins, and the upper edges of the bins in milliseconds."""

    counts: Floats
    edges: Integers

    def judge(self, place: int, comparisons: int) -> Slowness:
        """One of them; `comparisons` is how many targets and directions are judged in all."""
        others = _others(place, self.counts.sum(axis=(1, 2)))
        if isinstance(others, Slowness):
            return others
        chance = FAMILY_ERROR / (comparisons * len(TAILS_PCT))
        judged = [self._beyond(place, others, tail_pct, chance) for tail_pct in TAILS_PCT]
        return next((slowness for slowness in judged if slowness.finding == "slower"), judged[-1])

    def _beyond(self, place: int, others: Integers, tail_pct: int, chance: float) -> Slowness:
        """The I/Os beyond a percentile of the peers, and those of the target beyond twice that."""
        whole = self.counts.sum(axis=1)
        tail_ms = statistics.median_high(self._edge(whole[other], tail_pct) for other in others)
        beyond, beyond_twice = self.edges > tail_ms, self.edges > FAR * tail_ms
        mine, ios = float(whole[place, beyond_twice].sum()), float(whole[place].sum())
        low = _lower_bound(mine / ios, ios, chance)
        peers_share = statistics.median_high(float(whole[other, beyond].sum() / whole[other].sum()) for other in others)
        by_period = self.counts.sum(axis=2)
        shares = _ratio(self.counts[:, :, beyond].sum(axis=2), by_period)
        agreed = _agreement(shares, by_period >= FEWEST_IN_PERIOD, place, others, chance)
        evidence = SlownessEvidence(
            int(others.size), tail_pct, tail_ms, 100.0 * mine / ios, 100.0 * low, 100.0 * peers_share, *agreed
        )
        return _slowness(evidence, low > peers_share)

    def _edge(self, counts: Floats, percent: int) -> float:
        cumulative = counts.cumsum()
        return float(self.edges[int((cumulative * 100.0 >= percent * cumulative[-1]).argmax())])


@dataclass(frozen=True, slots=True, eq=False)
class WaitingPeers:
    """Summed waits of targets that are peers, in microseconds, and their operations: both targets × periods."""

    wait_us: Floats
    ops: Floats

    def judge(self, place: int, comparisons: int) -> Slowness:
        """One of them, by its mean wait."""
        ops = self.ops.sum(axis=1)
        others = _others(place, ops)
        if isinstance(others, Slowness):
            return others
        means = _ratio(self.wait_us.sum(axis=1), ops) / 1000.0
        usual = statistics.median_high(means[others].tolist())
        waits = _ratio(self.wait_us, self.ops)
        agreed = _agreement(waits, self.ops >= FEWEST_IN_PERIOD, place, others, FAMILY_ERROR / comparisons)
        evidence = SlownessEvidence(int(others.size), None, usual, None, None, None, *agreed)
        return _slowness(evidence, float(means[place]) > FAR * usual)


def _others(place: int, ios: Floats) -> Integers | Slowness:
    """The peers of a target that have enough I/Os, or why it cannot be judged."""
    if ios[place] < FEWEST_IOS:
        return Slowness("unknown", f"{ios[place]:,.0f} I/Os; {FEWEST_IOS:,} are needed")
    others = np.flatnonzero((ios >= FEWEST_IOS) & (np.arange(ios.size) != place))
    if others.size < FEWEST_PEERS - 1:
        return Slowness("unknown", f"{others.size} peers with {FEWEST_IOS:,} I/Os; {FEWEST_PEERS - 1} are needed")
    return others


def _slowness(evidence: SlownessEvidence, is_beyond_chance: bool) -> Slowness:
    if evidence.periods_needed is None:
        return Slowness("unknown", f"{evidence.periods} periods with enough I/Os are too few to agree", evidence)
    slower = is_beyond_chance and evidence.periods_slower >= evidence.periods_needed
    return Slowness("slower" if slower else "usual", None, evidence)


def _agreement(
    values: Floats, enough: Booleans, place: int, others: Integers, chance: float
) -> tuple[int, int, int | None]:
    """Periods in which it is compared, those in which it is above more of the others than below, and those needed.

    Periods in which it is as they are count for neither side, as in any sign test.
    """
    enough_peers = enough[others].sum(axis=0) >= FEWEST_PEERS - 1
    compared = np.flatnonzero(enough[place] & enough_peers)
    mine, peers, known = values[place, compared], values[np.ix_(others, compared)], enough[np.ix_(others, compared)]
    signs = ((peers < mine) & known).sum(axis=0) - ((peers > mine) & known).sum(axis=0)
    needed = _needed(int((signs != 0).sum()), chance) or _needed(int(compared.size), chance)
    return int(compared.size), int((signs > 0).sum()), needed


@cache
def _needed(periods: int, chance: float) -> int | None:
    """The least number of periods that fair coins reach with at most that chance; None where not even all would do."""
    total, needed = 0.0, periods + 1
    while (total := total + math.comb(periods, needed - 1) * 0.5**periods) <= chance:
        needed -= 1
    return needed if needed <= periods else None


def _lower_bound(share: float, count: float, chance: float) -> float:
    """Wilson's one-sided bound of a share."""
    z = statistics.NormalDist().inv_cdf(1.0 - chance)
    middle = share + z * z / (2 * count)
    width = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max((middle - width) / (1 + z * z / count), 0.0)


def _ratio(above: Floats, below: Floats) -> Floats:
    values: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return values


def percentile_interval(bins: Mapping[int, float], percent: float) -> tuple[float, float | None]:
    """Bins between which the percentile is with 99 % confidence, by order statistics (the binomial taken as normal).

    The upper one is None where the I/Os are too few to have one.
    """
    edges = sorted(bins)
    counts = np.array([bins[edge] for edge in edges], np.float64)
    reached, share = counts.cumsum() / counts.sum(), percent / 100.0
    width = statistics.NormalDist().inv_cdf(0.995) * math.sqrt(share * (1 - share) / counts.sum())
    low = float(edges[int((reached >= share - width).argmax())])
    return low, float(edges[int((reached >= share + width).argmax())]) if share + width < 1.0 else None
