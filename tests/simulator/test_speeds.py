"""Real processes, real time: two simulated servers of each version, an agent on each; the truth comes back.

What a target did between its last sample and a reset or failover nobody can know. It follows exactly from the
simulator's activity and is taken out of the truth; everything else must be found.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest

from iolens.agent.sampling.sampler import STATUS_FILE
from iolens.analyses.utilization.analysis import utilization
from iolens.simulator.activity import Activity, TickBlock
from iolens.simulator.lustre_counters import VERSIONS
from iolens.simulator.lustre_tree import folder_in_memory
from iolens.simulator.workload import load_workload
from iolens.store.duckdb_engine import query
from iolens.store.store import Store
from iolens.units import epoch_us, parse_duration, parse_time
from tests.agent import truth
from tests.agent.sampling.test_collect import wait_for
from tests.agent.server import SimulatedServer
from tests.soak import IS_SOAK

WORKLOAD = load_workload("scratch")
START = "2012-10-22T10:40:00Z"
START_US = epoch_us(parse_time(START))
OSTS, SEED = 3, 3
TARGETS = tuple(f"scratch-OST{number:04x}" for number in range(OSTS))
MOVED = TARGETS[1]
TICK_US = WORKLOAD.tick_s * 1_000_000
EXACT = 1e-6  # within 1 % is asked for
HOSTS = ("one", "two")
# In `make soak` every version at each speed; test_lustre_tree.py and test_collect.py have all of them always.
VERSIONS_AT = {1: VERSIONS, 100: VERSIONS} if IS_SOAK else {1: VERSIONS[::2], 100: VERSIONS[1::2]}
AS_HOST = """import sys
from iolens.agent.sampling import spool
from iolens.cli.main import main
name = sys.argv.pop(1)
spool.host_name = lambda: name
main()"""


class Pace(NamedTuple):
    """How fast simulated time runs, how often it is sampled, and when, in simulated seconds, something happens."""

    speed: int
    interval: str
    failover_s: int
    reset_s: int
    end_s: int

    def events_us(self, target: str) -> list[int]:
        """Times from which on that target counts from zero."""
        seconds = [self.failover_s, self.reset_s] if target == MOVED else [self.reset_s]
        return [START_US + second * 1_000_000 for second in seconds]


class Interval(NamedTuple):
    """A stored interval of a target: its tick, both snapshots by the simulated clock, and what the store thought."""

    time_us: int
    from_us: int
    until_us: int
    after_reset: bool

    def within(self, events_us: list[int]) -> list[int]:
        """The events between the two snapshots."""
        return [event for event in events_us if self.from_us <= event < self.until_us]


class Done(NamedTuple):
    """Disk time in per cent × seconds, and the time it took."""

    busy: float
    seconds: float


@dataclass(frozen=True)
class Site:
    """Two servers of one version, the failover partner empty at first, with an agent and a spool each; one store."""

    folder: Path
    roots: Path
    version: str
    pace: Pace

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def spool(self, host: str) -> Path:
        return self.folder / f"spool-{host}"

    @property
    def servers(self) -> SimulatedServer:
        events = ("--root2", self.roots / "two", "--failover", f"{MOVED}@{self.pace.failover_s}s",
                  "--reset-at", f"{self.pace.reset_s}s", "--duration", f"{self.pace.end_s}s")  # fmt: skip
        return SimulatedServer(
            self.roots / "one", self.version, SEED, OSTS, speed=self.pace.speed, start=START, events=events
        )

    def agent(self, host: str) -> subprocess.Popen[str]:
        """Samples a server that is still empty, until it is asked to stop."""
        root = self.roots / host
        root.mkdir(parents=True)
        command = [sys.executable, "-c", AS_HOST, host, "collect", "--root", root, "--spool", self.spool(host),
                   "--interval", self.pace.interval, "--no-ship"]  # fmt: skip
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def shipper(self, host: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "iolens.agent.sampling.shipper", str(self.spool(host)), str(self.store)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("pace", [
    Pace(1, "1s", failover_s=9, reset_s=23, end_s=26),
    Pace(100, "200ms", failover_s=858, reset_s=1518, end_s=1800),
], ids=lambda pace: f"speed-{pace.speed}")  # fmt: skip
def test_the_truth_comes_back_at_any_speed(tmp_path: Path, pace: Pace) -> None:
    with folder_in_memory() as memory:
        sites = [Site(tmp_path / version, memory / version, version, pace) for version in VERSIONS_AT[pace.speed]]
        _simulate_and_sample(sites)
    for host in HOSTS:  # the first has the older samples of the target that moved
        for site, shipper in [(site, site.shipper(host)) for site in sites]:
            shipment = json.loads(shipper.communicate(timeout=120)[0])
            assert (shipper.returncode, shipment["late"], shipment["bad"]) == (0, 0, 0), f"{site.version}: {shipment}"
    for site in sites:
        _check(site)


def _simulate_and_sample(sites: list[Site]) -> None:
    with ExitStack() as running:
        agents = [(site, host, running.enter_context(site.agent(host))) for site in sites for host in HOSTS]
        for site, host, agent in agents:
            running.callback(agent.kill)
            wait_for(site.spool(host) / STATUS_FILE, 60)
        for simulator in [running.enter_context(site.servers.running()) for site in sites]:
            assert simulator.wait(120) == 0
        time.sleep(1.0 + parse_duration(sites[0].pace.interval))  # one more sample
        for site, host, agent in agents:
            agent.terminate()
            out, err = agent.communicate(timeout=60)
            assert agent.returncode == 0, f"{site.version} {host}: {out} {err}"
            assert json.loads((site.spool(host) / STATUS_FILE).read_text("utf-8"))["host"] == host
            assert " 0 lost)" in out, out


def _check(site: Site) -> None:
    """Each target's mean over time is the truth, and so is the file system's: over time, of the mean of each tick.

    A tick is the mean of those targets that have a new snapshot at it (DEFINITIONS), so the truth is taken likewise.
    """
    store = Store(site.store)
    result = utilization(store.select("scratch"), calibration=WORKLOAD.disks)
    by_tick: dict[int, list[Done]] = defaultdict(list)
    resets = 0
    for number, (line, name) in enumerate(zip(result.per_target, TARGETS, strict=True)):
        intervals = _intervals(store, name)
        done = [_done(site, number, interval) for interval in intervals]
        _check_events(site, number, intervals)
        resets += sum(interval.after_reset for interval in intervals)
        assert line.target == name
        busy, seconds = (sum(column) for column in zip(*done, strict=True))
        assert line.mean_fsu_pct == pytest.approx(busy / seconds, rel=EXACT), f"{site.version} {name}"
        for interval, item in zip(intervals, done, strict=True):
            by_tick[interval.time_us].append(item)
    ticks = [
        (fmean(item.busy / item.seconds for item in tick), fmean(item.seconds for item in tick))
        for tick in by_tick.values()
    ]
    expected = sum(fsu * seconds for fsu, seconds in ticks) / sum(seconds for _, seconds in ticks)
    assert result.samples == len(ticks)
    assert result.mean_fsu_pct == pytest.approx(expected, rel=EXACT), site.version
    assert result.coverage.resets == resets


def _check_events(site: Site, number: int, intervals: list[Interval]) -> None:
    """Every reset and failover was noticed where it was; on a busy machine two of them may lie in one interval."""
    where, events = f"{site.version} {TARGETS[number]}", site.pace.events_us(TARGETS[number])
    assert [interval.after_reset for interval in intervals] == [
        interval.within(events) != [] for interval in intervals
    ], where
    assert {interval.after_reset for interval in intervals} == {False, True}, where


def _done(site: Site, number: int, interval: Interval) -> Done:
    """What a target truly did in an interval; from the last event on if one was in it."""
    events = interval.within(site.pace.events_us(TARGETS[number]))
    return Done(
        _busy(number, max([interval.from_us, *events]), interval.until_us), (interval.until_us - interval.from_us) / 1e6
    )


def _busy(number: int, from_us: int, until_us: int) -> float:
    """Percent × seconds that the simulator's disks were busy between two snapshots; counters move in whole ticks."""
    first, end = (timestamp // TICK_US - START_US // TICK_US for timestamp in (from_us, until_us))
    return float(_activity().fsu_pct[first:end, number].sum()) * WORKLOAD.tick_s


@cache
def _activity() -> TickBlock:
    """All of both tests."""
    return Activity(WORKLOAD, OSTS, SEED).block(START_US // TICK_US, 3600 // WORKLOAD.tick_s)


def _intervals(store: Store, target: str) -> list[Interval]:
    """The stored intervals of a target; the baseline knows the last snapshot, durations lead back from it."""
    baselines = store.tables.load("baselines")
    assert baselines is not None
    sql = "SELECT max(snapshot_us) FROM stored WHERE counter_set = 'target_sizes' AND target = ?"
    ((until_us,),) = query(store.tables, baselines, "baselines", sql, [target])
    result = []
    for row in reversed([row for row in truth.rows(Path(store.url), "target_sizes") if row["target"] == target]):
        from_us = until_us - round(row["duration_s"] * 1e6)
        result.append(Interval(round(row["time"].timestamp() * 1e6), from_us, until_us, row["after_reset"]))
        until_us = from_us
    return result[::-1]
