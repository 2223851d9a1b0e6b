"""The report of one job, from rows of the client tables summed over OSTs and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from iolens.findings import Thresholds, evaluate
from iolens.findings.rule import Finding, NotEvaluated, Writers
from iolens.schema import CLIENT_IO, CLIENT_METADATA, CLIENT_OPS, CLIENT_RPCS

# The result of a job report; its JSON is this, with units in the names and null for what is not known -----------------


@dataclass(frozen=True)
class JobDetails:
    """Whose job it was, and when; None is not known."""

    jobid: str | None
    cluster: str | None = None
    user: str | None = None
    name: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    nodes: int | None = None
    processes: int | None = None


@dataclass(frozen=True)
class MissingNode:
    """A node of which something is not in the sums, and why."""

    node: str
    reason: str


@dataclass(frozen=True)
class RpcSize:
    """RPCs of up to `size_bytes` (and more than the size before)."""

    size_bytes: int
    reads: int
    writes: int


@dataclass(frozen=True)
class ByDirection:
    """One number for reads, one for writes."""

    read: float | None
    write: float | None


@dataclass(frozen=True)
class JobFileSystem:
    """What all nodes of a job did to one file system."""

    filesystem: str
    nodes: int  # whose counters are in the sums
    read_bytes: int | None  # as applications asked, cache hits included
    write_bytes: int | None
    read_bytes_per_s: float | None  # over the duration of the job
    write_bytes_per_s: float | None
    rpc_bytes_max: int | None  # RPCs times their size's upper bound
    rpc_read_bytes_max: int | None
    rpc_write_bytes_max: int | None
    rpc_sizes: Sequence[RpcSize]
    metadata: Mapping[str, int]  # operations by kind
    small_rpc_pct: ByDirection  # of 64 KiB or less
    duration_s: float | None  # of the node that took longest


@dataclass(frozen=True)
class JobReport:
    """One job."""

    jobid: str | None
    cluster: str | None
    user: str | None
    name: str | None
    start: datetime | None
    end: datetime | None
    duration_s: float | None
    nodes: int | None
    processes: int | None
    missing_nodes: Sequence[MissingNode]
    filesystems: Sequence[JobFileSystem]
    findings: Sequence[Finding]
    not_evaluated: Sequence[NotEvaluated]
    notes: Sequence[str]


# Rows of the client tables summed over OSTs and nodes, one file system at a time --------------------------------------

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


# The report of one job, from rows of the client tables and what is known of the job -----------------------------------


def job_report(
    job: JobDetails,
    totals: Mapping[str, FileSystemTotals],
    missing: Sequence[MissingNode] = (),
    notes: Sequence[str] = (),
    thresholds: Thresholds | None = None,
) -> JobReport:
    """Put the report together, and ask every rule about every file system."""
    findings: list[Finding] = []
    not_evaluated: dict[NotEvaluated, None] = {}
    for name, sums in sorted(totals.items()):
        evaluation = evaluate(sums.inputs(job.processes), thresholds)
        findings += [
            replace(finding, evidence={"filesystem": name, **finding.evidence}) for finding in evaluation.findings
        ]
        not_evaluated |= dict.fromkeys(evaluation.not_evaluated)
    if not totals:
        not_evaluated |= dict.fromkeys(evaluate({}, thresholds).not_evaluated)
    seconds = [second for sums in totals.values() for second in sums.seconds.values()]
    duration_s = (job.end - job.start).total_seconds() if job.start and job.end else max(seconds, default=None)
    return JobReport(
        **asdict(job),
        duration_s=duration_s,
        missing_nodes=tuple(missing),
        filesystems=tuple(_filesystem(name, sums, duration_s) for name, sums in sorted(totals.items())),
        findings=tuple(findings),
        not_evaluated=tuple(not_evaluated),
        notes=tuple(notes),
    )


def _filesystem(name: str, sums: FileSystemTotals, job_s: float | None) -> JobFileSystem:
    sizes = sorted({*LEAST_SIZES, *sums.rpcs}) if sums.has_rpcs else []
    operations = [*SHOWN_FIRST, *sorted(set(sums.metadata) - set(SHOWN_FIRST))] if sums.has_metadata else []
    return JobFileSystem(
        name,
        len(sums.seconds),
        sums.read_bytes,
        sums.write_bytes,
        _rate(sums.read_bytes, job_s),
        _rate(sums.write_bytes, job_s),
        sums.rpc_bytes_max("read", "write"),
        sums.rpc_bytes_max("read"),
        sums.rpc_bytes_max("write"),
        tuple(
            RpcSize(size, counts["read"], counts["write"]) for size in sizes if (counts := sums.rpcs.get(size, _NONE))
        ),
        {operation: sums.metadata[operation] for operation in operations},
        ByDirection(sums.small_pct("read"), sums.small_pct("write")),
        max(sums.seconds.values(), default=None),
    )


_NONE = {"read": 0, "write": 0}


def _rate(moved: int | None, seconds: float | None) -> float | None:
    return moved / seconds if moved is not None and seconds else None
