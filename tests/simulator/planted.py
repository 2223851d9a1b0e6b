"""Planted jobs for tests: a tiny random writer, a reader with rests on one OST, and a job of metadata operations."""

from __future__ import annotations

from dataclasses import replace

from iolens.simulator.workload import PlantedJob, SimulatedWorkload, load_workload

START_S = 1350900000  # 2012-10-22T10:00:00Z
TINY = PlantedJob(
    "90000001", "eve", "rogue", "tiny.x", 2, START_S, START_S + 1800,
    level_pct=40.0, ios={("write", 4096): 1.0}, strategy="shared",
)  # fmt: skip
RESTING = PlantedJob(
    "90000002", "finn", "ocean", "read.x", 1, START_S - 300, START_S + 4500,
    level_pct=25.0, ios={("read", 1 << 20): 3.0, ("read", 65536): 1.0, ("write", 1 << 20): 1.0},
    osts=(1,), period_s=1500, active_share=0.2, strategy="file_per_process",
)  # fmt: skip
OPENING = PlantedJob(
    "opens-7", "gina", "lists", "walk.py", 1, START_S + 600, START_S + 1200, metadata={"open": 90.5, "getattr": 700.0}
)
JOBS = (TINY, RESTING, OPENING)


def planted_workload(*jobs: PlantedJob, name: str = "scratch", tick_s: int = 5) -> SimulatedWorkload:
    """A shipped workload with these planted jobs, else with all three."""
    return replace(load_workload(name), planted=jobs or JOBS, tick_s=tick_s)
