"""Files of a run put together from its records, and those that were used alike: what one run of IOR can stand for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any, Final

from iolens.models.ior_parameters import RecordedWork
from iolens.run_tables import ACCESS_BINS, access_column

# The records of a run put together file by file -----------------------------------------------------------------------
# Through which interface, by which ranks, in which sizes.

DIRECTIONS: Final = ("write", "read")
SHARED: Final = -1  # rank of a record that stands for all
STREAMS: Final = frozenset({"<STDIN>", "<STDOUT>", "<STDERR>"})
LIBRARIES: Final[Mapping[str, str]] = {"H5F": "HDF5", "PNETCDF_FILE": "PnetCDF"}
MODULES: Final = ("MPI-IO", "POSIX", "STDIO", "DFS")  # whose accesses are imitated: the first that a file has
_SUMMED: Final = (
    "read_bytes", "write_bytes", "reads", "writes", "opens", "syncs",
    *(f"{kind}_{direction}s" for kind in ("sequential", "consecutive", "independent", "collective")
      for direction in DIRECTIONS),
    *(access_column(direction, upper) for direction in DIRECTIONS for upper in (*ACCESS_BINS, None)),
)  # fmt: skip
COLUMNS: Final = (
    "module", "record_id", "rank", "path", "extent_bytes", "written_extent_bytes", "fastest_rank_bytes",
    "slowest_rank_bytes", *_SUMMED,
    *(f"{name}{place}_{what}" for name in ("access", "stride") for place in range(1, 5) for what in ("bytes", "count")),
)  # fmt: skip
"""Columns of `run_files` that are looked at."""


@dataclass(slots=True)
class ModuleCounts:
    """What one module counted for a file, all ranks together."""

    sums: Counter[str] = field(default_factory=Counter)  # a counter that is not known has no entry
    sizes: Counter[int] = field(default_factory=Counter)  # the most frequent accesses, by bytes
    strides: Counter[int] = field(default_factory=Counter)  # the most frequent gaps, by bytes
    ranks: dict[str, set[int]] = field(default_factory=lambda: {direction: set() for direction in DIRECTIONS})
    extent_bytes: int = 0
    written_extent_bytes: int = 0
    rank_bytes: list[int] = field(default_factory=list)  # of the fastest and slowest rank of a shared record

    def add(self, row: Mapping[str, Any]) -> None:
        """One more record."""
        for name in _SUMMED:
            if (value := row.get(name)) is not None:
                self.sums[name] += int(value)
        for place in range(1, 5):
            for name, counts in (("access", self.sizes), ("stride", self.strides)):
                size, count = row.get(f"{name}{place}_bytes"), row.get(f"{name}{place}_count")
                if size and count:
                    counts[int(size)] += int(count)
        for direction, ranks in self.ranks.items():
            if row.get(f"{direction}_bytes"):
                ranks.add(int(row.get("rank") or 0))
        self.extent_bytes = max(self.extent_bytes, int(row.get("extent_bytes") or 0))
        self.written_extent_bytes = max(self.written_extent_bytes, int(row.get("written_extent_bytes") or 0))
        of_ranks = (row.get(f"{which}_rank_bytes") for which in ("fastest", "slowest"))
        self.rank_bytes += [int(moved) for moved in of_ranks if moved is not None]

    @property
    def moved_bytes(self) -> int:
        """Read and written."""
        return self.sums["read_bytes"] + self.sums["write_bytes"]

    def operations(self, direction: str) -> int:
        """Reads or writes."""
        return self.sums[f"{direction}s"]

    def extent(self, direction: str) -> int:
        """Bytes from the beginning of the file to the last that was written, or read; 0: not known."""
        return self.written_extent_bytes if direction == "write" else self.extent_bytes


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file: the module whose accesses are imitated, and POSIX, which alone tells offsets."""

    path: str | None
    module: str
    library: str | None  # above that module: HDF5 or PnetCDF
    counts: ModuleCounts
    posix: ModuleCounts | None

    @property
    def write_bytes(self) -> int:
        """Bytes written."""
        return self.counts.sums["write_bytes"]

    @property
    def read_bytes(self) -> int:
        """Bytes read."""
        return self.counts.sums["read_bytes"]

    @property
    def moved_bytes(self) -> int:
        """Both."""
        return self.counts.moved_bytes

    @property
    def ranks(self) -> set[int]:
        """That moved bytes; `SHARED` stands for all."""
        return self.counts.ranks["write"] | self.counts.ranks["read"]

    def bytes_of(self, direction: str) -> int:
        """Of one direction."""
        return self.counts.sums[f"{direction}_bytes"]

    def offsets(self, direction: str) -> ModuleCounts | None:
        """POSIX counts whose offsets are the program's own; None where MPI-IO made other accesses of its calls."""
        posix = self.posix
        if posix is None or not posix.operations(direction) or f"consecutive_{direction}s" not in posix.sums:
            return None
        is_same = posix.operations(direction) == self.counts.operations(direction)
        return posix if is_same and not self.is_aggregated else None

    @property
    def is_aggregated(self) -> bool:
        """Whether a rank wrote, or read, for others: through POSIX some moved more than they asked for, some less."""
        asked, moved = self.counts.rank_bytes, self.posix.rank_bytes if self.posix else []
        return bool(asked and moved) and (min(moved) < min(asked) or max(moved) > max(asked))


