"""Real Darshan logs of simulated runs, written by libdarshan-util of the `darshan` wheel (log format 3.41).

A log lies where Darshan puts it: FOLDER/YEAR/MONTH/DAY/USER_EXE_idJOB-PID_MONTH-DAY-SECONDS-NUMBER_1.darshan.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolens.errors import InputError, UsageError
from iolens.simulator.darshan_records import (
    HEAT_MAPS,
    FileRecord,
    dxt_records,
    heat_map_records,
    lustre_records,
    mpiio_records,
    posix_records,
    record_id,
    stdio_records,
)
from iolens.simulator.darshan_runs import STRATEGIES, SimulatedRun
from iolens.simulator.darshan_stated_runs import stated_run
from iolens.sources.darshan.library import MODULES, DarshanJob, MountRecord, counter_names, library
from iolens.units import MIB

LIBRARY_VERSION: Final = (3, 5)
VERSIONS: Final = {"POSIX": 4, "MPI-IO": 3, "LUSTRE": 2, "STDIO": 2, "DXT_POSIX": 1, "HEATMAP": 1}
"""Versions of the modules' records that are written, in the order of the modules' numbers. DXT_POSIX 2 is not known to
every library that calls itself 3.5."""
_PREFIXES: Final = {"POSIX": "POSIX_", "MPI-IO": "MPIIO_", "STDIO": "STDIO_"}
_ZLIB: Final = 0
_MOST_BYTES: Final = 3000  # of command and mounts together, Darshan keeps 3,015
_CHUNK_BYTES: Final = 1 << 20
_FIRST_DAY_S: Final = 1_767_571_200  # 2026-01-05
_EXECUTABLES: Final = ("cesm.exe", "gyro", "namd3", "lattice", "wrf.exe", "vasp_std", "blast", "flash4")


class _NameReference(ctypes.Structure):
    """`struct darshan_name_record_ref`; of its hash handle only `next` is looked at when a log is written."""

    _fields_ = (
        ("name_record", ctypes.c_void_p),
        ("tbl", ctypes.c_void_p),
        ("prev", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
        ("hh_prev", ctypes.c_void_p),
        ("hh_next", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("keylen", ctypes.c_uint),
        ("hashv", ctypes.c_uint),
    )


def write_log(folder: Path, run: SimulatedRun) -> Path:
    """Write the log of one run into its place below `folder`; UsageError without the wheel, or with an old one."""
    _check_library()
    start = datetime.fromtimestamp(run.start_s, UTC)
    day = folder / str(start.year) / str(start.month) / str(start.day)
    day.mkdir(parents=True, exist_ok=True)
    path = day / log_name(run)
    records = list(module_records(run))
    path.unlink(missing_ok=True)
    _write(path, run, records)
    return path


def log_name(run: SimulatedRun) -> str:
    """As Darshan names it; the process id and the number follow from the run."""
    start = datetime.fromtimestamp(run.start_s, UTC)
    number = record_id(f"{run.user} {run.executable} {run.job_id} {run.start_s}")
    seconds = start.hour * 3600 + start.minute * 60 + start.second
    identity = f"{run.user}_{run.executable}_id{run.job_id}-{number % 32768}"
    return f"{identity}_{start.month}-{start.day}-{seconds}-{number}_1.darshan"


def module_records(run: SimulatedRun) -> Iterator[tuple[str, bytes]]:
    """Module and its records as they stand in the log, in the order in which they must be written."""
    parts = {
        "POSIX": _packed("POSIX", posix_records(run)),
        "MPI-IO": _packed("MPI-IO", mpiio_records(run)),
        "LUSTRE": b"".join(lustre_records(run)),
        "STDIO": _packed("STDIO", stdio_records(run)),
        "DXT_POSIX": b"".join(dxt_records(run)) if run.has_dxt else b"",
        "HEATMAP": b"".join(packed for _, packed in heat_map_records(run)),
    }
    yield from ((module, parts[module]) for module in VERSIONS if parts[module])


def _packed(module: str, records: Sequence[FileRecord]) -> bytes:
    prefix = _PREFIXES[module]
    library_name = prefix.rstrip("_").lower()
    names, times = counter_names(library_name), counter_names(f"{library_name}_f")
    return b"".join(record.packed(prefix, names, times) for record in records)


def _check_library() -> None:
    version = library().darshan_log_get_lib_version().decode()
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < LIBRARY_VERSION:
        raise UsageError(f"Darshan logs are written with libdarshan-util 3.5 or later; the installed one is {version}")


def _write(path: Path, run: SimulatedRun, modules: Sequence[tuple[str, bytes]]) -> None:
    log = library().darshan_log_create(str(path).encode(), _ZLIB, 0)
    if not log:
        raise InputError(str(path), "cannot be created", "a directory that can be written")
    try:
        failed = _put(log, run, modules)
    finally:
        library().darshan_log_close(log)
    if failed or not path.exists():
        raise InputError(str(path), f"{failed or 'its header'} could not be written", "a file system with free space")


def _put(log: int, run: SimulatedRun, modules: Sequence[tuple[str, bytes]]) -> str:
    """Write all parts; the name of the one that failed, else nothing."""
    calls = library()
    mounts = (MountRecord * len(run.mounts))(*(MountRecord(kind.encode(), path.encode()) for path, kind in run.mounts))
    command = f"{run.executable} {run.arguments}".strip().encode()[:_MOST_BYTES]
    first, kept = _names(run, [module for module, _ in modules])
    parts: dict[str, Callable[[], int]] = {
        "job": partial(calls.darshan_log_put_job, log, ctypes.byref(_job(run))),
        "command": partial(calls.darshan_log_put_exe, log, command),
        "mounts": partial(calls.darshan_log_put_mounts, log, mounts, len(mounts)),
        "names": partial(calls.darshan_log_put_namehash, log, first),
    }
    parts |= {module: partial(_put_module, log, module, packed) for module, packed in modules}
    failed = next((name for name, put in parts.items() if put() != 0), "")
    del kept
    return failed


def _put_module(log: int, module: str, packed: bytes) -> int:
    for begin in range(0, len(packed), _CHUNK_BYTES):
        chunk = packed[begin : begin + _CHUNK_BYTES]
        if library().darshan_log_put_mod(log, MODULES.index(module), chunk, len(chunk), VERSIONS[module]):
            return -1
    return 0


def _job(run: SimulatedRun) -> DarshanJob:
    start, end = ((int(second), int(second % 1 * 1e9)) for second in (run.start_s, run.end_s))
    return DarshanJob(run.uid, *start, *end, run.processes, run.job_id, b"lib_ver=3.5.0\n")


def _names(run: SimulatedRun, modules: Sequence[str]) -> tuple[int | None, Any]:
    """Names of all records as a chain that the library walks: the address of the first, and what must stay alive."""
    paths = [work.path for work in run.files] + ([run.printed.path] if run.printed is not None else [])
    named = [(record_id(path), path) for path in paths]
    if "HEATMAP" in modules:
        named += [(number, f"heatmap:{module}") for module, number in HEAT_MAPS.items()]
    if not named:
        return None, ()
    texts = [ctypes.create_string_buffer(number.to_bytes(8, "little") + name.encode()) for number, name in named]
    chain = (_NameReference * len(named))()
    size, base = ctypes.sizeof(_NameReference), ctypes.addressof(chain)
    for place, text in enumerate(texts):
        chain[place].name_record = ctypes.addressof(text)
        chain[place].next = base + (place + 1) * size if place + 1 < len(named) else None
    return base, (chain, texts)


def write_many(folder: Path, count: int, seed: int = 1, days: int = 28) -> list[Path]:
    """Write logs of distinct small runs into a tree of days, for benchmarks: about 2 ms each."""
    return [write_log(folder, run) for run in many_runs(count, seed, days)]


def many_runs(count: int, seed: int = 1, days: int = 28) -> Iterator[SimulatedRun]:
    """Small runs of many users, executables and strategies over `days`; every seed has its own."""
    random = np.random.default_rng(seed)
    yield from (_small_run(random, number, days) for number in range(count))


def _small_run(random: np.random.Generator, number: int, days: int) -> SimulatedRun:
    strategy = STRATEGIES[number % len(STRATEGIES)]
    user, executable = int(random.integers(40)), _EXECUTABLES[int(random.integers(len(_EXECUTABLES)))]
    moved = 0 if strategy == "none" else int(random.integers(1, 64)) * MIB
    return stated_run(
        strategy,
        job_id=5_000_000 + number,
        start_s=_FIRST_DAY_S + float(random.integers(days * 86400 * 1000)) / 1000,
        duration_s=float(random.integers(20, 2000)),
        processes=int(random.choice((4, 8, 16))),
        read_bytes=int(random.integers(2)) * moved,
        write_bytes=moved,
        transfer_bytes=int(random.choice((4096, 65536, 1 << 20, 4 << 20))),
        executable=executable,
        user=f"user{user:02}",
        uid=1000 + user,
        directory=f"/scratch/user{user:02}/{number}",
        printed_bytes=0 if strategy == "none" else 2000,
    )
