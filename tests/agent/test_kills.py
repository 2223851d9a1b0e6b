"""kill -9 at random moments: no spooled sample is lost, none is in the store twice."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iolens.agent.spool import Spool, waiting
from iolens.records import Sample
from tests.agent import truth
from tests.agent.server import Server
from tests.agent.test_collect import busy, start, wait_for

KILLS = 5  # in the tests; `make soak` takes a thousand
COUNTERS = {"target_sizes": "write_ios_1048576", "target_io": "write_bytes", "metadata_ops": "open"}


def test_neither_killed_samplers_nor_killed_shippers_lose_or_double_a_sample(tmp_path: Path) -> None:
    check_kills(tmp_path, KILLS, seed=7)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_in_between_loses_nothing_that_was_spooled(tmp_path: Path) -> None:
    with small_disk(tmp_path / "spool"):
        check_kills(tmp_path, 4, seed=3, fill=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of a few megabytes."""
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder], check=False).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_up(ballast: Path) -> None:
    """Leave no room on the disk."""
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))


def check_kills(folder: Path, kills: int, seed: int, *, fill: bool = False) -> int:
    """Kill that many samplers, then as many shippers; everything spooled is in the store once. Samples spooled.

    Now and then the disk is full while a sampler is killed, and the store is away while a shipper is.
    """
    chance = random.Random(seed)
    server = Server(folder / "root")
    server.work()
    spool, store = folder / "spool", folder / "store"
    options: list[object] = ["--root", server.root, "--spool", spool]
    with busy(server, 0.01):
        for number in range(kills):
            (spool / "health.json").unlink(missing_ok=True)
            process = start(options, "--no-ship", "--interval", "50ms", "--slow-interval", "200ms")
            wait_for(spool / "health.json")
            time.sleep(chance.uniform(0.0, 0.5))
            if fill and number % 2:
                fill_up(spool / "ballast")
                time.sleep(chance.uniform(0.1, 0.5))
            process.kill()
            process.wait()
            (spool / "ballast").unlink(missing_ok=True)
            assert fill or len(list(spool.glob("*.open"))) == 1, f"kill {number}"
    with Spool.open(spool, 1 << 30):
        pass
    spooled = truth.spooled_ticks(spool, "target_sizes")
    assert fill or len(waiting(spool)) == kills
    assert len(spooled) > 2 * kills
    truths = {(table, counter): _series(spool, table, counter) for table, counter in COUNTERS.items()}

    command = [sys.executable, "-m", "iolens.agent.shipper", str(spool), str(store)]
    for number in range(kills):
        if not waiting(spool):
            break
        away = number % 3 == 1 and (spool / "store.json").exists() and store.is_dir()
        if away:
            store.rename(folder / "away")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.6, 2.0))
        process.kill()
        process.wait()
        if away:
            assert not store.exists()
            (folder / "away").rename(store)
    while waiting(spool):
        assert truth.ship(spool, store).returncode == 0

    assert max(spooled.values()) == 1
    for (table, counter), series in truths.items():
        rows = truth.rows(store, table)
        ends = [(row["target"], round(row["time"].timestamp() * 1e6)) for row in rows]
        assert len(ends) == len(set(ends))
        assert set(ends) == {(target, tick) for target, samples in series.items() for tick, _ in samples[1:]}
        assert truth.breaks(store, table) == []
        assert sum(row[counter] for row in rows) == sum(samples[-1][1] - samples[0][1] for samples in series.values())
    return len(spooled)


def _series(spool: Path, table: str, counter: str) -> dict[str, list[tuple[int, int]]]:
    """Tick and count of every spooled sample, by target; a file that was read twice unchanged is one sample."""
    shown: dict[str, dict[int, tuple[int, int]]] = {}
    for item in truth.spooled(spool):
        if isinstance(item, Sample) and item.table == table:
            count = item.sets[""].counters[counter]
            shown.setdefault(item.target, {}).setdefault(item.snapshot_us, (item.time_us, count))
    return {target: sorted(samples.values()) for target, samples in shown.items()}
