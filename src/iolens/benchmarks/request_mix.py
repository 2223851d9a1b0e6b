"""From shares of request sizes to sizes a benchmark can ask for: whole blocks, few enough, in whole per cents.

A bin stands for requests of its upper end, as in the model's mean; that is what full blocks and full RPCs are. fio
knows whole per cents only: what rounding takes from a size in one job is given back in the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor

from iolens.models.workload_model import DirectionModel

Shares = tuple[tuple[int, float], ...]  # request size in bytes and share of the requests, rising sizes, adding up to 1


def request_sizes(model: DirectionModel, block_bytes: int, most: int) -> Shares:
    """Sizes that can be asked for: whole blocks, at most `most` of them; neighbours are joined where there are more."""
    joined: dict[int, float] = {}
    for upper, share in model.sizes:
        size = max(upper // block_bytes, 1) * block_bytes
        joined[size] = joined.get(size, 0.0) + share
    sizes = [(size, share) for size, share in sorted(joined.items()) if share > 0.0]
    while len(sizes) > most:
        place = min(range(len(sizes) - 1), key=lambda at: sizes[at][1] + sizes[at + 1][1])
        sizes[place : place + 2] = [_joined(sizes[place], sizes[place + 1])]
    total = sum(share for _, share in sizes)
    return tuple((size, share / total) for size, share in sizes)


def _joined(item: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
    """Two sizes as one: that of the more frequent."""
    return max(item, other, key=lambda pair: pair[1])[0], item[1] + other[1]


def mean_bytes(sizes: Shares) -> float:
    """Of a request."""
    return sum(size * share for size, share in sizes)


def most_requests(sizes: Shares) -> int:
    """The size that most requests have."""
    return max(sizes, key=lambda pair: pair[1])[0]


def most_bytes(sizes: Shares) -> int:
    """The size that carries the most bytes."""
    return max(sizes, key=lambda pair: pair[0] * pair[1])[0]


@dataclass(slots=True)
class WholePercents:
    """Shares in whole per cents, several times over: their average over the requests is what was asked for."""

    sizes: Shares
    _owed: list[float] = field(init=False)  # requests that each size should have had so far, less those it had

    def __post_init__(self) -> None:
        self._owed = [0.0] * len(self.sizes)

    def next(self, requests: float) -> dict[int, int]:
        """Per cents by size for the next so many requests; they add up to 100."""
        wanted = [
            max(100.0 * (share + owed / requests), 0.0) for (_, share), owed in zip(self.sizes, self._owed, strict=True)
        ]
        wanted = [100.0 * value / sum(wanted) for value in wanted]
        given = apportioned(wanted, 100)
        for place, ((_, share), percent) in enumerate(zip(self.sizes, given, strict=True)):
            self._owed[place] += requests * (share - percent / 100.0)
        return {size: percent for (size, _), percent in zip(self.sizes, given, strict=True) if percent}


def apportioned(wanted: Sequence[float], total: int) -> list[int]:
    """Whole numbers that add up to `total` as `wanted` does: rounded down, the largest remainders get the rest."""
    given = [floor(value) for value in wanted]
    order = sorted(range(len(wanted)), key=lambda place: given[place] - wanted[place])
    for place in order[: total - sum(given)]:
        given[place] += 1
    return given
