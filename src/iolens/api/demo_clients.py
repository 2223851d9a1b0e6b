"""The nodes of the demo: simulated clients that run the jobs of `scratch`, sampled into a store."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from iolens.api.demo_workload import NODES
from iolens.api.open_store import OpenStore
from iolens.simulator.activity import Activity
from iolens.simulator.client_tree import SACCT_FILE, SimulatedClients
from iolens.simulator.lustre_tree import folder_in_memory

HOURS: Final = 2
EVERY_S: Final = 1800


def sampled_clients(store: str, activity: Activity, end: datetime) -> None:
    """The last two hours as the nodes saw them, and the scheduler's records."""
    names = [f"scratch-OST{ost:04x}" for ost in range(activity.targets)] + ["scratch-MDT0000"]
    with folder_in_memory() as folder, OpenStore(store) as opened:
        clients = SimulatedClients(folder, activity, 1, NODES, start_s=end.timestamp() - HOURS * 3600)
        for step in range(HOURS * 3600 // EVERY_S + 1):
            if step:
                clients.advance_to(clients.second + EVERY_S, names)
            opened.ingest(*(tree.root for tree in clients.trees), source="lustre-client-proc")
        opened.ingest(folder / SACCT_FILE, source="slurm")
