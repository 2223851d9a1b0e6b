"""Simulated clients: what all nodes count together is what the servers count, and what is true of the jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.agent.jobs.sampling import JobContext, take_sample
from iolens.api.job_report import report_of_folder
from iolens.errors import UsageError
from iolens.records import Capture, Problem, Sample
from iolens.schema import DIRECTIONS, size_column
from iolens.simulator.activity import divided
from iolens.simulator.client_counters import CLIENT_VERSIONS
from iolens.simulator.client_tree import CACHE_HIT_SHARE, SimulatedClients
from iolens.simulator.lustre_centre import Centre, SimulatedEvent, event_of
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import OPERATIONS, SIZES, load_workload, placed_on
from iolens.sources import ReadOptions
from iolens.sources.job_files import job_files, read_job_file
from iolens.sources.job_samples import BEGIN, END
from iolens.sources.lustre import lustre_client_proc, lustre_proc
from iolens.sources.schedulers import slurm
from iolens.store.store import Store
from iolens.units import parse_duration
from tests.agent.truth import rows
from tests.cli.command import iolens
from tests.simulator.test_lustre_tree import files

START = 1350900000
WORKLOAD = load_workload("scratch")
NODES = 6  # one of the five jobs has two


def centre(
    root: Path,
    versions: tuple[str, ...] = CLIENT_VERSIONS,
    *,
    nodes: int = NODES,
    events: Iterable[SimulatedEvent] = (),
    page_sizes: tuple[int, ...] = (4096, 65536),
    cache_hit_share: float = CACHE_HIT_SHARE,
) -> Centre:
    server = Tree(root / "server", "2.15", WORKLOAD, start_s=START, osts=3, mdts=2, seed=3, uptime_s=300)
    clients = SimulatedClients(
        root / "clients",
        server.activity,
        2,
        nodes,
        start_s=START,
        versions=versions,
        page_sizes=page_sizes,
        uptime_s=300,
        cache_hit_share=cache_hit_share,
    )
    return Centre(server, None, list(events), clients)


class Sampled:
    """A centre whose server and nodes are sampled into a store."""

    def __init__(self, simulated: Centre, store: Path) -> None:
        assert simulated.clients is not None
        self.centre, self.clients, self.store = simulated, simulated.clients, store
        self.captures: dict[str, list[Capture]] = {"lustre-proc": [], "lustre-client-proc": []}

    def sample(self, second: float) -> None:
        self.centre.advance_to(second)
        options = ReadOptions(interval_s=5)
        roots = [tree.root for tree in self.clients.trees]
        self.captures["lustre-proc"] += lustre_proc.SOURCE.captures([self.centre.server.root], options)
        self.captures["lustre-client-proc"] += lustre_client_proc.SOURCE.captures(roots, options)

    def load(self) -> None:
        for source, captures in self.captures.items():
            assert Store(self.store).ingest(captures, source).refused == 0

    def rows(self, table: str) -> list[dict[str, Any]]:
        return rows(self.store, table)


def total(table_rows: Iterable[Mapping[str, Any]], value: str, *by: str) -> Counter[tuple[Any, ...]]:
    """Sums of a column by others; zeros are left out."""
    sums: Counter[tuple[Any, ...]] = Counter()
    for row in table_rows:
        sums[tuple(row[name] for name in by)] += row[value] or 0
    return +sums


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
@pytest.mark.parametrize("page_bytes", [4096, 65536])
def test_every_version_is_read_without_a_problem(tmp_path: Path, version: str, page_bytes: int) -> None:
    simulated = centre(tmp_path, (version,), nodes=1, page_sizes=(page_bytes,))
    simulated.advance_to(START + 5)
    items = list(lustre_client_proc.read_tree(tmp_path / "clients/node0001", None))
    assert [str(item) for item in items if isinstance(item, Problem)] == []
    samples = {item.table: item for item in items if isinstance(item, Sample)}
    assert set(samples) == {"client_io", "client_rpcs", "client_metadata", "client_histograms", "client_ops"}
    assert {(item.filesystem, item.target, item.snapshot_us) for item in samples.values()} == {
        ("scratch", "node0001", (START + 5) * 1_000_000)
    }
    assert samples["client_rpcs"].labels["page_bytes"] == str(page_bytes)
    names = {name for counter_set in samples["client_ops"].sets.values() for name in counter_set.counters}
    assert {
        "read_ahead:hits", "read_ahead:readahead_to_eof", "scratch-OST0002:lock_pool_grant",
        "ldlm_cbd:ldlm_bl_callback", "scratch-MDT0001:intent_lock", "scratch-OST0000:read_bytes:total",
    } <= names  # fmt: skip
    histograms = {name.split(":")[1] for item in samples["client_histograms"].sets.values() for name in item.counters}
    assert {"rpcs_in_flight", "offset_pages"} <= histograms
    assert ("call_size_bytes" in histograms) == (version in ("2.12", "2.15"))
    assert ("modify_rpcs_in_flight" in histograms) == (version != "2.5")


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_all_nodes_together_count_what_the_servers_count(tmp_path: Path, version: str) -> None:
    sampled = Sampled(centre(tmp_path, (version,)), tmp_path / "store")
    for second in (START, START + 300):
        sampled.sample(second)
    sampled.load()
    servers, nodes = sampled.rows("target_io"), sampled.rows("client_io")
    osts = [row for row in servers if row["target_kind"] == "ost"]
    for direction in DIRECTIONS:
        moved = sum(row[f"{direction}_bytes"] for row in osts)
        assert moved > 10**8
        cached = CACHE_HIT_SHARE if direction == "read" else 0.0
        asked, calls = (sum(row[f"{direction}_{what}"] for row in nodes) for what in ("bytes", "ops"))
        rpcs = sum(row[f"{direction}_ops"] for row in osts)
        assert [asked * (1 - cached), calls * (1 - cached)] == pytest.approx([moved, rpcs], rel=0.01 if cached else 0)
        carried = [row for row in sampled.rows("client_ops") if row["operation"] == f"{direction}_bytes"]
        assert total(carried, "total", "target") == total(osts, f"{direction}_bytes", "target")
        by_size = [row for row in sampled.rows("client_rpcs") if row["direction"] == direction]
        assert total(by_size, "rpcs", "target") == total(osts, f"{direction}_ops", "target")
    done = total(sampled.rows("client_metadata"), "count", "operation")
    for name in OPERATIONS:
        counted = sum(row[name] or 0 for row in sampled.rows("metadata_ops"))
        assert done[("fsync" if name == "sync" else name,)] == counted
    assert not any(row["after_reset"] for row in nodes)


def test_a_cache_that_answers_most_reads_is_found(tmp_path: Path) -> None:
    """Two reads in three do not leave the nodes: the servers see a third, and the report says so."""
    simulated = centre(tmp_path, ("2.15",), nodes=2, page_sizes=(4096,), cache_hit_share=2 / 3)
    assert simulated.clients is not None
    folder = tmp_path / "jobs"
    for point, second in (("begin", START), ("end", START + 300)):
        simulated.advance_to(second)
        for tree in simulated.clients.trees:
            words = ("job", point, "--root", tree.root, "--job-id", "1", "--folder", folder)
            assert iolens(*words, *(["--no-report"] if point == "end" else [])).code == 0
    report = report_of_folder(folder / "1")
    (part,) = report.filesystems
    assert part.read_bytes == pytest.approx(3 * (part.rpc_read_bytes_max or 0), rel=1e-2)
    assert part.write_bytes == part.rpc_write_bytes_max
    (finding,) = [finding for finding in report.findings if finding.code == "client-cache"]
    assert "the rest stayed in the memory of the nodes" in finding.message


def test_without_hits_llite_counts_the_bytes_of_rpcs(tmp_path: Path) -> None:
    simulated = centre(tmp_path, nodes=1, cache_hit_share=0.0)
    simulated.advance_to(START + 60)
    assert simulated.clients is not None
    counters = simulated.clients.trees[0].counters
    assert (counters.calls_by_size() == counters.rpcs.sum(axis=2)).all()
    with pytest.raises(UsageError, match=r"a share of cache hits is from 0 to 0\.99"):
        centre(tmp_path / "wrong", cache_hit_share=1.0)


def test_rpcs_by_pages_are_disk_ios_by_size(tmp_path: Path) -> None:
    """Pages of 4 KiB give back the servers' sizes; with 64 KiB, all up to it are one page."""
    sampled = Sampled(centre(tmp_path), tmp_path / "store")
    for second in (START, START + 60):
        sampled.sample(second)
    sampled.load()
    ios, rpcs = sampled.rows("target_sizes"), sampled.rows("client_rpcs")
    assert {row["page_bytes"] for row in rpcs} == {4096, 65536}
    for direction in DIRECTIONS:
        by_size = {size: sum(row[size_column(direction, size)] for row in ios) for size in SIZES}
        mine = [row for row in rpcs if row["direction"] == direction]
        large = total(({**row, "size": row["pages"] * row["page_bytes"]} for row in mine), "rpcs", "size")
        assert {size: large[size,] for size in SIZES if size > 65536} == {
            size: count for size, count in by_size.items() if size > 65536
        }
        small = sum(row["rpcs"] for row in mine if row["pages"] * row["page_bytes"] <= 65536)
        assert small == sum(count for size, count in by_size.items() if size <= 65536)


