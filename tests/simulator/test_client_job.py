"""The job of SPEC N's Tables I and II on simulated clients of every version: 4 nodes, 60 OSTs, sampled at both ends."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from iolens.agent.jobs.sampling import JobContext, take_sample
from iolens.api.job_report import report_of_folder
from iolens.simulator.client_counters import CLIENT_LAYOUTS, CLIENT_VERSIONS, ClientCounters
from iolens.simulator.client_tree import ClientTree
from iolens.simulator.workload import OPERATIONS, SIZES
from tests.sources.lustre.client_trees import ENZO_READS, ENZO_WRITES, share

NODES, OSTS = 4, 60
CALLS = {"open": 5303, "close": 5769, "getattr": 12460, "statfs": 0}
SECONDS = np.full((2, len(SIZES)), 0.001)
JOB = JobContext("4711", "pleiades", "alice", "enzo", tuple(f"node{number}" for number in range(NODES)), 64)


def node_tree(root: Path, number: int, version: str) -> ClientTree:
    """A node that was up before the job, and had done something already."""
    counters = ClientCounters.nothing(time.time_ns() - 3600 * 10**9, OSTS, 1, 4096)
    counters.rpcs += 5
    counters.operations += 11
    return ClientTree(root / f"node{number}", f"node{number}", number, CLIENT_LAYOUTS[version], "nbp1", counters)


def work(tree: ClientTree) -> None:
    """The node's part of the job."""
    for direction, counts in enumerate((ENZO_READS, ENZO_WRITES)):
        for size, count in enumerate(counts):
            for ost in range(OSTS):
                tree.counters.rpcs[direction, size, ost] += share(count, tree.number * OSTS + ost, NODES * OSTS)
    for name, count in CALLS.items():
        tree.counters.operations[OPERATIONS.index(name), 0] += share(count, tree.number, NODES)


def sampled_job(tmp_path: Path, version: str, rebooting: int | None = None) -> Path:
    trees = [node_tree(tmp_path, number, version) for number in range(NODES)]
    for tree in trees:
        tree.write(time.time(), SECONDS)
        take_sample("begin", JOB, tmp_path / "jobs", tree.root)
    for tree in trees:
        work(tree)
        if tree.number == rebooting:
            tree.reboot(time.time())
            tree.counters.operations[OPERATIONS.index("open"), 0] = 7
        tree.write(time.time(), SECONDS)
        take_sample("end", JOB, tmp_path / "jobs", tree.root)
    return tmp_path / "jobs" / JOB.job_id


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_the_tables_of_the_paper_come_out_of_simulated_clients(tmp_path: Path, version: str) -> None:
    report = report_of_folder(sampled_job(tmp_path, version))
    (part,) = report.filesystems
    assert report.missing_nodes == ()
    assert [size.reads for size in part.rpc_sizes[:9]] == list(ENZO_READS)
    assert [size.writes for size in part.rpc_sizes[:9]] == list(ENZO_WRITES)
    assert {name: part.metadata[name] for name in ("open", "close", "stat", "statfs")} == {
        "open": 5303, "close": 5769, "stat": 12460, "statfs": 0,
    }  # fmt: skip
    sizes = [4096 << power for power in range(9)]
    assert part.read_bytes == part.rpc_read_bytes_max == int(np.dot(ENZO_READS, sizes))
    assert part.write_bytes == part.rpc_write_bytes_max == int(np.dot(ENZO_WRITES, sizes))


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_with_one_node_rebooting_what_can_be_known_still_comes_out(tmp_path: Path, version: str) -> None:
    report = report_of_folder(sampled_job(tmp_path, version, rebooting=2))
    (part,) = report.filesystems
    assert [(item.node, item.reason) for item in report.missing_nodes] == [
        ("node2", "rebooted during the job: what it did before is not in the sums")
    ]
    others = [
        sum(share(count, node * OSTS + ost, NODES * OSTS) for node in (0, 1, 3) for ost in range(OSTS))
        for count in ENZO_READS
    ]
    assert [size.reads for size in part.rpc_sizes[:9]] == others
    assert part.metadata["open"] == sum(share(5303, node, NODES) for node in (0, 1, 3)) + 7
