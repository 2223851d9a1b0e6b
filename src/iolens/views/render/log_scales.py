"""Logarithmic axes and long curves: powers of ten around values, round numbers between, as many points as are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import Axis, LineMark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from iolens.arrays import Floats, Integers
    from iolens.models.tails import TailSample


MOST_POINTS: Final = 600  # of a curve
MOST_TICKS: Final = 9
_SI: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def staircase(places: Floats, shares: Floats, high: float | None, label: str, colour: str) -> LineMark:
    """A cumulative share that jumps where the values are."""
    last = float(places[-1]) if high is None else max(high, float(places[-1]))
    steps = np.repeat(np.append(places, last), 2)[:-1]
    return LineMark(steps, 100.0 * np.append(0.0, np.repeat(shares, 2)), label, colour)


def bytes_unit(top: float) -> tuple[float, str]:
    """The largest power of ten bytes that is not above `top`, and its name."""
    return next((unit for unit in _SI if top >= unit[0]), _SI[-1])


def middle(low: float, high: float) -> float:
    """In the middle on a logarithmic scale."""
    return float(np.sqrt(low * high))


def decades(samples: Iterable[TailSample], scale: float) -> tuple[int, int]:
    """Powers of ten around all values."""
    ends = [end for sample in samples for end in (sample.smallest, sample.largest)]
    return decades_of(scale * np.array(ends))


def decades_of(values: Floats) -> tuple[int, int]:
    """The same of plain values."""
    if not values.size:
        return 0, 1
    first = int(np.floor(np.log10(values.min()) + 1e-9))
    return first, max(int(np.ceil(np.log10(values.max()) - 1e-9)), first + 1)


def log_axis(label: str, values: Floats) -> Axis:
    """From a number to a number of the kind 1, 2, 5, 10 around the values."""
    low, high = decades_of(values)
    numbers = [step * 10.0**power for power in range(low - 1, high + 1) for step in (1.0, 2.0, 5.0)] + [
        10.0 ** (high + 1)
    ]
    if values.size:
        first = max(number for number in numbers if number < values.min())
        last = min(number for number in numbers if number > values.max())
        numbers = [number for number in numbers if first <= number <= last]
    shown = numbers if len(numbers) <= MOST_TICKS else [number for number in numbers if f"{number:e}".startswith("1")]
    return Axis(label, "log", numbers[0], numbers[-1], tuple((value, f"{value:,g}") for value in shown))


def powers(low: int, high: int) -> tuple[tuple[float, str], ...]:
    """Powers of ten to write at an axis."""
    every = max(1, -(-(high - low) // 8))
    return tuple((10.0**power, f"{10.0**power:,g}") for power in range(low, high + 1, every))


def curve_points(size: int) -> Integers:
    """Places of as many points as a curve needs: evenly spread, and all of the last ones."""
    if size <= MOST_POINTS:
        return np.arange(size)
    spread = np.linspace(0, size - 1, MOST_POINTS // 2).astype(np.int64)
    last = size - 1 - np.unique(np.logspace(0, np.log10(size), MOST_POINTS // 2).astype(np.int64) - 1)
    return np.unique(np.concatenate([spread, last[last >= 0]]))
