"""Tables of application runs, as Darshan logs tell them: the run, its files, its ranks, and its activity over time.

A row of `runs` holds all that questions over many runs need, summed once when the log is loaded; the other three have
the detail of one run. A counter that Darshan marks as not available (−1) is NULL. Times within a run count from its
start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from iolens.columns import Column, Table, text
from iolens.units import MIB

RateMethod = Literal["layers", "paper"]

ACCESS_BINS: Final = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
"""Upper ends of Darshan's access-size bins, bytes; one more bin holds what is larger."""
INTERFACES: Final = ("posix", "stdio", "mpiio", "hdf5", "pnetcdf", "dfs")
"""A file's bytes count under the highest one that opened it: HDF5 or PnetCDF, else MPI-IO, else POSIX or STDIO."""
LAYERED: Final = "MPI-IO|DFS|DAOS"
"""Modules beside which POSIX and STDIO alone do not tell how fast a run was."""
SHORT_S: Final = 0.1
"""I/O time below which a rate says little."""
PATTERNS: Final = ("unique", "shared", "partially_shared")
"""By opens: one rank, all ranks, or some (DEFINITIONS, "Patterns, interfaces, sizes")."""


def access_column(direction: str, upper_bytes: int | None) -> str:
    """Name of the column that counts accesses of at most `upper_bytes` and above the bin before; None: the largest."""
    return f"{direction}_accesses_{'more' if upper_bytes is None else upper_bytes}"


def _number(name: str, doc: str) -> Column:
    return Column(name, "int64", doc)


def _seconds(name: str, doc: str) -> Column:
    return Column(name, "float64", f"{doc}, seconds")


def _accesses(whose: str) -> Iterator[Column]:
    for direction in ("read", "write"):
        for lower, upper in zip((0, *ACCESS_BINS), (*ACCESS_BINS, None), strict=True):
            sizes = f"more than {lower} bytes" if upper is None else f"at most {upper} and more than {lower} bytes"
            yield _number(access_column(direction, upper), f"{whose} {direction}s of {sizes}")


_RUN: Final = (
    Column("time", "timestamp", "end of the run"),
    Column("date", "date", "UTC day in which the run starts (partition)"),
    text("source", "which importer or agent wrote the row"),
    text("filesystem", "file system by the configured mounts or `--filesystem`; NULL: not known"),
    text("run_id", "identity of the log: SHA-256 of its content"),
    Column("start", "timestamp", "start of the run"),
)

