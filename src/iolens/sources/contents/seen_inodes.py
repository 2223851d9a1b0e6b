"""Which inodes a listing has named before: a hard-linked file has several names and counts once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

InodeNumbers = NDArray[np.uint64]
_GROWTH: Final = 2  # a run is merged into the one before it unless that is so many times longer


class SeenInodes:
    """Inode numbers met so far, in sorted runs of which each is longer than the next: eight bytes per inode."""

    def __init__(self) -> None:
        self._runs: list[InodeNumbers] = []

    def first_seen(self, inodes: InodeNumbers) -> NDArray[np.bool_]:
        """Which places of `inodes` hold a number that was not met before, nor at an earlier place."""
        values, places = np.unique(inodes, return_index=True)
        new = np.ones(len(values), np.bool_)
        for run in self._runs:
            new &= ~_held(run, values)
        array = np.zeros(len(inodes), np.bool_)
        array[places[new]] = True
        self._remember(values[new])
        return array

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def _remember(self, values: InodeNumbers) -> None:
        if not len(values):
            return
        self._runs.append(values)
        while len(self._runs) > 1 and len(self._runs[-2]) < _GROWTH * len(self._runs[-1]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(np.sort(np.concatenate((before, last)), kind="stable"))  # two runs: merged, not sorted


def _held(run: InodeNumbers, values: InodeNumbers) -> Any:
    places = np.searchsorted(run, values)
    return run[np.minimum(places, len(run) - 1)] == values
