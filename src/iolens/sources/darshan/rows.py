"""Rows of `run_ranks`, and which ranks of a run moved bytes: from records of their own, or from the heat map.

A record that all ranks share names the slowest and the fastest: where one of these moved all its bytes, it is known who
did. Else the heat map of that module says it, where the log has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import NullableArray
from iolens.columns import LARGEST, Column
from iolens.records import Rows
from iolens.run_tables import RUN_FILES, RUN_RANKS, RUN_SERIES, RUNS
from iolens.sources.darshan.files import Columns, file_columns, nullable
from iolens.sources.darshan.grouping import PlaceTotals, Whole, grouped, joined, spread, total_by
from iolens.sources.darshan.head import STREAMS, PlaceFinder
from iolens.sources.darshan.heat import HEATED, HeatmapBuffer
from iolens.sources.darshan.log import RECORDED, LogBatch
from iolens.sources.darshan.messages import RowOptions
from iolens.sources.darshan.runs import ModuleRecords, Modules, identity_columns, run_columns

_COUNTED: Final = ("POSIX", "STDIO", "DFS")
_PART: Final = np.dtype([
    ("log", "i8"), ("rank", "i8"), ("id", "i8"), ("read", "i8"), ("write", "i8"), ("opens", "i8"), ("own", "?"),
    ("heat", "?"), ("metadata_s", "f8"), ("read_s", "f8"), ("write_s", "f8"), ("first_s", "f8"), ("last_s", "f8"),
])  # fmt: skip


def rank_columns(modules: Modules, heat: HeatmapBuffer, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of `run_ranks` with the log of each row, and those of `runs` that are about ranks."""
    parts, is_hidden = [], np.zeros(count, bool)
    bins = heat.bins
    for name in _COUNTED:
        if name not in modules:
            continue
        hidden = _hides_ranks(modules[name], count)
        number = HEATED.index(name)
        heated = np.array([(log, number) in heat.known for log in range(count)], bool)
        use_heat = hidden & heated
        is_hidden |= hidden & ~heated
        parts.append(_own_parts(modules[name], use_heat))
        parts.append(_heat_parts(bins[(bins["module"] == number) & use_heat[bins["log"]]]))
        parts.append(_sole_parts(modules[name], ~hidden))
    rows = np.concatenate((np.zeros(0, _PART), *parts))
    ranks = _by_rank(rows)
    return ranks, _of_runs(ranks, is_hidden, count)


def _hides_ranks(module: ModuleRecords, count: int) -> NDArray[np.bool_]:
    """Logs in which a file shared by all ranks moved bytes through the module, and not all of them by one rank."""
    is_hidden = (module.rank < 0) & ~module.is_stream & (_sole_rank(module) < 0)
    return np.asarray(module.by_log.total(np.where(is_hidden, _moved(module), 0)) > 0)


def _moved(module: ModuleRecords) -> Whole:
    return np.maximum(module.columns["read_bytes"], 0) + np.maximum(module.columns["write_bytes"], 0)


def _sole_rank(module: ModuleRecords) -> Whole:
    """The rank that moved all bytes of a shared record: its slowest or fastest; −1 where neither did."""
    sole, moved = np.full(len(module.logs), -1), _moved(module)
    for which in ("fastest", "slowest"):
        rank, own = (module.columns[f"{which}_{name}"] for name in ("rank", "rank_bytes"))
        sole = np.where((module.rank < 0) & (moved > 0) & (own == moved), rank, sole)
    return sole


def _sole_parts(module: ModuleRecords, is_wanted: NDArray[np.bool_]) -> NDArray[np.void]:
    """Bytes of shared records that one rank moved, in those logs that hide no other rank."""
    sole = _sole_rank(module)
    rows = np.flatnonzero((sole >= 0) & ~module.is_stream & is_wanted[module.logs])
    parts = np.zeros(len(rows), _PART)
    parts["log"], parts["rank"], parts["first_s"], parts["last_s"] = module.logs[rows], sole[rows], np.nan, np.nan
    for direction in ("read", "write"):
        parts[direction] = np.maximum(module.columns[f"{direction}_bytes"][rows], 0)
    return parts