def recorded_files(rows: Iterable[Mapping[str, Any]]) -> list[RecordedFile]:
    """Files from rows of `run_files`; standard input and output are none."""
    modules: defaultdict[int, dict[str, ModuleCounts]] = defaultdict(dict)
    paths: dict[int, str] = {}
    libraries: dict[int, str] = {}
    for row in rows:
        name, number = str(row.get("module")), row.get("record_id")
        if number is None:
            continue
        if name in LIBRARIES:
            libraries[int(number)] = LIBRARIES[name]
        if name in MODULES:
            modules[int(number)].setdefault(name, ModuleCounts()).add(row)
            if row.get("path"):
                paths.setdefault(int(number), str(row["path"]))
    return [
        _file(paths.get(number), counts, libraries.get(number))
        for number, counts in modules.items()
        if paths.get(number) not in STREAMS
    ]


def _file(path: str | None, counts: Mapping[str, ModuleCounts], library: str | None) -> RecordedFile:
    """By the highest module that moved bytes."""
    module = next((name for name in MODULES if name in counts and counts[name].moved_bytes), next(iter(counts)))
    return RecordedFile(path, module, library, counts[module], counts.get("POSIX"))


# Files of a run that were used alike: what one run of IOR can stand for -----------------------------------------------

PAST: Final = {"write": "written", "read": "read"}
OWN, ALL, SOME = "own", "all", "some"  # whose file it is: of one task, of all, of some
_SHARING: Final = {OWN: "of one task", ALL: "shared by all tasks", SOME: "shared by some tasks"}


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file in one direction, or in both where they are to be imitated together; `tasks` of the whole run."""

    file: RecordedFile
    directions: tuple[str, ...]
    tasks: int

    @property
    def kind(self) -> tuple[object, ...]:
        """What files of one group have in common."""
        step = int(log2(self.common_size))
        return self.file.module, self.file.library, self.directions, self.sharing, self.is_collective, step

    @property
    def common_size(self) -> int:
        """The size of accesses by which most bytes were moved."""
        sizes = sizes_of([self.file.counts], self.directions)
        mean = sum(map(self.file.bytes_of, self.directions)) / max(self.operations, 1)
        return max(sizes, key=lambda size: size * sizes[size]) if sizes else max(round(mean), 1)

    @property
    def operations(self) -> int:
        """Reads and writes of these directions."""
        return sum(self.file.counts.operations(direction) for direction in self.directions)

    @property
    def users(self) -> int:
        """Tasks that moved bytes in one direction."""
        return max(self._users(direction) for direction in self.directions)

    def _users(self, direction: str) -> int:
        """Each begins once, at a place that does not follow its last access: fewer such places, fewer tasks."""
        ranks = self.file.counts.ranks[direction]
        if SHARED not in ranks:
            return max(len(ranks), 1)
        offsets = self.file.offsets(direction)
        begins = self.tasks if offsets is None else begins_of(offsets, direction)
        return max(min(begins, self.tasks), 1)

    @property
    def sharing(self) -> str:
        """Whose file it is."""
        return OWN if self.users == 1 else ALL if self.users >= self.tasks else SOME

    @property
    def is_collective(self) -> bool:
        """Whether most MPI-IO calls were collective."""
        sums = self.file.counts.sums
        collective, independent = (
            sum(sums[f"{kind}_{direction}s"] for direction in self.directions) for kind in ("collective", "independent")
        )
        return collective > independent


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Parts of one kind; `tasks` of the whole run."""

    parts: Sequence[FilePart]
    tasks: int

    @property
    def first(self) -> FilePart:
        """Which stands for all where they are alike."""
        return self.parts[0]

    @property
    def directions(self) -> tuple[str, ...]:
        """Written, read, or both."""
        return self.first.directions

    @property
    def main_direction(self) -> str:
        """The direction whose offsets count."""
        return self.directions[0]

    @property
    def files(self) -> int:
        """How many."""
        return len(self.parts)

    def bytes_of(self, direction: str) -> int:
        """Of these directions."""
        return sum(part.file.bytes_of(direction) for part in self.parts) if direction in self.directions else 0

    @property
    def moved_bytes(self) -> int:
        """Of these directions."""
        return sum(self.bytes_of(direction) for direction in self.directions)

    @property
    def operations(self) -> int:
        """Of these directions."""
        return sum(part.operations for part in self.parts)

    @property
    def recorded(self) -> RecordedWork:
        """For comparison with the imitation."""
        return RecordedWork(self.bytes_of("read"), self.bytes_of("write"), self.operations or None, self.files)

    @property
    def participants(self) -> int:
        """Tasks that take part: of own files their owners, of shared ones those that share one."""
        if self.first.sharing != OWN:
            return max(part.users for part in self.parts)
        ranks = set[int]().union(*(part.file.ranks for part in self.parts))
        return min(self.tasks, self.files) if SHARED in ranks else max(len(ranks), 1)

    @property
    def is_read_by_others(self) -> bool:
        """Whether own files were read by another task than wrote them."""
        both = self.first.sharing == OWN and len(self.directions) > 1 and self.tasks > 1
        return both and any(_has_two_users(part) for part in self.parts)

    def total(self, name: str) -> int:
        """Sum of a counter."""
        return sum(part.file.counts.sums[name] for part in self.parts)

    def offsets(self) -> list[ModuleCounts] | None:
        """POSIX counts of all files, where offsets are the program's own."""
        counts = [part.file.offsets(self.main_direction) for part in self.parts]
        known = [item for item in counts if item is not None]
        return known if len(known) == len(counts) else None

    @property
    def sizes(self) -> Counter[int]:
        """Accesses by size, as far as Darshan keeps them: four sizes of each record."""
        return sizes_of([part.file.counts for part in self.parts], self.directions)

    @property
    def example(self) -> str | None:
        """Path of the file with most bytes."""
        return max(self.parts, key=lambda part: part.file.moved_bytes).file.path

    @property
    def use(self) -> str:
        """Whose they are, and what was done with them."""
        file = self.first.file
        through = f"{file.library} over {file.module}" if file.library else file.module
        done = " and ".join(PAST[direction] for direction in self.directions)
        return f"{_SHARING[self.first.sharing]}, {done} through {through}"


