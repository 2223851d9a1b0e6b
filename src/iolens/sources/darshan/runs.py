"""Rows of `runs`: all that questions over many runs need, summed from the records of many logs at once.

Definitions of the figures: DEFINITIONS, "MiB/s/CN (D4)", "Patterns, interfaces, sizes (D5, D9)", "New files (D12)".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.run_tables import ACCESS_BINS, INTERFACES, PATTERNS, access_column
from iolens.sources.darshan.files import Columns
from iolens.sources.darshan.grouping import Groups, PlaceTotals, Whole, grouped, joined, spread, total_by
from iolens.sources.darshan.head import LogHead
from iolens.sources.darshan.log import RecordLayout

ACCUMULATED: Final = ("POSIX", "STDIO", "MPI-IO", "DFS", "DAOS")
"""Modules for which Darshan itself derives a performance from the slowest rank."""
LAYERS: Final = (("MPI-IO",), ("POSIX", "STDIO"), ("DFS",))
"""The higher first; a file counts in MiB/s/CN at one of them. POSIX and STDIO are one, for neither uses the other."""
_TOTALS: Final = ("POSIX", "STDIO", "DFS")  # whose bytes, operations and times a run's are
_TOUCHING: Final = (*_TOTALS, "MPI-IO")  # whose records are files of a run
_ABOVE_FILES: Final = ("H5D", "PNETCDF_VAR", "DAOS")  # that move bytes of files which other modules ought to have
_FILE_KINDS: Final = ("POSIX", "STDIO", "MPI-IO", "H5F", "PNETCDF_FILE", "DFS", "H5D", "PNETCDF_VAR")
_LOG_NAME: Final = re.compile(r"(?P<rest>.+)_id-?\d+(?:-\d+)?_\d+-\d+-\d+-\d+(?:_\d+)?(?:\.darshan.*)?")
_DIRECTIONS: Final = {(True, True): "r+w", (True, False): "r", (False, True): "w", (False, False): None}
_NOT_A_NUMBER: Final = float("nan")

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ModuleRecords:
    """All records of one module, of many logs: one after the other, in the order of logs."""

    layout: RecordLayout
    records: NDArray[np.void]
    logs: Whole
    columns: Columns
    is_stream: Flags  # a standard stream, not a file
    by_log: PlaceTotals

    @property
    def rank(self) -> Whole:
        """Rank of each, −1 for one that all share."""
        return self.columns["rank"]

    def times(self, name: str) -> NDArray[np.float64]:
        """A raw time of every record, as Darshan's own sums take it."""
        values = self.layout.time(self.records, name)
        return np.zeros(len(self.logs)) if values is None else values

    def own_time(self) -> NDArray[np.float64]:
        """Metadata, read and write time, seconds."""
        return self.times("META_TIME") + self.times("READ_TIME") + self.times("WRITE_TIME")


Modules = dict[str, ModuleRecords]


def run_columns(heads: Sequence[LogHead], modules: Modules, osts: Sequence[int | None]) -> dict[str, object]:
    """Columns of `runs` from the records; −1 and NaN stand for what is not known."""
    count = len(heads)
    hidden = _hidden_posix(heads, modules)
    columns: dict[str, object] = {}
    for name in ("read_bytes", "write_bytes", "opens", "reads", "writes", "seeks", "syncs", "read_s", "write_s",
                 "metadata_s"):  # fmt: skip
        columns[name] = _total(modules, _TOTALS, name, count, hidden)
    for name in ("sequential_reads", "sequential_writes", "consecutive_reads", "consecutive_writes", "misaligned_ops",
                 "stats", *(access_column(direction, upper) for direction in ("read", "write")
                            for upper in (*ACCESS_BINS, None))):  # fmt: skip
        columns[name] = _total(modules, ("POSIX",), name, count, hidden)
    for name in ("reads", "writes"):
        columns[f"posix_{name}"] = _total(modules, ("POSIX",), name, count, hidden)
    for kind in ("independent", "collective"):
        parts = [_total(modules, ("MPI-IO",), f"{kind}_{what}", count) for what in ("reads", "writes")]
        columns[f"{kind}_ops"] = np.where(np.minimum(*parts) < 0, np.maximum(*parts), parts[0] + parts[1])
    files = _Files(modules, np.array([head.processes for head in heads], np.int64))
    columns |= _slowest(modules, hidden)
    columns |= _rate(heads, modules, files)
    columns |= _file_counts(files)
    is_unknown = hidden | _moved_through(modules, ("DFS",), count)  # which tells nothing of offsets
    columns["appended_write_bytes"] = np.where(is_unknown, -1, files.by_log(files.appended_bytes()))
    columns |= _key_access(modules, columns, count)
    columns["osts"] = list(osts)
    columns["module_totals"] = _module_totals(heads, modules)
    return columns


