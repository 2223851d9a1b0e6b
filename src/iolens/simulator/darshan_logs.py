"""Real Darshan logs of simulated runs: records of its modules, written by libdarshan-util of the `darshan` wheel."""

from __future__ import annotations

import ctypes
import hashlib
import math
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError, UsageError
from iolens.run_tables import ACCESS_BINS
from iolens.simulator.darshan_runs import STRATEGIES, Accesses, Direction, SimulatedFileUse, SimulatedRun, stated_run
from iolens.sources.darshan.library import MODULES, DarshanJob, MountRecord, counter_names, library
from iolens.units import MIB

# Records of Darshan's modules for a simulated run ---------------------------------------------------------------------
# With the counters that Darshan 3.5's runtime would have.
#
# POSIX, MPI-IO and STDIO count as darshan-posix.c, -mpiio.c and -stdio.c do and reduce files that all ranks opened to a
# single record; LUSTRE, HEATMAP and DXT_POSIX are laid out as their `*-log-format.h` say.

BINS: Final = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")
HEAT_MAPS: Final = {"POSIX": 16592106915301738621, "STDIO": 3989511027826779520, "MPIIO": 3668870418325792824}
"""Record ids of the heat maps: Darshan's hash of `heatmap:POSIX` and so on."""
MOST_HEAT_BINS: Final = 200
_FIRST_BIN_S: Final = 0.1
_HOSTNAME_BYTES: Final = 64
_RAID0: Final = 0
_MODE: Final = 0o664
_FREQUENT: Final = 4


@dataclass(slots=True)
class FileRecord:
    """Counters of one file as one rank, or all (−1), used it. Absent counters are 0, as in Darshan."""

    record_id: int
    rank: int
    counters: dict[str, int]
    times: dict[str, float]
    frequent: dict[str, Counter[int]] = field(default_factory=dict)
    """Sizes (ACCESS) and distances (STRIDE) with their counts; the four most frequent are counters."""

    def packed(self, prefix: str, names: Sequence[str], time_names: Sequence[str]) -> bytes:
        """As in the log: record id, rank, counters, times, in the order of the library's names."""
        counters = {**self.counters, **self._most_frequent(prefix)}
        unknown = (counters.keys() - set(names)) | (self.times.keys() - set(time_names))
        if unknown:
            raise ValueError(f"Darshan has no counters {sorted(unknown)}")
        return struct.pack(
            f"=Qq{len(names)}q{len(time_names)}d",
            self.record_id,
            self.rank,
            *(counters.get(name, 0) for name in names),
            *(self.times.get(name, 0.0) for name in time_names),
        )

    def _most_frequent(self, prefix: str) -> dict[str, int]:
        values = {}
        for kind, counts in self.frequent.items():
            ordered = sorted(counts.items(), key=lambda item: (-item[1], -item[0]))[:_FREQUENT]
            for place, (value, count) in enumerate(ordered, 1):
                values[f"{prefix}{kind}{place}_{kind}"] = value
                values[f"{prefix}{kind}{place}_COUNT"] = count
        return values


@dataclass(slots=True)
class _AccessTally:
    """What reads or writes of one rank in one file add up to."""

    count: int = 0
    moved_bytes: int = 0
    sequential: int = 0
    consecutive: int = 0
    not_aligned: int = 0
    last_byte: int = 0  # of the last access
    highest_byte: int = 0
    bins: list[int] = field(default_factory=lambda: [0] * len(BINS))
    strides: Counter[int] = field(default_factory=Counter)

    def add(self, accesses: Accesses, alignment: int) -> None:
        """As POSIX_RECORD_WRITE counts: the byte before the first access is 0."""
        before = self.last_byte
        self.count += accesses.count
        self.moved_bytes += accesses.moved_bytes
        self.bins[bisect_left(ACCESS_BINS, accesses.size)] += accesses.count
        self.sequential += accesses.offset > before
        self.consecutive += accesses.offset == before + 1
        self._stride(accesses.offset - before - 1 if before else 0, 1)
        self.sequential += accesses.forward if accesses.gap >= 0 else 0
        self.consecutive += accesses.forward if accesses.gap == 0 else 0
        self._stride(accesses.gap, accesses.forward)
        self.not_aligned += accesses.count - _multiples(accesses, alignment)
        self.last_byte = accesses.last_byte
        self.highest_byte = max(self.highest_byte, accesses.highest_byte)

    def _stride(self, gap: int, count: int) -> None:
        if gap > 0 and count:
            self.strides[gap] += count


