"""Inodes counted into rows of `contents`: by owner, project and type, each once however many names it has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.config import ProjectRule
from iolens.records import Rows
from iolens.schema import LARGEST

# Which inodes a listing has named before ------------------------------------------------------------------------------
# A hard-linked file has several names and counts once.

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


# Which project an inode belongs to ------------------------------------------------------------------------------------
# By the directory it is in, or by the project id its file system keeps.

NO_PROJECT_ID: Final = 0  # what file systems say for "none"


class Projects:
    """A rule, ready to be asked many times."""

    def __init__(self, rule: ProjectRule) -> None:
        self._directories = [re.compile(_expression(directory), re.DOTALL) for directory in rule.directories]
        self._ids = rule.ids

    @property
    def has_directories(self) -> bool:
        """Whether a path can tell a project at all."""
        return bool(self._directories)

    def of_path(self, path: str) -> str | None:
        """The project of an absolute path: of the directory that a rule names, and of everything below it."""
        for directory in self._directories:
            if match := directory.match(path):
                return match["project"]
        return None

    def of_id(self, project_id: int | str | None) -> str | None:
        """The project of an id; its number where the configuration has no name for it."""
        if project_id is None or str(project_id) == str(NO_PROJECT_ID):
            return None
        return self._ids.get(str(project_id), str(project_id))


def _expression(directory: str) -> str:
    pieces = {"{project}": r"(?P<project>[^/]+)", "*": r"[^/]+"}
    parts = re.split(r"(\{project\}|\*)", directory)
    return "".join(pieces.get(part, re.escape(part)) for part in parts) + r"(?:/|\Z)"


# Inodes counted into rows of `contents` -------------------------------------------------------------------------------
# By owner, project and type, in bins of size, age and directory width.
#
# Whatever lists inodes one by one (a scan, `find`, Robinhood, a policy listing) counts through here, so that all of
# them agree on the bins and none keeps a path.

TABLE: Final = "contents"
HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S
SIZE, WIDTH, ATIME, MTIME = "size", "width", "atime", "mtime"
# Upper ends of the bins. What fits no bin is in the last one, which has no end.
POWERS: Final[tuple[int, ...]] = (0, *(2**power for power in range(63)))
AGES_DAYS: Final = (
    1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 28, 30, 42, 56, 60, 84, 90, 112, 120, 150, 180, 270, 365, 540, 730, 1095, 1460,
    1825, 2555, 3650,
)  # fmt: skip
AGES: Final[tuple[int, ...]] = (0, HOUR_S, 6 * HOUR_S, *(days * DAY_S for days in AGES_DAYS))
ENDS: Final[Mapping[str, tuple[int, ...]]] = {SIZE: POWERS, WIDTH: POWERS, ATIME: AGES, MTIME: AGES}

Numbers = NDArray[np.int64]
_EDGES: Final[Mapping[str, Numbers]] = {name: np.array(ends, np.int64) for name, ends in ENDS.items()}


class Group(NamedTuple):
    """Whose inodes, and of what type."""

    owner: str | None
    project: str | None
    inode_type: str


class BinSum(NamedTuple):
    """Inodes of one bin; bytes are None where they were not reported."""

    inodes: int
    size: int | None
    allocated: int | None

    def plus(self, other: BinSum) -> BinSum:
        """Both together; what one of them does not tell, the sum does not tell."""
        return BinSum(self.inodes + other.inodes, _plus(self.size, other.size), _plus(self.allocated, other.allocated))

    def pieces(self) -> Iterator[tuple[int | None, BinSum]]:
        """Itself, or as many numbered sums as it takes for each to fit a signed number of 64 bits."""
        count = -(-max(self.size or 0, self.allocated or 0) // LARGEST)
        if count <= 1:
            yield None, self
            return
        for number in range(count):
            parts = (None if value is None else (value + number) // count for value in self)
            yield number + 1, BinSum(*parts)  # type: ignore[arg-type]  # inodes are never None


@dataclass(slots=True)
class InodeCounts:
    """Sums by group, histogram and bin; exact, however many inodes there are. `time_us`: ages count back from here."""

    time_us: int
    groups: dict[Group, int] = field(default_factory=dict)
    sums: dict[tuple[int, str, int], BinSum] = field(
        default_factory=dict
    )  # by code of the group, histogram, bin's place

    def code(self, owner: str | None, project: str | None, inode_type: str) -> int:
        """The number that stands for a group in `add`."""
        return self.groups.setdefault(Group(owner, project, inode_type), len(self.groups))

    def add(
        self,
        codes: Sequence[int] | Numbers,
        sizes: Sequence[int] | Numbers,
        allocated: Sequence[int] | Numbers | None = None,
        *,
        atimes_s: Sequence[int] | Numbers | None = None,
        mtimes_s: Sequence[int] | Numbers | None = None,
    ) -> None:
        """Count inodes, one per place of the sequences; times are whole seconds since 1970. None: not reported."""
        group, size = _whole(codes), _whole(sizes)
        space = None if allocated is None else _whole(allocated)
        self._count(SIZE, group, size, size, space)
        for histogram, times in ((ATIME, atimes_s), (MTIME, mtimes_s)):
            if times is not None:
                ages = self.time_us // 1_000_000 - _whole(times)
                self._count(histogram, group, ages, size, space)

    def add_widths(self, codes: Sequence[int] | Numbers, widths: Sequence[int] | Numbers) -> None:
        """Count directories by how many entries they have."""
        self._count(WIDTH, _whole(codes), _whole(widths), None, None)

    def add_sum(self, code: int, histogram: str, place: int, bin_sum: BinSum) -> None:
        """Count inodes that something else, such as a database, put into a bin: the bin's place among `ENDS`."""
        key = code, histogram, place
        before = self.sums.get(key)
        self.sums[key] = bin_sum if before is None else before.plus(bin_sum)

    def merge(self, other: InodeCounts) -> None:
        """Add another part of the same scan. Its ages must count from the same time."""
        if other.time_us != self.time_us:
            raise ValueError("parts of one scan count ages from the same time")
        codes = {code: self.code(*group) for group, code in other.groups.items()}
        for (code, histogram, place), bin_sum in other.sums.items():
            self.add_sum(codes[code], histogram, place, bin_sum)

    def rows(self, filesystem: str, scan: str | None = None) -> Iterator[Rows]:
        """All bins that hold something, in order; one whose bytes no column can hold takes several rows."""
        names = list(self.groups)
        bin_sums = sorted(self.sums.items(), key=lambda item: (_order(names[item[0][0]]), item[0][1], item[0][2]))
        columns: dict[str, Any] = {name: [] for name in _COLUMNS}
        for (code, histogram, bin_place), whole in bin_sums:
            ends = (None, *ENDS[histogram], None)
            for piece, bin_sum in whole.pieces():
                values = (*names[code], histogram, ends[bin_place], ends[bin_place + 1], piece, *bin_sum)
                for name, value in zip(_COLUMNS, values, strict=True):
                    columns[name].append(value)
        if count := len(columns["count"]):
            columns |= {"time": self.time_us, "filesystem": filesystem, "scan": scan}
            yield Rows(TABLE, columns, count)

    def _count(
        self, histogram: str, group: Numbers, values: Numbers, size: Numbers | None, space: Numbers | None
    ) -> None:
        if not len(group):
            return
        keys = group * _PLACES + np.searchsorted(_EDGES[histogram], values)
        by_key = _dense_sums if int(keys.max()) < _DENSEST * len(keys) and len(keys) <= _EXACT else _sorted_sums
        for key, bin_sum in by_key(keys, size, space):
            self.add_sum(key // _PLACES, histogram, key % _PLACES, bin_sum)


_PLACES: Final = 128  # more than any histogram has bins
_DENSEST: Final = 4  # up to so many keys per inode, counting every key there could be is cheaper than sorting
# Both halves of each number are summed apart, so that nothing overflows before it is a Python int. Up to so many
# numbers the sums of halves are exact in a float too, which is what the dense way adds in.
_EXACT: Final = 1 << 20
_COLUMNS: Final = (
    "owner", "project", "inode_type", "histogram", "bin_from", "bin", "piece", "count", "bytes", "allocated_bytes",
)  # fmt: skip


def _order(group: Group) -> tuple[str, ...]:
    return tuple(part or "" for part in group)


def _plus(value: int | None, other: int | None) -> int | None:
    """A sum is known where all of it is."""
    return None if value is None or other is None else value + other


def _whole(values: Sequence[int] | Numbers) -> Numbers:
    return np.asarray(values, np.int64)


def _dense_sums(keys: Numbers, size: Numbers | None, space: Numbers | None) -> Iterator[tuple[int, BinSum]]:
    """Sums of each key that occurs, where keys are few for so many inodes: no sorting."""
    counts = np.bincount(keys)
    array = np.flatnonzero(counts)

    def sums(values: Numbers | None) -> list[Any]:
        if values is None:
            return [None] * len(array)
        high, low = (np.bincount(keys, half)[array].tolist() for half in (values >> 32, values & 0xFFFFFFFF))
        return [(int(item) << 32) + int(other) for item, other in zip(high, low, strict=True)]

    for key, count, entry, other in zip(array.tolist(), counts[array].tolist(), sums(size), sums(space), strict=True):
        yield key, BinSum(count, entry, other)


def _sorted_sums(keys: Numbers, size: Numbers | None, space: Numbers | None) -> Iterator[tuple[int, BinSum]]:
    """The same where keys are many or far apart."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    counts = np.diff(np.concatenate((starts, [len(keys)])))

    def sums(values: Numbers | None) -> list[Any]:
        if values is None:
            return [None] * len(starts)
        halves = (values[order] >> 32, values[order] & 0xFFFFFFFF)
        high, low = (np.add.reduceat(half, starts).tolist() for half in halves)
        return [(item << 32) + other for item, other in zip(high, low, strict=True)]

    for key, count, entry, other in zip(keys[starts].tolist(), counts.tolist(), sums(size), sums(space), strict=True):
        yield key, BinSum(count, entry, other)