def _own_parts(module: ModuleRecords, use_heat: NDArray[np.bool_]) -> NDArray[np.void]:
    rows = np.flatnonzero((module.rank >= 0) & ~module.is_stream)
    columns = {column: values[rows] for column, values in module.columns.items()}
    parts = np.zeros(len(rows), _PART)
    parts["log"], parts["rank"], parts["id"], parts["own"] = (
        module.logs[rows], columns["rank"], columns["record_id"], True)  # fmt: skip
    counts = ~use_heat[parts["log"]]  # the heat map has the bytes of these records too
    for direction in ("read", "write"):
        parts[direction] = np.where(counts, np.maximum(columns[f"{direction}_bytes"], 0), 0)
    parts["opens"] = np.maximum(columns["opens"], 0)
    for column in ("metadata_s", "read_s", "write_s"):
        parts[column] = np.nan_to_num(columns[column])
    parts["first_s"] = np.fmin.reduce([columns[f"{what}_start_s"] for what in ("open", "read", "write")])
    parts["last_s"] = np.fmax.reduce([columns[f"{what}_end_s"] for what in ("close", "read", "write")])
    return parts


def _heat_parts(bins: NDArray[np.void]) -> NDArray[np.void]:
    parts = np.zeros(len(bins), _PART)
    for name in ("log", "rank", "read", "write"):
        parts[name] = bins[name]
    parts["heat"] = True
    parts["first_s"], parts["last_s"] = bins["bin"] * bins["bin_s"], (bins["bin"] + 1) * bins["bin_s"]
    return parts


def _by_rank(rows: NDArray[np.void]) -> dict[str, Any]:
    groups = grouped(rows["log"], rows["rank"])
    numbers = groups.number()
    own = rows["own"]
    files = grouped(numbers[own], rows["id"][own])
    first, last = groups.smallest(rows["first_s"]), groups.largest(rows["last_s"])
    return {
        "log": groups.first(rows["log"]),
        "rank": groups.first(rows["rank"]),
        "read_bytes": groups.total(rows["read"]),
        "write_bytes": groups.total(rows["write"]),
        "metadata_s": groups.total(rows["metadata_s"]),
        "read_s": groups.total(rows["read_s"]),
        "write_s": groups.total(rows["write_s"]),
        "opens": groups.total(rows["opens"]),
        "files": np.bincount(files.first(numbers[own]), minlength=len(groups)),
        "first_s": first,
        "last_s": last,
        "bytes_from": np.where(groups.largest(rows["heat"]) > 0, "heatmap", "records").astype(object).tolist(),
    }


def _of_runs(ranks: dict[str, Any], is_hidden: NDArray[np.bool_], count: int) -> dict[str, Any]:
    moved = ranks["read_bytes"] + ranks["write_bytes"]
    columns: dict[str, Any] = {}
    for what, busiest, values in (
        ("io_ranks", "busiest_rank", moved),
        ("write_ranks", "busiest_writer", ranks["write_bytes"]),
    ):
        columns[what] = np.where(is_hidden, -1, total_by(ranks["log"], values > 0, count))
        rank, most = _busiest(ranks["log"], ranks["rank"], values, count)
        columns[busiest] = np.where(is_hidden, -1, rank)
        columns[f"{busiest}_bytes"] = np.where(is_hidden, -1, most)
    return columns


def _busiest(logs: Whole, rank: Whole, values: Whole, count: int) -> tuple[Whole, Whole]:
    """The rank with most bytes in each log, and how many; −1 where none has any. Of equal ones the lowest."""
    rows = np.flatnonzero(values > 0)
    order = rows[np.lexsort((-rank[rows], values[rows], logs[rows]))]
    best = order[np.flatnonzero(np.diff(logs[order], append=-1))] if len(order) else joined([])
    return spread(logs[best], rank[best], count, -1), spread(logs[best], values[best], count, -1)


# Rows of `runs`, `run_files`, `run_ranks` and `run_series` from logs that were read together --------------------------

MOST_RANKS: Final = 256  # of `run_series`; of more ranks, groups are added up


def rows_of_batch(batch: LogBatch, options: RowOptions) -> dict[str, Rows]:
    """The rows of all tables; those of one log stand together, in the order of logs."""
    tables = _BatchRows(batch, options).tables()
    if options.since_us is None and options.until_us is None:
        return tables
    since_us, until_us = options.since_us or 0, LARGEST if options.until_us is None else options.until_us
    return {name: _within(rows, since_us, until_us) for name, rows in tables.items()}


def _within(rows: Rows, since_us: int, until_us: int) -> Rows:
    times: Any = rows.columns["time"]
    keep = np.flatnonzero((times >= since_us) & (times < until_us))
    columns: dict[str, object] = {
        name: values[keep] if isinstance(values, np.ndarray | NullableArray) else [values[place] for place in keep]  # type: ignore[index]
        for name, values in rows.columns.items()
    }
    return Rows(rows.table, columns, len(keep))


