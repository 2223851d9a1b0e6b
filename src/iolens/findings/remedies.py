"""What to type, by the interface that a program uses: calls, hints and settings that several rules advise."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from iolens.findings.rule import Inputs

CARNS: Final = "Carns et al., Understanding and Improving Computational Science Storage Access (2011)"
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
COLLECTIVE_CALLS: Final[Mapping[str, str]] = {
    "mpiio": "MPI_File_write_at_all and MPI_File_read_at_all in place of the calls without _all",
    "hdf5": "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) for every H5Dwrite and H5Dread",
    "pnetcdf": "ncmpi_put_vara_*_all and ncmpi_get_vara_*_all in place of ncmpi_begin_indep_data",
}
METADATA_REMEDIES: Final[Mapping[str, str]] = {
    "posix": "One file for all ranks in place of one for each: MPI_File_open with MPI_File_write_at_all.",
    "stdio": "One file for all ranks in place of one for each: MPI_File_open with MPI_File_write_at_all.",
    "mpiio": "Open a file once for all of its writes; with the hint romio_no_indep_rw=true only aggregators open it.",
    "hdf5": "HDF5: H5Pset_coll_metadata_write(fapl, 1), H5Pset_all_coll_metadata_ops(fapl, 1), and one file in place "
    "of many.",
    "pnetcdf": "PnetCDF: one file in place of many; define all variables before one ncmpi_enddef.",
}
STRIPES: Final = ((10 * GIB, 8), (100 * GIB, 24))  # files up to so many bytes, and over how many OSTs
MOST_STRIPES: Final = 72


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


def directory_of(path: str | None) -> str:
    """The directory of a file as a shell takes it; DIR where the log does not name the file."""
    return "DIR" if not path or "/" not in path else shlex.quote(str(PurePosixPath(path).parent))


def stripes_for(size_bytes: int) -> int:
    """Over how many OSTs to stripe a shared file of that size: NERSC's advice by size of the file."""
    return next((stripes for most, stripes in STRIPES if size_bytes <= most), MOST_STRIPES)
