"""`iolens collect` as a process on a made-up server: totals in the store are those of the server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from iolens.agent.sampling.sampler import STATUS_FILE
from iolens.agent.sampling.spool import waiting
from iolens.store.store import Store
from tests.agent import truth
from tests.agent.server import Server
from tests.cli.command import iolens_process as iolens


def health(spool: Path) -> dict[str, Any]:
    """What the agent says of itself."""
    return dict(json.loads((spool / STATUS_FILE).read_text()))


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def work_and_be_sampled(server: Server, spool: Path, times: int) -> None:
    """Move the counters on that often, and wait each time for a sample that began afterwards."""
    for _ in range(times):
        server.work()
        ticks = health(spool)["ticks"]
        wait_until(lambda seen=ticks + 2: health(spool)["ticks"] >= seen)  # type: ignore[misc]


@contextmanager
def busy(server: Server, pause_s: float = 0.05) -> Iterator[None]:
    """The server's counters move until the block ends."""
    enough = Event()

    def run() -> None:
        while not enough.wait(pause_s):
            server.work()

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def places(tmp_path: Path) -> tuple[Server, Path, Path, list[object]]:
    server = Server(tmp_path / "root")
    server.work(10)
    spool, store = tmp_path / "spool", tmp_path / "store"
    return server, spool, store, ["--root", server.root, "--spool", spool, "--store", store]


def test_totals_in_the_store_are_those_of_the_server(tmp_path: Path) -> None:
    server, spool, store, options = places(tmp_path)
    options += ["--interval", "200ms"]
    assert iolens("collect", "--once", *options).code == 0
    before, opens_before = server.total_bytes(), server.opens
    (spool / STATUS_FILE).unlink()
    process = start(options, "--slow-interval", "1s", "--ship-every", "1s")
    wait_for(spool / STATUS_FILE)
    work_and_be_sampled(server, spool, 12)
    wait_until(lambda: health(spool)["segments_shipped"] > 0)
    process.terminate()
    assert process.wait(60) == 0
    assert iolens("collect", "--once", *options).code == 0
    assert truth.total(store) == server.total_bytes() - before
    assert truth.total(store, "write_ios_1048576", "target_sizes") == (server.total_bytes() - before) >> 20
    assert truth.total(store, "open", "metadata_ops") == server.opens - opens_before
    assert truth.total(store, "write_bytes", "job_io") == 3 * (server.total_bytes() - before)
    assert truth.breaks(store) == []
    times = {row["time"] for row in truth.rows(store, "target_sizes")}
    assert all(timestamp.microsecond % 200_000 == 0 for timestamp in times)
    assert len(times) >= 12
    *slow, _ = sorted({row["time"] for row in truth.rows(store, "target_histograms")})  # the last is of `--once`
    assert len({timestamp.replace(microsecond=0) for timestamp in slow}) == len(slow)
    assert {row["source"] for row in truth.rows(store, "target_io")} == {"agent"}
    assert waiting(spool) == []
    assert health(spool)["segments_waiting"] == 0
    assert health(spool)["rss_bytes"] < 60 << 20


def test_once_says_what_was_seen(tmp_path: Path) -> None:
    _, _, store, options = places(tmp_path)
    done = iolens("collect", "--once", *options)
    assert done.code == 0
    assert "1 ticks (0 late, 0 missed, 0 lost), 3 targets, 10 samples; 1 segments shipped" in done.out
    assert len(truth.rows(store, "target_capacity")) == 3


