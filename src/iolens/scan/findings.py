"""What a scan has found, or a part of it: exact sums, inodes with several names, what could not be read.

Findings add up: steps of one process, parts of several nodes, a journal read back. `plain` is their text form, for the
journal and for saved parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from iolens.scan.inodes import SAVED, TYPES, Inodes, count, rows_of
from iolens.scan.linked_inodes import LinkedInodes
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import ENDS, BinSum, InodeCounts

PLACES_KEPT: Final = 1000  # places that are named; the others are counted
LINKS_PER_PIECE: Final = 20_000
SUMS_PER_PIECE: Final = 100_000
MOST_BYTES: Final = 1000 * LARGEST  # of one sum: several rows hold it
_COUNTS: Final = ("names", "vanished", "excluded", "unreadable")
_LISTS: Final = ("unreadable_places", "other_filesystems", "snapshots")


class FaultyPlace(NamedTuple):
    """Where something is, and what is wrong with it."""

    path: str
    reason: str


@dataclass(slots=True)
class Findings:
    """Sums so far. Hard-linked inodes are in `links` and not in `counts` until `settle`."""

    counts: InodeCounts
    links: LinkedInodes = field(default_factory=LinkedInodes)
    names: int = 0  # entries of directories looked at, and the root
    vanished: int = 0  # listed, and gone when they were looked at
    excluded: int = 0
    unreadable: int = 0
    unreadable_places: list[FaultyPlace] = field(default_factory=list)  # the first ones
    other_filesystems: list[FaultyPlace] = field(default_factory=list)  # mount points not entered
    snapshots: list[FaultyPlace] = field(default_factory=list)  # directories that look like snapshots, and were counted

    def cannot_read(self, path: str, reason: str, count: int = 1) -> None:
        """Count what could not be read, and name it if there are not too many yet."""
        self.unreadable += count
        if len(self.unreadable_places) < PLACES_KEPT:
            self.unreadable_places.append(FaultyPlace(path, reason))

    def add(self, other: Findings) -> None:
        """Add what another process or node, or an earlier step, found."""
        codes = {code: self.counts.code(*group) for group, code in other.counts.groups.items()}
        self.counts.merge(other.counts)
        self.links.merge(other.links, codes, self.counts.groups)
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _LISTS:
            kept: list[FaultyPlace] = getattr(self, name)
            kept += getattr(other, name)[: max(0, PLACES_KEPT - len(kept))]

    def settle_complete(self) -> None:
        """Count hard-linked inodes all of whose names were seen: no other part of the scan will meet them."""
        count(self.links.split_off_complete(self.counts.groups), self.counts)

    def settle(self) -> Links:
        """Count every hard-linked inode once: nothing is to be added any more."""
        rows = self.links.rows(self.counts.groups)
        count(rows, self.counts)
        self.links = LinkedInodes()
        return Links(len(rows), int(rows["seen"].sum()))

    def plain(self) -> Iterator[dict[str, Any]]:
        """Pieces of JSON that `from_plain` adds up to the same again."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        lists = {name: getattr(self, name) for name in _LISTS}
        sums = [[*key, *bin_sum] for key, bin_sum in self.counts.sums.items()]
        yield {"groups": list(self.counts.groups), "sums": sums[:SUMS_PER_PIECE]} | counts | lists
        for begin in range(SUMS_PER_PIECE, len(sums), SUMS_PER_PIECE):
            yield {"groups": list(self.counts.groups), "sums": sums[begin : begin + SUMS_PER_PIECE]}
        rows = self.links.rows(self.counts.groups)
        for begin in range(0, len(rows), LINKS_PER_PIECE):
            piece = rows[begin : begin + LINKS_PER_PIECE]
            yield {"groups": list(self.counts.groups), "links": {name: piece[name].tolist() for name in SAVED}}


class Links(NamedTuple):
    """Inodes with several names, and how many of those names were met."""

    inodes: int
    names: int


def from_plain(time_us: int, plain: Any) -> Findings:
    """Findings of one piece; ValueError where it is not such a piece."""
    try:
        return _from_plain(time_us, plain)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not findings of a scan ({type(error).__name__}: {error})") from error


def _from_plain(time_us: int, plain: Any) -> Findings:
    findings = Findings(InodeCounts(time_us))
    for owner, project, inode_type in plain["groups"]:
        findings.counts.code(_name(owner), _name(project), _choice(inode_type, TYPES.values()))
    groups = len(findings.counts.groups)
    if groups != len(plain["groups"]):
        raise ValueError("the same group twice")
    for code, histogram, place, inodes, size, allocated in plain.get("sums", ()):
        ends = ENDS[_choice(histogram, ENDS)]
        bin_sum = BinSum(_number(inodes, LARGEST), _bytes(size), _bytes(allocated))
        findings.counts.add_sum(_number(code, groups - 1), histogram, _number(place, len(ends)), bin_sum)
    if "links" in plain:
        findings.links.add(_links(plain["links"], groups), findings.counts.groups)
    for name in _COUNTS:
        setattr(findings, name, _number(plain.get(name, 0), LARGEST))
    for name in _LISTS:
        setattr(findings, name, [FaultyPlace(str(path), str(reason)) for path, reason in plain.get(name, ())])
    return findings


def _links(plain: dict[str, list[Any]], groups: int) -> Inodes:
    columns = {name: [_whole(value) for value in plain[name]] for name in SAVED}
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("columns of different length")
    if not all(0 <= code < groups for code in columns["code"]):
        raise ValueError("a group that is not there")
    return rows_of(columns)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value


def _number(value: Any, largest: int) -> int:
    if not 0 <= _whole(value) <= largest:
        raise ValueError(f"{value!r} is out of range")
    return int(value)


def _bytes(value: Any) -> int | None:
    return None if value is None else _number(value, MOST_BYTES)


def _name(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{value!r} is no name")
    return value


def _choice(value: Any, known: Any) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is not known")
    return str(value)