RUNS: Final = Table(
    "runs",
    "One Darshan log. Bytes, operations and times are those of POSIX, STDIO and DFS together, unless named otherwise.",
    (
        *_RUN[:5],
        text("job_id", "job identifier as the scheduler gave it to the run"),
        _RUN[5],
        Column("duration_s", "float64", "elapsed"),
        text("user", "owner, by the name of the log file; NULL: not known"),
        text("project", "account or project; NULL: the scheduler's record tells"),
        text("executable", "program, without its directory"),
        _number("processes", "MPI ranks"),
        _number("read_bytes", "bytes read"),
        _number("write_bytes", "bytes written"),
        _number("files", "files touched through POSIX, STDIO, DFS or MPI-IO, each once"),
        Column("partial", "bool", "some module ran out of memory or the log is cut: not every file is in it"),
        text("log", "name of the log file, without its directory"),
        text("log_version", "version of the log format, such as 3.41"),
        _number("uid", "numeric user id"),
        text("command", "program and arguments as logged"),
        _number("nodes", "hosts named in the log (DXT); NULL: the scheduler's record tells"),
        text("modules", "Darshan's modules with records, comma-separated: POSIX,MPI-IO,STDIO"),
        text("incomplete_modules", "modules whose records are incomplete or could not be read, comma-separated"),
        text(
            "module_totals",
            "JSON by module: read_bytes, write_bytes, files, agg_perf_by_slowest_mib_per_s; NULL: not known, or none",
        ),
        _number("opens", "opens"),
        _number("reads", "reads"),
        _number("writes", "writes"),
        _number("seeks", "seeks"),
        _number("stats", "stats (POSIX)"),
        _number("syncs", "fsync, fdatasync and fflush"),
        _seconds("read_s", "time in reads, summed over ranks"),
        _seconds("write_s", "time in writes, summed over ranks"),
        _seconds("metadata_s", "time in metadata operations, summed over ranks"),
        _seconds("slowest_rank_s", "I/O time of the slowest rank through POSIX, STDIO and DFS"),
        _number("slowest_rank", "that rank on unique files; NULL: none has any"),
        text("slowest_rank_method", "how shared files count in it: slowest_rank, or open_lastio (old logs)"),
        Column("shared_files_overlap", "bool", "shared files were in use at the same time: slowest_rank_s is too long"),
        _number(
            "rate_bytes",
            "numerator of MiB/s/CN (DEFINITIONS): each file at its highest layer that moved any, of MPI-IO, POSIX with "
            "STDIO, and DFS; no standard streams. NULL: not known, or loaded before there was this column",
        ),
        _seconds("rate_s", "denominator of MiB/s/CN: I/O time of the slowest rank at these layers"),
        text("rate_method", "how shared files count in rate_s; NULL: loaded before there was this column"),
        Column("rate_files_overlap", "bool", "shared files were in use at the same time: rate_s is too long"),
        _number("io_ranks", "ranks that moved bytes; NULL: shared records hide them and there is no heat map"),
        _number("write_ranks", "ranks that wrote; NULL likewise"),
        _number("busiest_rank", "rank that moved most bytes, where ranks are known"),
        _number("busiest_rank_bytes", "bytes it moved"),
        _number("busiest_writer", "rank that wrote most bytes, where ranks are known"),
        _number("busiest_writer_bytes", "bytes it wrote"),
        *(
            _number(f"{pattern}_{what}", f"{words} of {pattern.replace('_', ' ')} files")
            for pattern in PATTERNS
            for what, words in (("files", "number"), ("read_bytes", "bytes read"), ("write_bytes", "bytes written"))
        ),
        *(
            _number(f"{interface}_{what}", f"{words} of files used through {interface} (the highest interface)")
            for interface in INTERFACES
            for what, words in (("files", "number"), ("read_bytes", "bytes read"), ("write_bytes", "bytes written"))
        ),
        _number("posix_reads", "reads through POSIX: the whole of shares below"),
        _number("posix_writes", "writes through POSIX"),
        _number("sequential_reads", "POSIX reads at a higher offset than the read before"),
        _number("sequential_writes", "POSIX writes at a higher offset than the write before"),
        _number("consecutive_reads", "POSIX reads that begin where the read before ended"),
        _number("consecutive_writes", "POSIX writes that begin where the write before ended"),
        _number("misaligned_ops", "POSIX reads and writes not aligned to the file system's block"),
        *_accesses("POSIX"),
        _number("key_access_bytes", "most frequent size of POSIX accesses"),
        _number("key_access_count", "accesses of that size"),
        text("key_access_direction", "r, w or r+w: by the histogram bin that size falls into"),
        _number("independent_ops", "independent MPI-IO reads and writes, nonblocking ones among them"),
        _number("collective_ops", "collective MPI-IO reads and writes, split ones among them"),
        _number("written_files", "files written"),
        _number("new_files", "of them created by the run or empty before: an estimate (DEFINITIONS, New files)"),
        _number(
            "appended_write_bytes",
            "bytes written to append-only files: one rank alone wrote them, each time where it had ended before; NULL: "
            "not known, or loaded before there was this column",
        ),
        _number("osts", "OSTs that its files lie on (Lustre module); NULL: not known"),
    ),
    ("run_id",),
    "record",
)
RUN_FILES: Final = Table(
    "run_files",
    "One file record of a Darshan log: a file as one rank, or all ranks together, used it through one module.",
    (
        *_RUN,
        text("module", "POSIX, STDIO, MPI-IO, H5F, H5D, PNETCDF_FILE, PNETCDF_VAR, LUSTRE, DFS, DAOS"),
        Column("record_id", "int64", "Darshan's record id, as a signed number", at_least=None),
        Column("rank", "int64", "rank, −1 for a record shared by all", at_least=-1),
        _number("read_bytes", "bytes read"),
        _number("write_bytes", "bytes written"),
        _number("opens", "opens"),
        text("path", "name of the file or dataset; NULL: not in the log, or left out by the configuration"),
        text("mount", "mount point it lies below"),
        text("mount_type", "type of that file system: lustre, gpfs, nfs, …"),
        _number("ranks", "ranks that the record stands for: all, or one"),
        *(_number(name, name) for name in ("reads", "writes", "seeks", "stats")),
        _number("syncs", "fsync, fdatasync, fflush or MPI_File_sync"),
        _number("extent_bytes", "one more than the highest offset read or written: the least size of the file"),
        _number("written_extent_bytes", "one more than the highest offset written"),
        *(
            _number(f"{kind}_{direction}s", f"{kind} {direction}s")
            for kind in ("sequential", "consecutive")
            for direction in ("read", "write")
        ),
        _number("read_write_switches", "changes between reading and writing"),
        _number("misaligned_ops", "accesses not aligned to `alignment_bytes`"),
        _number("alignment_bytes", "block size of the file system, as the log has it"),
        *(_seconds(f"{what}_s", f"time in {what}, summed over ranks") for what in ("read", "write", "metadata")),
        *(
            _seconds(f"{what}_{end}_s", f"{words} {what} {ends}; NULL: there was none")
            for what in ("open", "read", "write", "close")
            for end, words, ends in (("start", "first", "began"), ("end", "last", "ended"))
        ),
        _seconds("longest_read_s", "longest single read"),
        _seconds("longest_write_s", "longest single write"),
        *(
            column
            for which in ("fastest", "slowest")
            for column in (
                _number(f"{which}_rank", f"{which} rank of a shared record"),
                _number(f"{which}_rank_bytes", "bytes it moved"),
                _seconds(f"{which}_rank_s", "its I/O time"),
            )
        ),
        *_accesses("its"),
        *(
            column
            for place in range(1, 5)
            for column in (
                _number(f"access{place}_bytes", f"size of accesses, number {place} in frequency"),
                _number(f"access{place}_count", "how many"),
            )
        ),
        *(
            column
            for place in range(1, 5)
            for column in (
                _number(f"stride{place}_bytes", f"gap between two accesses of a rank, number {place} in frequency"),
                _number(f"stride{place}_count", "how many"),
            )
        ),
        *(
            _number(f"{kind}_{what}", f"{kind} MPI-IO {what}")
            for kind in ("independent", "collective")
            for what in ("opens", "reads", "writes")
        ),
        _number("hints", "times MPI-IO hints were set"),
        Column(
            "file_record_id",
            "int64",
            "record id of the file a dataset or variable lies in; NULL: not in the log",
            at_least=None,
        ),
        _number("stripe_count", "OSTs the file is striped over (Lustre module)"),
        _number("stripe_bytes", "stripe size"),
        text("osts", "indices of those OSTs, comma-separated"),
    ),
    ("run_id", "module", "record_id", "rank"),
    "record",
)
RUN_RANKS: Final = Table(
    "run_ranks",
    "Activity of one rank in a Darshan log: records of its own, and the heat map where shared records hide ranks.",
    (
        *_RUN,
        _number("rank", "rank"),
        _number("read_bytes", "bytes read"),
        _number("write_bytes", "bytes written"),
        _seconds("metadata_s", "time in metadata operations on files of its own"),
        _seconds("read_s", "time in reads of files of its own"),
        _seconds("write_s", "time in writes of files of its own"),
        _number("opens", "opens of files of its own"),
        _number("files", "files of its own"),
        _seconds("first_s", "its first I/O began"),
        _seconds("last_s", "its last I/O ended"),
        text(
            "bytes_from",
            "where its bytes are from: records (files that only it moved bytes of) or heatmap (all files)",
        ),
    ),
    ("run_id", "rank"),
    "record",
)
RUN_SERIES: Final = Table(
    "run_series",
    "Heat map of a Darshan log: bytes by module, rank and time, bins with any bytes only.",
    (
        *_RUN,
        text("module", "POSIX, STDIO, MPI-IO or DFS"),
        _number("rank", "rank, or the first of a group where there are more than 256"),
        _number("ranks", "ranks of the group"),
        _number("bin", "number of the bin, from 0"),
        _seconds("bin_s", "length of a bin; it begins at bin × bin_s"),
        _number("read_bytes", "bytes read"),
        _number("write_bytes", "bytes written"),
    ),
    ("run_id", "module", "rank", "bin"),
    "record",
)


