"""The newest intervals of a store, again and again, and any past stretch of them: for whoever watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import narwhals as nw

from iolens.errors import IolensError, StoreError, UsageError
from iolens.histogram_names import IO_TIME
from iolens.nearest_names import not_among
from iolens.records import Item, Rows
from iolens.schema import SIZE_BINS, SUMMED_OPERATIONS, size_column
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import from_epoch_us

MINUTE_US: Final = 60_000_000
WINDOW_US: Final = 15 * MINUTE_US  # so much is shown at first …
LATE_US: Final = 10 * MINUTE_US  # … and so much is read again, because agents ship at different times
HISTOGRAM: Final = IO_TIME
TICK_TABLES: Final = ("target_sizes", "target_io", "metadata_ops")
_SIZES: Final = tuple(size_column(direction, size) for direction in ("read", "write") for size in SIZE_BINS)
_OUTSIDE: Final = ("read_ios_outside", "write_ios_outside")
_INTERVAL: Final = ("epoch_us", "start_us", "duration_s", "target", "after_reset")
COLUMNS: Final = {
    "target_sizes": (*_INTERVAL, "target_kind", *_SIZES, *_OUTSIDE),
    "target_io": (
        *_INTERVAL, "target_kind", "read_bytes", "write_bytes", "read_ops", "write_ops", "read_wait_us",
        "write_wait_us", "busy_us",
    ),
    "metadata_ops": (*_INTERVAL, *SUMMED_OPERATIONS),
    "target_histograms": (*_INTERVAL, "target_kind", "histogram", "bin", "count"),
    "target_capacity": ("epoch_us", "target", "target_kind", "used_bytes", "total_bytes"),
}  # fmt: skip
_TEXTS: Final = frozenset({"target", "target_kind", "histogram", "after_reset"})
_TIMES: Final = {"epoch_us": "time", "start_us": "start"}


@dataclass(slots=True)
class StoreFeed:
    """A store that others write; polled, it gives the newest rows when there are new ones."""

    store: Store
    interval_s: float = 5.0
    filesystem: str | None = None
    source_orders: dict[str, Sequence[str]] = field(default_factory=dict)
    servers: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)  # configured, by file system
    _versions: dict[str, int] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """For people."""
        return f"store {self.store.url}"

    def expected(self) -> dict[str, set[str]]:
        """Every target the store ever heard of, by file system."""
        known = self.store.targets_by_filesystem()
        if not known:
            self.store.check_that_it_exists()
            raise StoreError(f"{self.store.url} holds no data yet")
        if self.filesystem is None:
            return known
        if self.filesystem not in known:
            raise UsageError(
                f"{self.store.url} holds no file system {self.filesystem!r}{not_among(self.filesystem, known)}"
            )
        return {self.filesystem: known[self.filesystem]}

    def trouble(self) -> str:
        """What is wrong besides what `poll` raises: nothing."""
        return ""

    def poll(self) -> list[Item]:
        """Rows of the last minutes, unless nothing was written since the last time."""
        versions = {table: self._version(table) for table in TICK_TABLES}
        if versions == self._versions:
            return []
        samples: list[Item] = []
        for filesystem in self.expected():
            samples += self._newest_rows(filesystem)
        self._versions = versions
        return samples

    def rows(self, filesystem: str, since_us: int, until_us: int) -> list[Item]:
        """Everything of the intervals that start in [since, until)."""
        selection = self._select(filesystem, from_epoch_us(since_us), from_epoch_us(until_us))
        return [*(rows for table in COLUMNS for rows in _read(selection, table)), *_servers(selection)]

    def extent_us(self, filesystem: str) -> tuple[int, int] | None:
        """Start of the first and end of the last interval of a file system, about."""
        return self._select(filesystem).extent_us(*TICK_TABLES)

    def _version(self, table: str) -> int:
        handle = self.store.tables.load(table)
        return -1 if handle is None else int(handle.version())

    def _newest_rows(self, filesystem: str) -> list[Item]:
        extent = self.extent_us(filesystem)
        if extent is None:
            return []
        before = self._newest.get(filesystem)
        back = WINDOW_US if before is None else max(LATE_US, extent[1] - before + LATE_US)
        samples = self.rows(filesystem, extent[1] - min(back, WINDOW_US), extent[1] + 1)
        if not samples:  # the files are shared with a file system that is newer
            last = self._last_tick(filesystem)
            samples = [] if last is None else self.rows(filesystem, last - WINDOW_US, last + 1)
        self._newest[filesystem] = extent[1]
        return samples

    def _last_tick(self, filesystem: str) -> int | None:
        selection = self._select(filesystem)
        ends = []
        for table in TICK_TABLES:
            with _engine_errors(self.store.url):
                result = selection.frame(table).select(nw.col("epoch_us").max()).collect(backend="pyarrow").to_native()
            ends += [end for end in result.column("epoch_us").to_pylist() if end is not None]
        return max(ends, default=None)

    def _select(self, filesystem: str, since: datetime | None = None, until: datetime | None = None) -> StoreSelection:
        order = self.source_orders.get(filesystem, ())
        with _engine_errors(self.store.url):
            selection = self.store.select(filesystem, since=since, until=until, source_order=order)
        selection.servers = self.servers.get(filesystem, {})
        return selection


def _servers(selection: StoreSelection) -> Iterator[Rows]:
    """Who serves each target at the end of the window."""
    with _engine_errors(selection.tables.url):
        known = selection.target_servers()
    last = known.of_targets | {move.target: move.to_server for move in known.moves}
    if last:
        columns = {"filesystem": selection.filesystem, "target": list(last), "host": list(last.values())}
        yield Rows("target_servers", columns, len(last))


def _read(selection: StoreSelection, table: str) -> Iterator[Rows]:
    """The rows of one table, column by column."""
    with _engine_errors(selection.tables.url):
        frame = selection.frame(table)
        if table == "target_histograms":
            frame = frame.filter(nw.col("histogram") == HISTOGRAM)
        result = frame.select(*COLUMNS[table]).collect(backend="pyarrow").to_native()
    if result.num_rows:
        columns = {_TIMES.get(name, name): _column(result, name) for name in result.column_names}
        yield Rows(table, {**columns, "filesystem": selection.filesystem}, result.num_rows)


def _column(result: Any, name: str) -> Any:
    column = result.column(name)
    if name in _TEXTS:
        return column.to_pylist()
    return column.cast("int64" if name in _TIMES else "float64").to_numpy()


@contextmanager
def _engine_errors(url: str) -> Iterator[None]:
    """What an engine or a file below the store raises becomes one clear sentence."""
    try:
        yield
    except IolensError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoreError(f"{url}: cannot be read now: {first}") from error