def identity_columns(heads: Sequence[LogHead]) -> dict[str, object]:
    """Columns of `runs` from the heads of the logs."""
    names = [head.place.rsplit("/", 1)[-1] for head in heads]
    executables = [_executable(head.command) for head in heads]
    return {
        "job_id": [str(head.job_id) for head in heads],
        "duration_s": [head.duration_s for head in heads],
        "user": [_user(name, executable) for name, executable in zip(names, executables, strict=True)],
        "executable": executables,
        "processes": [head.processes for head in heads],
        "partial": [bool(head.incomplete) or any(module.partial for module in head.modules) for head in heads],
        "log": names,
        "log_version": [head.version for head in heads],
        "uid": [head.uid if head.uid >= 0 else None for head in heads],
        "command": [head.command for head in heads],
        "nodes": [head.hosts for head in heads],
        "modules": [",".join(module.name for module in head.modules) for head in heads],
        "incomplete_modules": [_incomplete(head) for head in heads],
    }


def _incomplete(head: LogHead) -> str | None:
    partial = (module.name for module in head.modules if module.partial)
    return ",".join(dict.fromkeys((*partial, *head.incomplete))) or None


def _executable(command: str | None) -> str | None:
    first = (command or "").split(" ", 1)[0]
    return first.rsplit("/", 1)[-1] or None


def _user(name: str, executable: str | None) -> str | None:
    """The first part of `USER_EXECUTABLE_idJOB…`; both may hold underscores, but the executable is known."""
    match = _LOG_NAME.fullmatch(name)
    if match is None or "_" not in match["rest"]:
        return None
    if executable is not None and match["rest"].endswith(f"_{executable}"):
        return match["rest"].removesuffix(f"_{executable}") or None
    return match["rest"].split("_", 1)[0] or None


def _unread(heads: Sequence[LogHead], module: str) -> Flags:
    return np.array([module in head.unread for head in heads], bool)


def _hidden_posix(heads: Sequence[LogHead], modules: Modules) -> Flags:
    """Logs without POSIX or DFS records though MPI-IO moved bytes: what they moved is not known, and not zero."""
    moved = _moved_through(modules, ("MPI-IO", *_ABOVE_FILES), len(heads))
    return np.asarray((moved & ~_has(heads, "POSIX", "DFS")) | _unread(heads, "POSIX") | _unread(heads, "DFS"))


def _moved_through(modules: Modules, names: Sequence[str], count: int) -> Flags:
    """Logs in which one of these modules moved bytes."""
    moved = np.zeros(count, bool)
    for name in names:
        if name in modules:
            read, written = (_or_zero(modules[name], f"{direction}_bytes") for direction in ("read", "write"))
            moved |= modules[name].by_log.total((read > 0) | (written > 0)) > 0
    return moved


def _has(heads: Sequence[LogHead], *names: str) -> Flags:
    """Logs with one of these modules."""
    return np.array([any(module.name in names for module in head.modules) for head in heads], bool)


