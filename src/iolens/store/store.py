"""The store: one place for all layers, on local disk or object storage, read through one of two engines."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Unpack

import pyarrow as pa

from iolens.counters.ceilings import NO_CEILINGS, RateCeilings
from iolens.errors import StoreError, UsageError
from iolens.nearest_names import not_among
from iolens.records import Capture
from iolens.schema import BATCHES, BENCHMARK_RUNS, CALIBRATIONS, TABLES, Table
from iolens.store.duckdb_engine import query
from iolens.store.engines import Engine, get_engine
from iolens.store.gate import Gate
from iolens.store.ingest import Tally, ingest
from iolens.store.jobs import JobFilter, last_jobs, stored_jobs
from iolens.store.ledger import in_force
from iolens.store.part_memory import PartMemory
from iolens.store.rows import to_arrow
from iolens.store.scope import RAW, Narrowing, Scope
from iolens.store.selection import StoreSelection
from iolens.store.source_choice import chosen_targets
from iolens.store.tables import BatchPart, Tables

RESOLUTIONS = ("60s", "1h")


class Store:
    """A directory or object-store URL of tables."""

    def __init__(
        self, url: str | Path, engine: str = "duckdb", *, workers: int | None = None, fresh: bool = False
    ) -> None:
        """`workers` are processes on this machine, one per core unless given; `fresh`: parts are not remembered."""
        self.url = str(url)
        self.tables = Tables(self.url)
        self._engine_name, self._workers = engine, workers
        self._memory = None if fresh else PartMemory(self.tables)

    def check_that_it_exists(self) -> None:
        """Raise a StoreError that says what is here instead; for those who read, since a wrong path looks empty."""
        if reason := self.tables.why_no_store():
            raise StoreError(f"{self.url} holds no data yet: {reason}; load some with `iolens ingest`")

    @cached_property
    def engine(self) -> Engine:
        """The engine, started when first needed."""
        return get_engine(self._engine_name, self._workers)

    def close(self) -> None:
        """Let go of the engine."""
        if "engine" in self.__dict__:
            self.engine.stop()
            del self.__dict__["engine"]

    def ingest(
        self,
        captures: Iterable[Capture],
        source: str,
        *,
        rebuild: bool = False,
        progress: Callable[[Capture], None] | None = None,
        workers: int = 1,
        ceilings: RateCeilings | None = None,
        stored: Callable[[Capture, Tally], None] | None = None,
        now_us: Callable[[], int] | None = None,
    ) -> Tally:
        """Load captures; the same capture twice adds nothing. With several `workers` many are parsed at once.

        `stored` is called as soon as a piece of a capture is in the tables, with what became of it. What was taken in,
        or found to be there, will outlive a power cut when this returns. What is later than the clock (`now_us`,
        microseconds since 1970) and ten minutes is refused.
        """
        tally = ingest(
            self.tables, captures, source, rebuild=rebuild, progress=progress, workers=workers, ceilings=ceilings,
            stored=stored, now_us=now_us,
        )  # fmt: skip
        self.tables.settle("batches")
        return tally

    def append(self, name: str, rows: pa.Table, identity: str | None = None) -> None:
        """Append finished rows of one table exactly once under `identity`, and note them in `batches`.

        Rows of our own making, whatever they move: what a column cannot hold is an error here, nothing to go on from.
        """
        part = BatchPart(identity or f"append/{uuid.uuid4()}", 1)
        refusals = Tally()
        columns = {column: rows.column(column) for column in rows.column_names}
        checked = Gate(part.identity, refusals.refuse, NO_CEILINGS).columns(TABLES[name], columns, len(rows))
        if refusals.refused:
            raise StoreError(str(refusals.problems[0]))
        written = self.tables.append(name, {part: checked})
        targets: dict[str, list[str]] = {}
        if "target" in rows.column_names:
            pairs = rows.select(["filesystem", "target"]).group_by(["filesystem", "target"]).aggregate([])
            for pair in pairs.to_pylist():
                targets.setdefault(pair["filesystem"], []).append(pair["target"])
        batch = {
            "batch": part.identity,
            "part": part.part,
            "time": int(datetime.now(UTC).timestamp() * 1e6),
            "filesystems": json.dumps({name: sorted(target) for name, target in targets.items()}),
            "rows": len(rows),
            "rows_by_table": json.dumps({name: len(rows)}),
            "checksums": json.dumps(self.tables.checksums({name: written})),
        }
        self.tables.append("batches", {part: to_arrow(BATCHES, [batch])})

    def targets_by_filesystem(self) -> dict[str, set[str]]:
        """Every target that any batch ever brought, without those that were taken back."""
        handle = self.tables.load("batches")
        names: dict[str, set[str]] = {}
        if handle is None:
            return names
        sql = f"SELECT DISTINCT filesystems FROM stored WHERE {in_force(self.tables, handle)}"  # noqa: S608 (quoted)
        for (text,) in query(self.tables, handle, "batches", sql):
            for filesystem, targets in json.loads(text or "{}").items():
                names.setdefault(filesystem, set()).update(targets)
        return names

    def select(
        self, scope: str | Scope | None = None, *, source_order: Sequence[str] = (), **narrowing: Unpack[Narrowing]
    ) -> StoreSelection:
        """The rows of one file system in a window; the scope, or the file system's name and what narrows it."""
        asked = Scope.of(scope, **narrowing)
        if asked.since is not None and asked.until is not None and asked.since >= asked.until:
            raise UsageError(f"the window is empty: it starts at {asked.since} and ends at {asked.until}")
        if asked.rollup is not None and asked.rollup not in RESOLUTIONS:
            raise UsageError(f"no resolution is called {asked.rollup!r}{not_among(asked.rollup, (RAW, *RESOLUTIONS))}")
        known = self.targets_by_filesystem()
        if not known:
            self.check_that_it_exists()
        chosen = asked.filesystem or self._only_filesystem(known)
        if chosen not in known:
            raise UsageError(f"{self.url} holds no file system {chosen!r}{not_among(chosen, known)}")
        self._check_source(chosen, asked.source)
        meant = chosen_targets(asked.targets, known[chosen], chosen)
        window = asked.since, asked.until
        return StoreSelection(
            self.tables, self.engine, chosen, window, meant, asked.source, source_order, asked.rollup, known[chosen],
            memory=self._memory,
        )  # fmt: skip

    def select_all(self, scope: Scope) -> StoreSelection:
        """Rows of a window whatever file system they name: of runs and jobs, which are of a centre, not of one of them.

        A scope with a file system keeps the rows that name it.
        """
        if scope.since is not None and scope.until is not None and scope.since >= scope.until:
            raise UsageError(f"the window is empty: it starts at {scope.since} and ends at {scope.until}")
        self.check_that_it_exists()
        window = scope.since, scope.until
        return StoreSelection(self.tables, self.engine, scope.filesystem or "", window, source=scope.source)

    def _check_source(self, filesystem: str, source: str | None) -> None:
        """Whether any batch brought the file system rows of that source; where batches do not say, the tables do."""
        handle = None if source is None else self.tables.load("batches")
        if handle is None or source is None:
            return
        sql = f"SELECT DISTINCT source, filesystems FROM stored WHERE {in_force(self.tables, handle)}"  # noqa: S608 (quoted)
        brought = query(self.tables, handle, "batches", sql)
        known = {name for name, text in brought if name is not None and filesystem in json.loads(text or "{}")}
        if source not in known and any(name is None for name, _ in brought):
            whole = StoreSelection(self.tables, self.engine, filesystem)
            wanted = {"source", "filesystem"}
            asked = [table.name for table in TABLES.values() if wanted <= {column.name for column in table.columns}]
            known |= {name for table in asked for name in whole.sources(table)}
        if source not in known:
            raise UsageError(f"{filesystem} has no rows of source {source!r}{not_among(source, known)}")

    def _only_filesystem(self, known: dict[str, set[str]]) -> str:
        if not known:
            raise StoreError(f"{self.url} holds no data yet; load some with `iolens ingest`")
        if len(known) > 1:
            raise UsageError(
                f"{self.url} holds several file systems, name one with --filesystem: {', '.join(sorted(known))}"
            )
        return next(iter(known))

    def calibrations(self) -> list[dict[str, object]]:
        """All stored calibrations, oldest first, before them those of all time; times in microseconds since 1970."""
        return self._records(CALIBRATIONS, "ORDER BY valid_from NULLS FIRST, time")

    def benchmark_runs(self, tool: str | None = None) -> list[dict[str, object]]:
        """All stored results of one benchmark, or of every one; times in microseconds since 1970."""
        where = "WHERE tool = ?" if tool is not None else ""
        return self._records(BENCHMARK_RUNS, f"{where} ORDER BY time, run_id, direction", [tool] if tool else [])

    def jobs(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        job_id: str | None = None,
        like: JobFilter | None = None,
    ) -> list[dict[str, object]]:
        """Jobs that ran in a window, or those of one id, by their start; times in microseconds since 1970."""
        return stored_jobs(self.tables, since, until, job_id, like)

    def last_jobs(self, source: str) -> dict[str | None, int]:
        """By cluster, when the last job of a source was recorded, in microseconds since 1970."""
        return last_jobs(self.tables, source)

    def _records(self, table: Table, which: str, values: Sequence[object] = ()) -> list[dict[str, object]]:
        """Rows of a table of records; columns that a table of an older iolens lacks are None."""
        handle = self.tables.load(table.name)
        if handle is None:
            return []
        present = {field.name for field in handle.schema().fields}
        known = [column for column in table.columns if column.name in present]
        columns = ", ".join(
            f'epoch_us("{column.name}")' if column.type == "timestamp" else f'"{column.name}"' for column in known
        )
        rows = query(self.tables, handle, table.name, f"SELECT {columns} FROM stored {which}", list(values))  # noqa: S608
        absent: dict[str, object] = {column.name: None for column in table.columns}
        names = [column.name for column in known]
        return [absent | dict(zip(names, row, strict=True)) for row in rows]

    def add_calibration(self, values: dict[str, object]) -> None:
        """Store one calibration; times in microseconds since 1970."""
        self.append("calibrations", to_arrow(CALIBRATIONS, [values]), f"calibration/{uuid.uuid4()}")
