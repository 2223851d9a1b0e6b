"""What is true of each job on simulated clients, and the list of them as `sacct -P` prints it."""

from __future__ import annotations

import json
import shutil
import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.schema import DIRECTIONS
from iolens.simulator import client_counters as counters
from iolens.simulator.activity import Activity, Job, divided, planted_at, running_jobs
from iolens.simulator.client_counters import (
    CLIENT_LAYOUTS,
    CLIENT_VERSIONS,
    DISABLED,
    ClientCounters,
    ClientLayout,
    extents_stats_text,
    read_ahead_text,
    rpc_stats_text,
)
from iolens.simulator.job_counts import by_job, operations_by_job
from iolens.simulator.lustre_counters import NS, Array
from iolens.simulator.lustre_text import Counter, stats_text
from iolens.simulator.lustre_tree import UPTIME_S, ReplacedFiles
from iolens.simulator.workload import HOLD_S, OPERATIONS, SIZES, SimulatedWorkload, nodes_of_jobs

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


# Living `/proc` and `/sys` trees of simulated Lustre clients ----------------------------------------------------------
# Whose counters add up to those of the servers.
#
# What each job does to each OST and MDT in a tick is divided between the job's nodes. A tree is below `clients/NODE`.

FOLDER: Final = "clients"
SACCT_FILE: Final = "sacct.txt"
TRUTH_FILE: Final = "jobs.json"
PAGE_SIZES: Final = (4096, 8192, 16384, 32768, 65536)
CACHE_HIT_SHARE: Final = 0.05  # of reads
MOST_CACHED: Final = 0.99
_FIRST_ADDRESS: Final = 0xFFFF_8800_0000_0000
_AT_PAGESZ: Final = 6


@dataclass(slots=True)
class ClientTree:
    """One node that has the file system mounted."""

    root: Path
    name: str
    number: int
    layout: ClientLayout
    filesystem: str
    counters: ClientCounters
    boots: int = 1
    files: ReplacedFiles = field(init=False)

    def __post_init__(self) -> None:
        self.files = ReplacedFiles(self.root)

    @property
    def mount(self) -> str:
        """The address in the names of a mount: another one after every boot."""
        return f"{_FIRST_ADDRESS + (self.number << 24) + (self.boots << 12):016x}"

    def reboot(self, second: float) -> None:
        """All counters begin anew, under names of a new mount."""
        shape = self.counters.rpcs.shape[2], self.counters.operations.shape[1]
        self.counters = ClientCounters.nothing(round(second * NS), *shape, self.counters.page_bytes)
        self.boots += 1
        for directory in ("proc", "sys"):
            shutil.rmtree(self.root / directory, ignore_errors=True)
        self.files.forget(lambda path: True)

    def write(self, second: float, seconds: Floats) -> None:
        """The state at that time; `seconds` is what an RPC takes, by direction and size."""
        now_ns = round(second * NS)
        for path, text in self._node_files(now_ns):
            self.files.replace(self.root / path, text)
        for kind, path, text in self._lustre_files(now_ns, seconds):
            self.files.replace(self.root / self.layout.places[kind] / path, text)

    def _node_files(self, now_ns: int) -> Iterator[tuple[str, str]]:
        up_s = (now_ns - self.counters.start_ns) / NS
        yield self.layout.version_file, self.layout.version_text
        yield f"{self.layout.version_file.rpartition('/')[0]}/jobid_var", "SLURM_JOB_ID\n"
        yield "proc/sys/kernel/hostname", f"{self.name}\n"
        yield "proc/sys/kernel/random/boot_id", f"{uuid.uuid5(uuid.NAMESPACE_DNS, f'{self.boots}.{self.name}')}\n"
        yield "proc/uptime", f"{up_s:.2f} {up_s:.2f}\n"
        yield "proc/self/auxv", struct.pack("<4Q", _AT_PAGESZ, self.counters.page_bytes, 0, 0).decode("ascii")

    def _lustre_files(self, now_ns: int, seconds: Floats) -> Iterator[tuple[str, str, str]]:
        client, layout, start_ns = self.counters, self.layout, self.counters.start_ns

        def stats(lines: list[Counter]) -> str:
            return stats_text(layout.dialect, now_ns, start_ns, lines)

        llite = f"llite/{self.filesystem}-{self.mount}"
        yield "llite", f"{llite}/stats", stats(counters.llite_stats(client, layout, seconds))
        yield (
            "llite",
            f"{llite}/read_ahead_stats",
            read_ahead_text(layout, now_ns, start_ns, counters.read_ahead(client)),
        )
        sizes = extents_stats_text(layout, now_ns, start_ns, client.call_sizes())
        yield "llite", f"{llite}/extents_stats", sizes if layout.counts_call_sizes else DISABLED
        for ost in range(client.rpcs.shape[2]):
            name = f"{self.filesystem}-OST{ost:04x}-osc-{self.mount}"
            requests = int(client.rpcs[:, :, ost].sum())
            yield "stats", f"osc/{name}/stats", stats(counters.osc_stats(client, ost, layout, now_ns, seconds))
            rpcs = rpc_stats_text(layout, now_ns, start_ns, counters.rpc_histograms(client, ost))
            yield "rpc_stats", f"osc/{name}/rpc_stats", rpcs
            yield "locks", f"ldlm/namespaces/{name}/pool/stats", stats(counters.lock_pool(client, requests, now_ns))
        for mdt in range(client.operations.shape[1]):
            name = f"{self.filesystem}-MDT{mdt:04x}-mdc-{self.mount}"
            requests = int(client.operations[:, mdt].sum())
            yield "stats", f"mdc/{name}/stats", stats(counters.mdc_stats(client, mdt, layout, now_ns))
            yield "md_stats", f"mdc/{name}/md_stats", stats(counters.md_stats(client, mdt))
            yield "locks", f"ldlm/namespaces/{name}/pool/stats", stats(counters.lock_pool(client, requests, now_ns))
            if layout.has_modify:
                data = counters.rpc_histograms(client, None) if layout.has_data_on_mdt else None
                modify = counters.modify_in_flight(client, mdt)
                yield "rpc_stats", f"mdc/{name}/rpc_stats", rpc_stats_text(layout, now_ns, start_ns, data, modify)
        yield "services", "ldlm/services/ldlm_cbd/stats", stats(counters.callbacks(client, layout.dialect))


