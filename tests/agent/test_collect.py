"""`iolens collect` as a process on a made-up server: totals in the store are those of the server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from iolens.agent.spool import waiting
from tests.agent import truth
from tests.agent.server import Server
from tests.cli.command import iolens


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
    with busy(server):
        done = iolens("collect", *options, "--slow-interval", "1s", "--duration", "5s",
                      "--ship-every", "1s")  # fmt: skip
    assert done.code == 0, done.err
    assert iolens("collect", "--once", *options).code == 0
    assert truth.total(store) == server.total_bytes() - before
    assert truth.total(store, "write_ios_1048576", "target_sizes") == (server.total_bytes() - before) >> 20
    assert truth.total(store, "open", "metadata_ops") == server.opens - opens_before
    assert truth.total(store, "write_bytes", "job_io") == 3 * (server.total_bytes() - before)
    assert truth.breaks(store) == []
    times = {row["time"] for row in truth.rows(store, "target_sizes")}
    assert all(moment.microsecond % 200_000 == 0 for moment in times)
    assert len(times) >= 20
    assert len({row["time"] for row in truth.rows(store, "target_histograms")}) <= 8
    assert {row["source"] for row in truth.rows(store, "target_io")} == {"agent"}
    assert waiting(spool) == []
    status = json.loads((spool / "health.json").read_text())
    assert status["segments_waiting"] == 0
    assert status["rss_bytes"] < 60 << 20


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
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(10) == 0
    assert time.monotonic() - began < 2
    assert [path.suffix for path in waiting(spool)] == [".seg"]
    assert list(spool.glob("*.open")) == []


def test_samples_go_on_while_the_store_is_away(tmp_path: Path) -> None:
    server, spool, store, options = places(tmp_path)
    assert iolens("collect", "--once", *options).code == 0
    before = server.total_bytes()
    store.rename(tmp_path / "away")
    with busy(server):
        process = start(options, "--interval", "100ms", "--ship-every", "500ms", "--duration", "4s")
        assert process.wait(30) == 3
    status = json.loads((spool / "health.json").read_text())
    assert status["ship_failures"] >= 1
    assert status["ticks"] >= 30
    assert "is gone" in status["trouble"]
    assert not store.exists()
    (tmp_path / "away").rename(store)
    assert iolens("collect", "--once", *options).code == 0
    assert truth.total(store) == server.total_bytes() - before
    assert truth.breaks(store) == []
    assert len(truth.rows(store, "target_sizes")) >= 60


def test_only_spooling_leaves_segments_for_others(tmp_path: Path) -> None:
    server, spool, store, options = places(tmp_path)
    with busy(server):
        done = iolens("collect", *options, "--no-ship", "--interval", "100ms", "--duration", "1s")
    assert done.code == 0
    assert not store.exists()
    loaded = iolens("ingest", "spool", spool, "--store", store)
    assert loaded.code == 0, loaded.err
    assert "1 captures" in loaded.out
    assert "1 captures were already present" in iolens("ingest", spool, "--store", store).out


def test_a_spool_has_one_writer(tmp_path: Path) -> None:
    _, spool, _, options = places(tmp_path)
    process = start(options, "--interval", "100ms")
    wait_for(spool / "health.json")
    second = iolens("collect", "--once", *options)
    process.terminate()
    process.wait(10)
    assert second.code == 1
    assert "another `iolens collect` writes here" in second.err


@pytest.mark.parametrize(
    "arguments", [["--interval", "1ms"], ["--once", "--duration", "5s"], ["--interval", "soon"], ["--spool-limit", "x"]]
)
def test_questions_that_make_no_sense(arguments: list[str]) -> None:
    assert iolens("collect", *arguments).code == 2


def start(options: list[object], *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "iolens.cli.main", "collect", *map(str, options), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))


def wait_for(path: Path, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)
