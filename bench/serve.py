"""`iolens serve` under load, in one run: first paint of a file system's page, many readers at once, and a busy hub.

`python -m bench.serve` makes a store of 240 days × 156 OSTs with rollups (about 10 GB, half an hour; `--store DIR`
keeps and uses it again), opens the page in Chromium with a server that has just started and once more, then has 50
readers ask for pages while 500 agents push their samples to the hub of the same server.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import httpx
import psutil
from bench.hub import SEGMENT_TICKS, TICK_S, make_spools
from bench.long_window import DRAWN_DAYS, repeat_days
from bench.utilization import make_store, size

from iolens.agent.sampling.hub_client import TOKEN_VARIABLE, HubAddress
from iolens.agent.sampling.pushing import push_spool
from iolens.hub.hub_state import hub_state
from iolens.times import present

FILESYSTEM = "/filesystems/scratch"
WINDOWS = ("1h", "6h", "1d", "7d", "30d", "365d")
BLOCK = re.compile(r'data-block="([^"]+)"')
THINKS_S = (1.0, 4.0)  # a reader between two pages
OF_A_SECOND = 0.5


def main() -> None:
    """Make the store, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=240)
    parser.add_argument("--targets", type=int, default=156)
    parser.add_argument("--store", help="keep the telemetry here and use it again")
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=10.0, help="of readers and agents at once")
    parser.add_argument("--without-browser", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iolens-bench-", dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        store = Path(options.store or folder / "store")
        if not store.exists():
            make_rolled_up_store(store, options.days, options.targets)
        print(f"{options.days} days × {options.targets} OSTs × 5 s with rollups, {size(str(store))}", flush=True)
        if not options.without_browser:
            with serving(store, folder / "quiet") as server:
                first_paint(server)
        with serving(store, folder / "state", "--hub") as server:
            under_load(server, folder, options)


def make_rolled_up_store(store: Path, days: int, targets: int) -> None:
    """Eight days are drawn and repeated; then all are rolled up."""
    make_store(str(store), min(days, DRAWN_DAYS), targets)
    repeat_days(str(store), days)
    subprocess.run([sys.executable, "-m", "iolens.cli.main", "store", "rollup", "--store", str(store)], check=True)


@dataclass(slots=True)
class Server:
    """A running `iolens serve`."""

    process: subprocess.Popen[str]
    url: str
    state: Path

    def memory_mib(self) -> tuple[float, float]:
        """Memory that is its own of the server, and of it with its children, by the proportional set size."""
        own = psutil.Process(self.process.pid)
        pss = [own.memory_full_info().pss]
        for child in own.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # a writer is replaced now and then
                pss.append(child.memory_full_info().pss)
        return pss[0] / 2**20, sum(pss) / 2**20


@contextmanager
def serving(store: Path, state: Path, *options: str) -> Iterator[Server]:
    """The server, until it is stopped."""
    words = ["serve", "--store", str(store), "--state", str(state), "--listen", "127.0.0.1:0", "--no-alerts", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "iolens.cli.main", *words], stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://\S+:\d+", line)
        assert address is not None, line
        Thread(target=process.stderr.read, daemon=True).start()
        yield Server(process, address[0], state)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def first_paint(server: Server) -> None:
    """Of all 240 days in Chromium: cold, when nobody has asked before, and warm."""
    from playwright.sync_api import sync_playwright

    time.sleep(3)  # a server that has just started loads its modules
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{server.url}/healthz")
        for name in ("cold", "warm"):
            began = time.monotonic()
            page.goto(f"{server.url}{FILESYSTEM}?last=365d", wait_until="commit")
            page.wait_for_selector("main h1")
            shell_s = time.monotonic() - began
            page.wait_for_selector("figure .live[data-drawn]", timeout=120_000)
            print(f"{name}: shell of the page {shell_s:.2f} s, its first figure {time.monotonic() - began:.2f} s")
        browser.close()


@dataclass(slots=True)
class Load:
    """What readers saw, and the largest memory meanwhile."""

    seconds: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    server_mib: float = 0.0
    all_mib: float = 0.0


def under_load(server: Server, folder: Path, options: argparse.Namespace) -> None:
    """Readers and agents at once."""
    segments = max(round(options.minutes * 60 / (SEGMENT_TICKS * TICK_S)), 1)
    token = subprocess.run(
        [sys.executable, "-m", "iolens.cli.main", "serve", "token", "add", "agents", "--role", "agent", "--state",
         str(server.state)], check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    os.environ[TOKEN_VARIABLE] = token
    print(make_spools(folder, options.agents, segments), flush=True)
    load, over = Load(), Event()
    readers = [Thread(target=read, args=(server, load, over, number)) for number in range(options.readers)]
    for thread in (*readers, Thread(target=watch_memory, args=(server, load, over))):
        thread.start()
    pushed, refused = push(server, folder, segments, options.minutes * 60)
    over.set()
    for thread in readers:
        thread.join()
    stored_s = wait_until_stored(server, pushed)
    shown = sorted(load.seconds)
    p50, p95, worst = (statistics.median(shown), shown[int(0.95 * len(shown))], shown[-1])
    failed = f"{len(load.troubles)} failed {load.troubles[:2] or ''}"
    print(
        f"{options.readers} readers: {len(shown):,} requests, median {p50:.3f} s, p95 {p95:.3f} s, worst {worst:.2f} s"
    )
    print(f"{options.agents} agents: {pushed:,} segments accepted, {refused} asked to wait; {failed}")
    print(f"all stored {stored_s:.0f} s after the last was accepted")
    print(f"memory at most: server {load.server_mib:.0f} MiB, with the writer {load.all_mib:.0f} MiB", flush=True)


def read(server: Server, load: Load, over: Event, number: int) -> None:
    """A reader opens pages of the file system over windows of any length, as a browser does: the shell, its blocks."""
    chance = random.Random(number)
    with httpx.Client(base_url=server.url, timeout=60.0) as client:
        over.wait(chance.uniform(0, THINKS_S[1]))
        while not over.is_set():
            last = chance.choice(WINDOWS)
            page = asked(client, load, f"{FILESYSTEM}?last={last}")
            for address in BLOCK.findall(page):
                path, _, query = address.replace("&amp;", "&").partition("?")
                values = dict(httpx.QueryParams(query)) | {"last": last}
                asked(client, load, f"{path}?{urlencode(values)}")
            over.wait(chance.uniform(*THINKS_S))


def asked(client: httpx.Client, load: Load, path: str) -> str:
    """One request."""
    began = time.monotonic()
    try:
        answer = client.get(path)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        load.troubles.append(f"{path[:60]}: {error!r}"[:200])
        return ""
    load.seconds.append(time.monotonic() - began)
    return answer.text


def watch_memory(server: Server, load: Load, over: Event) -> None:
    """Twice a second."""
    while not over.wait(OF_A_SECOND):
        own, together = server.memory_mib()
        load.server_mib, load.all_mib = max(load.server_mib, own), max(load.all_mib, together)


def push(server: Server, folder: Path, segments: int, span_s: float) -> tuple[int, int]:
    """Every agent sends a segment every five minutes; how many were accepted, and how often one had to wait."""
    chance = random.Random(1)
    spools = sorted((folder / "spools").iterdir())
    due = sorted((chance.random() * span_s, spool) for spool in spools for _ in range(segments))
    began, refused = time.monotonic(), 0
    with ThreadPoolExecutor(8) as senders:
        pushes = []
        for at, spool in due:
            time.sleep(max(began + at - time.monotonic(), 0.0))
            path = sorted(spool.glob("*.later"))[0]
            path.rename(path.with_suffix(".seg"))
            pushes.append(senders.submit(push_spool, spool, HubAddress(server.url)))
        refused = sum(bool(done.result().error) for done in pushes)
    for spool in spools:
        while list(spool.glob("*.seg")) + list(spool.glob("*.taken")):
            push_spool(spool, HubAddress(server.url))
    return len(due), refused


def wait_until_stored(server: Server, segments: int) -> float:
    """Seconds until the writer has stored all."""
    began = time.monotonic()
    while hub_state(server.state, present()).writer.segments < segments:
        assert time.monotonic() - began < 1800, hub_state(server.state, present()).writer
        time.sleep(1)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
