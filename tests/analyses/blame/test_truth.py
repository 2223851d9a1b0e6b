"""Who made it busy against what the simulator knows: disk-seconds of jobs, and planted culprits in random centres."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.agent.sampling.collector import Agent, AgentSettings
from iolens.analyses.blame import Blame
from iolens.api import OpenStore
from iolens.api.demo import TreeClock
from iolens.api.listener import Listener
from iolens.simulator.lustre_centre import Centre, SimulatedEvent
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.random_centre import random_centre
from iolens.simulator.truth import JobTruths
from iolens.simulator.workload import SIZES, PlantedJob, SimulatedWorkload, load_workload
from iolens.sources import ReadOptions
from iolens.sources.lustre.lustre_proc import SOURCE

START_S = 1350900000
OSTS, MINUTES, JOBS = 6, 50, 200
CENTRES = 8


def many_jobs(seed: int) -> SimulatedWorkload:
    """Two hundred jobs at once, each with sizes and OSTs of its own; every tenth rests for longer than it is kept."""
    chance = random.Random(seed)
    jobs = tuple(
        PlantedJob(
            str(80_000_000 + number), f"user{number % 17}", "p", "x", 1, START_S - 600, START_S + 2 * MINUTES * 60,
            level_pct=chance.uniform(0.02, 1.2),
            ios={(chance.choice(("read", "write")), chance.choice(SIZES[:9])): 1.0 for _ in range(2)},
            osts=tuple(sorted(chance.sample(range(OSTS), chance.randrange(1, OSTS)))),
            period_s=1200 if number % 10 == 0 else None, active_share=0.3 if number % 10 == 0 else 1.0,
        )
        for number in range(JOBS)
    )  # fmt: skip
    return replace(load_workload("scratch"), planted=jobs)


@pytest.mark.parametrize("version", ["2.12", "2.15"])
def test_disk_seconds_of_two_hundred_jobs_come_back(tmp_path: Path, version: str) -> None:
    """Counters are read every minute; a reset and a failover fall between two readings."""
    workload = many_jobs(int(version[2:]))
    events = [
        SimulatedEvent(START_S + 15 * 60 + 20, "reset"),
        SimulatedEvent(START_S + 27 * 60 + 40, "failover", "scratch-OST0001"),
    ]
    servers = [
        Tree(tmp_path / name, version, workload, start_s=START_S, osts=OSTS, mdts=1, seed=3, uptime_s=600, **some)
        for name, some in (("one", {}), ("two", {"targets": ()}))
    ]
    centre = Centre(*servers, events)
    with OpenStore(str(tmp_path / "store")) as opened:
        captures = []
        for minute in range(MINUTES + 1):
            centre.advance_to(START_S + minute * 60)
            roots = [tree.root for tree in centre.trees if tree.mounted]
            captures += SOURCE.captures(roots, ReadOptions(interval_s=60))
        assert opened.store.ingest(captures, "lustre-proc").refused == 0
        calibrate(opened, workload)
        result = opened.blame("scratch", top=10_000)
    truth = JobTruths()
    for tree in centre.trees:
        truth.merge(tree.truth.jobs)
    assert_true(result, truth)


def calibrate(opened: OpenStore, workload: SimulatedWorkload) -> None:
    coefficients = {
        f"{direction}_{what}": getattr(workload.disks.of(direction), what)
        for direction in ("read", "write")
        for what in ("latency_s", "s_per_byte")
    }
    opened.store.add_calibration({"time": START_S * 1_000_000, "filesystem": "scratch", "name": "true", **coefficients})


def assert_true(result: Blame, truth: JobTruths) -> None:
    """Jobs with 1 % or more have their disk-seconds, and all shares make 100 %."""
    true_s = truth.disk_s()
    whole_s = sum(true_s.values())
    found_s = {line.name: line.disk_seconds for line in result.who}
    large = {job: seconds for job, seconds in true_s.items() if seconds >= 0.01 * whole_s}
    assert len(large) >= 20
    assert {job: found_s[job] for job in large} == {job: pytest.approx(s, rel=0.02) for job, s in large.items()}
    assert len(found_s) >= JOBS
    shares = sum(line.share_pct for line in result.who)
    assert shares + result.unattributed_pct == pytest.approx(100, abs=1e-9)


def test_disk_seconds_come_back_through_the_agent(tmp_path: Path) -> None:
    """Sampler, spool and shipper of `iolens collect` on simulated time; job_stats are read every minute."""
    workload = many_jobs(7)
    tree = Tree(tmp_path / "root", "2.15", workload, start_s=START_S, osts=OSTS, mdts=1, seed=3, uptime_s=600)
    spool, store = tmp_path / "spool", str(tmp_path / "store")
    settings = AgentSettings(
        root=tree.root, spool=spool, store=store, interval_s=20, ship_every_s=3600, duration_s=MINUTES * 30
    )
    Agent(settings, print, TreeClock(tree, Listener())).run()
    with OpenStore(store) as opened:
        calibrate(opened, workload)
        result = opened.blame("scratch", top=10_000)
    assert_true(result, tree.truth.jobs)


@pytest.mark.parametrize("seed", range(CENTRES))
def test_a_planted_culprit_comes_first_in_the_busiest_hour(tmp_path: Path, seed: int) -> None:
    """`bench.culprits` asks a hundred of them."""
    centre = random_centre(seed, tmp_path / "store")
    with OpenStore(centre.store) as opened:
        hour = opened.blame(centre.filesystem, busiest="1h")
        whole = opened.blame(centre.filesystem, top=10_000)
    assert hour.who[0].name == centre.culprit_job_id
    assert (hour.who[0].user, hour.who[0].executable) == ("mallory", "tiny.x")
    answered = {line.name: line.disk_seconds for line in whole.who}
    assert answered == {job: pytest.approx(s, rel=0.02) for job, s in centre.job_disk_s.items() if job in answered}
    assert sum(centre.job_disk_s[job] for job in answered) == pytest.approx(sum(centre.job_disk_s.values()), rel=1e-3)
