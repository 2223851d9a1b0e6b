"""What a plan rests on: every input is a value, a range or a distribution, and knows where it comes from (SPEC P6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from iolens.analyses.results import not_in_json
from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.models.bootstrap import RESAMPLES, SEED, interval95, resampled_means

OPTION: Final = "option "  # what the origin of an input begins with that was given on the command line
RANGE: Final = ".."  # `100TB..150TB`

Kind = Literal["value", "range", "distribution"]


@dataclass(frozen=True, slots=True)
class Input:
    """One input: its expected value, between which ends it lies, and its origin in words.

    A value has no width. A range is anything between its ends alike, its middle is expected. A distribution is known
    by samples: their mean is expected, and the ends are the middle 95 % of resampled means.
    """

    name: str
    kind: Kind
    low: float
    expected: float
    high: float
    origin: str
    samples: Floats | None = not_in_json()

    def draws(self, random: np.random.Generator, count: int = RESAMPLES) -> Floats:
        """`count` values it may as well have."""
        if self.samples is not None:
            return resampled_means(self.samples, random, count)
        if self.kind == "range":
            return random.uniform(self.low, self.high, count)
        return np.full(count, self.expected)


def value(name: str, number: float, origin: str) -> Input:
    """A number taken as it is."""
    return Input(name, "value", float(number), float(number), float(number), origin)


def between(name: str, low: float, high: float, origin: str) -> Input:
    """A range; its middle is expected."""
    if low > high:
        raise UsageError(f"{name}: the range begins at {low:g} and ends below it, at {high:g}")
    return Input(name, "range", float(low), (low + high) / 2.0, float(high), origin)


def distribution(name: str, samples: Sequence[float] | Floats, origin: str) -> Input:
    """Samples; their mean is expected."""
    values = np.asarray(samples, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise UsageError(f"{name}: there are no samples to take a mean of ({origin})")
    ends = interval95(resampled_means(values, np.random.default_rng(SEED)))
    return Input(name, "distribution", ends[0], float(values.mean()), ends[1], origin, values)


def parse_input(name: str, text: str, parse: Callable[[str], float], origin: str) -> Input:
    """`133TB` as a value, `100TB..150TB` as a range. An error names the option, where one was given."""
    low, dots, high = text.partition(RANGE)
    try:
        return between(name, parse(low), parse(high), origin) if dots else value(name, parse(text), origin)
    except ValueError as error:
        place = origin.removeprefix(OPTION) if origin.startswith(OPTION) else name
        raise UsageError(f"{place}: {error}") from error
