"""Rows of the client tables summed over OSTs and nodes, one file system at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.findings.rule import Writers
from iolens.schema import CLIENT_IO, CLIENT_METADATA, CLIENT_OPS, CLIENT_RPCS

SMALL_BYTES: Final = 65536
LEAST_SIZES: Final = tuple(4096 << power for power in range(9))  # 4 KiB to 1 MiB are always shown
NAMES: Final = {"getattr": "stat"}  # as people call them
SHOWN_FIRST: Final = ("open", "close", "stat", "statfs")  # also where there were none


@dataclass
class FileSystemTotals:
    """The sums of one file system. What was never reported is None or empty, not zero."""

    read_bytes: int | None = None
    write_bytes: int | None = None
    rpcs: dict[int, Counter[str]] = field(default_factory=dict)  # by size in bytes and direction
    has_rpcs: bool = False
    metadata: Counter[str] = field(default_factory=Counter)
    has_metadata: bool = False
    metadata_us: int | None = 0  # None: some operation is not timed
    data_us: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)  # by node
    stats: Counter[str] = field(default_factory=Counter)  # by node
    written: Counter[str] = field(default_factory=Counter)  # bytes by node

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Count one row."""
        if (add := _ADDERS.get(table)) is not None:  # histograms of clients are not part of a report
            add(self, row)

    def sampled(self, table: str) -> None:
        """The table was sampled: what has no row there did not happen."""
        self.has_rpcs |= table == CLIENT_RPCS.name
        self.has_metadata |= table == CLIENT_METADATA.name

    def _data(self, row: Mapping[str, Any]) -> None:
        node = str(row["node"])
        self.seconds[node] = self.seconds.get(node, 0.0) + (row["duration_s"] or 0.0)
        self.written.setdefault(node, 0)
        if row.get("read_bytes") is not None:
            self.read_bytes = (self.read_bytes or 0) + row["read_bytes"]
        if row.get("write_bytes") is not None:
            self.write_bytes = (self.write_bytes or 0) + row["write_bytes"]
            self.written[node] += row["write_bytes"]

    def _rpc(self, row: Mapping[str, Any]) -> None:
        self.has_rpcs = True
        size = row["pages"] * row["page_bytes"]
        if size not in self.rpcs:
            self.rpcs[size] = Counter()
        self.rpcs[size][row["direction"]] += row["rpcs"]

    def _operation(self, row: Mapping[str, Any]) -> None:
        self.has_metadata = True
        name = NAMES.get(row["operation"], row["operation"])
        self.metadata[name] += row["count"]
        if name == "stat":
            self.stats[str(row["node"])] += row["count"]
        taken_us = row.get("sum_us")
        self.metadata_us = None if taken_us is None or self.metadata_us is None else self.metadata_us + taken_us

    def _call(self, row: Mapping[str, Any]) -> None:
        """Times of reads and writes; other calls and targets are of no use here."""
        if row["target"] == "llite" and row["operation"] in ("read", "write") and row.get("sum_us") is not None:
            self.data_us = (self.data_us or 0) + row["sum_us"]

    def rpc_bytes_max(self, *directions: str) -> int | None:
        """RPCs times the upper bound of their size."""
        if not self.has_rpcs:
            return None
        return sum(size * counts[direction] for size, counts in self.rpcs.items() for direction in directions)

    def small_pct(self, direction: str) -> float | None:
        """Share of RPCs of 64 KiB or less."""
        rpcs = sum(counts[direction] for counts in self.rpcs.values())
        small = sum(counts[direction] for size, counts in self.rpcs.items() if size <= SMALL_BYTES)
        return 100 * small / rpcs if rpcs else None

    def inputs(self, processes: int | None) -> dict[str, Any]:
        """What the rules of findings ask for."""
        metadata_us = self.metadata_us if self.has_metadata else None
        is_timed = metadata_us is not None and self.data_us is not None
        return {
            "rpc_sizes": self.rpcs if self.has_rpcs else None,
            "read_bytes": self.read_bytes,
            "write_bytes": self.write_bytes,
            "opens": self.metadata["open"] if self.has_metadata else None,
            "processes": processes,
            "metadata_s": metadata_us / 1e6 if metadata_us is not None else None,
            "io_s": ((metadata_us or 0) + (self.data_us or 0)) / 1e6 if is_timed else None,
            "stats_by_node": {node: (self.stats[node], seconds) for node, seconds in self.seconds.items()}
            if self.has_metadata
            else None,
            "written_by": Writers.of("nodes", self.written) if self.write_bytes is not None else None,
        }


_ADDERS: Final[Mapping[str, Callable[[FileSystemTotals, Mapping[str, Any]], None]]] = {
    CLIENT_IO.name: FileSystemTotals._data,
    CLIENT_RPCS.name: FileSystemTotals._rpc,
    CLIENT_METADATA.name: FileSystemTotals._operation,
    CLIENT_OPS.name: FileSystemTotals._call,
}