def _total(modules: Modules, names: Sequence[str], column: str, count: int, unknown: Flags | None = None) -> Any:
    """Sum by log of what is known in these modules; not known where a module has records and none is known."""
    is_unknown = np.zeros(count, bool) if unknown is None or "POSIX" not in names else unknown.copy()
    total: NDArray[Any] = np.zeros(count, np.float64 if column.endswith("_s") else np.int64)
    for name in names:
        if name not in modules or column not in modules[name].columns:
            continue
        values, by_log = modules[name].columns[column], modules[name].by_log
        is_known = values >= 0  # false for NaN
        if is_known.all():
            total += by_log.total(values)
            continue
        total += by_log.total(np.where(is_known, values, 0))
        is_unknown[by_log.present] |= by_log.total(is_known)[by_log.present] == 0
    return np.where(is_unknown, _NOT_A_NUMBER if column.endswith("_s") else -1, total)


@dataclass(frozen=True, slots=True, eq=False)
class SlowestRanks:
    """The rank with most I/O time on files of its own, by log."""

    seconds: NDArray[np.float64]
    rank: Whole  # −1: none has any


def _slowest_on_own(logs: Whole, rank: Whole, seconds: NDArray[np.float64], count: int) -> SlowestRanks:
    own = rank >= 0
    groups = grouped(logs[own], rank[own])
    group_log, group_rank, total = groups.first(logs[own]), groups.first(rank[own]), groups.total(seconds[own])
    order = np.lexsort((-group_rank, total, group_log))  # of equal times the lowest rank is last
    last = np.flatnonzero(np.diff(group_log[order], append=-1)) if len(order) else order
    places = order[last]
    is_busy = total[places] > 0
    places = places[is_busy]
    return SlowestRanks(
        spread(group_log[places], total[places], count, 0.0), spread(group_log[places], group_rank[places], count, -1)
    )


Chosen = Sequence[tuple[ModuleRecords, Flags]]  # modules, and which of their records count


def _slowest(modules: Modules, is_unknown: Flags) -> dict[str, object]:
    """I/O time of the slowest rank at the lowest interfaces, as the study on Intrepid has it."""
    chosen = [(modules[name], np.ones(len(modules[name].logs), bool)) for name in _TOTALS if name in modules]
    time = _slowest_time(chosen, len(is_unknown))
    return {
        "slowest_rank_s": np.where(is_unknown, _NOT_A_NUMBER, time.seconds),
        "slowest_rank": time.rank,
        "slowest_rank_method": time.method,
        "shared_files_overlap": time.overlap.tolist(),
    }


def _rate(heads: Sequence[LogHead], modules: Modules, files: _Files) -> dict[str, object]:
    """Numerator and denominator of MiB/s/CN: each file at its own layer (DEFINITIONS, "MiB/s/CN")."""
    count = len(heads)
    layers = [name for layer in LAYERS for name in layer]
    chosen = [(modules[name], files.is_counted(name)) for name in layers if name in modules]
    time = _slowest_time(chosen, count)
    moved = np.zeros(count, np.int64)
    for module, counts in chosen:
        both = _or_zero(module, "read_bytes") + _or_zero(module, "write_bytes")
        moved += module.by_log.total(np.where(counts, both, 0))
    is_unknown = _moved_through(modules, _ABOVE_FILES, count) & ~_has(heads, *layers)
    for name in layers:
        is_unknown |= _unread(heads, name)
    return {
        "rate_bytes": np.where(is_unknown, -1, moved),
        "rate_s": np.where(is_unknown, _NOT_A_NUMBER, time.seconds),
        "rate_method": time.method,
        "rate_files_overlap": time.overlap.tolist(),
    }


@dataclass(frozen=True, slots=True, eq=False)
class SlowestTime:
    """I/O time by log: of the slowest rank on files of its own, and of the slowest rank of each shared one."""

    seconds: NDArray[np.float64]
    rank: Whole  # the slowest on files of its own; −1: none has any
    method: list[str]
    overlap: Flags  # shared files were in use at the same time


