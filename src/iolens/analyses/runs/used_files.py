"""Files of a run, all ranks and modules together: who used them, how much was moved, how they are striped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.runs.columns import Floats, RunColumns
from iolens.columns import DIRECTIONS
from iolens.findings.rule import FileUse
from iolens.run_tables import ACCESS_BINS, access_column

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
