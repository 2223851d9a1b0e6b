"""Sums of targets in columns, such that those of several parts can be put together, and by time bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.buckets import local_days
from iolens.arrays import Columns, Integers
from iolens.units import SECOND_US

# Sums of targets in columns, such that those of several days can be put together and written --------------------------

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


# Sums by time bucket and other keys, of parts of days that are put together -------------------------------------------
# A row is in the bucket in which its interval starts, and in the part of the day in which it ends: neighbouring parts
# may have rows of one bucket, which are added up when all are known.


@dataclass(slots=True)
class BucketSums:
    """Columns of equal length: keys, of which `bucket` is one, and doubles; a text is its number among `texts`."""

    bucket_s: int
    keys: tuple[str, ...]
    texts: dict[str, list[str]]
    pieces: list[Columns]

    @classmethod
    def of(cls, rows: Columns, bucket_s: int, keys: tuple[str, ...], summed: Sequence[str]) -> BucketSums:
        """What the engine gives by these keys; an unknown sum is zero."""
        coded = {name: codes(rows[name]) for name in keys if rows[name].dtype == object}
        columns = {name: coded[name][1] if name in coded else rows[name] for name in (*keys, *summed)}
        return cls(bucket_s, keys, {name: names for name, (names, _) in coded.items()}, [_added_up(columns, keys)])

    @property
    def bucket_us(self) -> int:
        """Width of a bucket."""
        return self.bucket_s * SECOND_US

    def take(self, later: BucketSums) -> None:
        """Sums of the same keys and width."""
        places = {name: self._places(name, texts) for name, texts in later.texts.items()}
        self.pieces += [
            {name: places[name][values] if name in places else values for name, values in piece.items()}
            for piece in later.pieces
        ]

    def wider(self, bucket_s: int) -> BucketSums:
        """The same in buckets of a multiple of the width."""
        columns = self._columns()
        columns["bucket"] = columns["bucket"] // (bucket_s // self.bucket_s)
        return BucketSums(bucket_s, self.keys, self.texts, [_added_up(columns, self.keys)])

    def without(self, key: str) -> BucketSums:
        """Added up over one of the keys."""
        keys = tuple(name for name in self.keys if name != key)
        columns = {name: values for name, values in self._columns().items() if name != key}
        return BucketSums(self.bucket_s, keys, self.texts, [_added_up(columns, keys)])

    def rows(self) -> Columns:
        """One row for each key."""
        columns = _added_up(self._columns(), self.keys)
        return columns | {name: np.array(texts, dtype=object)[columns[name]] for name, texts in self.texts.items()}

    def _columns(self) -> Columns:
        return {name: np.concatenate([piece[name] for piece in self.pieces]) for name in self.pieces[0]}

    def _places(self, name: str, texts: Sequence[str]) -> Integers:
        """Where another part's texts are among these; new ones are added."""
        place = {text: number for number, text in enumerate(self.texts[name])}
        places = [place.setdefault(text, len(place)) for text in texts]
        self.texts[name] = list(place)
        return np.array(places, np.int64)


def _added_up(columns: Columns, keys: Sequence[str]) -> Columns:
    """One row for each key, in the keys' order."""
    if not len(columns[keys[0]]):
        return columns
    numbered = [np.unique(columns[name], return_inverse=True) for name in keys]
    key = np.ravel_multi_index([number for _, number in numbered], [len(values) for values, _ in numbered])
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    return {
        name: values[first] if name in keys else np.bincount(where, weights=np.nan_to_num(values))
        for name, values in columns.items()
    }