def test_what_a_job_did_is_what_its_nodes_count_and_what_job_stats_say(tmp_path: Path) -> None:
    sampled = Sampled(centre(tmp_path), tmp_path / "store")
    sampled.sample(START)
    before = {job_id: job.summary() for job_id, job in sampled.clients.jobs.items()}
    sampled.sample(START + 300)
    sampled.load()
    truth = json.loads((tmp_path / "clients/jobs.json").read_text())["jobs"]
    on_servers = [row for row in sampled.rows("job_io") if row["target_kind"] == "ost"]
    for job in (job for job in truth if job["end"] > "2012-10-22T10:05"):
        mine = [row for row in sampled.rows("client_io") if row["node"] in job["nodes"]]
        assert len(mine) == len(job["nodes"])
        opens = [row for row in sampled.rows("client_metadata") if row["operation"] == "open"]
        earlier = before.get(job["jobid"], {})
        for name in ("read_bytes", "write_bytes"):
            moved = job[name] - earlier.get(name, 0)
            assert moved > 10**6
            assert sum(row[name] for row in mine) == moved
            by_rpcs = name.replace("_bytes", "_rpc_bytes")
            carried = job[by_rpcs] - earlier.get(by_rpcs, 0)
            assert (moved > carried) == (name == "read_bytes")
            assert sum(row[name] for row in on_servers if row["job_id"] == job["jobid"]) == carried
        opened = job["metadata"]["open"] - earlier.get("metadata", {}).get("open", 0)
        assert sum(row["count"] for row in opens if row["node"] in job["nodes"]) == opened > 0