class SimulatedClients:
    """All nodes of a file system. Their counters begin `uptime_s` before `start_s`, as those of the servers do.

    `jobs` has what is true of each job since then; `sacct.txt` and `jobs.json` beside the nodes tell it. Of all reads
    `cache_hit_share` are answered by the caches of the nodes, and never seen by a server.
    """

    def __init__(
        self,
        root: Path,
        activity: Activity,
        mdts: int,
        nodes: int,
        *,
        start_s: float,
        versions: Sequence[str] = CLIENT_VERSIONS,
        page_sizes: Sequence[int] = (4096,),
        uptime_s: int = UPTIME_S,
        cache_hit_share: float = CACHE_HIT_SHARE,
    ) -> None:
        _check(activity.workload, nodes, versions, page_sizes, cache_hit_share)
        self.hits_per_rpc = cache_hit_share / (1 - cache_hit_share)
        self.root, self.activity, self.mdts = root, activity, mdts
        self.second = start_s - uptime_s
        self.placement = nodes_of_jobs(activity.workload, nodes)
        self.jobs: dict[str, JobOnNodes] = {}
        self._tick = int(self.second // activity.tick_s)
        self.trees = [
            ClientTree(
                root / node_name(number), node_name(number), number, CLIENT_LAYOUTS[versions[number % len(versions)]],
                activity.workload.filesystem,
                ClientCounters.nothing(
                    round(self.second * NS), activity.targets, mdts, page_sizes[number % len(page_sizes)]
                ),
            )
            for number in range(nodes)
        ]  # fmt: skip
        self._beside = ReplacedFiles(root)
        self._pass_time(start_s, range(activity.targets), range(mdts))
        root.mkdir(parents=True, exist_ok=True)
        self._write()

    def advance_to(self, second: float, mounted: Sequence[str]) -> None:
        """Let time pass up to then, while only those targets answer, and write the state at it."""
        numbers = {
            kind: sorted(int(name[-4:], 16) for name in mounted if f"-{kind}" in name) for kind in ("OST", "MDT")
        }
        self._pass_time(second, numbers["OST"], numbers["MDT"])
        self._write()

    def reboot(self, name: str) -> None:
        """A node begins anew."""
        self.tree_of(name).reboot(self.second)
        self._write()

    def tree_of(self, name: str) -> ClientTree:
        """The node called so."""
        tree = next((tree for tree in self.trees if tree.name == name), None)
        if tree is None:
            raise UsageError(f"no node is called {name!r}; they are {self.trees[0].name} … {self.trees[-1].name}")
        return tree

    def _pass_time(self, second: float, osts: Sequence[int], mdts: Sequence[int]) -> None:
        """Whole minutes at most at a time: within one, the same jobs run."""
        tick_s = self.activity.tick_s
        last, per_minute = int(second // tick_s), HOLD_S // tick_s
        while self._tick < last:
            ticks = min(last, (self._tick // per_minute + 1) * per_minute) - self._tick
            self._begin_jobs()
            self._pass_osts(ticks, osts)
            self._pass_mdts(ticks, mdts)
            self._tick += ticks
        self.second = second
        for job_id in list(self.jobs)[:-MOST_JOBS]:
            del self.jobs[job_id]

    def _begin_jobs(self) -> None:
        """Know the jobs that run now, in the order of the workload, planted ones last."""
        second = self._tick * self.activity.tick_s
        streams = enumerate(running_jobs(self.activity.workload, second))
        for number, job in (*streams, *planted_at(self.activity.workload, second)):
            if job.job_id not in self.jobs:
                self.jobs[job.job_id] = self._begun(job, number)

    def _begun(self, job: Job, number: int) -> JobOnNodes:
        rpcs = np.zeros((2, len(SIZES), self.activity.targets), np.int64)
        operations = np.zeros((len(OPERATIONS), self.mdts), np.int64)
        names = tuple(node_name(node) for node in self.placement[number])
        return JobOnNodes(job, names, rpcs, operations, np.zeros(len(SIZES), np.int64))

    def _pass_osts(self, ticks: int, osts: Sequence[int]) -> None:
        """Each job does here what it does in the job_stats of the servers."""
        answered = np.zeros(self.activity.targets, np.int64)
        answered[list(osts)] = 1
        for part in by_job(self.activity.workload, self.activity.block(self._tick, ticks)):
            job, done = self.jobs[part.job.job_id], part.counts * answered
            job.rpcs += done.sum(axis=2)
            turn = np.arange(part.first_tick, part.end_tick)[:, None] + np.arange(self.activity.targets)
            for node, counts in self._parts(part.number, done, turn):
                new = counts.sum(axis=2)
                job.cached_reads += node.read_from_cache(new[0].sum(axis=1), self.hits_per_rpc)
                node.rpcs += new

    def _pass_mdts(self, ticks: int, mdts: Sequence[int]) -> None:
        for part in operations_by_job(self.activity, self._tick, ticks, self.mdts):
            turn = np.arange(part.first_tick, part.end_tick)
            for mdt in mdts:
                self.jobs[part.job.job_id].operations[:, mdt] += part.counts[..., mdt].sum(axis=1)
                for node, counts in self._parts(part.number, part.counts[..., mdt], turn):
                    node.operations[:, mdt] += counts.sum(axis=1)

    def _parts(self, number: int, done: Array, turn: Array) -> Iterator[tuple[ClientCounters, Array]]:
        """What each node of a job did of it."""
        nodes = self.placement[number]
        for node, part in zip(nodes, divided(done, [1.0] * len(nodes), turn + number), strict=True):
            yield self.trees[node].counters, part

    def _write(self) -> None:
        for tree in self.trees:
            tree.write(self.second, self.activity.seconds)
        self._beside.replace(self.root / SACCT_FILE, sacct_text(self.jobs.values(), self.second))
        summaries = [job.summary() for job in self.jobs.values()]
        self._beside.replace(self.root / TRUTH_FILE, json.dumps({"jobs": summaries}, indent=1) + "\n")


def _check(
    workload: SimulatedWorkload, nodes: int, versions: Sequence[str], page_sizes: Sequence[int], cached: float
) -> None:
    if not 0 <= cached <= MOST_CACHED:
        raise UsageError(f"a share of cache hits is from 0 to {MOST_CACHED}, not {cached}")
    if nodes < 1 or not workload.jobs:
        raise UsageError("clients need at least one node, and a workload with jobs")
    for version in versions:
        if version not in CLIENT_LAYOUTS:
            known = ", ".join(CLIENT_VERSIONS)
            raise UsageError(f"no client of Lustre version {version!r} can be simulated; there are: {known}")
    if not versions or not page_sizes or any(size not in PAGE_SIZES for size in page_sizes):
        raise UsageError(f"page sizes are {', '.join(map(str, PAGE_SIZES))}")