def _slowest_time(chosen: Chosen, count: int) -> SlowestTime:
    logs = joined([module.logs[rows] for module, rows in chosen])
    rank = joined([module.rank[rows] for module, rows in chosen])
    times = joined([_known(module.own_time()[rows]) for module, rows in chosen], float)
    own = _slowest_on_own(logs, rank, times, count)
    shared_s, by_opening, overlap = np.zeros(count), np.zeros(count, bool), np.zeros(count, bool)
    for module, rows in chosen:
        is_shared = rows & (module.rank < 0)
        slowest = module.columns["slowest_rank_s"]
        lacks = is_shared & np.isnan(slowest) & (_known(module.own_time()) > 0)
        seconds = np.where(lacks, _open_to_last_io(module.columns), np.nan_to_num(slowest))
        shared_s += module.by_log.total(np.where(is_shared, seconds, 0.0))
        by_opening |= module.by_log.total(lacks) > 0
    if chosen:
        overlap = _overlaps(chosen, count)
    method = np.where(by_opening, "open_lastio", "slowest_rank").astype(object).tolist()
    return SlowestTime(own.seconds + shared_s, own.rank, method, overlap)


def _known(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isfinite(seconds) & (seconds > 0), seconds, 0.0)


def _open_to_last_io(columns: Columns) -> NDArray[np.float64]:
    """From the first open to the end of the last read or write (of the last close, where there was neither)."""
    last = np.fmax(columns["read_end_s"], columns["write_end_s"])
    last = np.where(np.isnan(last), columns["close_end_s"], last)
    return np.asarray(np.nan_to_num(np.maximum(last - columns["open_start_s"], 0.0)))


def _overlaps(used: Chosen, count: int) -> Flags:
    """Logs in which two shared files were in use at the same time."""
    chosen = [(module, np.flatnonzero(rows & (module.rank < 0) & ~module.is_stream)) for module, rows in used]
    logs = joined([module.logs[rows] for module, rows in chosen])
    begin, end = (
        joined([function.reduce([module.columns[name][rows] for name in names]) for module, rows in chosen], float)
        for function, names in (
            (np.fmin, ("open_start_s", "read_start_s", "write_start_s")),
            (np.fmax, ("close_end_s", "read_end_s", "write_end_s")),
        )
    )
    is_known = ~np.isnan(begin) & ~np.isnan(end)
    logs, begin, end = logs[is_known], begin[is_known], end[is_known]
    order = np.lexsort((begin, logs))
    logs, begin, end = logs[order], begin[order], end[order]
    overlap = np.zeros(count, bool)
    overlap[logs[1:][(begin[1:] < end[:-1]) & (logs[1:] == logs[:-1])]] = True  # if any two do, so do two in a row
    return overlap


def _file_counts(files: _Files) -> dict[str, object]:
    """Numbers and bytes of files by pattern and by interface; those written, and those that are new."""
    bytes_of = {"read": files.read_bytes, "write": files.write_bytes}
    columns: dict[str, object] = {"files": files.by_log(files.is_touched)}
    for pattern in PATTERNS:
        chosen = files.is_touched & (files.pattern == PATTERNS.index(pattern))
        columns[f"{pattern}_files"] = files.by_log(chosen)
        for direction, values in bytes_of.items():
            columns[f"{pattern}_{direction}_bytes"] = files.by_log(np.where(chosen, values, 0))
    for interface in INTERFACES:
        chosen = files.is_file & (files.interface == INTERFACES.index(interface))
        columns[f"{interface}_files"] = files.by_log(chosen)
        for direction in bytes_of:
            columns[f"{interface}_{direction}_bytes"] = files.by_log(files.interface_bytes(interface, direction))
    columns["written_files"] = files.by_log(files.is_touched & (files.write_bytes > 0))
    columns["new_files"] = files.by_log(files.is_touched & files.is_new)
    return columns