def _multiples(accesses: Accesses, alignment: int) -> int:
    """How many of the accesses begin at a multiple of `alignment`."""
    common = math.gcd(accesses.step, alignment)
    if accesses.offset % common:
        return 0
    period = alignment // common
    first = -(accesses.offset // common) * pow(accesses.step // common, -1, period) % period
    return max(0, (accesses.count - 1 - first) // period + 1)


def record_id(path: str) -> int:
    """A number of 64 bits for a name. Darshan's own hash is another."""
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")


def posix_records(run: SimulatedRun) -> list[FileRecord]:
    """One record per file and rank, or per file where all ranks opened it."""
    return _kept(run, [_posix(run, use) for use in run.uses], "POSIX_")


def mpiio_records(run: SimulatedRun) -> list[FileRecord]:
    """Those of a collective run."""
    return _kept(run, [_mpiio(run, use) for use in run.collective_uses], "MPIIO_")


def stdio_records(run: SimulatedRun) -> list[FileRecord]:
    """The text file of rank 0, if it writes one."""
    return [] if run.printed is None else [_stdio(run.printed)]


def _posix(run: SimulatedRun, use: SimulatedFileUse) -> FileRecord:
    tallies = _tallies(use, run.alignment_bytes)
    counters = {
        "POSIX_OPENS": use.opens, "POSIX_STATS": use.stats, "POSIX_MMAPS": -1, "POSIX_MODE": _MODE,
        "POSIX_MEM_ALIGNMENT": 8, "POSIX_FILE_ALIGNMENT": run.alignment_bytes,
        "POSIX_FILE_NOT_ALIGNED": sum(tally.not_aligned for tally in tallies.values()),
        "POSIX_RW_SWITCHES": int(all(tally.count for tally in tallies.values())),
    }  # fmt: skip
    for direction, tally in tallies.items():
        word = direction.upper()
        past = "READ" if direction == "read" else "WRITTEN"
        counters |= {f"POSIX_SIZE_{word}_{name}": count for name, count in zip(BINS, tally.bins, strict=True)}
        counters |= {
            f"POSIX_{word}S": tally.count, f"POSIX_BYTES_{past}": tally.moved_bytes,
            f"POSIX_MAX_BYTE_{past}": tally.highest_byte, f"POSIX_CONSEC_{word}S": tally.consecutive,
            f"POSIX_SEQ_{word}S": tally.sequential, f"POSIX_MAX_{word}_TIME_SIZE": _largest(use, direction),
        }  # fmt: skip
    frequent = {"ACCESS": _sizes(use), "STRIDE": tallies["read"].strides + tallies["write"].strides}
    return FileRecord(record_id(use.path), use.rank, counters, _times(run, use, "POSIX_F_"), frequent)


def _mpiio(run: SimulatedRun, use: SimulatedFileUse) -> FileRecord:
    tallies = _tallies(use, 1)
    counters = {"MPIIO_COLL_OPENS": use.opens, "MPIIO_RW_SWITCHES": int(all(tally.count for tally in tallies.values()))}
    for direction, tally in tallies.items():
        word = direction.upper()
        counters |= {f"MPIIO_SIZE_{word}_AGG_{name}": count for name, count in zip(BINS, tally.bins, strict=True)}
        counters |= {
            f"MPIIO_COLL_{word}S": tally.count,
            f"MPIIO_BYTES_{'READ' if direction == 'read' else 'WRITTEN'}": tally.moved_bytes,
            f"MPIIO_MAX_{word}_TIME_SIZE": _largest(use, direction),
        }
    times = _times(run, use, "MPIIO_F_")
    for direction, tally in tallies.items():
        word = direction.upper()
        times[f"MPIIO_F_MAX_{word}_TIME"] = times[f"MPIIO_F_{word}_TIME"] / max(1, tally.count)
    return FileRecord(record_id(use.path), use.rank, counters, times, {"ACCESS": _sizes(use)})


def _stdio(use: SimulatedFileUse) -> FileRecord:
    tally = _tallies(use, 1)["write"]
    (_, _), (begin, end) = use.spans
    counters = {
        "STDIO_OPENS": use.opens, "STDIO_WRITES": tally.count, "STDIO_FLUSHES": 1,
        "STDIO_BYTES_WRITTEN": tally.moved_bytes, "STDIO_MAX_BYTE_WRITTEN": tally.highest_byte,
    }  # fmt: skip
    times = {
        "META_TIME": use.metadata_s, "WRITE_TIME": use.write_s, "OPEN_START_TIMESTAMP": use.start_s,
        "OPEN_END_TIMESTAMP": begin, "WRITE_START_TIMESTAMP": begin, "WRITE_END_TIMESTAMP": end,
        "CLOSE_START_TIMESTAMP": end, "CLOSE_END_TIMESTAMP": end,
    }  # fmt: skip
    return FileRecord(
        record_id(use.path), use.rank, counters, {f"STDIO_F_{name}": value for name, value in times.items()}
    )


def _tallies(use: SimulatedFileUse, alignment: int) -> dict[Direction, _AccessTally]:
    tallies: dict[Direction, _AccessTally] = {"read": _AccessTally(), "write": _AccessTally()}
    for direction, accesses in (("read", use.reads), ("write", use.writes)):
        for part in accesses:
            tallies[direction].add(part, alignment)  # type: ignore[index]
    return tallies


def _sizes(use: SimulatedFileUse) -> Counter[int]:
    counts: Counter[int] = Counter()
    for part in (*use.reads, *use.writes):
        counts[part.size] += part.count
    return counts


def _largest(use: SimulatedFileUse, direction: Direction) -> int:
    """Bytes of the access that takes longest."""
    return max((part.size for part in (use.reads if direction == "read" else use.writes)), default=0)


def _times(run: SimulatedRun, use: SimulatedFileUse, prefix: str) -> dict[str, float]:
    spans = dict(zip(("READ", "WRITE"), use.spans, strict=True))
    times = {
        "OPEN_START_TIMESTAMP": use.start_s, "OPEN_END_TIMESTAMP": use.start_s + use.metadata_s,
        "CLOSE_START_TIMESTAMP": use.end_s, "CLOSE_END_TIMESTAMP": use.end_s,
        "READ_TIME": use.read_s, "WRITE_TIME": use.write_s, "META_TIME": use.metadata_s,
    }  # fmt: skip
    directions: tuple[Direction, ...] = ("read", "write")
    for direction in directions:
        largest = _largest(use, direction)
        if largest:
            word = direction.upper()
            times[f"{word}_START_TIMESTAMP"], times[f"{word}_END_TIMESTAMP"] = spans[word]
            times[f"MAX_{word}_TIME"] = run.access_s(direction, use.rank, largest)
    return {f"{prefix}{name}": value for name, value in times.items()}


def _kept(run: SimulatedRun, records: list[FileRecord], prefix: str) -> list[FileRecord]:
    if not run.is_reduced:
        return records
    grouped: dict[int, list[FileRecord]] = {}
    for record in records:
        grouped.setdefault(record.record_id, []).append(record)
    return [_reduced(group, prefix) for group in grouped.values()]


def _reduced(records: Sequence[FileRecord], prefix: str) -> FileRecord:
    """All ranks' records of a file as the single one that Darshan keeps."""
    counters = {name: _together(name, [record.counters[name] for record in records]) for name in records[0].counters}
    frequent = {
        kind: sum((record.frequent[kind] for record in records), Counter[int]()) for kind in records[0].frequent
    }
    names = dict.fromkeys(name for record in records for name in record.times)
    times = {name: _time_together(name, [record.times.get(name, 0.0) for record in records]) for name in names}
    for word in ("READ", "WRITE"):
        slowest = max(records, key=lambda record, word=word: record.times.get(f"{prefix}F_MAX_{word}_TIME", 0.0))  # type: ignore[misc]
        counters[f"{prefix}MAX_{word}_TIME_SIZE"] = slowest.counters[f"{prefix}MAX_{word}_TIME_SIZE"]
    spent = [sum(record.times[f"{prefix}F_{word}_TIME"] for word in ("READ", "WRITE", "META")) for record in records]
    moved = [sum(record.counters[f"{prefix}BYTES_{word}"] for word in ("READ", "WRITTEN")) for record in records]
    for word, choose in (("FASTEST", min), ("SLOWEST", max)):
        place = spent.index(choose(spent))
        counters[f"{prefix}{word}_RANK"] = records[place].rank
        counters[f"{prefix}{word}_RANK_BYTES"] = moved[place]
        times[f"{prefix}F_{word}_RANK_TIME"] = spent[place]
    times[f"{prefix}F_VARIANCE_RANK_TIME"] = float(np.var(spent))
    times[f"{prefix}F_VARIANCE_RANK_BYTES"] = float(np.var(moved))
    return FileRecord(records[0].record_id, -1, counters, times, frequent)


def _together(name: str, values: Sequence[int]) -> int:
    if name.endswith(("_MODE", "_ALIGNMENT", "_MMAPS")):
        return values[0]
    return max(values) if "_MAX_" in name else sum(values)


def _time_together(name: str, values: Sequence[float]) -> float:
    if name.endswith("_START_TIMESTAMP"):
        return min((value for value in values if value > 0), default=0.0)
    return max(values) if name.endswith("_END_TIMESTAMP") or "_MAX_" in name else sum(values)


def lustre_records(run: SimulatedRun) -> Iterator[bytes]:
    """Layout of every file below a Lustre mount: one component, RAID 0 over its OSTs."""
    roots = tuple(path.rstrip("/") + "/" for path, kind in run.mounts if kind == "lustre")
    for work in run.files:
        if work.path.startswith(roots):
            layout = (run.stripe_bytes, len(work.osts), _RAID0, 0, 0, -1, 0)
            for rank in (-1,) if run.is_reduced else [use.rank for use in run.uses_by_file[work.path]]:
                head = struct.pack("=Qqqq7q16s", record_id(work.path), rank, 1, len(work.osts), *layout, b"")
                yield head + struct.pack(f"={len(work.osts)}q", *work.osts)


def heat_bins(duration_s: float) -> tuple[float, int]:
    """Length of a bin, seconds, and how many: doubled until 200 span the run."""
    width = _FIRST_BIN_S
    while duration_s > width * MOST_HEAT_BINS:
        width *= 2
    return width, math.ceil(duration_s / width)


def heat_map_records(run: SimulatedRun) -> Iterator[tuple[str, bytes]]:
    """Bytes of each rank over time, by module; ranks that moved none have no record."""
    width, bins = heat_bins(run.duration_s)
    printed = () if run.printed is None else (run.printed,)
    for module, uses in (("STDIO", printed), ("POSIX", run.uses), ("MPIIO", run.collective_uses)):
        for rank, maps in sorted(_heat(uses, width, bins).items()):
            head = struct.pack("=Qqdqqq", HEAT_MAPS[module], rank, width, bins, 0, 0)
            yield module, head + maps[1].tobytes() + maps[0].tobytes()


def _heat(uses: Iterable[SimulatedFileUse], width: float, bins: int) -> dict[int, NDArray[np.int64]]:
    """By rank: bytes read, then written, by bin."""
    edges = np.arange(bins + 1) * width
    maps: dict[int, NDArray[np.int64]] = {}
    for use in uses:
        for number, (moved, (begin, end)) in enumerate(zip((use.read_bytes, use.write_bytes), use.spans, strict=True)):
            if moved:
                upto = np.floor(moved * np.clip((edges - begin) / (end - begin), 0.0, 1.0)).astype(np.int64)
                upto[-1] = moved
                maps.setdefault(use.rank, np.zeros((2, bins), np.int64))[number] += np.diff(upto, prepend=0)[1:]
    return maps


def dxt_records(run: SimulatedRun) -> Iterator[bytes]:
    """Every access with its times, evenly over the span it falls into; `nodes` are the hosts, ranks in blocks."""
    hosts = run.nodes or ("node0001",)
    for use in run.uses:
        segments = [
            _segments(accesses, span) for accesses, span in zip((use.reads, use.writes), use.spans, strict=True)
        ]
        host = hosts[use.rank * len(hosts) // run.processes].encode()[: _HOSTNAME_BYTES - 1]
        counts = (len(segments[1]), len(segments[0]))
        head = struct.pack(f"=Qqq{_HOSTNAME_BYTES}sqq", record_id(use.path), use.rank, 0, host, *counts)
        yield head + b"".join(struct.pack("=qqdd", *part) for part in (*segments[1], *segments[0]))


def _segments(accesses: Sequence[Accesses], span: tuple[float, float]) -> list[tuple[int, int, float, float]]:
    places = [(part.place(number), part.size) for part in accesses for number in range(part.count)]
    times = np.linspace(*span, len(places) + 1)
    return [(*place, float(times[number]), float(times[number + 1])) for number, place in enumerate(places)]


# Real Darshan logs of simulated runs, written by libdarshan-util of the `darshan` wheel -------------------------------
# Log format 3.41.
#
# A log lies where Darshan puts it: FOLDER/YEAR/MONTH/DAY/USER_EXE_idJOB-PID_MONTH-DAY-SECONDS-NUMBER_1.darshan.

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
