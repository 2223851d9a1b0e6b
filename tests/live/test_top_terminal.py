"""`iolens top` in a real terminal, on a simulated server that lives, and on a store that is played back."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import iolens
from tests.live.spark_cluster import ComponentMissing
from tests.live.terminal import Terminal, is_alive

pytestmark = pytest.mark.live
COMMAND = [sys.executable, "-m", "iolens.cli.main"]


@contextmanager
def simulated_server(root: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that works twenty times as fast as real ones."""
    command = [*COMMAND, "simulate", "lustre", "--root", str(root), "--speed", "20", "--seed", "3", *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not list(root.glob("sys/kernel/debug/lustre/osd-ldiskfs/*OST0005/brw_stats")):
            assert server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        yield server
    finally:
        server.terminate()
        server.wait()


@contextmanager
def terminal(*arguments: object, size: tuple[int, int], folder: Path, **environment: str) -> Iterator[Terminal]:
    """`iolens top` in a window; afterwards nothing of it runs."""
    command = [*COMMAND, "top", *map(str, arguments)]
    try:
        window = Terminal(command, size, folder, **environment).__enter__()
    except ComponentMissing as missing:
        pytest.skip(str(missing))
    pids = window.pids
    try:
        yield window
    finally:
        window.__exit__()
    end = time.monotonic() + 60
    while any(map(is_alive, pids)):
        assert time.monotonic() < end, "a process was left behind"
        time.sleep(0.1)


def targets(shown: str) -> list[str]:
    """Names in the order of the rows."""
    return re.findall(r"^(?:[·▪▲✗?↺] |  )((?:OST|MDT)\w{4})", shown, re.MULTILINE)


def clock(shown: str) -> str:
    """The tick in the title."""
    result = re.search(r"\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d) UTC", shown)
    return result[1] if result else ""


def test_it_sorts_filters_holds_and_steps_in_a_terminal(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with (
        simulated_server(root, "--osts", "6", "--mdts", "1", "--dead-ost", "OST0004@400s"),
        terminal("--root", root, "--interval", "1s", size=(140, 34), folder=tmp_path) as window,
    ):
        shown = window.until(
            lambda text: "7 of 7 targets report" in text and "live" in text and len(targets(text)) == 7
        )
        assert "FSU %" in shown
        assert sorted(targets(shown)) == ["MDT0000", *(f"OST000{n}" for n in range(6))]

        window.press("1")
        assert targets(window.until(lambda text: targets(text)[:1] == ["MDT0000"]))[1] == "OST0000"
        window.press("r")
        window.until(lambda text: targets(text)[-1:] == ["MDT0000"])
        window.click(12, 5)  # the heading FSU %; where it is depends on whether a message is shown
        window.click(12, 4)
        window.until(lambda text: "▼FSU %" in text or "▲FSU %" in text)

        window.press("/")
        window.until(lambda text: "part of a target's name" in text)
        window.type("ost000[12]")
        window.until(lambda text: sorted(targets(text)) == ["OST0001", "OST0002"])
        window.press("Enter")
        window.press("Escape")
        window.until(lambda text: len(targets(text)) == 7)

        begun = clock(window.screen())
        window.until(lambda text: clock(text) > begun)
        window.press("Space")
        held = clock(window.until(lambda text: "paused" in text))
        time.sleep(2.5)
        assert clock(window.screen()) == held
        window.press("Left")
        earlier = clock(window.until(lambda text: clock(text) < held))
        assert earlier
        window.press("End")
        window.until(lambda text: "live" in text and clock(text) > held)

        window.press("Enter")
        window.until(lambda text: "reads/s" in text and "writes/s" in text)
        window.press("Escape")
        window.press("?")
        window.until(lambda text: "choose a target" in text)
        window.press("Escape")

        window.until(lambda text: "silent: OST0004" in text and "✗ OST0004" in text, 90)

        window.resize(60, 20)
        narrow = window.until(lambda text: "full %" not in text and "FSU %" in text)
        assert max(map(len, narrow.splitlines())) <= 60
        window.press("q")
        end = time.monotonic() + 60
        while window.is_running:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_an_agent_is_followed_and_missed_when_it_stops(tmp_path: Path) -> None:
    root, spool = tmp_path / "root", tmp_path / "spool"
    with simulated_server(root, "--osts", "6", "--mdts", "1"):
        collect = [*COMMAND, "collect", "--root", str(root), "--spool", str(spool), "--no-ship", "--interval", "1s"]
        with terminal("--spool", spool, "--interval", "1s", size=(120, 24), folder=tmp_path) as window:
            window.until(lambda text: "trying again: " in text)
            agent = subprocess.Popen(collect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                window.until(lambda text: "7 of 7 targets report" in text)
            finally:
                agent.terminate()
                agent.wait()
            window.until(lambda text: "no data for" in text)
            assert len(targets(window.screen())) == 7


def test_a_store_is_played_back_in_a_terminal(tmp_path: Path) -> None:
    store = tmp_path / "store"
    made = iolens("simulate", "telemetry", "--osts", 6, "--mdts", 1, "--days", 1 / 24, "--no-jobs", "--store", store)
    assert made.code == 0, made.err
    arguments = ("--store", store, "--from", "2012-10-22T00:10:00")
    with terminal(*arguments, size=(120, 24), folder=tmp_path, NO_COLOR="1") as window:
        shown = window.until(lambda text: "playback 10×" in text and "7 of 7 targets report" in text)
        first = clock(shown)
        window.press("]", "]")
        window.until(lambda text: "playback 60×" in text and clock(text) > first)
        window.press("Space")
        held = clock(window.until(lambda text: "paused" in text))
        window.press("Right")
        window.until(lambda text: clock(text) > held)
        window.press("Home")
        window.press("t")
        window.until(lambda text: "go to: 14:30" in text)
        window.type("00:33:20")
        window.press("Enter")
        window.until(lambda text: clock(text) == "00:33:20")
        window.press("End")
        window.until(lambda text: clock(text) == "01:00:00")


def test_a_store_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with terminal("--store", store, "--interval", "1s", size=(100, 20), folder=tmp_path) as window:
        window.until(lambda text: "trying again: " in text)
        options = ("--osts", 6, "--mdts", 0, "--days", 1 / 720, "--no-jobs", "--store", store)
        assert iolens("simulate", "telemetry", *options).code == 0
        window.until(lambda text: all(f"OST000{number}" in text for number in range(6)))  # of long ago: said so soon
        assert "Traceback" not in window.screen()
