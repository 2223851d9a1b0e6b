"""The result of a job report; its JSON is this, with units in the names and null for what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from iolens.findings.rule import Finding, NotEvaluated


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
