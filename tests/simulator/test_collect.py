"""The agent on a simulated server: what is true comes back through collect, spool, store and utilization."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.agent.sampling.collector import Agent, AgentSettings, SystemClock
from iolens.agent.sampling.sampler import Health, Sampler
from iolens.agent.sampling.shipper import ship
from iolens.agent.sampling.spool import Spool
from iolens.analyses.utilization.analysis import utilization
from iolens.simulator.activity import Activity
from iolens.simulator.lustre_centre import Centre, SimulatedEvent
from iolens.simulator.lustre_counters import VERSIONS
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import load_workload
from iolens.store.store import Store
from tests.soak import IS_SOAK

START = 1350900000
TICKS = 100 if IS_SOAK else 50
WORKLOAD = load_workload("scratch")


class CentreClock(SystemClock):
    """Simulated time: waiting lets both servers work, and the partner's agent samples on the same ticks."""

    def __init__(self, centre: Centre, partner: Sampler) -> None:
        super().__init__()
        self.centre, self.partner = centre, partner
        self.second = float(START)

    def now_us(self) -> int:
        return round(self.second * 1e6)

    def wait(self, seconds: float) -> bool:
        if seconds > 0:
            self.second += seconds
            self.centre.advance_to(self.second)
            if self.now_us() % 5_000_000 == 0:
                self.partner.sample(self.now_us())
        return False


@pytest.mark.parametrize("version", VERSIONS)
def test_the_truth_comes_back_through_the_agents(tmp_path: Path, version: str) -> None:
    """One reset and one failover in between; the partner's samples come from another host."""

    def server(name: str, targets: tuple[str, ...] | None = None) -> Tree:
        return Tree(
            tmp_path / name, version, WORKLOAD, start_s=START, osts=3, mdts=1, seed=3, targets=targets, host=name
        )

    reset_s, failover_s = START + 1.5 * TICKS + 0.5, START + 3 * TICKS + 0.5
    events = [SimulatedEvent(reset_s, "reset"), SimulatedEvent(failover_s, "failover", "scratch-OST0001")]
    centre = Centre(server("one"), server("two", ()), events)
    store = str(tmp_path / "store")
    with Spool.open(tmp_path / "spool-two", 1 << 30, host="two") as spool:
        partner = Sampler(centre.trees[1].root, spool, Health("two", spool.run), 60_000_000)
        settings = AgentSettings(
            centre.trees[0].root, tmp_path / "spool-one", store, duration_s=5 * (TICKS + 1), ship_every_s=3600
        )
        health = Agent(settings, print, CentreClock(centre, partner)).run()
    assert health.ticks == TICKS + 1
    assert ship(tmp_path / "spool-two", store).bad == 0
    result = utilization(Store(store).select("scratch"), calibration=WORKLOAD.disks)
    truth = Activity(WORKLOAD, 3, seed=3).block(START // 5 + 1, TICKS).fsu_pct  # the first sample is the baseline
    assert result.samples == TICKS
    assert result.target_samples >= 3 * TICKS - 1
    assert result.mean_fsu_pct == pytest.approx(truth.mean(), rel=0.01)
    assert result.coverage.resets >= 3
    for number in (0, 2):
        assert result.per_target[number].mean_fsu_pct == pytest.approx(truth[:, number].mean(), rel=0.01)
    servers = Store(store).select("scratch").target_servers()
    assert set(servers.of_targets) == set(centre.server.names)
    assert set(servers.of_targets.values()) == {"one"}  # it had the moved one for three fifths of the time
    (move,) = servers.moves
    assert (move.target, move.from_server, move.to_server) == ("scratch-OST0001", "one", "two")
    assert 0 <= move.time.timestamp() - failover_s <= 5
    after = Store(store).select("scratch", since=move.time).target_servers()
    assert after.of_targets["scratch-OST0001"] == "two"
