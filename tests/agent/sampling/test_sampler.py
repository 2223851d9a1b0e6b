"""One tick of the sampler: what is kept, what is reported, and that it outlives anything it reads."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.agent.sampling.collector import AgentSettings
from iolens.agent.sampling.sampler import HEALTH_TABLE, Health, Sampler
from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import Spool
from iolens.records import Item, Problem, Row, Sample
from iolens.schema import TABLES, Column, ColumnType, Table
from iolens.sources.devices.diskstats import BlockDevices
from iolens.store.store import Store
from tests.agent.server import Server
from tests.agent.truth import spooled
from tests.test_imports import HEAVY

S = 1_000_000
T0 = 1_700_000_040 * S  # a whole minute


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool.open(tmp_path / "spool", 1 << 30, "oss1") as opened:
        yield opened


def sampler(spool: Spool, root: Path) -> Sampler:
    return Sampler(root, spool, Health("oss1", "r1"), 60 * S)


def tables(items: list[Item]) -> Counter[str]:
    return Counter(item.table for item in items if not isinstance(item, Problem))


def test_long_tables_have_an_interval_of_their_own(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root", osts=1)
    server.work()
    item = sampler(spool, server.root)
    for number in range(25):  # two minutes and a tick
        item.sample(T0 + number * 5 * S)
    spool.close_segment()
    result = tables(spooled(spool.directory))
    assert result["target_io"] == result["target_sizes"] == result["metadata_ops"] == 25
    assert result["target_histograms"] == 3
    assert result["job_io"] == 6  # OST and MDT
    assert item.health.ticks == 25
    assert item.health.targets == 2


def test_services_and_locks_are_slow_and_no_targets(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root", osts=1)
    server.work()
    stamp = f"snapshot_time {T0 // S}.000000000 secs.nsecs\nreq_waittime 7 samples [usecs] 1 2 30 9\n"
    files = {
        "proc/sys/kernel/hostname": "oss1\n",
        "proc/fs/lustre/ost/OSS/ost_io/stats": stamp,
        "sys/fs/lustre/ldlm/namespaces/filter-scratch-OST0000_UUID/lock_count": "12\n",
    }
    for name, text in files.items():
        (server.root / name).parent.mkdir(parents=True, exist_ok=True)
        (server.root / name).write_text(text)
    entry = sampler(spool, server.root)
    for number in range(13):
        entry.sample(T0 + number * 5 * S)
    spool.close_segment()
    result = spooled(spool.directory)
    queues = [item for item in result if isinstance(item, Sample) and item.target == "oss1:ost_io"]
    assert [(item.time_us - T0) // S for item in queues] == [0, 60]
    rows = [item for item in result if isinstance(item, Row)]
    locks = [row.values["locks"] for row in rows if row.values.get("target_kind") == "ost"
             and row.table == "target_state"]  # fmt: skip
    assert locks == [12, *[None] * 11, 12]
    assert entry.health.targets == 2


def test_a_slow_tick_that_was_missed_is_taken_by_the_next(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root", osts=1)
    server.work()
    entry = sampler(spool, server.root)
    for second in (50, 55, 65, 70):
        entry.sample(T0 + second * S)
    spool.close_segment()
    times = [(item.time_us - T0) // S for item in spooled(spool.directory)
             if isinstance(item, Sample) and item.table == "target_histograms"]  # fmt: skip
    assert times == [50, 65]


def test_every_sample_has_the_tick_as_its_time(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root")
    server.work()
    sampler(spool, server.root).sample(T0)
    spool.close_segment()
    assert {item.time_us for item in spooled(spool.directory) if isinstance(item, Sample)} == {T0}


def test_a_problem_counts_each_time_and_is_reported_once_per_segment(tmp_path: Path, spool: Spool) -> None:
    entry = sampler(spool, tmp_path / "nothing here")
    for number in range(5):
        entry.sample(T0 + number * S)
    spool.close_segment()
    entry.sample(T0 + 6 * S)
    spool.close_segment()
    assert entry.health.refused == 6
    assert sum(isinstance(item, Problem) for item in spooled(spool.directory)) == 2


def test_a_reader_that_fails_is_a_problem_not_the_end(tmp_path: Path, spool: Spool) -> None:
    def broken(root: Path, time_us: int, filesystem: str | None, skip: frozenset[str]) -> Iterator[Item]:
        yield Row("target_capacity", {"time": time_us, "filesystem": "fs", "target": "x"})
        raise ZeroDivisionError("never seen before")

    Sampler(tmp_path, spool, Health("oss1", "r1"), 60 * S, read=broken).sample(T0)
    spool.close_segment()
    row, problem, health = spooled(spool.directory)
    assert isinstance(row, Row)
    assert "ZeroDivisionError: never seen before" in str(problem)
    assert isinstance(health, Row)
    assert (health.table, health.values["refused"]) == ("agent_health", 1)


def test_a_server_without_targets_spools_only_the_agents_health(tmp_path: Path, spool: Spool) -> None:
    item = sampler(spool, tmp_path)
    for second in (0, 5, 10):
        item.sample(T0 + second * S)
    spool.close_segment()
    (health,) = spooled(spool.directory)
    assert isinstance(health, Row)
    assert (health.table, health.values["targets"]) == ("agent_health", 0)


def test_health_is_a_file(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root")
    server.work()
    item = sampler(spool, server.root)
    item.sample(T0)
    item.health.measure()
    item.health.write(tmp_path)
    written = json.loads((tmp_path / "health.json").read_text())
    assert written["samples"] == item.health.samples > 0
    assert written["rss_bytes"] > 1 << 20


def test_health_is_stored_once_the_schema_has_its_table(
    tmp_path: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("date", "filesystem", "source", "host", "run", "trouble")
    types: dict[str, ColumnType] = dict.fromkeys(names, "string")
    types |= {"date": "date", "time": "timestamp", "cpu_s": "float64"}
    fields = [field.name for field in dataclasses.fields(Health) if field.name not in (*names, "time")]
    columns = tuple(Column(name, types.get(name, "int64"), name) for name in ("time", *names, *fields))
    monkeypatch.setitem(
        TABLES, HEALTH_TABLE, Table(HEALTH_TABLE, "", columns, ("source", "host", "run", "time"), "reading")
    )
    server = Server(tmp_path / "root")
    server.work()
    item = sampler(spool, server.root)
    for number in range(13):  # once a minute
        item.health.time = T0 + number * 5 * S
        item.sample(item.health.time)
    spool.close_segment()
    assert ship(spool.directory, str(tmp_path / "store")).shipped == 1
    handle = Store(tmp_path / "store").tables.load(HEALTH_TABLE)
    assert handle is not None
    rows = sorted(handle.to_pyarrow_table().to_pylist(), key=lambda row: row["ticks"])
    assert [(row["host"], row["source"], row["ticks"], row["trouble"]) for row in rows] == [
        ("oss1", "agent", 1, None),
        ("oss1", "agent", 13, None),
    ]


def plant_devices(root: Path, reads: int = 100) -> Path:
    """Two disks, a partition and the host's name."""
    (root / "proc/sys/kernel").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/kernel/hostname").write_text("oss1\n")
    lines = [f" 8 {number} {name} {reads} 0 {reads * 8} 5 1 0 8 1 0 6 6 0 0 0 0 0 0"
             for number, name in enumerate(("sda", "sda1", "sdb"))]  # fmt: skip
    (root / "proc/diskstats").write_text("\n".join(lines) + "\n")
    return root