class _Files:
    """Each file of each log once, with what its records in all modules say."""

    def __init__(self, modules: Modules, processes: Whole) -> None:
        present = [
            (kind, modules[name], _with_file(modules[name]))
            for kind, name in enumerate(_FILE_KINDS)
            if name in modules and _with_file(modules[name]).any()
        ]
        self._present = {_FILE_KINDS[kind] for kind, _, _ in present}
        self.kind = joined([np.full(int(rows.sum()), kind) for kind, _, rows in present])
        self.logs = joined([module.logs[rows] for _, module, rows in present])
        self.rank = joined([module.rank[rows] for _, module, rows in present])
        self._rows = {
            name: joined([_or_zero(module, name)[rows] for _, module, rows in present])
            for name in (
                "read_bytes",
                "write_bytes",
                "opens",
                "reads",
                "writes",
                "consecutive_writes",
                "seeks",
                "written_extent_bytes",
            )
        }
        ids = joined([_file_ids(module)[rows] for _, module, rows in present])
        is_stream = joined([module.is_stream[rows] for _, module, rows in present], bool)
        self.groups: Groups = grouped(self.logs, ids)
        self.number = self.groups.number()
        self.log = self.groups.first(self.logs)
        self._by_log = PlaceTotals(self.log, len(processes))
        self.processes = processes[self.log]
        self.is_file = self.groups.largest(is_stream) == 0
        self.is_touched = self.is_file & self._has(*_TOUCHING)
        self.pattern = self._pattern()
        self.interface = self._interface()
        self.read_bytes, self.write_bytes = self._bytes("read_bytes"), self._bytes("write_bytes")
        self.is_new = self._is_new()
        self.layer = self._layer()

    def is_counted(self, module: str) -> Flags:
        """Which records of a module are at the layer that their file counts at."""
        layer = next(place for place, names in enumerate(LAYERS) if module in names)
        files = self.number[self._is_of(module)]
        return np.asarray(self.is_file[files] & (self.layer[files] == layer))

    def by_log(self, values: NDArray[Any]) -> Whole:
        """Sum over the files of each log."""
        return np.asarray(self._by_log.total(values.astype(np.int64)))

    def interface_bytes(self, interface: str, direction: str) -> Whole:
        """Bytes of each file that count under an interface; POSIX and STDIO keep what passed through each."""
        if interface in ("posix", "stdio"):
            posix, stdio = (self.interface == INTERFACES.index(name) for name in ("posix", "stdio"))
            plain = self.is_file & (posix | stdio)
            return np.where(plain, self._sum(f"{direction}_bytes", interface.upper()), 0)
        chosen = self.is_file & (self.interface == INTERFACES.index(interface))
        return np.where(chosen, self.read_bytes if direction == "read" else self.write_bytes, 0)

    def appended_bytes(self) -> Whole:
        """Bytes of each file that one rank alone wrote, and each time where it had ended before; else 0."""
        writes = (self._rows["write_bytes"] > 0) & self._is_of("POSIX", "STDIO")
        follows = np.where(
            self._is_of("POSIX"), self._rows["consecutive_writes"] >= self._rows["writes"] - 1, self._rows["seeks"] == 0
        )
        is_of_one = (self.rank >= 0) | (self.processes[self.number] == 1)
        writers, appends = (self.groups.total(which) for which in (writes, writes & follows & is_of_one))
        return np.where(self.is_file & (writers == 1) & (appends == 1), self.write_bytes, 0)

    def _is_of(self, *modules: str) -> Flags:
        """Which records are of these modules."""
        return np.asarray(np.logical_or.reduce([self.kind == _FILE_KINDS.index(name) for name in modules]))

    def _sum(self, column: str, *modules: str) -> Whole:
        present = self._present.intersection(modules)
        if not present:
            return np.zeros(len(self.groups), np.int64)
        return np.asarray(self.groups.total(np.where(self._is_of(*present), self._rows[column], 0)))

    def _has(self, *modules: str) -> Flags:
        present = self._present.intersection(modules)
        if not present:
            return np.zeros(len(self.groups), bool)
        return np.asarray(self.groups.largest(self._is_of(*present)) > 0)

    def _bytes(self, column: str) -> Whole:
        """POSIX and STDIO bytes, else those of DFS; where none has the file, of the lowest module above that has."""
        preferred = [("POSIX", "STDIO"), ("DFS",), ("MPI-IO",), ("H5D",), ("PNETCDF_VAR",), ("PNETCDF_FILE",)]
        return np.asarray(
            np.select([self._has(*names) for names in preferred], [self._sum(column, *names) for names in preferred], 0)
        )

    def _pattern(self) -> Whole:
        """By opens: one rank, all ranks or the record of all, some ranks; by records where nobody opened the file."""
        rows = np.flatnonzero(self._is_of(*_TOUCHING))
        pairs = grouped(self.number[rows], self.rank[rows])
        file, rank = pairs.first(self.number[rows]), pairs.first(self.rank[rows])
        has_opened = pairs.largest(self._rows["opens"][rows] > 0)
        total = len(self.log)
        is_common = total_by(file, rank < 0, total) > 0
        openers, users = total_by(file, has_opened, total), total_by(file, np.ones(len(file), np.int64), total)
        ranks = np.where(openers > 0, openers, users)
        unique, shared, partially = (PATTERNS.index(name) for name in ("unique", "shared", "partially_shared"))
        return np.select(
            [self.processes == 1, is_common, ranks <= 1, ranks >= self.processes],
            [unique, shared, unique, shared],
            partially,
        )

    def _interface(self) -> Whole:
        """The highest that has the file; of POSIX and STDIO the one that moved more."""
        through = [self._moved(name) for name in ("POSIX", "STDIO")]
        is_stdio = self._has("STDIO") & (~self._has("POSIX") | (through[1] > through[0]))
        number = INTERFACES.index
        return np.select(
            [self._has("H5F", "H5D"), self._has("PNETCDF_FILE", "PNETCDF_VAR"), self._has("MPI-IO"),
             self._has("DFS") & ~self._has("POSIX", "STDIO"), is_stdio],
            [number("hdf5"), number("pnetcdf"), number("mpiio"), number("dfs"), number("stdio")],
            number("posix"),
        )  # fmt: skip

    def _layer(self) -> Whole:
        """The highest that moved bytes of the file; of a file without any the highest that has it, if one does."""
        moved = [self._moved(*names) > 0 for names in LAYERS]
        known = [self._has(*names) for names in LAYERS]
        return np.select([*moved, *known], [*range(len(LAYERS)), *range(len(LAYERS))], -1)

    def _moved(self, *modules: str) -> Whole:
        return self._sum("read_bytes", *modules) + self._sum("write_bytes", *modules)

    def _is_new(self) -> Flags:
        """Never read, and as many bytes written as the file has at least: created by the run, or empty before."""
        is_of = self._is_of(*_TOTALS)
        extent = self.groups.largest(np.where(is_of, self._rows["written_extent_bytes"], 0))
        written = self._sum("write_bytes", *_TOTALS)
        return np.asarray((written > 0) & (self._sum("reads", *_TOTALS) == 0) & (extent > 0) & (written >= extent))


