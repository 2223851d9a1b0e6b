"""Disk time of one interval as engine expressions: the transaction model on counts by size, or on plain counters.

Eq. 7 takes each I/O at its bin's label (U7). Because the model is linear, true counts of operations and bytes do as
well (U9): T = w0·N_w + w1·B_w + r0·N_r + r1·B_r. The two never mix: they are different numbers with different names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import narwhals as nw

from iolens.models.transaction_time import SIZE_COLUMNS, Calibration, added, time_terms
from iolens.schema import DIRECTIONS
from iolens.units import MIB

OUTSIDE_COLUMNS: Final = tuple(f"{direction}_ios_outside" for direction in DIRECTIONS)


class DiskTime(Protocol):
    """What a model asks of the rows of its table."""

    @property
    def table(self) -> str:
        """The table the rows come from."""

    @property
    def counted(self) -> Sequence[str]:
        """Columns that are summed beside the model's own numbers."""

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The rows the model can be computed of."""

    def parts(self) -> list[nw.Expr]:
        """Columns made of a row's counts, from which the rest follows."""

    def ios(self) -> nw.Expr:
        """I/Os of the row, from its parts."""

    def outside(self) -> nw.Expr:
        """I/Os the model knows nothing of, from the row itself."""

    def busy(self, calibration: Calibration) -> nw.Expr:
        """FSU times duration, from the parts: 100 × seconds of disk time (Eq. 5)."""

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """The same if the bytes of all smaller I/Os had come in 1 MiB I/Os (U8)."""


@dataclass(frozen=True, slots=True)
class HistogramTime:
    """Every I/O at the upper bound of its size bin, over the bins that ever counted (Eq. 7)."""

    live: Sequence[str]
    live_outside: Sequence[str]
    table: str = "target_sizes"

    @property
    def counted(self) -> Sequence[str]:
        """The size bins."""
        return self.live

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """All of them: a bin that is not there counted nothing."""
        return frame

    def parts(self) -> list[nw.Expr]:
        """I/Os and bytes (by the bins' labels) of each group: the model needs no more, and each bin is read once."""
        parts = []
        for group, names in self._groups().items():
            counts = [nw.col(name).cast(nw.Float64) for name in names]
            moved = [nw.col(name).cast(nw.Float64) * number(SIZE_COLUMNS[name][1]) for name in names]
            parts += [total(counts).alias(f"{group}_ios"), total(moved).alias(f"{group}_bytes")]
        return parts

    def ios(self) -> nw.Expr:
        """Over all groups."""
        return total([nw.col(f"{group}_ios") for group in self._groups()])

    def outside(self) -> nw.Expr:
        """I/Os in bins no column exists for."""
        return total([nw.col(name).cast(nw.Float64) for name in self.live_outside])

    def busy(self, calibration: Calibration) -> nw.Expr:
        """Over all groups."""
        return total([_as_observed(group, calibration) for group in self._groups()])

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """Bins above 1 MiB stay as they are."""
        return total(
            [
                _as_observed(group, calibration) if group.startswith("large") else _as_optimal(group, calibration)
                for group in self._groups()
            ]
        )

    def _groups(self) -> dict[str, list[str]]:
        """Live bins by direction, and by whether they are larger than the optimal 1 MiB."""
        groups: dict[str, list[str]] = {}
        for name in self.live:
            direction, size = SIZE_COLUMNS[name]
            groups.setdefault(f"{'large' if size > MIB else 'small'}_{direction}", []).append(name)
        return groups


@dataclass(frozen=True, slots=True)
class CounterTime:
    """Operations and bytes as a disk counted them (U9)."""

    table: str = "target_io"
    counted: Sequence[str] = ()

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Those of disks that counted both operations and bytes in both directions."""
        for direction in DIRECTIONS:
            frame = frame.filter(~nw.col(f"{direction}_ops").is_null() & ~nw.col(f"{direction}_bytes").is_null())
        return frame

    def parts(self) -> list[nw.Expr]:
        """Operations and bytes by direction."""
        columns = [
            (f"all_{direction}_{part}", f"{direction}_{name}") for direction in DIRECTIONS for part, name in _COUNTERS
        ]
        return [nw.col(name).cast(nw.Float64).alias(part) for part, name in columns]

    def ios(self) -> nw.Expr:
        """Reads and writes."""
        return total([nw.col(f"all_{direction}_ios") for direction in DIRECTIONS])

    def outside(self) -> nw.Expr:
        """None: there are no bins."""
        return number(0.0)

    def busy(self, calibration: Calibration) -> nw.Expr:
        """Over both directions."""
        return total([_as_observed(f"all_{direction}", calibration) for direction in DIRECTIONS])

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """By direction and interval: as observed where the mean I/O is larger than 1 MiB."""
        terms = []
        for group in (f"all_{direction}" for direction in DIRECTIONS):
            is_large = nw.col(f"{group}_bytes") > nw.col(f"{group}_ios") * number(MIB)
            observed, optimal = _as_observed(group, calibration), _as_optimal(group, calibration)
            terms.append(nw.when(is_large).then(observed).otherwise(optimal))
        return total(terms)


_COUNTERS: Final = (("ios", "ops"), ("bytes", "bytes"))


def _as_observed(group: str, calibration: Calibration) -> nw.Expr:
    cost = calibration.of(group.partition("_")[2])
    per_cent = (number(100.0 * coefficient) for coefficient in (cost.latency_s, cost.s_per_byte))
    return added(time_terms(nw.col(f"{group}_ios"), nw.col(f"{group}_bytes"), *per_cent))


def _as_optimal(group: str, calibration: Calibration) -> nw.Expr:
    cost = calibration.of(group.partition("_")[2])
    return nw.col(f"{group}_bytes") * number(100.0 * cost.seconds_as_optimal(MIB) / MIB)


def number(value: float) -> nw.Expr:
    """A double, so that no engine makes it a decimal."""
    return nw.lit(float(value), nw.Float64)


def total(terms: Sequence[nw.Expr]) -> nw.Expr:
    """The sum of the terms, zero of none."""
    return added(terms) if terms else number(0.0)