def test_a_node_that_reboots_begins_anew(tmp_path: Path) -> None:
    """Of the interval with the reboot, what the new mount shows is known, and no more."""
    reboot = event_of("reboot", "node0002@90s", START, "scratch", parse_duration)
    sampled = Sampled(centre(tmp_path, events=[reboot]), tmp_path / "store")
    sampled.sample(START)
    tree = sampled.clients.tree_of("node0002")
    mount, boot_id = tree.mount, (tree.root / "proc/sys/kernel/random/boot_id").read_text()
    sampled.sample(START + 60)
    known = tree.counters.rpcs.copy()
    sampled.sample(START + 120)
    sampled.load()
    assert tree.mount != mount
    assert (tree.root / "proc/sys/kernel/random/boot_id").read_text() != boot_id
    assert (tree.root / "proc/uptime").read_text() == "30.00 30.00\n"
    assert not list(tree.root.rglob(f"*{mount}*"))
    first, second = (row for row in sampled.rows("client_io") if row["node"] == "node0002")
    assert [first["after_reset"], second["after_reset"]] == [False, True]
    sizes = np.array(SIZES)
    assert second["write_bytes"] == int(sizes @ tree.counters.rpcs[1].sum(axis=1))
    assert known.sum() > tree.counters.rpcs.sum() > 0
    moved = sum(row["write_bytes"] for row in sampled.rows("target_io") if row["target_kind"] == "ost")
    assert sum(row["write_bytes"] for row in sampled.rows("client_io")) < moved


def test_nothing_is_counted_of_a_target_that_does_not_answer(tmp_path: Path) -> None:
    simulated = centre(tmp_path, events=[event_of("dead", "OST0001@60s", START, "scratch", parse_duration)])
    assert simulated.clients is not None
    simulated.advance_to(START + 60)
    before = sum(tree.counters.rpcs for tree in simulated.clients.trees)
    simulated.advance_to(START + 180)
    moved = sum(tree.counters.rpcs for tree in simulated.clients.trees) - before
    assert moved[:, :, 1].sum() == 0
    assert moved[:, :, 0].sum() > 0
    assert moved[:, :, 2].sum() > 0


