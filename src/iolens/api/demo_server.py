"""The server of the demo: a simulated `/proc` tree of Lustre 2.15, sampled by the real agent into a store."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from iolens.agent.sampling.clock import SystemClock
from iolens.agent.sampling.collector import Agent, AgentSettings
from iolens.agent.sampling.health import Health
from iolens.api.access.listener import Listener
from iolens.simulator.activity import Activity
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.replaced_files import folder_in_memory


class TreeClock(SystemClock):
    """Simulated time, as fast as the simulated server can follow: waiting lets it work."""

    def __init__(self, tree: Tree, listener: Listener) -> None:
        super().__init__()
        self.tree, self.listener = tree, listener

    def now_us(self) -> int:
        """The server's time, microseconds since 1970."""
        return round(self.tree.second * 1e6)

    def wait(self, seconds: float) -> bool:
        """Let that much simulated time pass."""
        if seconds > 0:
            self.tree.advance_to(self.tree.second + seconds)
            self.listener.step("scratch")
        return self.stopped


def sampled_server(
    store: str, spool: Path, activity: Activity, start: datetime, duration_s: int, listener: Listener
) -> Health:
    """`scratch` from `start` on through sampler, spool and shipper; what the agent says of itself at the end."""
    with folder_in_memory() as folder:
        tree = Tree(
            folder / "server",
            "2.15",
            activity.workload,
            start_s=start.timestamp(),
            osts=activity.targets,
            seed=activity.seed,
        )
        settings = AgentSettings(root=tree.root, spool=spool, store=store, ship_every_s=3600, duration_s=duration_s)
        return Agent(settings, listener.say, TreeClock(tree, listener)).run()
