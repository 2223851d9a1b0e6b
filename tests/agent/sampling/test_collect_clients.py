"""The agent on a client: what it ships is what `ingest` makes of the same files, and no kill loses any of it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iolens.agent.doctor import READABLE, diagnose
from iolens.agent.sampling.collector import AgentSettings, is_without_lustre
from iolens.agent.sampling.sampler import Health, Sampler
from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import Spool, host_name, waiting
from iolens.records import Capture, Item, Problem, Sample
from iolens.simulator.client_counters import CLIENT_VERSIONS
from iolens.simulator.client_tree import SimulatedClients
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import load_workload
from iolens.sources import ReadOptions
from iolens.sources.lustre.lustre_client_proc import SOURCE
from iolens.store.store import Store
from tests.agent import truth
from tests.agent.sampling.test_kills import kill_samplers, kill_shippers
from tests.agent.server import SimulatedServer
from tests.cli.command import iolens
from tests.test_imports import HEAVY

START = 1350900000
S = 1_000_000
EVERY_TICK = ("client_io", "client_metadata")
EVERY_MINUTE = ("client_rpcs", "client_histograms", "client_ops")
TARGETS = ["scratch-OST0000", "scratch-OST0001", "scratch-MDT0000"]


class SimulatedCentre:
    """A server and one client of each version."""

    def __init__(self, root: Path) -> None:
        workload = load_workload("scratch")
        self.server = Tree(root / "oss1", "2.15", workload, start_s=START, osts=2, mdts=1, seed=5, uptime_s=60)
        self.clients = SimulatedClients(
            root / "clients", self.server.activity, 1, len(CLIENT_VERSIONS), start_s=START, uptime_s=60
        )

    def advance_to(self, second: float) -> None:
        self.server.advance_to(second)
        self.clients.advance_to(second, TARGETS)


@pytest.fixture
def centre(tmp_path: Path) -> SimulatedCentre:
    return SimulatedCentre(tmp_path)


def spooled(tmp_path: Path, root: Path, ticks: int = 1, centre: SimulatedCentre | None = None) -> list[Item]:
    """What an agent spools of a root, every five seconds."""
    host = AgentSettings(root, tmp_path / "spool", None).host
    with Spool.open(tmp_path / "spool", 1 << 30, host) as spool:
        sampler = Sampler(root, spool, Health(spool.host, "r1"), 60 * S)
        for number in range(ticks):
            if centre is not None:
                centre.advance_to(START + 5 * number)
            sampler.sample((START + 5 * number) * S)
        assert sampler.health.refused == 0
    return truth.spooled(tmp_path / "spool")


def compared(store: Path, table: str) -> list[dict[str, Any]]:
    """Rows without who wrote them, in an order."""
    plain = [{key: value for key, value in row.items() if key != "source"} for row in truth.rows(store, table)]
    return sorted(plain, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def test_what_is_shipped_is_what_ingest_makes_of_the_same_files(tmp_path: Path, centre: SimulatedCentre) -> None:
    """The tables that have a minute of their own are compared with files of whole minutes."""
    shipped, direct, by_minute = (tmp_path / name for name in ("shipped", "direct", "by_minute"))
    trees, captures = centre.clients.trees, list[Capture]()
    with ExitStack() as opened:
        spools = [opened.enter_context(Spool.open(tmp_path / tree.name, 1 << 30, host=tree.name)) for tree in trees]
        samplers = [
            Sampler(tree.root, spool, Health(tree.name, spool.run), 60 * S)
            for tree, spool in zip(trees, spools, strict=True)
        ]
        for tick in range(25):
            centre.advance_to(START + 5 * tick)
            for sampler in samplers:
                sampler.sample((START + 5 * tick) * S)
            captures += SOURCE.captures([tree.root for tree in trees], ReadOptions(interval_s=5))
    for tree in trees:
        report = ship(tmp_path / tree.name, str(shipped))
        assert (report.bad, report.error) == (0, "")
    Store(direct).ingest(captures, SOURCE.name)
    nodes = len(trees)
    Store(by_minute).ingest([capture for n, capture in enumerate(captures) if n // nodes % 12 == 0], SOURCE.name)
    for table in EVERY_TICK:
        assert compared(shipped, table) == compared(direct, table)
    for table in EVERY_MINUTE:
        assert compared(shipped, table) == compared(by_minute, table)
    assert len(truth.rows(shipped, "client_io")) == 24 * nodes
    assert {row["time"].second for row in truth.rows(shipped, "client_rpcs")} == {0}
    assert {row["source"] for row in truth.rows(shipped, "client_rpcs")} == {"agent"}


def test_a_node_may_be_client_and_server_at_once(tmp_path: Path, centre: SimulatedCentre) -> None:
    shutil.copytree(centre.clients.trees[3].root, centre.server.root, dirs_exist_ok=True)
    samples = [item for item in spooled(tmp_path, centre.server.root) if isinstance(item, Sample)]
    tables = {item.table for item in samples}
    assert {"target_io", "target_sizes", "job_io", *EVERY_TICK, *EVERY_MINUTE} <= tables
    assert {item.target for item in samples if item.table in EVERY_TICK} == {"node0004"}


def test_between_minutes_only_one_file_of_a_mount_is_opened(tmp_path: Path, centre: SimulatedCentre) -> None:
    """One that cannot be read then is no problem, for it is not looked at."""
    root = centre.clients.trees[3].root
    items = spooled(tmp_path, root, ticks=1)
    assert {item.table for item in items if isinstance(item, Sample)} == {*EVERY_TICK, *EVERY_MINUTE}
    with Spool.open(tmp_path / "spool", 1 << 30, "node0004") as spool:
        sampler = Sampler(root, spool, Health("node0004", "r1"), 60 * S, last_us=START * S)
        for path in root.rglob("rpc_stats"):
            path.write_text("nonsense\n")
        sampler.sample((START + 5) * S)
        assert sampler.health.refused == 0
        sampler.sample((START + 60) * S)
        assert sampler.health.refused > 0


def test_a_server_without_mounts_says_nothing_of_mounts(tmp_path: Path, centre: SimulatedCentre) -> None:
    items = spooled(tmp_path, centre.server.root, ticks=2, centre=centre)
    assert not [item for item in items if isinstance(item, Problem)]
    assert not [item for item in items if isinstance(item, Sample) and item.table.startswith("client")]


@pytest.mark.parametrize("name", [None, "renamed.example.org"])
def test_a_client_is_called_as_its_segments_are(tmp_path: Path, centre: SimulatedCentre, name: str | None) -> None:
    """The files name no machine, or another one since the agent began: the receiver would refuse its samples."""
    root = centre.clients.trees[3].root
    (root / "proc/sys/kernel/hostname").unlink()
    with Spool.open(tmp_path / "spool", 1 << 30, AgentSettings(root, tmp_path / "spool", None).host) as spool:
        sampler = Sampler(root, spool, Health(spool.host, "r1"), 60 * S)
        if name is not None:
            (root / "proc/sys/kernel/hostname").write_text(f"{name}\n")
        sampler.sample(START * S)
    items = truth.spooled(tmp_path / "spool")
    assert not [item for item in items if isinstance(item, Problem)]
    assert {item.target for item in items if isinstance(item, Sample) and item.table in EVERY_TICK} == {host_name()}


def test_the_configured_node_and_page_size_are_used(tmp_path: Path, centre: SimulatedCentre) -> None:
    root = centre.clients.trees[3].root
    for name in ("proc/self/auxv", "proc/sys/kernel/hostname"):
        (root / name).unlink()
    (tmp_path / "iolens.toml").write_text('[sources.lustre-client-proc]\nnode = "login1"\npage_size = 65536\n')
    done = iolens("collect", "--once", "--no-ship", "--root", root, "--spool", tmp_path / "spool",
                  "--config", tmp_path / "iolens.toml")  # fmt: skip
    assert done.code == 0, done.err
    samples = {item.table: item for item in truth.spooled(tmp_path / "spool") if isinstance(item, Sample)}
    assert {item.target for item in samples.values()} == {"login1"}
    assert samples["client_rpcs"].labels["page_bytes"] == "65536"


def test_disks_of_a_client_are_sampled_only_when_asked(tmp_path: Path, centre: SimulatedCentre) -> None:
    root = centre.clients.trees[0].root
    (root / "proc/diskstats").write_text("8 0 sda 1 0 8 1 1 0 8 3 0 4 4\n")
    assert not is_without_lustre(root)
    for directory in ("fs", "sys"):
        shutil.rmtree(root / "proc" / directory)
    assert is_without_lustre(root)


def test_kills_in_between_lose_nothing(tmp_path: Path) -> None:
    """What the store holds of a node is its last spooled counter less the first, each interval once."""
    chance = random.Random(11)
    server = SimulatedServer(tmp_path / "root", "2.15", 11, osts=2, events=("--clients", 1))
    spool, store = tmp_path / "spool", tmp_path / "store"
    with server.running() as process:
        server.wait_for_tree(process)
        kill_samplers(server.root / "clients/node0001", spool, 3, chance)
    with Spool.open(spool, 1 << 30):
        pass
    samples = [item for item in truth.spooled(spool) if isinstance(item, Sample) and item.table == "client_io"]
    samples.sort(key=lambda item: item.snapshot_us)
    first, last = (next(iter(sample.sets.values())).counters for sample in (samples[0], samples[-1]))
    kill_shippers(spool, store, 3, chance)
    while waiting(spool):
        assert (done := truth.ship(spool, store)).returncode == 0, done.stdout
    for name in ("read_bytes", "write_bytes", "write_ops"):
        assert truth.total(store, name, "client_io") == last[name] - first[name] > 0
    assert truth.breaks(store, "client_io") == []
    times = [row["time"] for row in truth.rows(store, "client_io")]
    assert len(times) == len(set(times)) == len({sample.snapshot_us for sample in samples}) - 1
    assert truth.total(store, "rpcs", "client_rpcs") > 0


def test_the_doctor_tells_what_of_a_client_can_be_read(tmp_path: Path, centre: SimulatedCentre) -> None:
    tree = centre.clients.trees[3]
    options = ("--spool", tmp_path / "s", "--store", tmp_path / "store")
    done = iolens("doctor", "--root", tree.root, *options)
    assert done.code == 0, done.out
    name = f"scratch-{tree.mount}"
    assert f"{name} (client): llite.stats, osc.stats, osc.rpc_stats, mdc.md_stats readable" in done.out
    assert "scratch: 2 OSTs, 1 MDTs, call sizes are counted" in done.out
    assert "page size 4096 bytes (proc/self/auxv)" in done.out
    assert "note    targets: no OST or MDT below" in done.out
    (tree.root / f"proc/fs/lustre/osc/scratch-OST0001-osc-{tree.mount}/rpc_stats").unlink()
    result = diagnose(tree.root, None, tmp_path / "s")
    assert result.exit_code == 3
    assert [(mount.target, mount.files) for mount in result.mounts] == [
        (name, {"llite.stats": READABLE, "osc.stats": READABLE, "osc.rpc_stats": "1 of 2: not found",
                "mdc.md_stats": READABLE})
    ]  # fmt: skip


def test_the_doctor_names_both_sides_of_a_node(tmp_path: Path, centre: SimulatedCentre) -> None:
    shutil.copytree(centre.clients.trees[0].root, centre.server.root, dirs_exist_ok=True)
    result = diagnose(centre.server.root, None, tmp_path / "s")
    assert [target.target for target in result.targets] == sorted(TARGETS)
    assert [mount.kind for mount in result.mounts] == ["client"]
    summary = "scratch: 2 OSTs, 1 MDTs, call sizes are not counted: extents_stats is off"
    assert ("client", summary) in [(line.subject, line.detail) for line in result.findings]


def test_the_sampler_of_a_client_imports_nothing_heavy(centre: SimulatedCentre) -> None:
    code = (
        "import sys; from pathlib import Path; import iolens.agent.sampling.sampler\n"
        "from iolens.sources.lustre.lustre_client_proc import read_tree\n"
        "assert len(list(read_tree(Path(sys.argv[1]), 0))) == 5\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(centre.clients.trees[3].root)], capture_output=True, text=True, check=True
    )
    assert set(HEAVY).intersection(done.stdout.split()) == set()
