"""Records of a listing whose fields are known by their meaning: read as numbers, what cannot be read set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.schema import LARGEST
from iolens.sources.contents.listed_inodes import UNKNOWN, Numbers, type_codes
from iolens.sources.contents.record_fields import RecordText, Spans
from iolens.sources.contents.seen_inodes import InodeNumbers
from iolens.sources.reading.parsed_numbers import shown

TYPE, SIZE, SPACE, ATIME, MTIME = "type", "size", "allocation", "time of access", "time of modification"
INODE, LINKS, DEVICE, OWNER, PATH = "inode", "number of links", "device", "owner", "path"
INODE_DIGITS: Final = 20  # an unsigned number of 64 bits
_SHAPE: Final = -1


class Unread(NamedTuple):
    """A record that could not be read: its place among all, from 0, and why."""

    place: int
    reason: str


class ListedRecords:
    """Some records and their fields. Each column covers all records; `good` says which of them can be used.

    `whole` says which have the fields at all, `expected` what a record looks like, `places` where each stands.
    """

    def __init__(
        self,
        text: RecordText,
        records: Spans,
        places: NDArray[np.int64],
        fields: Mapping[str, Spans],
        whole: NDArray[np.bool_],
        expected: str,
    ) -> None:
        self.text, self.fields = text, fields
        self._records, self._places, self._expected = records, places, expected
        self._meanings = tuple(fields)
        self._failed = np.where(whole, 0, _SHAPE)  # the first field that cannot be read, from 1

    def __len__(self) -> int:
        return len(self._places)

    @property
    def good(self) -> NDArray[np.bool_]:
        """Records of which every field that was asked for could be read."""
        return np.asarray(self._failed == 0)

    def check(self, meaning: str, good: NDArray[np.bool_]) -> None:
        """Set aside records whose field is not `good`."""
        self._failed[(self._failed == 0) & ~good] = self._meanings.index(meaning) + 1

    def types(self, one_letter: bool) -> Numbers:
        """Types by the first letter, or the only one; without such a field all are files."""
        if TYPE not in self.fields:
            return np.zeros(len(self), np.int64)
        values = type_codes(self.text, self.fields[TYPE])
        known = values != UNKNOWN
        self.check(TYPE, known & (self.fields[TYPE].width == 1) if one_letter else known)
        return np.where(known, values, 0)

    def numbers(self, meaning: str, unit: int = 1) -> Numbers | None:
        """Numbers of so many bytes each; None where the field is not reported."""
        if meaning not in self.fields:
            return None
        values, good = self.text.numbers(self.fields[meaning], len(str(LARGEST)))
        self.check(meaning, good & (values <= np.uint64(LARGEST // unit)))
        return values.astype(np.int64) * unit

    def sizes(self) -> Numbers:
        """Sizes in bytes, without which a record counts for nothing."""
        values = self.numbers(SIZE)
        if values is None:
            raise ValueError("a listing tells sizes")
        return values

    def inodes(self) -> InodeNumbers | None:
        """Inode numbers; None where they are not reported."""
        if INODE not in self.fields:
            return None
        values, good = self.text.numbers(self.fields[INODE], INODE_DIGITS)
        self.check(INODE, good)
        return values

    def unread(self) -> list[Unread]:
        """Records that were set aside."""
        return [self._unread(int(place)) for place in np.flatnonzero(self._failed)]

    def _unread(self, place: int) -> Unread:
        failed = int(self._failed[place])
        spans = self._records if failed == _SHAPE else self.fields[self._meanings[failed - 1]]
        value = shown(self.text.of(spans, place).decode("utf-8", "backslashreplace"))
        if failed == _SHAPE:
            return Unread(int(self._places[place]), f"not {self._expected}: {value}")
        return Unread(int(self._places[place]), f"{self._meanings[failed - 1]} {value} cannot be read")