@dataclass(frozen=True, slots=True)
class RunRate:
    """Bytes and I/O time of the slowest rank; None: not known. `overlap`: the time is too long, the rate too low."""

    bytes: int | None
    seconds: float | None
    method: str | None
    overlap: bool | None

    @property
    def mib_per_s(self) -> float | None:
        """Of all nodes together."""
        return self.bytes / MIB / self.seconds if self.bytes is not None and self.seconds else None

    @property
    def is_short(self) -> bool:
        """Whether there was so little I/O time that the rate says little."""
        return self.seconds is not None and 0 < self.seconds < SHORT_S


def rate_of(run: Mapping[str, Any], method: RateMethod = "layers") -> RunRate:
    """How fast a run was, by its row of `runs`: numerator and denominator of MiB/s/CN (DEFINITIONS).

    A row that was loaded before there was `rate_bytes` says the same by POSIX and STDIO, if the run used nothing else;
    otherwise it is not known. The method `paper` is POSIX and STDIO (and DFS beside them) alone, whatever is above.
    """
    if method == "paper" or (run.get("rate_method") is None and not is_rate_lost(run)):
        read_bytes, write_bytes = run.get("read_bytes"), run.get("write_bytes")
        moved = None if read_bytes is None or write_bytes is None else read_bytes + write_bytes
        return RunRate(
            moved, run.get("slowest_rank_s"), run.get("slowest_rank_method"), run.get("shared_files_overlap")
        )
    return RunRate(*(run.get(name) for name in ("rate_bytes", "rate_s", "rate_method", "rate_files_overlap")))


def is_rate_lost(run: Mapping[str, Any]) -> bool:
    """Whether the rate is not known since the run was loaded before its times at MPI-IO or DFS were kept."""
    return run.get("rate_method") is None and bool(re.search(LAYERED, run.get("modules") or ""))
