"""Rows for a view: a server's files read directly, the spool of an agent that goes on writing, a store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolens.agent.feed import SpoolFeed, TreeFeed, device_reader
from iolens.agent.sampling.sampler import Health, Sampler
from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import Spool
from iolens.agent.store_feed import LATE_US, WINDOW_US, StoreFeed
from iolens.analyses.live.analysis import Board
from iolens.config import DeviceRule
from iolens.errors import InputError, StoreError, UsageError
from iolens.records import Item, Problem, Row, Rows
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.spool import OPEN
from iolens.store.store import Store
from tests.agent.server import Server
from tests.analyses.telemetry import T0_US, TICK_US, made_up

T0 = 1_700_000_000


class Clock:
    """Microseconds since 1970, as the test says."""

    second = float(T0)

    def now_us(self) -> int:
        return round(self.second * 1e6)


def rows(items: list[Item], table: str) -> list[dict[str, Any]]:
    return [dict(item.values) for item in items if isinstance(item, Row) and item.table == table]


def snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its inode and content, to see that nothing was touched."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path): (path.stat().st_ino, path.read_bytes()) for path in files}


# A server's own files -----------------------------------------------------------------------------------------------


def test_the_first_sample_is_a_baseline_and_the_second_an_interval(tmp_path: Path) -> None:
    server, clock = Server(tmp_path, osts=2), Clock()
    feed = TreeFeed(tmp_path, 5.0, now_us=clock.now_us)
    clock.second = T0 + 2.5
    server.work(3, clock.second)
    assert rows(feed.poll(), "target_io") == []
    clock.second = T0 + 5.01
    server.work(4, clock.second)
    result = rows(feed.poll(), "target_io")
    assert [(row["target"], row["write_bytes"]) for row in result] == [
        ("scratch-OST0000", 4 << 20),
        ("scratch-OST0001", 8 << 20),
    ]
    assert {row["time"] for row in result} == {(T0 + 5) * 1_000_000}
    assert {row["start"] for row in result} == {round((T0 + 2.5) * 1e6)}  # the first is not on a tick
    assert result[0]["duration_s"] == pytest.approx(2.51)


def test_a_reset_and_a_repeated_snapshot_follow_the_rule_of_the_store(tmp_path: Path) -> None:
    server, clock = Server(tmp_path, osts=1), Clock()
    feed = TreeFeed(tmp_path, 5.0, now_us=clock.now_us)
    for second, writes in ((0, 7), (5, 2)):
        clock.second = T0 + second
        server.work(writes, clock.second)
        feed.poll()
    clock.second = T0 + 10
    assert rows(feed.poll(), "target_io") == []  # nothing was written since: the very same snapshot
    server.reset()
    server.work(3, T0 + 10)
    (row,) = rows(feed.poll(), "target_io")
    assert (row["write_bytes"], row["after_reset"]) == (3 << 20, True)


def test_only_what_is_shown_is_read(tmp_path: Path) -> None:
    server, clock = Server(tmp_path, osts=1), Clock()
    feed = TreeFeed(tmp_path, 5.0, now_us=clock.now_us)
    for second in (0, 5):
        clock.second = T0 + second
        server.work(1, clock.second)
        result = feed.poll()
    tables = {item.table for item in result if isinstance(item, Row)}
    assert tables == {"target_io", "target_sizes", "metadata_ops", "target_capacity"}


def test_a_place_without_targets_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no Lustre target and no disk"):
        TreeFeed(tmp_path).poll()
    with pytest.raises(InputError, match="no such directory"):
        TreeFeed(tmp_path / "absent").poll()


def test_block_devices_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").write_text("oss1\n")
    clock = Clock()
    feed = TreeFeed(tmp_path, 5.0, None, (read_tree, device_reader(tmp_path, DeviceRule())), clock.now_us)
    for second, factor in ((0, 1), (5, 3)):
        clock.second = T0 + second
        line = " ".join(str(number * factor) for number in (10, 0, 800, 20, 5, 0, 80, 30, 0, 40, 50))
        (tmp_path / "proc/diskstats").write_text(f"   8 16 sdb {line}\n")
        result = feed.poll()
    (row,) = rows(result, "target_io")
    assert (row["filesystem"], row["target"], row["target_kind"]) == ("oss1", "oss1:sdb", "device")
    assert (row["read_ops"], row["read_bytes"], row["busy_us"]) == (20, 1600 * 512, 80_000)


# An agent's spool ---------------------------------------------------------------------------------------------------


class Agent:
    """A sampler that writes a spool when reported."""

    def __init__(self, directory: Path, root: Path, host: str = "oss1", slow_s: int = 60) -> None:
        self.server = Server(root, osts=2)
        self.directory, self.host, self.slow_s = directory, host, slow_s
        self.context = Spool.open(directory, 1 << 30, host=host)
        self.spool = self.context.__enter__()
        self.sampler = Sampler(root, self.spool, Health(host, self.spool.run), slow_s * 1_000_000)

    def tick(self, number: int, writes: int = 1) -> None:
        self.server.work(writes, T0 + 5.0 * number)
        self.sampler.sample((T0 + 5 * number) * 1_000_000)

    def stop(self) -> None:
        self.context.__exit__(None, None, None)


@pytest.fixture
def agent(tmp_path: Path) -> Any:
    running = Agent(tmp_path / "spool", tmp_path / "root")
    yield running
    running.stop()


def test_a_spool_is_followed_while_it_is_written(agent: Agent) -> None:
    feed = SpoolFeed(agent.directory)
    assert feed.poll() == []
    agent.tick(0)
    assert rows(feed.poll(), "target_io") == []
    agent.tick(1, writes=4)
    before = snapshot(agent.directory)
    (first, second) = rows(feed.poll(), "target_io")
    assert snapshot(agent.directory) == before
    assert (first["write_bytes"], second["write_bytes"]) == (4 << 20, 8 << 20)
    assert first["time"] == (T0 + 5) * 1_000_000
    assert feed.poll() == []
    agent.tick(2, writes=2)
    assert [row["write_bytes"] for row in rows(feed.poll(), "target_io")] == [2 << 20, 4 << 20]


def test_segments_that_are_finished_taken_and_deleted_lose_nothing(agent: Agent) -> None:
    """Raw counters go on: what was in a segment that vanished unread is in the next interval."""
    feed = SpoolFeed(agent.directory)
    agent.tick(0)
    feed.poll()
    agent.tick(1)
    closed = agent.spool.close_segment()
    assert closed is not None
    assert len(rows(feed.poll(), "target_io")) == 2
    closed.rename(closed.with_suffix(".taken"))
    assert feed.poll() == []
    agent.tick(2, writes=10)
    shipped = agent.spool.close_segment()
    assert shipped is not None
    shipped.unlink()  # shipped before anybody looked
    agent.tick(3, writes=1)
    result = rows(feed.poll(), "target_io")
    assert [row["write_bytes"] for row in result] == [11 << 20, 22 << 20]
    assert result[0]["time"] - result[0]["start"] == 10_000_000


def test_a_line_that_is_half_written_waits(agent: Agent) -> None:
    feed = SpoolFeed(agent.directory)
    agent.tick(0)
    agent.tick(1)
    (path,) = agent.directory.glob(f"*{OPEN}")
    whole = path.read_bytes()
    copy = agent.directory.parent / "copy"
    copy.mkdir()
    partial = copy / path.name
    feed = SpoolFeed(copy)
    partial.write_bytes(whole[:-20])
    assert rows(feed.poll(), "target_io") == []
    assert feed.poll() == []
    partial.write_bytes(whole)
    assert len(rows(feed.poll(), "target_io")) == 2


def test_damage_is_reported_and_the_rest_read(agent: Agent) -> None:
    for number in range(4):
        agent.tick(number)
    path = agent.spool.close_segment()
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:40] + b"?" + lines[2][41:]
    path.write_bytes(b"".join(lines))
    result = SpoolFeed(agent.directory).poll()
    assert sum(isinstance(item, Problem) and "damaged line" in item.reason for item in result) == 1
    assert len(rows(result, "target_io")) == 2 * 2


def test_at_the_start_only_the_last_segments_are_read(agent: Agent) -> None:
    for number in range(12):
        agent.tick(number)
        if number % 2:
            agent.spool.close_segment()
    result = SpoolFeed(agent.directory).poll()
    times = {row["time"] // 1_000_000 - T0 for row in rows(result, "target_io")}
    assert times == {35, 40, 45, 50, 55}  # the last three of six segments, whose first sample is the baseline


def test_two_agents_in_one_directory_are_both_followed(tmp_path: Path, agent: Agent) -> None:
    agent.tick(0)
    agent.tick(1)
    other = Agent(tmp_path / "other", tmp_path / "root2", host="oss2")
    other.server.start += 1
    for number in (0, 1):
        other.tick(number)
    path = other.spool.close_segment()
    assert path is not None
    shutil.copy(path, agent.directory)
    other.stop()
    result = SpoolFeed(agent.directory).poll()
    assert len(rows(result, "target_io")) >= 2


def test_what_the_agent_says_is_wrong_is_passed_on(agent: Agent) -> None:
    feed = SpoolFeed(agent.directory)
    assert feed.trouble() == ""
    agent.sampler.health.trouble = "no space"
    agent.sampler.health.write(agent.directory)
    assert feed.trouble() == "no space"
    (agent.directory / "health.json").write_text("{cut")
    assert feed.trouble() == ""


def test_no_spool_is_an_error_that_may_pass(tmp_path: Path) -> None:
    feed = SpoolFeed(tmp_path / "spool")
    with pytest.raises(InputError, match="No such file or directory"):
        feed.poll()
    running = Agent(tmp_path / "spool", tmp_path / "root")
    running.tick(0)
    running.tick(1)
    assert len(rows(feed.poll(), "target_io")) == 2
    running.stop()


def test_rubbish_in_the_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "a~b~00000001.seg").write_bytes(os.urandom(500) + b"\n")
    result = SpoolFeed(tmp_path).poll()
    assert result
    assert all(isinstance(item, Problem) for item in result)


# A store ------------------------------------------------------------------------------------------------------------


def fill(url: Path, ticks: int, *, first_tick: int = 0, filesystem: str = "scratch", identity: str = "one") -> None:
    telemetry = made_up(1, ticks, 3, filesystem=filesystem, first_tick=first_tick, missing=0.0)
    store = Store(url)
    for table in ("target_io", "target_sizes"):
        store.append(table, telemetry.table(table), f"{identity}/{filesystem}/{table}")


def test_a_store_gives_its_newest_rows_once_until_it_is_written_again(tmp_path: Path) -> None:
    fill(tmp_path, 300)
    feed = StoreFeed(Store(tmp_path))
    first = feed.poll()
    times = [time for item in first if isinstance(item, Rows) for time in item.columns["time"]]  # type: ignore[attr-defined]
    assert (min(times), max(times)) == (T0_US + 300 * TICK_US - WINDOW_US + TICK_US, T0_US + 300 * TICK_US)
    assert feed.poll() == []
    fill(tmp_path, 10, first_tick=300, identity="two")
    again = feed.poll()
    times = [time for item in again if isinstance(item, Rows) for time in item.columns["time"]]  # type: ignore[attr-defined]
    assert max(times) == T0_US + 310 * TICK_US
    assert min(times) <= T0_US + 310 * TICK_US - LATE_US + TICK_US
    board = Board("scratch")
    board.take([*first, *again])
    reading = board.reading()
    assert (reading.targets_reporting, reading.gaps) == (3, 0)


def test_a_stretch_of_a_store(tmp_path: Path) -> None:
    fill(tmp_path, 60)
    result = StoreFeed(Store(tmp_path)).rows("scratch", T0_US + 10 * TICK_US, T0_US + 20 * TICK_US)
    sizes = next(item for item in result if isinstance(item, Rows) and item.table == "target_sizes")
    assert len(sizes) == 30
    assert sizes.columns["filesystem"] == "scratch"


def test_file_systems_of_a_store(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    fill(tmp_path, 5, first_tick=100_000, filesystem="home")
    feed = StoreFeed(Store(tmp_path))
    assert set(feed.expected()) == {"home", "scratch"}
    assert {item.columns["filesystem"] for item in feed.poll() if isinstance(item, Rows)} == {"home", "scratch"}
    assert set(StoreFeed(Store(tmp_path), filesystem="home").expected()) == {"home"}
    with pytest.raises(UsageError, match="holds no file system 'lost'; there are: home, scratch"):
        StoreFeed(Store(tmp_path), filesystem="lost").poll()


def test_an_empty_or_broken_store_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no data yet"):
        StoreFeed(Store(tmp_path / "absent")).poll()
    fill(tmp_path / "store", 5)
    feed = StoreFeed(Store(tmp_path / "store"))
    feed.poll()
    for file in (tmp_path / "store/target_sizes").rglob("*.parquet"):
        file.write_bytes(b"rubbish")
    with pytest.raises(StoreError, match="cannot be read now"):
        feed.rows("scratch", T0_US, T0_US + 10 * TICK_US)


def test_the_agent_its_store_and_its_files_agree(tmp_path: Path, agent: Agent) -> None:
    """The same ticks, read three ways."""
    clock = Clock()
    tree = TreeFeed(agent.server.root, 5.0, now_us=clock.now_us)
    spool = SpoolFeed(agent.directory)
    boards = {"tree": Board("scratch"), "spool": Board("scratch"), "store": Board("scratch")}
    for number in range(8):
        agent.tick(number, writes=number + 1)
        clock.second = T0 + 5.0 * number
        boards["tree"].take(tree.poll())
        boards["spool"].take(spool.poll())
    agent.spool.close_segment()
    ship(agent.directory, str(tmp_path / "store"))
    boards["store"].take(StoreFeed(Store(tmp_path / "store")).poll())
    lines = {name: board.reading().targets for name, board in boards.items()}
    assert [line.iops for line in lines["tree"][1:]] == [8 / 5, 16 / 5]
    for name in ("spool", "store"):
        for line, expected in zip(lines[name], lines["tree"], strict=True):
            for measure in ("target", "state", "fsu_pct", "read_bytes_per_s", "iops", "used_pct", "metadata_ops_per_s"):
                assert getattr(line, measure) == pytest.approx(getattr(expected, measure)), (name, measure)


def test_rows_of_a_store_with_missing_columns_stay_unknown(tmp_path: Path) -> None:
    telemetry = made_up(1, 3, 1, missing=0.0)
    table: pa.Table = telemetry.table("target_io").drop_columns(["read_bytes"])
    Store(tmp_path).append("target_io", table, "without/reads")
    board = Board("scratch")
    board.take(StoreFeed(Store(tmp_path)).poll())
    (line,) = board.reading().targets
    assert line.read_bytes_per_s is None
    assert line.write_bytes_per_s is not None
