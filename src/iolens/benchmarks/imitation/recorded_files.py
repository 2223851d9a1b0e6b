"""The records of a run put together file by file: through which interface, by which ranks, in which sizes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.run_tables import ACCESS_BINS, access_column

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