def test_block_devices_have_an_interval_of_their_own(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root", osts=1)
    server.work()
    devices = BlockDevices(plant_devices(server.root))
    entry = Sampler(server.root, spool, Health("oss1", "r1"), 60 * S, devices=devices, device_us=30 * S)
    for number in range(13):  # a minute and a tick
        entry.sample(T0 + number * 5 * S)
    spool.close_segment()
    result = [item for item in spooled(spool.directory) if isinstance(item, Sample) and item.table == "target_io"]
    disks = Counter(item.target for item in result if item.labels["target_kind"] == "device")
    assert disks == {"oss1:sda": 3, "oss1:sdb": 3}
    assert sum(item.labels["target_kind"] == "ost" for item in result) == 13
    assert {item.filesystem for item in result if item.target == "oss1:sda"} == {"oss1"}
    assert entry.health.samples == sum(isinstance(item, Sample) for item in spooled(spool.directory))


def test_devices_that_cannot_be_read_leave_the_targets_alone(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root", osts=1)
    server.work()
    entry = Sampler(server.root, spool, Health("oss1", "r1"), 60 * S, devices=BlockDevices(server.root))
    entry.sample(T0)
    spool.close_segment()
    result = spooled(spool.directory)
    assert sum(isinstance(item, Sample) for item in result) == entry.health.samples > 3
    assert [str(item) for item in result if isinstance(item, Problem)] == [
        f"{server.root}/proc/diskstats: cannot be read: No such file or directory"
    ]


def test_a_tick_of_many_jobs_is_spooled_whole(tmp_path: Path, spool: Spool) -> None:
    server = Server(tmp_path / "root", osts=3, jobs=300)
    server.work()
    sampler(spool, server.root).sample(T0)
    spool.close_segment()
    result = [item for item in spooled(spool.directory) if isinstance(item, Sample)]
    assert len(result) == len({(item.table, item.target) for item in result})
    jobs = {item.target: len(item.sets) for item in result if item.table == "job_io"}
    assert jobs == {f"scratch-OST000{number}": 300 for number in range(3)} | {"scratch-MDT0000": 0}


@pytest.mark.parametrize("jobs", [100, 1000])
def test_the_sampler_imports_nothing_heavy_and_stays_small(tmp_path: Path, jobs: int) -> None:
    server = Server(tmp_path / "root", osts=64, jobs=jobs)
    server.work()
    plant_devices(server.root)
    program = f"""
import sys
from pathlib import Path
import click
from iolens.cli.collect import collect
from iolens.agent.sampling.collector import SystemClock
from iolens.agent.sampling import collector
root, spool = Path({str(server.root)!r}), Path({str(tmp_path / "spool")!r})
settings = collector.AgentSettings(root, spool, None, 0.2, 0.4, duration_s=2.0, devices=True)
health = collector.Agent(settings, lambda line: None, SystemClock()).run()
print(health.samples, Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0],
      *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    samples, most_kib, *loaded = done.stdout.split()
    assert int(samples) > 64
    assert int(most_kib) < 60 * 1024
    assert sorted(set(HEAVY).intersection(loaded)) == []


def test_it_says_which_targets_this_host_serves_when_they_come_and_after_they_were_away(
    tmp_path: Path, spool: Spool
) -> None:
    server = Server(tmp_path / "root", osts=2)
    server.work()
    item = sampler(spool, server.root)
    away: list[Path] = []
    for number in range(4):
        if number == 2:
            away = [path for path in server.root.rglob("scratch-OST0001") if path.is_dir()]
            for path in away:
                path.rename(path.with_name("away"))
        if number == 3:
            for path in away:
                path.with_name("away").rename(path)
        item.sample(T0 + number * 5 * S)
    spool.close_segment()
    rows = [item for item in spooled(spool.directory) if isinstance(item, Row) and item.table == "target_servers"]
    assert {row.values["host"] for row in rows} == {"oss1"}  # that of the segments
    said = [(row.values["target"], (int(str(row.values["time"])) - T0) // S) for row in rows]
    assert said == [("scratch-MDT0000", 0), ("scratch-OST0000", 0), ("scratch-OST0001", 0), ("scratch-OST0001", 15)]


def test_everything_is_stored_under_the_name_of_the_machine_that_is_sampled(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("oss7\n")
    settings = AgentSettings(tmp_path, tmp_path / "spool", None)
    assert settings.host == "oss7"
    assert replace(settings, client={"node": "login 1"}).host == "login_1"
    assert replace(settings, root=tmp_path / "nothing").host is None


def test_latency_by_size_and_busy_time_reach_the_spool_at_their_pace(tmp_path: Path, spool: Spool) -> None:
    """`io_latency_stats` with the other histograms, `busy_us` at every tick."""
    server = Server(tmp_path / "root", osts=1)
    server.work()
    (target,) = server.targets
    device = server.root / "sys/class/block/sdb/stat"
    for path, text in {
        server.root / f"sys/fs/lustre/osd-ldiskfs/{target}/mntdev": "/dev/sdb\n",
        server.root / "sys/class/block/sdb/queue/rotational": "0\n",
        device: "",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    latency = server.root / f"sys/kernel/debug/lustre/osd-ldiskfs/{target}/io_latency_stats"
    item = sampler(spool, server.root)
    for number in range(13):  # a minute and a tick
        device.write_text(f"1 0 8 1 1 0 8 1 0 {100 * number + 1} 2\n")
        latency.write_text(
            f"io_latency_by_size:\nsnapshot_time: {1_700_000_040 + 5 * number}.5\nwr_4K: {{ 64us: {number}, }}\n"
        )
        item.sample(T0 + number * 5 * S)
    spool.close_segment()
    items = spooled(spool.directory)
    samples = [entry for entry in items if isinstance(entry, Sample) and entry.target == target]
    busy = [entry.sets[""].counters["busy_us"] for entry in samples if entry.table == "target_io"]
    assert busy == [(100 * number + 1) * 1000 for number in range(13)]
    histograms = [entry.sets for entry in samples if entry.table == "target_histograms"]
    assert [dict(sets["io_latency_ns_from_4096"].counters) for sets in histograms] == [{}, {"write:131072": 12}]
    states = [entry.values for entry in items if isinstance(entry, Row) and entry.table == "target_state"]
    assert [state["device_rotational"] for state in states if state["target"] == target] == [False] + [None] * 11 + [
        False
    ]
    assert item.health.refused == 0
