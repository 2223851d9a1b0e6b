"""Coefficients from times of single I/Os (DEFINITIONS, "Calibration from telemetry": latency by size).

Lustre 2.17 counts bulk I/Os by size and elapsed time, in bins of factors of two: t = (a0 + a1·b)·e^(σz) with z standard
normal and b uniform over the whole pages of its size bin. Interval-censored maximum likelihood, by Fisher's scoring:
medians of such bins can be off by a factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.arrays import Floats, Integers
from iolens.models.cost_estimate import (
    COEFFICIENTS,
    LATENCY,
    SIZES_APART,
    CostEstimate,
    draws,
    interval,
    is_narrow,
    numbered,
    resampled_words,
    size_words,
)

MOST_IN_FLIGHT: Final = 1.5  # mean of a tick: with more, elapsed time contains queueing
SIZES_PER_BIN: Final = 16  # page counts that stand for those of a wide bin
FEWEST_IOS: Final = 100
_FLOOR: Final = 1e-9  # of a bin's probability: what the law cannot explain says nothing
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class TimedIos:
    """Counts of I/Os by size and elapsed time, each a row; only of ticks with at most 1.5 I/Os in flight.

    Sizes are `low_pages` to `high_pages`, both included (the caller cuts the last bin at the largest I/O there is);
    times are above `over_s` and up to `upto_s` seconds.
    """

    low_pages: Integers
    high_pages: Integers
    over_s: Floats
    upto_s: Floats
    count: Floats
    block: Integers

    @property
    def ios(self) -> float:
        """How many there are."""
        return float(self.count.sum())


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts by block, size bin and time bin, with the sizes that stand for each size bin in bytes."""

    sizes: Floats  # bins × SIZES_PER_BIN
    edges: Floats  # logarithms of the ends of the time bins
    counts: Floats  # blocks × bins × time bins

    @classmethod
    def of(cls, ios: TimedIos, page_bytes: int) -> _Counts:
        bins, bin_of = np.unique(np.stack([ios.low_pages, ios.high_pages], axis=1), axis=0, return_inverse=True)
        ends = np.unique(np.concatenate([ios.over_s, ios.upto_s]))
        ends = np.unique(np.concatenate([ends[ends > 0], [ends[ends > 0].min() / 2, ends.max() * 2]]))
        blocks, number = numbered(ios.block)
        counts = np.zeros((number, len(bins), ends.size + 1))
        place = np.searchsorted(ends, ios.upto_s)  # the bin below that end
        np.add.at(counts, (blocks, bin_of.ravel(), place), ios.count)
        sizes = np.stack([_pages(int(low), int(high)) for low, high in bins]) * page_bytes
        return cls(sizes, np.log(ends), counts)


def _pages(low: int, high: int) -> Floats:
    """Whole pages of a bin, evenly: all where there are few."""
    places = (np.arange(SIZES_PER_BIN) + 0.5) / SIZES_PER_BIN
    return np.floor(low + places * (high - low + 1))


def latency_by_size(
    ios: TimedIos, page_bytes: int = 4096, targets: int = 1, blocks_are_days: bool = True
) -> CostEstimate | None:
    """The time of one I/O alone by size; None where there are too few.

    `page_bytes` is that of the server. A target that serves several at once needs less: `one_at_a_time`.
    """
    if ios.ios < FEWEST_IOS:
        return None
    table = _Counts.of(ios, page_bytes)
    whole = table.counts.sum(axis=0)
    best = _fitted(table, whole, _start(table, whole))
    again = _resampled(table, best)
    return _estimate(table, whole, best, np.exp(again), targets, blocks_are_days)


def log_likelihood(ios: TimedIos, latency_s: float, s_per_byte: float, sigma: float, page_bytes: int = 4096) -> float:
    """Of the counts, under one law."""
    table = _Counts.of(ios, page_bytes)
    return _log_likelihood(table, table.counts.sum(axis=0), np.log([latency_s, s_per_byte, sigma]))


def _log_likelihood(table: _Counts, counts: Floats, law: Floats) -> float:
    return float((counts * np.log(np.maximum(_shares(table, law)[0], _FLOOR))).sum())


def _shares(table: _Counts, law: Floats) -> tuple[Floats, Floats]:
    """Probability of each time bin by size bin, and its derivatives by log a0, log a1 and log σ (3 × bins × times)."""
    a0, a1, sigma = np.exp(law)
    means = a0 + a1 * table.sizes
    z = (table.edges - np.log(means)[..., None]) / sigma
    below, density = _normal(z)
    slopes = [-density / sigma * (part / means)[..., None] for part in (np.full_like(means, a0), a1 * table.sizes)]
    slopes.append(-density * z)
    shares = _between(below.mean(axis=1), 1.0)
    return shares, np.stack([_between(slope.mean(axis=1), 0.0) for slope in slopes])


