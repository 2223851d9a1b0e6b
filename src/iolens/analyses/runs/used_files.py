"""Files of a run, all ranks and modules together: who used them, how much was moved, how they are striped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.runs.columns import Floats, RunColumns
from iolens.findings.rule import FileUse

DATA_MODULES: Final = ("POSIX", "STDIO", "DFS")  # whose bytes reach the file system
INTERFACE_OF_MODULE: Final[Mapping[str, str]] = {
    "POSIX": "posix", "STDIO": "stdio", "DFS": "dfs", "MPI-IO": "mpiio", "H5F": "hdf5", "PNETCDF_FILE": "pnetcdf",
}  # fmt: skip
LUSTRE: Final = "LUSTRE"
HIGHEST: Final = ("posix", "stdio", "dfs", "mpiio", "pnetcdf", "hdf5")  # a later one is above the earlier ones
INDEPENDENT: Final = ("independent_reads", "independent_writes")
COLLECTIVE: Final = ("collective_reads", "collective_writes")

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
    independent_ops: Floats
    collective_ops: Floats
    stripe_count: Floats  # NaN: not known
    stripe_bytes: Floats

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def uses(self) -> int:
        """Files, each counted once for every process that used it."""
        return int(self.ranks.sum())

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> list[FileUse]:
        """Those files, one by one."""
        columns = (
            self.paths[which].tolist(),
            self.interfaces[which].tolist(),
            *(_whole(values[which]) for values in (
                self.ranks, self.read_bytes, self.write_bytes, self.extent_bytes, self.independent_ops,
                self.collective_ops, self.stripe_count, self.stripe_bytes,
            )),
        )  # fmt: skip
        return [FileUse(*values) for values in zip(*columns, strict=True)]


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
        "stripe_count": largest(files.numbers("stripe_count"), modules == LUSTRE),
        "stripe_bytes": largest(files.numbers("stripe_bytes"), modules == LUSTRE),
    }
    return UsedFiles(**{name: column[is_file] for name, column in columns.items()})


def _ranks(files: RunColumns, processes: int | None) -> Floats:
    """Ranks that each record stands for: all of a shared one."""
    given = files.numbers("ranks")
    return np.where(np.isnan(given), np.where(files.numbers("rank") < 0, float(processes or 1), 1.0), given)


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
