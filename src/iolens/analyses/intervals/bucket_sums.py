"""Sums by time bucket and other keys, of parts of days that are put together.

A row is in the bucket in which its interval starts, and in the part of the day in which it ends: neighbouring parts may
have rows of one bucket, which are added up when all are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iolens.analyses.intervals.target_rows import codes
from iolens.arrays import Columns, Integers
from iolens.units import SECOND_US


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