def test_once_where_there_is_no_lustre(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = iolens(
        "collect", "--once", "--root", tmp_path / "empty", "--spool", tmp_path / "s", "--store", tmp_path / "c"
    )
    assert done.code == 1
    assert "0 targets, 0 samples" in done.out


def test_once_with_a_store_that_cannot_be_written_keeps_the_sample(tmp_path: Path) -> None:
    _, spool, store, options = places(tmp_path)
    store.write_text("a file")
    done = iolens("collect", "--once", *options)
    assert done.code == 3
    assert "not shipped, samples stay in the spool" in done.err
    assert len(waiting(spool)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_finishes_the_segment(tmp_path: Path, number: signal.Signals) -> None:
    _, spool, _, options = places(tmp_path)
    process = start(options, "--interval", "100ms")
    wait_for(spool / "health.json")
    process.send_signal(number)
    assert process.wait(60) == 0
    assert [path.suffix for path in waiting(spool)] == [".seg"]
    assert list(spool.glob("*.open")) == []


def test_samples_go_on_while_the_store_is_away(tmp_path: Path) -> None:
    server, spool, store, options = places(tmp_path)
    assert iolens("collect", "--once", *options).code == 0
    before = server.total_bytes()
    store.rename(tmp_path / "away")
    (spool / STATUS_FILE).unlink()
    process = start(options, "--interval", "100ms", "--ship-every", "500ms")
    wait_for(spool / STATUS_FILE)
    wait_until(lambda: health(spool)["ship_failures"] > 0)
    work_and_be_sampled(server, spool, 15)
    process.terminate()
    assert process.wait(60) == 0
    assert "is gone" in health(spool)["trouble"]
    assert iolens("collect", "--once", *options, "--interval", "100ms").code == 3
    assert not store.exists()
    (tmp_path / "away").rename(store)
    assert iolens("collect", "--once", *options).code == 0
    assert truth.total(store) == server.total_bytes() - before
    assert truth.breaks(store) == []
    assert len(truth.rows(store, "target_sizes")) >= 2 * 15


def test_only_spooling_leaves_segments_for_others(tmp_path: Path) -> None:
    server, spool, store, options = places(tmp_path)
    with busy(server):
        done = iolens("collect", *options, "--no-ship", "--interval", "100ms", "--duration", "1s")
    assert done.code == 0
    assert not store.exists()
    loaded = iolens("ingest", "spool", spool, "--store", store)
    assert loaded.code == 0, loaded.err
    assert "1 capture, " in loaded.out
    assert "1 capture was already present" in iolens("ingest", spool, "--store", store).out


def test_a_spool_has_one_writer(tmp_path: Path) -> None:
    _, spool, _, options = places(tmp_path)
    process = start(options, "--interval", "100ms")
    wait_for(spool / "health.json")
    second = iolens("collect", "--once", *options)
    process.terminate()
    process.wait(60)
    assert second.code == 1
    assert "another `iolens collect` writes here" in second.err


class TestBlockDevices:
    def disks(self, root: Path, writes: int, names: tuple[str, ...] = ("sda", "sdb")) -> Path:
        """Each write is of 8 sectors; the second disk has twice as many."""
        (root / "proc").mkdir(parents=True, exist_ok=True)
        (root / "etc").mkdir(exist_ok=True)
        (root / "etc/hostname").write_text("oss1\n")
        lines = [f"8 {number * 16} {name} 1 0 8 1 {writes * (number + 1)} 0 {writes * 8 * (number + 1)} 3 0 4 4"
                 for number, name in enumerate(names)]  # fmt: skip
        beside = root / "proc/.diskstats"
        beside.write_text("\n".join(lines) + "\n")
        beside.replace(root / "proc/diskstats")
        return root

    def options(self, tmp_path: Path, text: str = "") -> list[object]:
        (tmp_path / "iolens.toml").write_text(text)
        return ["--spool", tmp_path / "spool", "--store", tmp_path / "store", "--config", tmp_path / "iolens.toml"]

    def test_where_there_is_no_lustre_they_are_sampled(self, tmp_path: Path) -> None:
        root, options = tmp_path / "root", self.options(tmp_path)
        for writes in (10, 30):
            self.disks(root, writes)
            done = iolens("collect", "--once", "--root", root, *options)
            assert done.code == 0, done.err
        assert "2 targets, 2 samples" in done.out
        rows = truth.rows(tmp_path / "store", "target_io")
        assert [(row["target"], row["write_bytes"], row["write_ops"]) for row in rows] == [
            ("oss1:sda", 20 * 4096, 20),
            ("oss1:sdb", 40 * 4096, 40),
        ]
        assert {(row["filesystem"], row["target_kind"], row["source"]) for row in rows} == {("oss1", "device", "agent")}

    def test_beside_lustre_only_when_asked(self, tmp_path: Path) -> None:
        server = Server(tmp_path / "root", osts=1)
        server.work()
        self.disks(server.root, 1)
        options = ["--root", server.root, *self.options(tmp_path)]
        assert "2 targets" in iolens("collect", "--once", *options).out
        assert "4 targets" in iolens("collect", "--once", "--devices", *options).out
        configured = ["--root", server.root, *self.options(tmp_path, "[agent]\ndevices = true\n")]
        assert "4 targets" in iolens("collect", "--once", *configured).out
        assert "2 targets" in iolens("collect", "--once", "--no-devices", *configured).out

    def test_the_configuration_chooses_and_options_win(self, tmp_path: Path) -> None:
        root = self.disks(tmp_path / "root", 1, ("sda", "sdb", "sdc", "loop0"))
        text = f"""
            [agent]
            root = "{root}"
            spool = "{tmp_path / "configured"}"
            filesystem = "scratch"
            interval = "1s"
            [devices]
            exclude = ["sdb"]
        """
        options = self.options(tmp_path, text)[2:]  # no --spool
        done = iolens("collect", "--once", *options)
        assert "2 targets, 2 samples" in done.out, done.err
        assert (tmp_path / "configured/health.json").exists()
        status = json.loads((tmp_path / "configured/health.json").read_text())
        assert status["time"] % 1_000_000 == 0
        iolens("collect", "--once", "--spool", tmp_path / "given", "-f", "home", *options)
        assert (tmp_path / "given/health.json").exists()
        handle = Store(tmp_path / "store").tables.load("baselines")
        assert handle is not None
        assert {(row["filesystem"], row["target"]) for row in handle.to_pyarrow_table().to_pylist()} == {
            (filesystem, f"oss1:{disk}") for filesystem in ("scratch", "home") for disk in ("sda", "sdc")
        }

    def test_an_interval_that_makes_no_sense_in_the_configuration(self, tmp_path: Path) -> None:
        options = self.options(tmp_path, '[agent]\ninterval = "1ms"\n')
        assert iolens("collect", "--once", *options).code == 2
        options = self.options(tmp_path, '[agent]\ninterval = "0s"\n')
        done = iolens("collect", "--once", *options)
        assert (done.code, "agent.interval = '0s' is no interval" in done.err) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--interval", "1ms"],
        ["--once", "--duration", "5s"],
        ["--interval", "soon"],
        ["--spool-limit", "x"],
        ["--device-interval", "0s"],
    ],
)
def test_questions_that_make_no_sense(tmp_path: Path, arguments: list[str]) -> None:
    bounds = [] if "--duration" in arguments else ["--duration", "1s"]  # should one be answered after all
    assert iolens("collect", *arguments, *bounds, "--spool", tmp_path, "--no-ship").code == 2


def start(options: list[object], *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "iolens.cli.main", "collect", *map(str, options), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))


def wait_for(path: Path, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)
