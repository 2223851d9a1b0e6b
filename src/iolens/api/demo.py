"""The demo: a centre of two file systems, its servers and nodes, its applications, and the story of one busy hour."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.collector import Agent, AgentSettings, SystemClock
from iolens.agent.sampling.sampler import Health
from iolens.analyses.blame import Blame
from iolens.analyses.explain.analysis import RunExplanation
from iolens.analyses.runs.advise import RunAdvice
from iolens.analyses.runs.used_files import strategy_of
from iolens.analyses.utilization.analysis import Utilization
from iolens.api.explain import explanation
from iolens.api.listener import Listener
from iolens.api.open_store import OpenStore
from iolens.api.run_advice import advice_on
from iolens.api.runs import RunAccess
from iolens.api.stored_runs import StoredRuns, WantedRuns
from iolens.errors import UsageError
from iolens.simulator.activity import Activity
from iolens.simulator.client_tree import SACCT_FILE, SimulatedClients
from iolens.simulator.darshan_jobs import truth_of
from iolens.simulator.lustre_tree import Tree, folder_in_memory
from iolens.simulator.server_names import server_names
from iolens.simulator.telemetry import SimulationOrder
from iolens.simulator.workload import PlantedJob, SimulatedWorkload, load_workload
from iolens.sources.darshan.library import library_path
from iolens.store.scope import Scope
from iolens.units import KIB, MIB

# The centre of the demo -----------------------------------------------------------------------------------------------
# `scratch` with an application that runs every hour, and a job that slows two of its runs.

NODES: Final = 14  # of which planted jobs have six, and the others share the rest
FIRST_ID: Final = 70_000_000
CULPRIT_ID: Final = str(FIRST_ID)
HOUR_S: Final = 3600
RUN_S: Final = 1800  # of the application
CULPRIT_HOURS: Final = (38, 40)  # after the start
VICTIM_HOUR: Final = 38


def demo_workload(start: datetime, days: int) -> SimulatedWorkload:
    """`vera` runs a weather model that writes 1 MiB at a time, `marco` an assembler that writes 4 KiB anywhere."""
    first_s = int(start.timestamp())
    runs = tuple(
        PlantedJob(
            victim_id(hour), "vera", "weather", "wrf.exe", 4, first_s + hour * HOUR_S, first_s + hour * HOUR_S + RUN_S,
            level_pct=8.0, ios={("write", MIB): 1.0}, strategy="file_per_process",
        )
        for hour in range(24 * days - 1)
    )  # fmt: skip
    first, last = (first_s + hour * HOUR_S for hour in CULPRIT_HOURS)
    culprit = PlantedJob(
        CULPRIT_ID, "marco", "genomes", "assemble.x", 2, first, last, level_pct=55.0, ios={("write", 4 * KIB): 1.0},
        metadata={"open": 5.0, "close": 5.0}, strategy="shared",
        is_random=True,
    )  # fmt: skip
    return replace(load_workload("scratch"), planted=(culprit, *runs))


def victim_id(hour: int = VICTIM_HOUR) -> str:
    """Job of the run that begins in that hour."""
    return str(FIRST_ID + 1 + hour)


# The servers of the demo ----------------------------------------------------------------------------------------------
# Simulated `/proc` trees of Lustre 2.15, sampled by the real agent into a store.
#
# In the middle of the time an OST fails over from the first server to the second.


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


# The nodes of the demo ------------------------------------------------------------------------------------------------
# Simulated clients that run the jobs of `scratch`, sampled into a store.

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


# The applications of the demo -----------------------------------------------------------------------------------------
# Darshan logs of the jobs of `scratch` in its two days, loaded into a store.

RUN_HOURS: Final = 48


@dataclass(frozen=True, slots=True)
class DemoRuns:
    """Logs that were loaded: how many, of how many jobs, and how many were read back as they truly are."""

    jobs: int
    runs: int
    same_bytes: int
    same_strategy: int
    example_job: str  # that spends most of its time in I/O


def loaded_runs(
    store: str, activity: Activity, end: datetime, progress: Callable[[str], None], hours: int = RUN_HOURS
) -> DemoRuns | None:
    """Write the logs, load them and the list of jobs, and compare; None: libdarshan-util is not installed."""
    try:
        library_path()
    except UsageError:
        return None
    from iolens.simulator.darshan_jobs import LOGS, SACCT_FILE, write_job_logs

    end_s = int(end.timestamp())
    with tempfile.TemporaryDirectory(prefix="iolens-demo-") as folder, OpenStore(store) as opened:
        written = write_job_logs(
            Path(folder),
            activity,
            mdts=1,
            nodes=NODES,
            start_s=end_s - hours * 3600,
            end_s=end_s,
            progress=progress,
        )
        opened.ingest(Path(folder) / LOGS, source="darshan", filesystem="scratch")
        opened.ingest(Path(folder) / SACCT_FILE, source="slurm")
    rows = {row["job_id"]: row for row in StoredRuns.opened(store, None).wanted(WantedRuns())}
    pairs = [(truth_of(run), rows[str(run.job_id)]) for run in written.runs if str(run.job_id) in rows]
    return DemoRuns(
        written.jobs,
        len(pairs),
        sum((truth.read_bytes, truth.write_bytes) == (row["read_bytes"], row["write_bytes"]) for truth, row in pairs),
        sum(truth.strategy == strategy_of(row)[0] for truth, row in pairs),
        str(max(pairs, key=lambda pair: pair[0].slowest_rank_s / pair[1]["duration_s"])[1]["job_id"]),
    )


# The story of the demo ------------------------------------------------------------------------------------------------
# One busy hour from FSU to a name, a victim that is cleared, a remedy and a plan.

FILESYSTEM = "scratch"


@dataclass(frozen=True, slots=True)
class DemoStory:
    """Answers of the same verbs that a person types; without Darshan there is neither explanation nor advice."""

    whole: Utilization
    hour: Utilization
    blame: Blame
    explained: RunExplanation | None
    advice: RunAdvice | None
    plan_before: Any
    plan_of_hour: Any


def demo_story(opened: OpenStore, whole: Utilization, start: datetime, has_runs: bool) -> DemoStory:
    """Asked of the demo's store."""
    blame = opened.blame(FILESYSTEM, busiest="1h")
    hour = Scope(FILESYSTEM, blame.window_start, blame.window_end)
    before = Scope(FILESYSTEM, start, blame.window_start)
    first = blame.who[0].name
    return DemoStory(
        whole=whole,
        hour=opened.analyse("utilization", hour),
        blame=blame,
        explained=explanation(opened, victim_id(), Scope(FILESYSTEM), load=True) if has_runs else None,
        advice=advice_on([first], RunAccess(opened.store.url)) if has_runs else None,
        plan_before=opened.plan("performance", before),
        plan_of_hour=opened.plan("performance", hour),
    )
