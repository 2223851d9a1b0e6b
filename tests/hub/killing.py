"""kill -9 of server, writer and agents at random times, and the comparison of the store with what was sampled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from iolens.agent.sampling.pushing import push_spool
from iolens.agent.sampling.spool import Spool, waiting
from iolens.hub.takeovers import WriterRecord
from tests.agent import truth
from tests.hub.segments import T0, S
from tests.hub.served_hub import ServedHub

SETTINGS = {"commit_every": "200ms", "reserve": "0B", "batch_segments": 20}
FINISH_S = 120.0
WRITER_S = 20.0


class Survived(NamedTuple):
    """What a round went through."""

    servers: int
    writers: int
    agents: int
    samples: int


@dataclass
class KilledSite:
    """Agents and a hub that are killed now and then."""

    folder: Path
    hub: ServedHub
    chance: random.Random
    agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    killed: dict[str, int] = field(default_factory=lambda: {"server": 0, "writer": 0, "agent": 0})

    def spool(self, host: str) -> Path:
        return self.folder / "spools" / host

    def start_agent(self, host: str) -> None:
        self.spool(host).mkdir(parents=True, exist_ok=True, mode=0o700)
        command = [sys.executable, "-m", "tests.hub.spooling_agent", self.spool(host), host, self.hub.address.url]
        self.agents[host] = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)

    def kill(self, what: str) -> None:
        if what == "server":
            self.hub.kill()
            self.hub.start()
        elif what == "writer":
            if not self.kill_writer():
                return
        else:
            host = self.chance.choice(sorted(self.agents))
            self.agents[host].kill()
            self.agents[host].wait()
            self.start_agent(host)
        self.killed[what] += 1

    def kill_writer(self) -> bool:
        """Wait for a writer, let it work for a while, and kill it; whether that came to pass."""
        until = time.monotonic() + WRITER_S
        while time.monotonic() < until:
            pid = WriterRecord.read(self.hub.state / "hub").pid
            with suppress(OSError):
                if b"iolens.hub.writer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    time.sleep(self.chance.uniform(0.0, 0.5))
                    os.kill(pid, signal.SIGKILL)
                    return True
            time.sleep(0.02)
        return False

    def finish(self) -> None:
        """Have everything that was spooled stored."""
        for agent in self.agents.values():
            agent.terminate()
        for agent in self.agents.values():
            agent.wait(FINISH_S)
        until = time.monotonic() + FINISH_S
        for host in self.agents:
            with Spool.open(self.spool(host), 1 << 30, host):
                pass  # finishes what a killed agent left open
            while waiting(self.spool(host)):
                assert time.monotonic() < until
                push_spool(self.spool(host), self.hub.address)
        self.hub.wait_until_stored(FINISH_S)

    def compare(self) -> int:
        """Every tick that was spooled ends one interval in the store, and they add up; how many there were."""
        samples = 0
        assert not list((self.hub.state / "hub").rglob("*.seg")), "put aside"
        stored = truth.rows(self.hub.store, "target_io")
        for host in self.agents:
            own = [row for row in stored if row["target"] == f"fs-{host}"]
            ends, first = [_number(row["time"]) for row in own], _number(own[0]["start"])
            journal = {int(line) for line in self.spool(host).with_suffix(".journal").read_text().split()}
            reserved = int(self.spool(host).with_suffix(".reserved").read_text())
            assert len(ends) == len(set(ends)), f"{host}: {len(ends) - len(set(ends))} twice"
            assert first <= min(journal), f"{host}: lost the first"
            assert not (lost := journal - {first, *ends}), f"{host}: lost {sorted(lost)}"
            assert set(ends) <= set(range(1, reserved + 1))
            assert sum(row["write_bytes"] for row in own) == 10 * (max(ends) - first)
            samples += len(journal)
        assert truth.breaks(self.hub.store) == []
        return samples


def _number(time: datetime) -> int:
    """Of the tick at that time."""
    return (round(time.timestamp() * 1e6) - T0) // (5 * S)


def check_hub_kills(folder: Path, kills: int, seed: int, hosts: int = 3) -> Survived:
    """Kill that often; nothing is lost, nothing is stored twice."""
    chance = random.Random(seed)
    with ServedHub(folder / "state", folder / "store", SETTINGS) as hub:
        site = KilledSite(folder, hub, chance)
        for number in range(hosts):
            site.start_agent(f"oss{number}")
        order = [what for _ in range(kills) for what in ("server", "writer", "agent")][:kills]
        chance.shuffle(order)
        for what in order:
            time.sleep(chance.uniform(0.1, 1.5))
            site.kill(what)
        time.sleep(chance.uniform(0.5, 1.0))
        site.finish()
    samples = site.compare()
    return Survived(site.killed["server"], site.killed["writer"], site.killed["agent"], samples)
