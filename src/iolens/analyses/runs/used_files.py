"""One run in detail: its columns, its files, all ranks and modules together, and the strategy of sharing them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import NullableArray
from iolens.columns import DIRECTIONS
from iolens.findings.rule import FileUse
from iolens.records import Rows
from iolens.run_tables import ACCESS_BINS, PATTERNS, RUN_FILES, RUN_RANKS, RUN_SERIES, RUNS, access_column

# Columns of one table of a run, whether they come from a log or from a store ------------------------------------------
# Numbers with NaN for NULL, texts.

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RunColumns:
    """Rows of one table, column by column; a column that is absent is all NULL."""

    count: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Rows | None) -> RunColumns:
        """Of what a source read."""
        return cls() if rows is None else cls(rows.count, rows.columns)

    def __len__(self) -> int:
        return self.count

    def numbers(self, name: str) -> Floats:
        """A column of numbers; NaN is NULL."""
        return float_column(self.values.get(name), self.count)

    def sums(self, *names: str) -> Floats:
        """Several columns added, NULL as 0."""
        total: Floats = np.sum([np.nan_to_num(self.numbers(name)) for name in names], axis=0)
        return total

    def identifiers(self, name: str) -> NDArray[np.int64]:
        """A column of identifiers, which 53 bits do not hold; it has no NULL."""
        column = self.values[name]
        numbers = np.asarray(column.values if isinstance(column, NullableArray) else column, dtype=np.int64)
        return np.broadcast_to(numbers, (self.count,))

    def texts(self, name: str) -> NDArray[np.object_]:
        """A column of texts; None is NULL."""
        column = self.values.get(name)
        if column is None or isinstance(column, str):
            return np.full(self.count, column, dtype=object)
        return np.asarray(column, dtype=object)

    def where(self, chosen: NDArray[np.bool_]) -> RunColumns:
        """Only those rows."""
        kept = {name: _chosen(column, chosen) for name, column in self.values.items()}
        return RunColumns(int(chosen.sum()), kept)


def float_column(values: Any, count: int) -> Floats:
    """Numbers as they come (an array, masked or not, a list with None, one value for all, nothing); NaN is NULL."""
    if values is None:
        return np.full(count, np.nan)
    if isinstance(values, NullableArray):
        return np.where(values.is_null, np.nan, values.values.astype(np.float64))
    if isinstance(values, np.ndarray) and hasattr(values, "mask"):  # not by its class, which takes 10 ms to import
        return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values).astype(np.float64))
    array = np.asarray(values, dtype=np.float64)  # None becomes NaN
    return array if array.ndim else np.full(count, float(array))


def _chosen(column: Any, chosen: NDArray[np.bool_]) -> Any:
    if isinstance(column, np.ndarray | NullableArray):
        return column[chosen]
    if isinstance(column, list | tuple):
        return [value for value, keep in zip(column, chosen, strict=True) if keep]
    return column


# One run in detail, wherever it came from -----------------------------------------------------------------------------
# Its row of `runs`, its files, its ranks, its activity over time.


@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """A run; `run` is its row of `runs`, times in microseconds since 1970, None what is not known."""

    run: Mapping[str, Any]
    files: RunColumns = field(default_factory=RunColumns)
    ranks: RunColumns = field(default_factory=RunColumns)
    series: RunColumns = field(default_factory=RunColumns)

    @classmethod
    def of(cls, rows: Mapping[str, Rows]) -> RunRecord:
        """From the rows of a log, by table."""
        tables = {name: RunColumns.of(rows.get(name)) for name in (RUN_FILES.name, RUN_RANKS.name, RUN_SERIES.name)}
        return cls(first_row(rows[RUNS.name]), *tables.values())


def first_row(rows: Rows) -> dict[str, Any]:
    """The first row as plain values; a column that the source did not give is None."""
    given = {name: _first(column) for name, column in rows.columns.items()}
    return {column.name: given.get(column.name) for column in RUNS.columns}


def _first(column: Any) -> Any:
    """The first value of a column as Python knows it; NaN and masked are None."""
    if column is None or isinstance(column, str | bytes) or not hasattr(column, "__getitem__"):
        value = column
    else:
        value = column[0]
    if isinstance(value, np.ndarray):  # of one place, as only a masked array has for NULL
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value


# Files of a run, all ranks and modules together -----------------------------------------------------------------------
# Who used them, how much was moved, how they are striped.

DATA_MODULES: Final = ("POSIX", "STDIO", "DFS")  # whose bytes reach the file system
INTERFACE_OF_MODULE: Final[Mapping[str, str]] = {
    "POSIX": "posix", "STDIO": "stdio", "DFS": "dfs", "MPI-IO": "mpiio", "H5F": "hdf5", "PNETCDF_FILE": "pnetcdf",
}  # fmt: skip
LUSTRE: Final = "LUSTRE"
HIGHEST: Final = ("posix", "stdio", "dfs", "mpiio", "pnetcdf", "hdf5")  # a later one is above the earlier ones
INDEPENDENT: Final = ("independent_reads", "independent_writes")
COLLECTIVE: Final = ("collective_reads", "collective_writes")
STREAMS: Final = ("<STDIN>", "<STDOUT>", "<STDERR>")  # not files
SEVERAL: Final = -1  # in place of a rank
_TO_100_KIB: Final = tuple(upper for upper in ACCESS_BINS if upper <= 100 << 10)
_TO_MIB: Final = tuple(upper for upper in ACCESS_BINS if upper <= 1 << 20)
_WHOLE_FIELDS: Final = (
    "ranks", "read_bytes", "write_bytes", "extent_bytes", "independent_ops", "collective_ops", "stripe_count",
    "stripe_bytes", "written_extent_bytes", "reads", "writes", "reads_to_mib", "writes_to_mib", "reads_to_100_kib",
    "writes_to_100_kib", "busiest_rank_bytes", "mean_rank_bytes",
)  # fmt: skip
_TIMES: Final = ("read_s", "write_s", "io_s")

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class UsedFiles:
    """One entry for each file of POSIX, STDIO or DFS; `uses` counts each once for every process that used it."""

    paths: NDArray[np.object_]
    interfaces: NDArray[np.object_]
    ranks: Floats
    read_bytes: Floats
    write_bytes: Floats
    extent_bytes: Floats  # NaN: not known
    alignment_bytes: Floats  # block size of the file system
    opens: Floats
    io_s: Floats  # reads, writes and metadata operations, summed over ranks
    read_s: Floats
    write_s: Floats
    independent_ops: Floats
    collective_ops: Floats
    stripe_count: Floats  # NaN: not known
    stripe_bytes: Floats
    written_extent_bytes: Floats
    reads: Floats
    writes: Floats
    reads_to_mib: Floats  # of at most 1 MiB, through POSIX
    writes_to_mib: Floats
    reads_to_100_kib: Floats
    writes_to_100_kib: Floats
    busiest_rank_bytes: (
        Floats  # at least, by MPI-IO where that reports the file, else by the data modules; NaN likewise
    )
    mean_rank_bytes: Floats  # of the same layer, over its ranks
    rank: Floats  # the one that used it; SEVERAL
    mounts: NDArray[np.object_]
    osts: NDArray[np.object_]  # indices, comma-separated; None: not known

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def uses(self) -> int:
        """Files, each counted once for every process that used it."""
        return int(self.ranks.sum())

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> list[FileUse]:
        """Those files, one by one."""
        columns = {
            "path": self.paths[which].tolist(),
            "interface": self.interfaces[which].tolist(),
            "mount": self.mounts[which].tolist(),
            **{name: _whole(getattr(self, name)[which]) for name in _WHOLE_FIELDS},
            **{name: getattr(self, name)[which].tolist() for name in _TIMES},
        }
        return [FileUse(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]


def used_files(files: RunColumns, processes: int | None) -> UsedFiles:
    """Records of the same file put together; where POSIX and STDIO have none, what MPI-IO reports counts."""
    known = np.isin(files.texts("module"), [*INTERFACE_OF_MODULE, LUSTRE])
    files = files.where(known)
    modules = files.texts("module")
    records, index = np.unique(files.identifiers("record_id"), return_inverse=True) if len(files) else _NO_FILE
    is_data, is_mpiio = np.isin(modules, DATA_MODULES), modules == "MPI-IO"
    has_data = _sum(is_data.astype(float), index, len(records)) > 0
    counts = is_data | (is_mpiio & ~has_data[index])  # whose ranks, bytes and times are those of the file

    def summed(values: Floats, which: Bools = counts) -> Floats:
        return _sum(np.where(which, values, 0.0), index, len(records))

    def largest(values: Floats, which: Bools = counts) -> Floats:
        return _largest(np.where(which, values, np.nan), index, len(records))

    is_file = summed(np.ones(len(modules))) > 0
    is_posix, is_lustre = modules == "POSIX", modules == LUSTRE
    has_mpiio = _sum(is_mpiio.astype(float), index, len(records)) > 0
    is_asked = np.where(has_mpiio[index], is_mpiio, is_data)  # the layer whose bytes of a rank are what it asked for
    shared_out = summed(files.sums("read_bytes", "write_bytes"), is_asked)
    rank = files.numbers("rank")
    columns = {
        "paths": _first_text(files.texts("path"), index, len(records)),
        "interfaces": _highest(modules, index, len(records)),
        "ranks": np.minimum(summed(_ranks(files, processes)), float(processes) if processes else np.inf),
        "read_bytes": summed(files.sums("read_bytes")),
        "write_bytes": summed(files.sums("write_bytes")),
        "extent_bytes": largest(files.numbers("extent_bytes")),
        "alignment_bytes": largest(files.numbers("alignment_bytes")),
        "opens": summed(files.sums("opens")),
        "io_s": summed(files.sums("read_s", "write_s", "metadata_s")),
        "independent_ops": summed(files.sums(*INDEPENDENT), is_mpiio),
        "collective_ops": summed(files.sums(*COLLECTIVE), is_mpiio),
        "stripe_count": largest(files.numbers("stripe_count"), is_lustre),
        "stripe_bytes": largest(files.numbers("stripe_bytes"), is_lustre),
        "written_extent_bytes": largest(files.numbers("written_extent_bytes")),
        **{name: summed(files.sums(name)) for name in ("reads", "writes", "read_s", "write_s")},
        **{
            f"{direction}s_to_{words}": summed(
                files.sums(*(access_column(direction, upper) for upper in bins)), is_posix
            )
            for direction in DIRECTIONS
            for words, bins in (("mib", _TO_MIB), ("100_kib", _TO_100_KIB))
        },
        "busiest_rank_bytes": largest(_rank_bytes(files), is_asked),
        "mean_rank_bytes": _over(
            shared_out, np.minimum(summed(_ranks(files, processes), is_asked), processes or np.inf)
        ),
        "rank": np.where(_spread(rank, counts, index, len(records)), SEVERAL, largest(rank)),
        "mounts": _first_text(files.texts("mount"), index, len(records)),
        "osts": _first_text(files.texts("osts"), index, len(records)),
    }
    return UsedFiles(**{name: column[is_file] for name, column in columns.items()})


def _ranks(files: RunColumns, processes: int | None) -> Floats:
    """Ranks that each record stands for: all of a shared one."""
    given = files.numbers("ranks")
    return np.where(np.isnan(given), np.where(files.numbers("rank") < 0, float(processes or 1), 1.0), given)


def _rank_bytes(files: RunColumns) -> Floats:
    """Bytes of one rank: of a record of its own, or of the two ranks that a shared record tells; NaN: not known."""
    known = np.fmax(files.numbers("slowest_rank_bytes"), files.numbers("fastest_rank_bytes"))
    return np.where(files.numbers("rank") < 0, known, files.sums("read_bytes", "write_bytes"))


def _spread(rank: Floats, which: Bools, index: NDArray[np.intp], count: int) -> Bools:
    """Whether records of a group are of several ranks, or of all."""
    most = _largest(np.where(which, rank, np.nan), index, count)
    least = -_largest(np.where(which, -rank, np.nan), index, count)
    several: Bools = (most != least) | (least < 0)
    return several


def _over(above: Floats, below: Floats) -> Floats:
    shares: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return shares


def _first_text(texts: NDArray[np.object_], index: NDArray[np.intp], count: int) -> NDArray[np.object_]:
    """The first text of each group that is one."""
    result = np.full(count, None, dtype=object)
    named = np.flatnonzero([text is not None for text in texts])[::-1]  # the first is written last
    result[index[named]] = texts[named]
    return result


def _highest(modules: NDArray[np.object_], index: NDArray[np.intp], count: int) -> NDArray[np.object_]:
    """The highest interface of each group."""
    heights = np.array(
        [HIGHEST.index(INTERFACE_OF_MODULE.get(module, HIGHEST[0])) for module in modules], dtype=np.intp
    )
    highest = np.zeros(count, dtype=np.intp)
    np.maximum.at(highest, index, heights)
    return np.array(HIGHEST, dtype=object)[highest]


_NO_FILE: Final = np.zeros(0, np.int64), np.zeros(0, np.intp)


def _sum(values: Floats, index: NDArray[np.intp], count: int) -> Floats:
    return np.bincount(index, values, count).astype(float)


def _largest(values: Floats, index: NDArray[np.intp], count: int) -> Floats:
    result = np.full(count, np.nan)
    np.fmax.at(result, index, values)
    return result


def _whole(values: Floats) -> list[Any]:
    """Whole numbers; None where it is not known."""
    return [None if value != value else int(value) for value in values.tolist()]


# How the ranks of a run share its files, by name (D13) ----------------------------------------------------------------
# A pure function of columns of `runs`, for one run or many.
#
# The names are those of the study's Section 5: rank-0 I/O, aggregation by a subset of the ranks, a file per process,
# shared and partially shared files; and MPI-IO's own aggregation by collective calls.

ONE_RANK_SHARE: Final = 0.9  # of the bytes, by one rank: more than this is rank-0 I/O
SUBSET_SHARE: Final = 0.5  # of the ranks: at most so many do the I/O for all
COLLECTIVE_SHARE: Final = 0.5  # of MPI-IO's reads and writes: more than this are collective calls
MPIIO_SHARE: Final = 0.5  # of the bytes: at least so many are of files that MPI-IO opened, or a library above it
OVER_MPIIO: Final = ("mpiio", "hdf5", "pnetcdf")


@dataclass(frozen=True, slots=True, eq=False)
class StrategyEvidence:
    """The numbers that strategies differ in, one for each run; NaN: not known."""

    processes: Floats
    moved_bytes: Floats  # read and written, of files: standard output is none
    io_ranks: Floats  # that moved bytes
    busiest_rank_pct: Floats  # of the bytes, by the rank that moved most
    unique_pct: Floats  # of the bytes, of files that one rank used
    shared_pct: Floats  # that all ranks used
    partially_shared_pct: Floats  # that some ranks used
    unique_files: Floats
    mpiio_pct: Floats  # of the bytes, of files that MPI-IO opened or a library above it
    collective_pct: Floats  # of MPI-IO's reads and writes

    def of_run(self, place: int = 0) -> dict[str, float | None]:
        """The numbers of one run; None is not known."""
        values = {field.name: float(getattr(self, field.name)[place]) for field in fields(self)}
        return {name: None if np.isnan(value) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Strategy:
    """A name, when it is given, and the test; the first that holds names the run."""

    name: str
    condition: str
    holds: Callable[[StrategyEvidence], Bools]


def _no_bytes(seen: StrategyEvidence) -> Bools:
    return np.equal(seen.moved_bytes, 0) | np.equal(seen.processes, 1)


def _collective(seen: StrategyEvidence) -> Bools:
    return (seen.collective_pct > 100 * COLLECTIVE_SHARE) & (seen.mpiio_pct >= 100 * MPIIO_SHARE)


def _one_rank(seen: StrategyEvidence) -> Bools:
    return (seen.busiest_rank_pct > 100 * ONE_RANK_SHARE) | np.equal(seen.io_ranks, 1)


def _subset(seen: StrategyEvidence) -> Bools:
    return seen.io_ranks <= SUBSET_SHARE * seen.processes


def _file_per_process(seen: StrategyEvidence) -> Bools:
    by_most = (seen.io_ranks > SUBSET_SHARE * seen.processes) | (
        np.isnan(seen.io_ranks) & (seen.unique_files > SUBSET_SHARE * seen.processes)
    )
    return by_most & (seen.unique_pct > seen.shared_pct) & (seen.unique_pct > seen.partially_shared_pct)


def _shared(seen: StrategyEvidence) -> Bools:
    return (seen.shared_pct >= seen.partially_shared_pct) & (seen.shared_pct >= seen.unique_pct)


def _partially_shared(seen: StrategyEvidence) -> Bools:
    return seen.partially_shared_pct >= seen.unique_pct


def _unique_of_few(seen: StrategyEvidence) -> Bools:
    return seen.unique_pct > 0


STRATEGIES: Final = (
    Strategy(
        "none", "no bytes of files were moved, or there is only one process, which has nobody to share with", _no_bytes
    ),
    Strategy(
        "collective",
        "more than half of MPI-IO's reads and writes are collective, and at least half of the bytes go through MPI-IO",
        _collective,
    ),
    Strategy("rank0", "one of several ranks moves more than 90 % of the bytes", _one_rank),
    Strategy("subset", "at most half of the ranks move bytes, as where a program aggregates by itself", _subset),
    Strategy(
        "file_per_process", "most bytes are of files of one rank, and most ranks have such files", _file_per_process
    ),
    Strategy("shared", "most bytes are of files that all ranks use", _shared),
    Strategy("partially_shared", "most bytes are of files that several ranks use, but not all", _partially_shared),
    Strategy("subset", "most bytes are of files of one rank, and few ranks have such files", _unique_of_few),
)


def strategies(columns: Mapping[str, Any]) -> NDArray[np.object_]:
    """The strategy of each run, by columns of `runs`; None: not enough is known."""
    seen = strategy_evidence(columns)
    names = np.full(seen.processes.shape, None, dtype=object)
    is_open = ~(np.isnan(seen.processes) | np.isnan(seen.moved_bytes))
    for strategy in STRATEGIES:
        is_named = is_open & strategy.holds(seen)  # a comparison with NaN does not hold
        names[is_named] = strategy.name
        is_open &= ~is_named
    return names


def strategy_of(run: Mapping[str, Any]) -> tuple[str | None, dict[str, float | None]]:
    """The strategy of one run by its row of `runs`, and the numbers behind it."""
    columns = {name: [value] for name, value in run.items() if not isinstance(value, str)}
    name = strategies(columns)[0]
    return name, strategy_evidence(columns).of_run()


def strategy_evidence(columns: Mapping[str, Any]) -> StrategyEvidence:
    """The numbers behind the names."""
    count = len(columns["processes"])

    def column(name: str) -> Floats:
        return float_column(columns.get(name), count)

    by_pattern = [column(f"{pattern}_read_bytes") + column(f"{pattern}_write_bytes") for pattern in PATTERNS]
    moved: Floats = np.sum(by_pattern, axis=0)
    unique, shared, partially_shared = (_percent(part, moved) for part in by_pattern)
    directions = [f"{name}_{direction}_bytes" for name in OVER_MPIIO for direction in ("read", "write")]
    over_mpiio = np.sum([np.nan_to_num(column(name)) for name in directions], axis=0)
    independent, collective = (np.nan_to_num(column(f"{kind}_ops")) for kind in ("independent", "collective"))
    return StrategyEvidence(
        processes=column("processes"),
        moved_bytes=moved,
        io_ranks=column("io_ranks"),
        busiest_rank_pct=np.minimum(_percent(column("busiest_rank_bytes"), moved), 100.0),
        unique_pct=unique,
        shared_pct=shared,
        partially_shared_pct=partially_shared,
        unique_files=column("unique_files"),
        mpiio_pct=_percent(over_mpiio, moved),
        collective_pct=_percent(collective, independent + collective),
    )


def _percent(part: Floats, whole: Floats) -> Floats:
    """100 · part ÷ whole; NaN where there is nothing to divide by."""
    shares: Floats = np.divide(100 * part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return shares
