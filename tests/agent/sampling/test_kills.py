"""kill -9 at random times: no spooled sample is lost, none is in the store twice, and all adds up to the truth."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from iolens.agent.sampling.spool import Spool, waiting
from iolens.records import Sample
from tests.agent import truth
from tests.agent.sampling.test_collect import start, wait_for
from tests.agent.server import SimulatedServer

KILLS = 5  # in the tests; `make soak` takes a thousand
TABLES = ("target_io", "target_sizes", "metadata_ops")


class Survived(NamedTuple):
    """What a round went through: processes killed, and samples of the OSTs that were spooled all the same."""

    kills: int
    samples: int


class Seen(NamedTuple):
    """A spooled sample: its tick, and the time by the server's own clock."""

    time_us: int
    snapshot_us: int


def test_neither_killed_samplers_nor_killed_shippers_lose_or_double_a_sample(tmp_path: Path) -> None:
    assert check_kills(tmp_path, KILLS, seed=7, version="2.15").kills > KILLS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_in_between_loses_nothing_that_was_spooled(tmp_path: Path) -> None:
    with small_disk(tmp_path / "spool"):
        assert check_kills(tmp_path, 4, seed=3, version="1.8", fill=True).kills > 4


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of a few megabytes."""
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", folder], check=False).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_up(ballast: Path) -> None:
    """Leave no space on the disk."""
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))


def check_kills(folder: Path, kills: int, seed: int, version: str, *, fill: bool = False) -> Survived:
    """Kill that many samplers of a simulated server, then as many shippers while there is something to ship.

    Everything spooled is in the store once, and what the store adds up to is what the simulator did. Now and then the
    disk is full while a sampler is killed, and the store is away while a shipper is.
    """
    chance = random.Random(seed)
    server = SimulatedServer(folder / "root", version, seed)
    spool, store = folder / "spool", folder / "store"
    with server.running() as process:
        server.wait_for_tree(process)
        kill_samplers(server.root, spool, kills, chance, fill=fill)
    with Spool.open(spool, 1 << 30):
        pass
    spooled = truth.spooled_ticks(spool, "target_sizes")
    assert fill or len(waiting(spool)) == kills
    assert len(spooled) > 2 * kills
    assert max(spooled.values()) == 1
    series = {table: _series(spool, table) for table in TABLES}

    killed = kills + kill_shippers(spool, store, kills, chance)
    while waiting(spool):
        assert (done := truth.ship(spool, store)).returncode == 0, done.stdout
    for table, targets in series.items():
        _compare(server, store, table, targets)
    return Survived(killed, len(spooled))


def kill_samplers(root: Path, spool: Path, kills: int, chance: random.Random, *, fill: bool = False) -> None:
    """Start that many samplers, one after the other, and kill each."""
    for number in range(kills):
        (spool / "health.json").unlink(missing_ok=True)
        process = start(["--root", root, "--spool", spool], "--no-ship", "--interval", "50ms",
                        "--slow-interval", "200ms")  # fmt: skip
        wait_for(spool / "health.json")
        time.sleep(chance.uniform(0.0, 0.5))
        if fill and number % 2:
            fill_up(spool / "ballast")
            time.sleep(chance.uniform(0.1, 0.5))
        process.kill()
        process.wait()
        (spool / "ballast").unlink(missing_ok=True)
        assert fill or len(list(spool.glob("*.open"))) == 1, f"kill {number}"


def kill_shippers(spool: Path, store: Path, most: int, chance: random.Random) -> int:
    """How many were killed before all was shipped; one that ended by itself does not count."""
    command = [sys.executable, "-m", "iolens.agent.sampling.shipper", str(spool), str(store)]
    aside, killed = store.with_name("away"), 0
    for number in range(2 * most):
        if not waiting(spool) or killed == most:
            break
        away = number % 3 == 1 and (spool / "store.json").exists() and store.is_dir()
        if away:
            store.rename(aside)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.3, 2.0))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        if away:
            assert not store.exists()
            aside.rename(store)
    return killed


def _series(spool: Path, table: str) -> dict[str, list[Seen]]:
    """Every spooled sample by target, in order; a file that was read twice unchanged is one sample."""
    seen: dict[str, dict[int, Seen]] = {}
    for item in truth.spooled(spool):
        if isinstance(item, Sample) and item.table == table:
            seen.setdefault(item.target, {}).setdefault(item.snapshot_us, Seen(item.time_us, item.snapshot_us))
    return {target: sorted(samples.values()) for target, samples in seen.items()}


def _compare(server: SimulatedServer, store: Path, table: str, series: dict[str, list[Seen]]) -> None:
    """An interval ends at each spooled sample but the first of its target; together they hold all that was done."""
    rows = truth.rows(store, table)
    ends = [(row["target"], round(row["time"].timestamp() * 1e6)) for row in rows]
    spooled = {(target, sample.time_us) for target, samples in series.items() for sample in samples[1:]}
    assert len(ends) == len(set(ends)), f"{table}: {len(ends) - len(set(ends))} twice"
    assert set(ends) == spooled, f"{table}: lost {spooled - set(ends)}, invented {set(ends) - spooled}"
    assert truth.breaks(store, table) == []
    assert len(series) == (server.mdts if table == "metadata_ops" else server.osts)
    for target, samples in series.items():
        did = server.did(table, target, samples[0].snapshot_us, samples[-1].snapshot_us)
        result = {name: sum(row[name] or 0 for row in rows if row["target"] == target) for name in did}
        assert result == did, f"{table} of {target}: stored {result}, but the simulator did {did}"
        assert sum(did.values()) > 0