def files_in_words(count: int, use: str) -> str:
    """`4 files, each of one task, written through POSIX`."""
    return f"{count:,} files, each {use}" if count != 1 else f"1 file {use}"


def begins_of(counts: ModuleCounts, direction: str) -> int:
    """Accesses that do not begin where the rank's last one ended."""
    return counts.operations(direction) - counts.sums[f"consecutive_{direction}s"]


def sizes_of(records: Sequence[ModuleCounts], directions: Sequence[str]) -> Counter[int]:
    """Frequent sizes; Darshan counts reads and writes together, so one in whose bin nothing was moved is left out."""
    sizes: Counter[int] = Counter()
    for counts in records:
        for size, count in counts.sizes.items():
            if len(directions) == len(DIRECTIONS) or _is_moved(counts, size, directions):
                sizes[size] += count
    return sizes


def _is_moved(counts: ModuleCounts, size: int, directions: Sequence[str]) -> bool:
    upper = next((end for end in ACCESS_BINS if size <= end), None)
    names = [access_column(direction, upper) for direction in directions]
    return any(counts.sums[name] for name in names) or all(name not in counts.sums for name in names)


def _has_two_users(part: FilePart) -> bool:
    ranks = part.file.counts.ranks
    return SHARED in part.file.ranks or ranks["write"] != ranks["read"]
