"""What to type, by the interface that a program uses: calls, hints and settings that several rules advise."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from iolens.findings.rule import FileUse, Inputs

CARNS: Final = "Carns et al., Understanding and Improving Computational Science Storage Access (2011)"
DRISHTI: Final = "Bez et al., Drishti: Guiding End-Users in the I/O Optimization Journey (2022)"
GIB: Final = 1 << 30

LARGER_ACCESSES: Final[Mapping[str, str]] = {
    "posix": "POSIX: gather records in a buffer of 1 MiB or more before each write(), and read() as much at once.",
    "stdio": "STDIO: setvbuf(file, NULL, _IOFBF, 1 << 20) right after fopen.",
    "mpiio": "MPI-IO: collective calls (MPI_File_write_at_all, MPI_File_read_at_all) with the hints "
    "romio_cb_write=enable, romio_cb_read=enable and cb_buffer_size=16777216.",
    "hdf5": "HDF5: H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE), chunks of 1 MiB or more (H5Pset_chunk), and "
    "H5Pset_coll_metadata_write(fapl, 1) for HDF5's own small writes.",
    "pnetcdf": "PnetCDF: the collective ncmpi_put_vara_*_all and ncmpi_get_vara_*_all, or ncmpi_iput_* and "
    "ncmpi_wait_all for many small variables.",
    "dfs": "DFS: gather records in a buffer of 1 MiB or more before each dfs_write().",
}
LARGER_PIECES: Final = (
    "The calls are collective already: let aggregators gather more with the hint cb_buffer_size=16777216, and one or "
    "two of them for each node (cb_nodes); see that romio_cb_write and romio_cb_read are not disable."
)
COLLECTIVE_CALLS: Final[Mapping[str, str]] = {
    "mpiio": "MPI_File_write_at_all and MPI_File_read_at_all in place of the calls without _all",
    "hdf5": "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) for every H5Dwrite and H5Dread",
    "pnetcdf": "ncmpi_put_vara_*_all and ncmpi_get_vara_*_all in place of ncmpi_begin_indep_data",
}
MPI_ONE_FILE: Final = "One file for all ranks in place of one for each: MPI_File_open with MPI_File_write_at_all."
METADATA_REMEDIES: Final[Mapping[str, str]] = {
    "posix": MPI_ONE_FILE,
    "stdio": MPI_ONE_FILE,
    "mpiio": "Open a file once for all of its writes; with the hint romio_no_indep_rw=true only aggregators open it.",
    "hdf5": "HDF5: H5Pset_coll_metadata_write(fapl, 1), H5Pset_all_coll_metadata_ops(fapl, 1), and one file in place "
    "of many.",
    "pnetcdf": "PnetCDF: one file in place of many; define all variables before one ncmpi_enddef.",
}
STRIPES: Final = (
    (10 * GIB, 8, "up to 10 GiB"),
    (100 * GIB, 24, "10 to 100 GiB"),
)  # files up to so many bytes, over how many OSTs, in words
MOST_STRIPES: Final = (72, "more than 100 GiB")
STRIPES_FROM: Final = "NERSC's advice for a shared file of"
NO_DIRECTORY: Final = " For DIR put in the directory that the run writes to: {why}."


def collective_hints(inputs: Inputs, stripe_count: int | None = None) -> str:
    """The hints of collective buffering as a shell writes them; an aggregator for each OST or node where known."""
    nodes = inputs.get("nodes")
    aggregators = stripe_count if stripe_count is not None and stripe_count > 1 else nodes
    hints = [
        "romio_cb_write enable",
        "romio_cb_read enable",
        *([f"cb_nodes {aggregators}"] if aggregators else []),
    ]
    return f"printf '%s\\n' {' '.join(map(shlex.quote, hints))} > hints; export ROMIO_HINTS=$PWD/hints"


def is_collective(inputs: Inputs) -> bool:
    """Whether most of the run's I/O is collective MPI-IO already, so that no remedy says it should be."""
    return bool(inputs.get("strategy") == "collective")


def larger_accesses(inputs: Inputs) -> str:
    """How the interface of the run moves more with each call."""
    interface = str(inputs.get("interface"))
    if is_collective(inputs) and interface in COLLECTIVE_CALLS:
        return LARGER_PIECES
    return LARGER_ACCESSES.get(interface, LARGER_ACCESSES["posix"])


def named_kind(counts: Mapping[str, int]) -> str:
    """`reads`, `writes`, or `reads and writes` where there are both."""
    present = [f"{direction}s" for direction, count in counts.items() if count]
    return " and ".join(present or (f"{direction}s" for direction in counts))


def kinds_of(accesses: str) -> tuple[str, ...]:
    """`read`, `write` or both, of such words."""
    return tuple(word.removesuffix("s") for word in accesses.split(" and "))


def setstripe_words(file: FileUse | None, size_bytes: float | None = None) -> Mapping[str, str]:
    """Words for `lfs setstripe -c {stripes} {directory}`: where from, and what to put in where no directory is known.

    The layout of a mount point is that of everybody: only a directory below it is named.
    """
    stripes, sizes = _stripes(size_bytes if size_bytes is not None else (file.extent_bytes or 0) if file else 0)
    directory, why = _directory(file)
    return {
        "stripes": str(stripes),
        "stripes_from": f"{STRIPES_FROM} {sizes}",
        "directory": directory,
        "put_in": NO_DIRECTORY.format(why=why) if why else "",
    }


SETSTRIPE_WORDS: Final[Mapping[str, str]] = {
    "stripes": "8",
    "stripes_from": f"{STRIPES_FROM} up to 10 GiB; 24 up to 100 GiB, 72 above",
    "directory": "DIR",
    "put_in": "",
}


def _directory(file: FileUse | None) -> tuple[str, str | None]:
    """As a shell takes it; or DIR, and why it is not known."""
    if file is None or not file.path or not file.path.startswith("/"):
        return "DIR", "the log does not name it"
    path = PurePosixPath(file.path)
    mount = PurePosixPath(file.mount) if file.mount else None
    is_mount = path.parent == mount or (len(path.parent.parts) <= 2 and mount is None)
    if is_mount or path.parent.parent == path.parent:
        is_hashed = path.name.isdigit()
        return "DIR", "names are hashed in this log" if is_hashed else "the log names only a file at the mount point"
    return shlex.quote(str(path.parent)), None


def stripes_for(size_bytes: float) -> int:
    """Over how many OSTs to stripe a shared file of that size: NERSC's advice by size of the file."""
    return _stripes(size_bytes)[0]


def _stripes(size_bytes: float) -> tuple[int, str]:
    return next(((stripes, words) for most, stripes, words in STRIPES if size_bytes <= most), MOST_STRIPES)
