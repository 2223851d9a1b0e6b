"""Rows of `runs`, `run_files`, `run_ranks` and `run_series` from logs that were read together."""

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
from iolens.sources.darshan.grouping import PlaceTotals, Whole, grouped, joined
from iolens.sources.darshan.head import STREAMS
from iolens.sources.darshan.heat import HEATED
from iolens.sources.darshan.layouts import RECORDED
from iolens.sources.darshan.log import LogBatch
from iolens.sources.darshan.messages import RowOptions
from iolens.sources.darshan.places import PlaceFinder
from iolens.sources.darshan.ranks import rank_columns
from iolens.sources.darshan.runs import ModuleRecords, Modules, identity_columns, run_columns

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
