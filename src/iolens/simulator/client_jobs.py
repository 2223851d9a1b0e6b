"""What is true of each job on simulated clients, and the list of them as `sacct -P` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from iolens.schema import DIRECTIONS
from iolens.simulator.jobs import Job
from iolens.simulator.lustre_counters import Array
from iolens.simulator.workload import OPERATIONS, SIZES

CLUSTER: Final = "simulated"
CORES_PER_NODE: Final = 16
MOST_JOBS: Final = 1000  # the oldest are forgotten
_COLUMNS: Final = ("JobID", "JobName", "User", "Account", "Cluster", "State", "Start", "End", "NNodes", "AllocCPUS",
            "NodeList")  # fmt: skip


@dataclass(slots=True)
class JobOnNodes:
    """One job: its nodes, and what it did since the simulation began. RPCs by direction, size and OST."""

    job: Job
    nodes: tuple[str, ...]
    rpcs: Array
    operations: Array  # by kind and MDT
    cached_reads: Array  # by size: read from the caches of its nodes

    def rpc_bytes(self, direction: int) -> int:
        """Bytes that its RPCs carried."""
        return int(np.array(SIZES) @ self.rpcs[direction].sum(axis=1))

    def moved_bytes(self, direction: int) -> int:
        """Bytes it read or wrote, from caches too."""
        return self.rpc_bytes(direction) + (0 if direction else int(np.array(SIZES) @ self.cached_reads))

    def summary(self) -> dict[str, Any]:
        """As JSON writes it."""
        done = dict(zip(OPERATIONS, self.operations.sum(axis=1).tolist(), strict=True))
        moved = {f"{name}_bytes": self.moved_bytes(number) for number, name in enumerate(DIRECTIONS)}
        rpcs = {f"{name}_rpcs": int(self.rpcs[number].sum()) for number, name in enumerate(DIRECTIONS)}
        rpcs |= {f"{name}_rpc_bytes": self.rpc_bytes(number) for number, name in enumerate(DIRECTIONS)}
        times = {"start": _time(self.job.start_s), "end": _time(self.job.end_s)}
        names = {"jobid": self.job.job_id, "user": self.job.user, "project": self.job.project}
        names |= {} if self.job.name is None else {"name": self.job.name}
        return {**names, **times, "nodes": list(self.nodes), **moved, **rpcs, "metadata": done}


def sacct_text(jobs: Iterable[JobOnNodes], now_s: float) -> str:
    """Jobs that have begun; times are UTC."""
    lines = ["|".join(_COLUMNS)]
    for on_nodes in jobs:
        job, nodes = on_nodes.job, on_nodes.nodes
        state, end = ("COMPLETED", _time(job.end_s)) if job.end_s <= now_s else ("RUNNING", "Unknown")
        cells = (job.job_id, job.name or job.project, job.user, job.project, CLUSTER, state, _time(job.start_s), end,
                 str(len(nodes)), str(len(nodes) * CORES_PER_NODE), _node_list(nodes))  # fmt: skip
        lines.append("|".join(cells))
    return "\n".join(lines) + "\n"


def node_name(number: int) -> str:
    """What a node is called."""
    return f"node{number + 1:04}"


def _node_list(nodes: Sequence[str]) -> str:
    """`node[0003-0007]`, as a scheduler writes neighbours."""
    return nodes[0] if len(nodes) == 1 else f"node[{nodes[0][4:]}-{nodes[-1][4:]}]"


def _time(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