def _file_ids(module: ModuleRecords) -> Whole:
    """Record ids of files: of a dataset or variable those of the file it lies in, 0 where the log does not tell."""
    return module.columns.get("file_record_id", module.columns["record_id"])


def _with_file(module: ModuleRecords) -> Flags:
    """Records whose file is known: HDF5's datasets name it since version 2 of their module."""
    if "file_record_id" not in module.columns:
        return np.ones(len(module.logs), bool)
    return np.asarray(module.columns["file_record_id"] != 0)


def _or_zero(module: ModuleRecords, name: str) -> Whole:
    values = module.columns.get(name)
    return np.zeros(len(module.logs), np.int64) if values is None else np.maximum(values, 0)


def _key_access(modules: Modules, columns: dict[str, object], count: int) -> dict[str, object]:
    """The most frequent size of POSIX accesses that moved bytes; of equally frequent ones the largest."""
    size, times = np.full(count, -1), np.full(count, -1)
    directions: list[str | None] = [None] * count
    if "POSIX" in modules:
        posix = modules["POSIX"]
        logs = np.concatenate([posix.logs] * 4)
        sizes, counts = (
            np.concatenate([posix.columns[f"access{place}_{what}"] for place in range(1, 5)])
            for what in ("bytes", "count")
        )
        moved = (sizes > 0) & (counts > 0)
        groups = grouped(logs[moved], sizes[moved])
        log, bytes_, total = groups.first(logs[moved]), groups.first(sizes[moved]), groups.total(counts[moved])
        order = np.lexsort((bytes_, total, log))
        best = order[np.flatnonzero(np.diff(log[order], append=-1))] if len(order) else order
        size[log[best]], times[log[best]] = bytes_[best], total[best]
        for place, direction in zip(log[best].tolist(), _directions(columns, log[best], bytes_[best]), strict=True):
            directions[place] = direction
    return {"key_access_bytes": size, "key_access_count": times, "key_access_direction": directions}


