"""What a scan counts and what it has found: exact sums, inodes with several names."""

from __future__ import annotations

import fnmatch
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.config import ProjectRule
from iolens.scan.inodes import (
    DIRECTORY,
    IMPOSSIBLE,
    INODE,
    ROWS,
    SAVED,
    TYPES,
    Inodes,
    copy_rows,
    count,
    group_key,
    joined,
    of_key,
    rows_of,
    type_of,
)
from iolens.scan.mounts import owner_name
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import ENDS, BinSum, Group, InodeCounts

# What a scan counts, and how ------------------------------------------------------------------------------------------
# The root, what is left out, whose projects, and which share of a scan by several nodes.
#
# Directories are named by their path relative to the root.

ROOT: Final = ""  # the relative path of the directory a scan begins with


class ScanPart(NamedTuple):
    """Which directories are ours when several nodes share a scan: those at most `depth` deep are dealt out by a hash
    of their path, deeper ones go with the one they are in.
    """

    number: int = 1
    of: int = 1
    depth: int = 2

    def is_ours(self, directory: str) -> bool:
        """Whether a directory that is at most `depth` deep is counted here."""
        return self.of == 1 or zlib.crc32(os.fsencode(directory)) % self.of == self.number - 1

    def is_dealt_out(self, directory: str) -> bool:
        """Whether a directory is dealt out by itself."""
        return self.of > 1 and depth(directory) <= self.depth


@dataclass(frozen=True, slots=True)
class WalkRule:
    """What is counted, and how."""

    root: str  # absolute
    time_us: int  # ages count back from here
    device: int  # st_dev of the root
    cross_filesystems: bool = False
    mount_points: frozenset[str] = frozenset()  # below the root, relative to it
    exclude: tuple[str, ...] = ()
    projects: ProjectRule = field(default_factory=ProjectRule)
    project_ids: bool = False
    part: ScanPart = ScanPart()
    pieces: Path | None = None  # where entries with their paths are kept


class Exclusion:
    """Patterns of what is left out: one with a slash is of paths below the root, any other of names."""

    def __init__(self, patterns: Sequence[str]) -> None:
        nothing = r"(?!)"
        names = [fnmatch.translate(pattern) for pattern in patterns if "/" not in pattern]
        paths = [fnmatch.translate("/" + pattern.strip("/")) for pattern in patterns if "/" in pattern]
        self._names, self._paths = re.compile("|".join(names) or nothing), re.compile("|".join(paths) or nothing)
        self._is_empty = not patterns

    def __bool__(self) -> bool:
        return not self._is_empty

    def covers(self, directory: str, name: str) -> bool:
        """Whether an entry of a directory is left out."""
        return bool(self._names.fullmatch(name) or self._paths.fullmatch("/" + inside(directory, name)))


def inside(directory: str, name: str) -> str:
    """The path of an entry."""
    return f"{directory}/{name}" if directory else name


def depth(directory: str) -> int:
    """0 for the root."""
    return directory.count("/") + 1 if directory else 0


# Inodes with several names --------------------------------------------------------------------------------------------
# Each counts once, whoever met which of its names, on whatever node.

_FEWEST: Final = 65536  # names: not worth sorting before


class LinkedInodes:
    """One row per inode: who and how large it is, how many names it has (`links`) and how many of them were `seen`.

    Of names in several projects, the project counts that is first in the alphabet, no project being last: the answer
    does not depend on the order in which they were met. Codes are those of the `InodeCounts` beside it.
    """

    def __init__(self) -> None:
        self._rows: Inodes = np.empty(0, INODE)
        self._new: list[Inodes] = []
        self._new_count = 0

    def add(self, rows: Inodes, groups: Mapping[Group, int]) -> None:
        """Names just met."""
        self._new.append(rows)
        self._new_count += len(rows)
        if self._new_count > max(_FEWEST, len(self._rows)):
            self._gather(groups)

    def merge(self, other: LinkedInodes, codes: Mapping[int, int], groups: Mapping[Group, int]) -> None:
        """Names met elsewhere; `codes` gives our code for each of theirs."""
        rows = joined((other._rows, *other._new))
        if not len(rows):
            return
        ours = np.zeros(max(codes) + 1, np.int64)
        ours[list(codes)] = list(codes.values())
        rows["code"] = ours[rows["code"]]
        self.add(rows, groups)

    def rows(self, groups: Mapping[Group, int]) -> Inodes:
        """One row per inode."""
        self._gather(groups)
        return self._rows

    def _gather(self, groups: Mapping[Group, int]) -> None:
        if not self._new_count:
            return
        rows = joined((self._rows, *self._new))
        rows = rows[np.lexsort((_ranks(groups)[rows["code"]], rows["inode"], rows["device"]))]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (rows["inode"][1:] != rows["inode"][:-1]) | (rows["device"][1:] != rows["device"][:-1])
        starts = np.flatnonzero(is_first)
        kept = rows[starts]
        kept["seen"] = np.add.reduceat(rows["seen"], starts)
        self._rows, self._new, self._new_count = kept, [], 0

    def split_off_complete(self, groups: Mapping[Group, int]) -> Inodes:
        """Remove and return the inodes all of whose names were seen: nobody else will meet them."""
        self._gather(groups)
        is_complete = self._rows["seen"] >= self._rows["links"]
        complete = self._rows[is_complete]
        self._rows = self._rows[~is_complete]
        return complete