def in_arrow(rows: Rows) -> Rows:
    """The same rows with columns as Arrow arrays."""
    import pyarrow as pa  # late: only what goes into a store needs it

    columns: dict[str, object] = {}
    for name, values in rows.columns.items():
        if isinstance(values, NullableArray):
            columns[name] = pa.array(values.values, mask=values.is_null)
        else:
            columns[name] = pa.array(values, from_pandas=isinstance(values, np.ndarray))  # NaN is NULL
    return Rows(rows.table, columns, rows.count)


class _BatchRows:
    """One batch on its way to rows."""

    def __init__(self, batch: LogBatch, options: RowOptions) -> None:
        self.batch, self.options, self.heads = batch, options, batch.heads
        self.processes = np.array([head.processes for head in self.heads], np.int64)
        self.finders = self._finders()
        self.paths: dict[str, list[str | None]] = {}
        self.modules = self._modules()

    def tables(self) -> dict[str, Rows]:
        """All four tables."""
        files = self._files()
        ranks, of_runs = rank_columns(self.modules, self.batch.heat, len(self.heads))
        filesystems = self._filesystems()
        runs = run_columns(self.heads, self.modules, self._osts()) | of_runs
        everywhere = np.arange(len(self.heads))
        logs = ranks.pop("log")
        return {
            "runs": self._rows(RUNS.name, everywhere, identity_columns(self.heads) | _known(runs), filesystems),
            "run_files": files,
            "run_ranks": self._rows(RUN_RANKS.name, logs, _known(ranks), filesystems),
            "run_series": self._series(filesystems),
        }

    def _finders(self) -> list[PlaceFinder]:
        """One for each log; logs with the same mounts share it."""
        finders: dict[tuple[tuple[str, str], ...], PlaceFinder] = {}
        keys = [tuple(head.mounts.items()) for head in self.heads]
        for key, head in zip(keys, self.heads, strict=True):
            if key not in finders:
                finders[key] = PlaceFinder(head.mounts, self.options.mounts, self.options.filesystem)
        return [finders[key] for key in keys]

    def _modules(self) -> Modules:
        modules: Modules = {}
        for name in RECORDED:
            buffer = self.batch.buffers.get(name)
            if buffer is None or not len(logs := buffer.logs):
                continue
            records = buffer.records
            paths = self.paths[name] = self._named(logs, records["id"])
            modules[name] = ModuleRecords(
                buffer.layout,
                records,
                logs,
                file_columns(buffer.layout, records, self.processes[logs]),
                np.array([path in STREAMS for path in paths], bool),
                PlaceTotals(logs, len(self.heads)),
            )
        return modules

    def _named(self, logs: Whole, ids: Any) -> list[str | None]:
        names = [head.names for head in self.heads]
        return [names[log].get(record) or None for log, record in zip(logs.tolist(), ids.tolist(), strict=True)]

    def _rows(
        self, table: str, logs: Whole, columns: Mapping[str, object], filesystems: list[str | None] | None
    ) -> Rows:
        """Rows with what all rows of a run have in common; `filesystems` of the runs, if not of each row."""
        start, end = (np.array(times, np.int64) for times in self._times())
        places = logs.tolist()
        common = {
            "time": end[logs],
            "start": start[logs],
            "filesystem": None if filesystems is None else [filesystems[log] for log in places],
            "run_id": [self.heads[log].run_id for log in places],
        }
        return Rows(table, {**common, **columns}, len(places))

    def _times(self) -> Iterator[list[int]]:
        yield [head.start_us for head in self.heads]
        yield [head.end_us for head in self.heads]

    def _files(self) -> Rows:
        """One row per record, modules one after the other."""
        sections = {name: (module.logs, module.columns) for name, module in self.modules.items()}
        stripings = self.batch.stripings
        if stripings:
            sections["LUSTRE"] = self._stripings()
        lengths = [len(logs) for logs, _ in sections.values()]
        logs = joined([logs for logs, _ in sections.values()])
        columns: dict[str, object] = {}
        for column in RUN_FILES.columns:
            parts = [of_module.get(column.name) for _, of_module in sections.values()]
            if any(part is not None for part in parts):
                columns[column.name] = _one_column(column, parts, lengths)
        paths = [path for name in sections for path in self.paths[name]]
        places = [self.finders[log].place(path) for log, path in zip(logs.tolist(), paths, strict=True)]
        keeps = self.options.paths
        texts: dict[str, list[str | None]] = {
            "module": [name for name, length in zip(sections, lengths, strict=True) for _ in range(length)],
            "mount": [mount for mount, _, _ in places],
            "mount_type": [kind for _, kind, _ in places],
            "filesystem": [filesystem for _, _, filesystem in places],
            "path": [path if keeps or path in STREAMS else None for path in paths],
            "osts": [*[None] * (len(logs) - len(stripings)), *(_listed(striping.osts) for striping in stripings)],
        }
        return self._rows(RUN_FILES.name, logs, {**columns, **texts}, None)

    def _stripings(self) -> tuple[Whole, Columns]:
        """Lustre's records as those of the other modules; their paths are noted too."""
        stripings = self.batch.stripings
        logs = np.array([striping.log for striping in stripings], np.int64)
        ids = np.array([striping.record_id for striping in stripings], np.uint64)
        rank = np.array([max(striping.rank, -1) for striping in stripings], np.int64)
        self.paths["LUSTRE"] = self._named(logs, ids)
        return logs, {
            "record_id": ids.view(np.int64),
            "rank": rank,
            "ranks": np.where(rank < 0, self.processes[logs], 1),
            "stripe_count": np.array([len(striping.osts) or -1 for striping in stripings], np.int64),
            "stripe_bytes": np.array([striping.stripe_bytes or -1 for striping in stripings], np.int64),
        }

    def _osts(self) -> list[int | None]:
        used: dict[int, set[int]] = {}
        for striping in self.batch.stripings:
            used.setdefault(striping.log, set()).update(striping.osts)
        return [len(used[log]) if used.get(log) else None for log in range(len(self.heads))]

    def _filesystems(self) -> list[str | None]:
        """Of each run: the configured file system that most of its bytes went to, or most of its files."""
        if not self.options.mounts:
            return [self.options.filesystem] * len(self.heads)
        weights: list[dict[str, tuple[int, int]]] = [{} for _ in self.heads]
        for name in ("POSIX", "STDIO", "DFS", "MPI-IO"):
            if name not in self.modules:
                continue
            module = self.modules[name]
            moved = np.maximum(module.columns["read_bytes"], 0) + np.maximum(module.columns["write_bytes"], 0)
            if name == "MPI-IO":
                moved = np.zeros_like(moved)  # those below have them too
            for log, path, size in zip(module.logs.tolist(), self.paths[name], moved.tolist(), strict=True):
                filesystem = self.finders[log].place(path)[2]
                if filesystem is not None and filesystem in self.options.mounts.values():
                    bytes_, files = weights[log].get(filesystem, (0, 0))
                    weights[log][filesystem] = (bytes_ + size, files + 1)
        return [
            max(sorted(weight), key=weight.__getitem__) if weight else self.options.filesystem for weight in weights
        ]

    def _series(self, filesystems: list[str | None]) -> Rows:
        """Bins with bytes, by module and rank, or group of ranks where there are many."""
        bins = self.batch.heat.bins
        logs = bins["log"]
        width = -(-self.processes // MOST_RANKS)
        first = bins["rank"] // width[logs] * width[logs]
        groups = grouped(logs, bins["module"], first, bins["bin"])
        log, rank = groups.first(logs), groups.first(first)
        columns = {
            "module": [HEATED[module] for module in groups.first(bins["module"]).tolist()],
            "rank": rank,
            "ranks": np.minimum(width[log], self.processes[log] - rank),
            "bin": groups.first(bins["bin"]),
            "bin_s": groups.first(bins["bin_s"]),
            "read_bytes": groups.total(bins["read"]),
            "write_bytes": groups.total(bins["write"]),
        }
        return self._rows(RUN_SERIES.name, log, _known(columns), filesystems)


def _one_column(column: Column, parts: Sequence[NDArray[Any] | None], lengths: Sequence[int]) -> object:
    """A column of all modules; NULL for those that do not have it, and where they do not know."""
    kind = next(part.dtype for part in parts if part is not None)
    absent = np.nan if kind.kind == "f" else -1
    pairs = list(zip(parts, lengths, strict=True))
    values = np.concatenate([np.full(length, absent, kind) if part is None else part for part, length in pairs])
    if column.at_least is None:  # any number may be an identifier, but of a file that is not known it is 0
        is_unknown = np.repeat([part is None for part in parts], lengths)
        return NullableArray(values, is_unknown | (values == 0) if column.name == "file_record_id" else is_unknown)
    return nullable(values, column.at_least)


def _known(columns: Mapping[str, object]) -> dict[str, object]:
    """Columns with NULL where a number is not known."""
    return {name: nullable(values) if isinstance(values, np.ndarray) else values for name, values in columns.items()}


def _listed(numbers: Sequence[int]) -> str | None:
    return ",".join(map(str, numbers)) or None
