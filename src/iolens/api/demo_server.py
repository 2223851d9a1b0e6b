"""The servers of the demo: simulated `/proc` trees of Lustre 2.15, sampled by the real agent into a store.

In the middle of the time an OST fails over from the first server to the second.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from iolens.agent.sampling.collector import Agent, AgentSettings, SystemClock
from iolens.agent.sampling.sampler import Health
from iolens.api.access.listener import Listener
from iolens.simulator.activity import Activity
from iolens.simulator.lustre_tree import Tree, folder_in_memory
from iolens.simulator.server_names import server_names
from iolens.simulator.telemetry import SimulationOrder


class TreeClock(SystemClock):
    """Simulated time, as fast as the simulated server can follow: waiting lets it work, and something may happen."""

    def __init__(
        self, tree: Tree, listener: Listener, at_s: float = 0.0, happen: Callable[[Tree], None] | None = None
    ) -> None:
        super().__init__()
        self.tree, self.listener, self.at_s, self.happen = tree, listener, at_s, happen

    def now_us(self) -> int:
        """The server's time, microseconds since 1970."""
        return round(self.tree.second * 1e6)

    def wait(self, seconds: float) -> bool:
        """Let that much simulated time pass."""
        if seconds > 0:
            until_s = self.tree.second + seconds
            if self.happen is not None and self.at_s <= until_s:
                self.tree.advance_to(self.at_s)
                self.happen(self.tree)
                self.happen = None
            self.tree.advance_to(until_s)
            self.listener.step("scratch")
        return self.stopped


def sampled_servers(
    store: str, spool: Path, activity: Activity, start: datetime, duration_s: int, listener: Listener
) -> list[Health]:
    """`scratch` from `start` on through samplers, spool and shipper; what each agent says of itself at the end.

    The servers are sampled one after the other into one spool, which the last of them ships.
    """
    order = SimulationOrder(store, activity.workload, activity.targets, activity.workload.mdts, activity.seed, 0, 0)
    servers = server_names(order.ost_names, order.mdt_names)
    first, second, *others = dict.fromkeys(servers.values())
    moving = [name for name, host in servers.items() if host == first][-1]
    happen: dict[str, Callable[[Tree], None]] = {
        first: lambda tree: tree.drop(moving),
        second: lambda tree: tree.add(moving),
    }
    agents = []
    with folder_in_memory() as folder:
        for host in (first, second, *others):
            tree = Tree(
                folder / host,
                "2.15",
                activity.workload,
                start_s=start.timestamp(),
                osts=activity.targets,
                seed=activity.seed,
                targets=[name for name, server in servers.items() if server == host],
                host=host,
            )
            ships = host == (first, second, *others)[-1]
            settings = AgentSettings(
                tree.root, spool, store if ships else None, ship_every_s=3600, duration_s=duration_s
            )
            clock = TreeClock(tree, listener, start.timestamp() + duration_s // 2, happen.get(host))
            agents.append(Agent(settings, listener.say, clock).run())
    return agents