def _between(values: Floats, last: float) -> Floats:
    """Differences between neighbouring ends, with the open bins below the first and above the last."""
    ends = [np.zeros((*values.shape[:-1], 1)), values, np.full((*values.shape[:-1], 1), last)]
    return np.diff(np.concatenate(ends, axis=-1), axis=-1)


_erfc = np.vectorize(math.erfc, otypes=[float])


def _normal(z: Floats) -> tuple[Floats, Floats]:
    """The normal distribution and its density."""
    return 0.5 * _erfc(-z / math.sqrt(2.0)), np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _start(table: _Counts, counts: Floats) -> Floats:
    """A line through the mean logarithms of time by size, never negative, weighted relatively."""
    edges = table.edges
    middles = np.concatenate([[edges[0]], (edges[1:] + edges[:-1]) / 2, [edges[-1]]])
    ios = counts.sum(axis=1)
    some = ios > 0
    times = np.exp((counts[some] @ middles) / ios[some])
    sizes = table.sizes[some].mean(axis=1)
    weights = np.sqrt(ios[some]) / times
    columns = np.stack([weights, weights * sizes], axis=1)
    a0, a1 = np.linalg.lstsq(columns, weights * times, rcond=None)[0]
    a0 = max(float(a0), 0.05 * float(times.min()))
    a1 = max(float(a1), 0.05 * float((times / sizes).min()))
    return np.log([a0, a1, 0.4])


def _fitted(table: _Counts, counts: Floats, law: Floats) -> Floats:
    """Fisher's scoring: each step solves information × step = score, halved until the likelihood does not fall."""
    likelihood = _log_likelihood(table, counts, law)
    for _ in range(_STEPS):
        gradient, information = _score(table, counts[None], law)
        step = np.linalg.lstsq(information[0], gradient[0], rcond=1e-12)[0]
        step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-300))
        law, likelihood, moved = _climbed(table, counts, law, likelihood, step)
        if moved < 1e-7:
            break
    return law


def _score(table: _Counts, counts: Floats, law: Floats) -> tuple[Floats, Floats]:
    """Score and expected information of each block of counts."""
    shares, slopes = _shares(table, law)
    known = shares > _FLOOR
    relative = np.where(known, slopes / np.where(known, shares, 1.0), 0.0)
    gradient = np.einsum("dbt,kbt->kd", relative, counts)
    by_size = np.einsum("abt,dbt->bad", relative, slopes)
    return gradient, np.einsum("bad,kb->kad", by_size, counts.sum(axis=2))


def _resampled(table: _Counts, best: Floats) -> Floats:
    """The law of each resample of blocks, one step of scoring away from that of all."""
    blocks = len(table.counts)
    if blocks < 2:
        return np.empty((0, len(best)))
    drawn = draws(blocks)
    gradient, information = _score(table, table.counts, best)
    steps = np.linalg.pinv(np.tensordot(drawn, information, 1), hermitian=True) @ (drawn @ gradient)[..., None]
    return np.asarray(best + steps[..., 0])


def _climbed(
    table: _Counts, counts: Floats, law: Floats, likelihood: float, step: Floats
) -> tuple[Floats, float, float]:
    """The longest halving of a step that does not make the counts less likely, and how far it went."""
    for halvings in range(12):
        tried = law + step / 2**halvings
        value = _log_likelihood(table, counts, tried)
        if value >= likelihood:
            return tried, value, float(np.abs(tried - law).max())
    return law, likelihood, 0.0


def _estimate(
    table: _Counts, counts: Floats, law: Floats, again: Floats, targets: int, blocks_are_days: bool
) -> CostEstimate:
    pair = np.exp(law[:2])
    blocks = len(table.counts)
    ends = [interval(again[:, place], float(pair[place])) for place in range(2)]
    used = table.sizes[counts.sum(axis=1) >= FEWEST_IOS / 10].mean(axis=1)
    sizes = tuple(sorted(used.tolist() or table.sizes.mean(axis=1).tolist()))
    apart = sizes[-1] >= SIZES_APART * sizes[0]
    sure = tuple(
        name
        for name, value, end in zip(COEFFICIENTS, pair, ends, strict=True)
        if apart and is_narrow(float(value), end)
    )
    words = ["one at a time: how many a target serves at once is not known", f"sigma {math.exp(law[2]):.2g}"]
    if not apart:
        words.append(f"sizes of {size_words(sizes)} only")
    return CostEstimate(
        evidence=LATENCY,
        latency_s=float(pair[0]),
        s_per_byte=float(pair[1]),
        latency_interval_s=ends[0],
        s_per_byte_interval=ends[1],
        identified=sure,
        upper_bound=False,
        one_at_a_time=True,
        blocks=blocks,
        ticks=round(float(counts.sum())),
        targets=targets,
        sizes_bytes=sizes,
        in_flight=None,
        note="; ".join([*words, resampled_words(blocks, blocks_are_days)]),
    )