def _ranks(groups: Mapping[Group, int]) -> NDArray[np.int64]:
    """The place of each code in the order in which projects are preferred."""
    preferred = sorted(
        groups, key=lambda item: (item.project is None, item.project or "", item.owner or "", item.inode_type)
    )
    ranks = np.zeros(len(groups), np.int64)
    ranks[[groups[group] for group in preferred]] = np.arange(len(groups))
    return ranks


# What a scan has found, or a part of it -------------------------------------------------------------------------------
# Exact sums, inodes with several names, what could not be read.
#
# Findings add up: steps of one process, parts of several nodes, a journal read back. `plain` is their text form, for
# the journal and for saved parts.

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


# The sums of one process of a scan ------------------------------------------------------------------------------------
# Rows of inodes are gathered until they are many, then counted by group.
#
# A group is a project, an owner and a type. Hard-linked inodes are set apart until all of their names may have been
# met.

ROWS_HELD: Final = 16384


class InodeTally:
    """Inodes counted into the `findings` of the step that is under way."""

    def __init__(self, rule: WalkRule) -> None:
        self.rule = rule
        self.project_names: list[str | None] = [None]
        self._project_codes: dict[str | None, int] = {None: 0}
        self._rows: Inodes = np.empty(ROWS_HELD + 2 * ROWS, INODE)  # used again: memory just asked for is slow
        self._begin()

    def _begin(self) -> None:
        self.findings = Findings(InodeCounts(self.rule.time_us))
        self._held = 0
        self._codes: dict[int, int] = {}  # of groups, by key
        self._widths: tuple[list[int], list[int]] = ([], [])

    def end_step(self) -> Findings:
        """All that was counted since the last step."""
        self._count()
        self.findings.counts.add_widths(*self._widths)
        findings = self.findings
        self._begin()
        return findings

    def project_code(self, project: str | None) -> int:
        """The number that stands for a project in rows."""
        code = self._project_codes.get(project)
        if code is None:
            code = self._project_codes[project] = len(self.project_names)
            self.project_names.append(project)
        return code

    def add_width(self, project: int, uid: int, entries: int) -> None:
        """Count a directory by how many entries it has."""
        codes, widths = self._widths
        codes.append(self._group_code(group_key(project, uid, DIRECTORY)))
        widths.append(entries)

    def add_directories(self, rows: Inodes) -> None:
        """Count directories that were opened."""
        self.findings.names += len(rows)
        self._hold(rows)

    def add_entries(self, rows: Inodes) -> None:
        """Count entries that were no directories when they were listed: one that is now has gone."""
        self.findings.names += len(rows)
        is_directory = type_of(rows["key"]) == DIRECTORY
        if is_directory.any():
            self.findings.vanished += int(is_directory.sum())
            rows = rows[~is_directory]
        is_linked = rows["links"] > 1
        if is_linked.any():
            self._set_apart(rows[is_linked])
            rows = rows[~is_linked]
        self._hold(rows)

    def _hold(self, rows: Inodes) -> None:
        begin, self._held = self._held, self._held + len(rows)
        copy_rows(rows, self._rows[begin : self._held])
        if self._held >= ROWS_HELD:
            self._count()

    def _set_apart(self, rows: Inodes) -> None:
        rows = self._countable(rows)
        if not self.rule.cross_filesystems:
            rows["device"] = 0  # nodes number the same device differently
        self.findings.links.add(rows, self.findings.counts.groups)

    def _count(self) -> None:
        if self._held:
            count(self._countable(self._rows[: self._held]), self.findings.counts)
            self._held = 0

    def _countable(self, rows: Inodes) -> Inodes:
        """Inodes whose type has a name and whose size can be, each with its group's code; others are not readable."""
        rows = self._of_possible_size(rows)
        keys, places, counts = np.unique(rows["key"], return_inverse=True, return_counts=True)
        codes = [self._group_code(key) for key in keys.tolist()]
        rows["code"] = np.array(codes, np.int64)[places]
        if min(codes, default=0) >= 0:
            return rows
        for key, code, inodes in zip(keys.tolist(), codes, counts.tolist(), strict=True):
            if code < 0:
                reason = f"{inodes} inodes of unknown type {type_of(key):#o}"
                self.findings.cannot_read(self.rule.root, reason, inodes)
        return rows[rows["code"] >= 0]

    def _of_possible_size(self, rows: Inodes) -> Inodes:
        """Those whose size and allocation a file system can have; the others are counted as not readable."""
        impossible = (rows["size"] < 0) | (rows["allocated"] == IMPOSSIBLE)
        if not impossible.any():
            return rows
        inodes, size = int(impossible.sum()), int(rows["size"][impossible][0])
        reason = f"{inodes} inodes of an impossible size, such as {size} bytes"
        self.findings.cannot_read(self.rule.root, reason, inodes)
        possible: Inodes = rows[~impossible]
        return possible

    def _group_code(self, key: int) -> int:
        """The code of a group; −1 where its type is none we know."""
        if key not in self._codes:
            project, uid, file_type = of_key(key)
            group = owner_name(uid), self.project_names[project], TYPES.get(file_type, "")
            self._codes[key] = self.findings.counts.code(*group) if file_type in TYPES else -1
        return self._codes[key]
