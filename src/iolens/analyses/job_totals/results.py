"""A job as the scheduler knows it, and what its nodes counted while it ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from iolens.analyses.job_report.results import RpcSize

Origin = Literal["job", "nodes"]


@dataclass(frozen=True, slots=True)
class KnownJob:
    """One job; None is not known. `hosts` are its nodes by name, None where the record does not list them."""

    job_id: str
    start_us: int
    end_us: int
    cluster: str | None = None
    name: str | None = None
    user: str | None = None
    project: str | None = None
    nodes: int | None = None
    cores: int | None = None
    hosts: tuple[str, ...] | None = None
    is_running: bool = False

    @classmethod
    def of_row(cls, row: Mapping[str, Any], expand: Callable[[str], Sequence[str]]) -> Self:
        """From a row of `jobs`; `expand` turns its compact node list into names, or raises ValueError."""
        try:
            hosts = tuple(expand(row["node_list"])) if row["node_list"] else None
        except ValueError:
            hosts = None
        kept = {name: row[name] for name in ("job_id", "cluster", "name", "user", "project", "cores")}
        nodes = row["nodes"] if row["nodes"] is not None or hosts is None else len(hosts)
        is_running = row["ended"] is False
        return cls(start_us=row["start"], end_us=row["time"], nodes=nodes, hosts=hosts, is_running=is_running, **kept)

    @property
    def duration_s(self) -> float:
        """From start to end."""
        return (self.end_us - self.start_us) / 1e6


@dataclass(frozen=True, slots=True)
class JobTotals:
    """What one job did to one file system, summed over its nodes and all OSTs. What was never reported is None.

    `origin` is `job` where the sums are of samples at its begin and end, `nodes` where they are of intervals of its
    nodes. Counters belong to the node: with `shares_nodes` they hold what other jobs did there at the same time.
    """

    job: KnownJob
    origin: Origin
    nodes_sampled: int
    observed_s: float  # summed over nodes
    shares_nodes: bool | None  # None: not known
    read_bytes: int | None
    write_bytes: int | None
    rpc_sizes: Sequence[RpcSize] | None
    metadata: Mapping[str, int] | None  # operations by kind

    @property
    def observed_pct(self) -> float | None:
        """How much of its nodes' time the sums cover."""
        whole_s = self.job.duration_s * (self.job.nodes or self.nodes_sampled)
        return min(100 * self.observed_s / whole_s, 100.0) if whole_s > 0 else None

    @property
    def opens(self) -> int | None:
        """Files opened."""
        return None if self.metadata is None else self.metadata.get("open", 0)

    @property
    def closes(self) -> int | None:
        """Files closed."""
        return None if self.metadata is None else self.metadata.get("close", 0)
