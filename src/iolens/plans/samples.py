"""An input that is a statistic of samples: the median WAF of drives, the 95th percentile of days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from iolens.analyses.results import not_in_json
from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.models.bootstrap import RESAMPLES, SEED, interval95, portions
from iolens.plans.inputs import Input

STATISTICS: Final[dict[str, Callable[..., Any]]] = {
    "mean": np.mean,
    "median": np.median,
    "p95": lambda values, axis: np.percentile(values, 95.0, axis=axis, method="linear"),
    "max": np.max,
}
WEIGHTED: Final = "fleet"  # the mean, each drive by the bytes written to it


@dataclass(frozen=True, slots=True)
class Statistic(Input):
    """A distribution of which one statistic is expected; its ends are the middle 95 % over resampled samples."""

    statistic: str = "mean"
    weights: Floats | None = not_in_json()

    def draws(self, random: np.random.Generator, count: int = RESAMPLES) -> Floats:
        """The statistic of `count` resamples."""
        assert self.samples is not None
        return _resampled(self.samples, self.statistic, self.weights, random, count)


def statistic(
    name: str, which: str, samples: Sequence[float], origin: str, weights: Sequence[float] | None = None
) -> Statistic:
    """`mean`, `median`, `p95` or `max` of samples, or with weights `fleet`."""
    known = (*STATISTICS, *((WEIGHTED,) if weights is not None else ()))
    if which not in known:
        raise UsageError(f"{name}: {which!r} is neither a number, a range nor one of {', '.join(known)}")
    values = np.asarray(samples, dtype=np.float64)
    if not values.size:
        raise UsageError(f"{name}: there are no samples to take the {which} of ({origin})")
    heavy = None if weights is None or which != WEIGHTED else np.asarray(weights, dtype=np.float64)
    ends = interval95(_resampled(values, which, heavy, np.random.default_rng(SEED), RESAMPLES))
    expected = float(_of(values[None, :], which, None if heavy is None else heavy[None, :])[0])
    words = f"{which} of {origin}"
    return Statistic(name, "distribution", ends[0], expected, ends[1], words, values, which, heavy)


def _resampled(samples: Floats, which: str, weights: Floats | None, random: np.random.Generator, count: int) -> Floats:
    parts = []
    for size in portions(count, samples.size):
        places = random.integers(0, samples.size, (size, samples.size))
        parts.append(_of(samples[places], which, None if weights is None else weights[places]))
    return np.concatenate(parts)


def _of(rows: Floats, which: str, weights: Floats | None) -> Floats:
    if weights is not None:
        return np.asarray((rows * weights).sum(axis=1) / weights.sum(axis=1))
    return np.asarray(STATISTICS[which](rows, axis=1), dtype=np.float64)