def _directions(columns: dict[str, object], logs: Whole, sizes: Whole) -> list[str | None]:
    """`r`, `w` or `r+w`: which accesses there were in the bin of each log's size."""
    bins = np.searchsorted(ACCESS_BINS, sizes)
    has_read, has_written = (
        np.array([columns[access_column(name, upper)] for upper in (*ACCESS_BINS, None)])[bins, logs] > 0
        for name in ("read", "write")
    )
    return [_DIRECTIONS[pair] for pair in zip(has_read.tolist(), has_written.tolist(), strict=True)]


def _module_totals(heads: Sequence[LogHead], modules: Modules) -> list[str]:
    count = len(heads)
    totals: list[dict[str, object]] = [{} for _ in heads]
    for name, module in modules.items():
        read, written = (
            _total(modules, (name,), column, count) if column in module.columns else np.full(count, -1)
            for column in ("read_bytes", "write_bytes")
        )
        files = _file_numbers(module, count)
        speed = _speed_by_slowest(module, count) if name in ACCUMULATED else np.full(count, _NOT_A_NUMBER)
        for log in module.by_log.present.tolist():
            totals[log][name] = {
                "read_bytes": int(read[log]) if read[log] >= 0 else None,
                "write_bytes": int(written[log]) if written[log] >= 0 else None,
                "files": int(files[log]) if files[log] >= 0 else None,
                "agg_perf_by_slowest_mib_per_s": float(speed[log]) if np.isfinite(speed[log]) else None,
            }
    return [json.dumps(total) for total in totals]


def _file_numbers(module: ModuleRecords, count: int) -> Whole:
    """Files of each log; −1 where a dataset does not say which file it lies in."""
    ids = grouped(module.logs, _file_ids(module))
    files = np.bincount(ids.first(module.logs), minlength=count)
    return np.where(module.by_log.total(~_with_file(module)) > 0, -1, files)


def _speed_by_slowest(module: ModuleRecords, count: int) -> NDArray[np.float64]:
    """Darshan's own figure, MiB/s: all bytes over the slowest rank's time on its own files and on each shared one."""
    own = _slowest_on_own(module.logs, module.rank, module.own_time(), count)
    shared_s = module.by_log.total(np.where(module.rank < 0, module.times("SLOWEST_RANK_TIME"), 0.0))
    moved = _or_zero(module, "read_bytes") + _or_zero(module, "write_bytes")
    seconds = own.seconds + shared_s
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seconds > 0, module.by_log.total(moved) / 1048576.0 / seconds, _NOT_A_NUMBER)
