"""Which nodes the jobs of a simulated file system run on."""

from __future__ import annotations

import numpy as np

from iolens.simulator.planted_jobs import PlantedJob
from iolens.simulator.workload import SimulatedWorkload


def placed_on(workload: SimulatedWorkload, nodes: int) -> list[list[int]]:
    """Which nodes the jobs of each stream run on: by weight, at least one; fewer nodes than streams are shared.

    Planted jobs have nodes of their own behind them, if there are enough.
    """
    left = nodes - _span(workload) if _is_wide_enough(workload, nodes) else nodes
    weights = np.array([job.weight for job in workload.jobs])
    if left < len(weights):
        return [[number % left] for number in range(len(weights))]
    exact = weights / weights.sum() * (left - len(weights))
    sizes = 1 + np.floor(exact).astype(int)
    for number in np.argsort(np.floor(exact) - exact, kind="stable")[: left - sizes.sum()]:
        sizes[number] += 1
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]


def planted_on(workload: SimulatedWorkload, nodes: int) -> dict[str, list[int]]:
    """Which nodes each planted job runs on: neighbours, its own where there are enough, else shared with others."""
    first = nodes - _span(workload) if _is_wide_enough(workload, nodes) else 0
    offsets, placed = _offsets(workload), {}
    for job in workload.planted:
        width = min(job.nodes, nodes)
        start = min(first + offsets[job.job_id], nodes - width)
        placed[job.job_id] = list(range(start, start + width))
    return placed


def nodes_of_jobs(workload: SimulatedWorkload, nodes: int) -> list[list[int]]:
    """Nodes by number of the job: of the streams first, then of planted jobs."""
    return [*placed_on(workload, nodes), *planted_on(workload, nodes).values()]


def _is_wide_enough(workload: SimulatedWorkload, nodes: int) -> bool:
    return nodes - _span(workload) >= len(workload.jobs)


def _span(workload: SimulatedWorkload) -> int:
    """Nodes that planted jobs need so that no two share one."""
    offsets = _offsets(workload)
    return max((offsets[job.job_id] + job.nodes for job in workload.planted), default=0)


def _offsets(workload: SimulatedWorkload) -> dict[str, int]:
    """The first node of each planted job, counted from the first of all of them: the lowest that is free."""
    offsets: dict[str, int] = {}
    placed: list[PlantedJob] = []
    for job in sorted(workload.planted, key=lambda job: (job.start_s, job.job_id)):
        others = [other for other in placed if other.start_s < job.end_s and job.start_s < other.end_s]
        offset = 0
        for other in sorted(others, key=lambda other: offsets[other.job_id]):
            if offset + job.nodes <= offsets[other.job_id]:
                break
            offset = max(offset, offsets[other.job_id] + other.nodes)
        offsets[job.job_id] = offset
        placed.append(job)
    return offsets
