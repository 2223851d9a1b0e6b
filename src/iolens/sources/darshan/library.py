"""libdarshan-util as the `darshan` wheel ships it, called through ctypes: reading and writing of logs.

The Python package `darshan` is not imported: it takes seconds, and its records come one dictionary at a time. ctypes
costs per record what cffi does, without parsing a header first. The library aborts or loops on some damaged logs: what
reads a log belongs in a process of its own (`isolated.py`).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from iolens.errors import UsageError

MAXIMUM_MODULES: Final = 64
JOB_RECORD_BYTES: Final = 4096
METADATA_BYTES: Final = 1024
NAME_BYTES: Final = JOB_RECORD_BYTES - 7 * 8 - METADATA_BYTES - 1  # of a mount's type and of its path

MODULES: Final = (
    "NULL", "POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE", "STDIO", "DXT_POSIX",
    "DXT_MPIIO", "MDHIM", "APXC", "APMPI", "HEATMAP", "DFS", "DAOS",
)  # fmt: skip
"""Names by module number (`DARSHAN_MODULE_IDS` of darshan-log-format.h)."""


class LogRegion(ctypes.Structure):
    """Where a part of a log lies in its file, compressed; bytes."""

    _fields_ = (("offset", c_uint64), ("length", c_uint64))


class LogHandle(ctypes.Structure):
    """The public beginning of `struct darshan_fd_s`."""

    _fields_ = (
        ("version", c_char * 8),
        ("swap_flag", c_int),
        ("partial_flag", c_uint64),
        ("comp_type", c_int),
        ("job_map", LogRegion),
        ("name_map", LogRegion),
        ("mod_map", LogRegion * MAXIMUM_MODULES),
        ("mod_ver", c_uint32 * MAXIMUM_MODULES),
    )


class DarshanJob(ctypes.Structure):
    """`struct darshan_job`."""

    _fields_ = (
        ("uid", c_int64),
        ("start_time_sec", c_int64),
        ("start_time_nsec", c_int64),
        ("end_time_sec", c_int64),
        ("end_time_nsec", c_int64),
        ("nprocs", c_int64),
        ("jobid", c_int64),
        ("metadata", c_char * METADATA_BYTES),
    )


class MountRecord(ctypes.Structure):
    """`struct darshan_mnt_info`, for writing."""

    _fields_ = (("mnt_type", c_char * NAME_BYTES), ("mnt_path", c_char * NAME_BYTES))


class HeatmapRecord(ctypes.Structure):
    """`struct darshan_heatmap_record`: the bins follow it, those of writes first."""

    _fields_ = (
        ("id", c_uint64),
        ("rank", c_int64),
        ("bin_width_seconds", c_double),
        ("nbins", c_int64),
        ("write_bins", c_void_p),
        ("read_bins", c_void_p),
    )


_SIGNATURES: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "darshan_log_get_lib_version": (c_char_p, ()),
    "darshan_log_open": (c_void_p, (c_char_p,)),
    "darshan_log_close": (None, (c_void_p,)),
    "darshan_log_get_job": (c_int, (c_void_p, POINTER(DarshanJob))),
    "darshan_log_get_job_runtime": (c_int, (c_void_p, DarshanJob, POINTER(c_double))),
    "darshan_log_get_record": (c_int, (c_void_p, c_int, c_void_p)),
    "darshan_log_get_mod": (c_int, (c_void_p, c_int, c_void_p, c_int)),
    "darshan_free": (None, (c_void_p,)),
    "darshan_log_create": (c_void_p, (c_char_p, c_int, c_int)),
    "darshan_log_put_job": (c_int, (c_void_p, POINTER(DarshanJob))),
    "darshan_log_put_exe": (c_int, (c_void_p, c_char_p)),
    "darshan_log_put_mounts": (c_int, (c_void_p, POINTER(MountRecord), c_int)),
    "darshan_log_put_namehash": (c_int, (c_void_p, c_void_p)),
    "darshan_log_put_mod": (c_int, (c_void_p, c_int, c_void_p, c_int, c_int)),
}


@cache
def library() -> Any:
    """The loaded library, every function with its types; UsageError where the wheel is not installed."""
    loaded = ctypes.CDLL(str(library_path()))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def library_path() -> Path:
    """Where the wheel keeps the library: beside the package, in `darshan.libs`."""
    spec = find_spec("darshan")
    for folder in (spec and spec.submodule_search_locations) or ():
        for place in (Path(folder).with_name("darshan.libs"), Path(folder) / ".dylibs", Path(folder)):
            if files := sorted(place.glob("libdarshan-util*")):
                return files[0]
    raise UsageError("Darshan logs are read with libdarshan-util, which is missing: pip install 'iolens[darshan]'")


@cache
def counter_names(prefix: str) -> tuple[str, ...]:
    """Names of the counters of a module as the library has them, in order: `posix` for whole numbers, `posix_f`."""
    array = (c_char_p * 1000).in_dll(library(), f"{prefix}_counter_names")
    names: list[str] = []
    for value in array:
        name = (value or b"").decode()
        if not name or name.endswith("_NUM_INDICES"):
            return tuple(names)
        names.append(name)
    raise UsageError(f"libdarshan-util has no end of {prefix}_counter_names: not a version that iolens knows")