def test_the_same_seed_prints_the_same_bytes_however_often_it_is_written(tmp_path: Path) -> None:
    for name, steps in (("a", (5, 60, 170)), ("b", (170,))):
        simulated = centre(tmp_path / name)
        for step in steps:
            simulated.advance_to(START + step)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_jobs_and_their_nodes_are_listed_as_sacct_does(tmp_path: Path) -> None:
    centre(tmp_path).advance_to(START + 5)
    store = Store(tmp_path / "store")
    assert store.ingest(slurm.SOURCE.captures([tmp_path / "clients/sacct.txt"], ReadOptions()), "slurm").refused == 0
    jobs = {row["user"]: row for row in rows(tmp_path / "store", "jobs") if not row["ended"]}
    assert set(jobs) == {"ana", "bela", "chandra", "dmitri", "elif"}
    nodes = {user: (row["nodes"], row["node_list"]) for user, row in jobs.items()}
    assert nodes == {
        "ana": (1, "node0001"),
        "bela": (1, "node0002"),
        "chandra": (2, "node[0003-0004]"),
        "dmitri": (1, "node0005"),
        "elif": (1, "node0006"),
    }


def test_a_job_samples_its_nodes_when_it_begins_and_ends(tmp_path: Path) -> None:
    simulated = centre(tmp_path)
    assert simulated.clients is not None
    simulated.advance_to(START + 60)
    job = simulated.clients.jobs["938127"]
    before = job.moved_bytes(0)
    for point, second in ((BEGIN, START + 60), (END, START + 120)):
        simulated.advance_to(second)
        for name in job.nodes:
            take_sample(point, JobContext("938127"), tmp_path / "jobs", tmp_path / "clients" / name)
    node_jobs = [read_job_file(path) for path in job_files(tmp_path / "jobs/938127")]
    assert [node_job.node for node_job in node_jobs] == ["node0003", "node0004"]
    assert not any(node_job.rebooted for node_job in node_jobs)
    moved = [row.values for node_job in node_jobs for row in node_job.rows if row.table == "client_io"]
    assert sum(row["read_bytes"] for row in moved) == job.moved_bytes(0) - before > 0


def test_nodes_are_dealt_out_by_weight_or_shared() -> None:
    assert placed_on(WORKLOAD, 6) == [[0], [1], [2, 3], [4], [5]]
    assert placed_on(WORKLOAD, 2) == [[0], [1], [0], [1], [0]]
    for nodes in (5, 19, 24, 100):
        placement = placed_on(WORKLOAD, nodes)
        assert sorted(node for some in placement for node in some) == list(range(nodes))
        assert len(placement[2]) == max(len(some) for some in placement)


def test_parts_add_up_and_every_part_gets_its_turn() -> None:
    counts = np.ones(1000, np.int64)
    parts = divided(counts, [1.0] * 4, np.arange(1000))
    assert (parts.sum(axis=0) == counts).all()
    assert all(240 <= part.sum() <= 260 for part in parts)


@pytest.mark.parametrize(
    ("nodes", "versions", "page_sizes", "message"),
    [
        (0, ("2.15",), (4096,), "at least one node"),
        (2, ("1.8",), (4096,), "no client of Lustre version '1.8' can be simulated; there are: 2.5, 2.10, 2.12, 2.15"),
        (2, ("2.15",), (5000,), "page sizes are 4096, 8192"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    tmp_path: Path, nodes: int, versions: tuple[str, ...], page_sizes: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        centre(tmp_path, versions, nodes=nodes, page_sizes=page_sizes)


def test_only_a_client_reboots(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no node is called 'node0009'; they are node0001 … node0006"):
        centre(tmp_path / "a", events=[SimulatedEvent(START + 5, "reboot", "node0009")])
    server = Tree(tmp_path / "b", "2.15", WORKLOAD, start_s=START, osts=1, mdts=0, uptime_s=60)
    with pytest.raises(UsageError, match="ask for some with --clients"):
        Centre(server, None, [SimulatedEvent(START + 5, "reboot", "node0001")])
    with pytest.raises(UsageError, match="write a node and a time, such as node0002@10min"):
        event_of("reboot", "node0002", START, "scratch", parse_duration)
