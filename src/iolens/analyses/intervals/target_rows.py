"""Sums of targets in columns, such that those of several days can be put together and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.days import local_days
from iolens.arrays import Columns, Integers

EXTREMES: Final = {"first_us": np.minimum, "last_us": np.maximum, "longest_s": np.maximum}  # all others are added


@dataclass(slots=True)
class TargetRows:
    """Rows of targets; `target` is a place among the names."""

    names: list[str] = field(default_factory=list)
    columns: Columns = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Columns) -> TargetRows:
        """From rows that name their targets."""
        names, places = codes(rows["target"])
        return cls(names, {**rows, "target": places.astype(np.int32)})

    def rows(self) -> Columns:
        """With the names of targets."""
        return {**self.columns, "target": np.array(self.names, object)[self.columns["target"]]}

    def by(self, *keys: str, sums: tuple[str, ...] = ()) -> TargetRows:
        """Rows of a target with equal keys are one; all other columns, or only those."""
        rows = {name: self.columns[name] for name in ("target", *keys, *sums)} if sums else self.columns
        if not self.names:
            return TargetRows(self.names, rows)
        order = np.lexsort([rows[name] for name in (*keys, "target")])
        ordered = {name: values[order] for name, values in rows.items()}
        changes = np.any([np.diff(ordered[name]) != 0 for name in ("target", *keys)], axis=0)
        starts = np.flatnonzero(np.concatenate([[True], changes]))
        equal = {name: values[starts] for name, values in ordered.items() if name in ("target", *keys)}
        others = ordered.keys() - equal.keys()
        summed = {name: EXTREMES.get(name, np.add).reduceat(ordered[name], starts) for name in others}
        return TargetRows(self.names, equal | summed)

    def wider(self, times: int) -> TargetRows:
        """In buckets that are so many times as wide."""
        columns = self.columns
        return TargetRows(self.names, {**columns, "bucket": columns["bucket"] // times} if columns else {})

    def in_days(self, bucket_us: int, zone: str) -> TargetRows:
        """In calendar days of a time zone, from buckets that do not cross their borders."""
        days = local_days(self.columns["bucket"] * bucket_us, zone)
        return TargetRows(self.names, {**self.columns, "bucket": days}).by("bucket", "tick_s")

    def take(self, later: TargetRows) -> None:
        """Rows of later days."""
        names = sorted({*self.names, *later.names})
        place = {name: number for number, name in enumerate(names)}
        mine, theirs = (part.placed(place) for part in (self, later))
        self.names, self.columns = names, joined(mine, theirs)

    def placed(self, place: dict[str, int]) -> Columns:
        """The columns with other places of the targets."""
        if not self.columns:
            return {}
        places = np.array([place[name] for name in self.names], np.int32)
        return {**self.columns, "target": places[self.columns["target"]]}


def joined(first: Columns, later: Columns) -> Columns:
    """Rows of both, one after the other."""
    if not first or not later:
        return first or later
    return {name: np.concatenate([values, later[name]]) for name, values in first.items()}


def codes(values: NDArray[np.object_]) -> tuple[list[str], Integers]:
    """Distinct names in order, and the place of each value among them."""
    names = sorted(set(values.tolist()))
    place = {name: number for number, name in enumerate(names)}
    return names, np.fromiter((place[value] for value in values), np.int64, len(values))
