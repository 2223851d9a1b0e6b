"""Inodes of a listing on their way into `contents`: named types, owners and projects, hard links once, in bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.config import ProjectRule
from iolens.records import Item, Note, Problem
from iolens.sources.contents.inode_counts import InodeCounts
from iolens.sources.contents.projects import Projects
from iolens.sources.contents.record_fields import RecordText, Spans, Words
from iolens.sources.contents.seen_inodes import InodeNumbers, SeenInodes

FILE, DIRECTORY = "file", "dir"
TYPES: Final = (FILE, DIRECTORY, "symlink", "blk", "chr", "fifo", "sock")
# As `find -printf %y` and the first letter of `ls -l` call them.
TYPE_LETTERS: Final = {
    "f": "file", "-": "file", "d": "dir", "l": "symlink", "b": "blk", "c": "chr", "p": "fifo", "s": "sock",
}  # fmt: skip
UNKNOWN: Final = len(TYPES)
_BY_LETTER: Final = np.full(256, UNKNOWN, np.int64)
for _letter, _name in TYPE_LETTERS.items():
    _BY_LETTER[ord(_letter)] = TYPES.index(_name)

Numbers = NDArray[np.int64]


class Names(NamedTuple):
    """A name of every inode: the different names, and the place among them of each inode's."""

    names: Sequence[str | None]
    places: Numbers


NO_NAME: Final[Sequence[str | None]] = (None,)


@dataclass(slots=True)
class InodeColumns:
    """Some inodes, column by column; None: not reported. Types are places in `TYPES`."""

    types: Numbers
    sizes: Numbers
    allocated: Numbers | None = None
    atimes_s: Numbers | None = None
    mtimes_s: Numbers | None = None
    owners: Names | None = None
    projects: Names | None = None
    inodes: InodeNumbers | None = None
    links: Numbers | None = None
    devices: Numbers | None = None

    def of(self, chosen: NDArray[np.bool_]) -> InodeColumns:
        """Some of them, without names."""
        columns = (self.allocated, self.atimes_s, self.mtimes_s, self.links, self.devices)
        allocated, atimes_s, mtimes_s, links, devices = (
            None if column is None else column[chosen] for column in columns
        )
        inodes = None if self.inodes is None else self.inodes[chosen]
        return InodeColumns(
            self.types[chosen],
            self.sizes[chosen],
            allocated,
            atimes_s,
            mtimes_s,
            inodes=inodes,
            links=links,
            devices=devices,
        )


def type_codes(text: RecordText, spans: Spans) -> Numbers:
    """Types by the first letter of a field, as places in `TYPES`; `UNKNOWN` for any other letter."""
    return np.asarray(_BY_LETTER[text.letters(spans)])


def text_of(value: bytes) -> str:
    """A name as it can be stored: bytes that are no UTF-8 are escaped."""
    return value.decode("utf-8", "backslashreplace")


class PathProjects:
    """Projects by the beginning of a path. No more of it is looked at than the deepest rule has parts."""

    def __init__(self, rule: ProjectRule, decode: Callable[[bytes], bytes] = bytes) -> None:
        self._decode = decode
        self._projects = Projects(rule)
        self._depth = max((directory.count("/") for directory in rule.directories), default=0)
        self._known: dict[bytes, str | None] = {}

    @property
    def has_directories(self) -> bool:
        """Whether a path can tell a project at all."""
        return self._projects.has_directories

    def of_id(self, value: bytes) -> str | None:
        """The project of an id, or of what takes its place, such as a fileset."""
        return self._projects.of_id(text_of(self._decode(value)))

    def of(self, text: RecordText, paths: Spans, types: Numbers) -> Names:
        """The project of every path: a directory's own, and of anything else that of the directory it is in."""
        slashes = text.positions(b"/")
        beginning = text.first(slashes, paths, self._depth + 1)
        if slashes.size:
            last = slashes[np.maximum(np.searchsorted(slashes, paths.end) - 1, 0)]
            above = np.clip(last, paths.begin, paths.end)
            beginning = np.where(types == TYPES.index(DIRECTORY), beginning, np.minimum(beginning, above))
        words = text.words(Spans(paths.begin, beginning))
        return Names([self._of(value) for value in words.values], words.places)

    def _of(self, beginning: bytes) -> str | None:
        if beginning not in self._known:
            self._known[beginning] = self._projects.of_path(text_of(self._decode(beginning)))
        return self._known[beginning]


def owner_names(words: Words) -> Names:
    """Owners as a listing calls them; nothing at all is no name."""
    return Names([text_of(value) or None for value in words.values], words.places)


class ListedInodes:
    """Counts what one scan lists, in however many pieces and files."""

    def __init__(self, time_us: int) -> None:
        self.counts = InodeCounts(time_us)
        self.listed = 0
        self.repeated = 0
        self._seen: dict[int, SeenInodes] = {}

    def add(self, some: InodeColumns) -> None:
        """Count some inodes; of several names of one inode the first counts."""
        self.listed += len(some.sizes)
        first = self._first_names(some)
        self.repeated += int(np.count_nonzero(~first))
        columns = some.of(first)
        codes = self._codes(some)[first]
        self.counts.add(codes, columns.sizes, columns.allocated, atimes_s=columns.atimes_s, mtimes_s=columns.mtimes_s)

    def items(self, filesystem: str, place: str, scan: str) -> Iterator[Item]:
        """Rows of all that was counted."""
        if self.repeated:
            reason = f"{self.repeated} more names of hard-linked files: each file counts once"
            yield Note(place, None, reason)
        if not self.listed:
            yield Problem(place, None, "no inode is listed in it")
        yield from self.counts.rows(filesystem, scan)

    def _first_names(self, some: InodeColumns) -> NDArray[np.bool_]:
        """Which of them are not further names of a file that was counted. Directories have one name."""
        first = np.ones(len(some.sizes), np.bool_)
        if some.inodes is None:
            return first
        linked = some.types != TYPES.index(DIRECTORY)
        if some.links is not None:
            linked &= some.links > 1
        devices = np.zeros(len(first), np.int64) if some.devices is None else some.devices
        for device in np.unique(devices[linked]).tolist():
            here = np.flatnonzero(linked & (devices == device))
            first[here] = self._seen.setdefault(device, SeenInodes()).first_seen(some.inodes[here])
        return first

    def _codes(self, some: InodeColumns) -> Numbers:
        nobody = Names(NO_NAME, np.zeros(len(some.sizes), np.int64))
        owners, projects = some.owners or nobody, some.projects or nobody
        keys = (owners.places * len(projects.names) + projects.places) * len(TYPES) + some.types
        result, places = np.unique(keys, return_inverse=True)
        codes = [self._code(int(key), owners, projects) for key in result]
        return np.array(codes, np.int64)[places]

    def _code(self, key: int, owners: Names, projects: Names) -> int:
        rest, type_place = divmod(key, len(TYPES))
        owner, project = divmod(rest, len(projects.names))
        return self.counts.code(owners.names[owner], projects.names[project], TYPES[type_place])
