"""The busiest jobs of a Lustre server, and all others as one: a series per job would kill Prometheus.

Rates are gauges: a counter of "all others" would fall when a job leaves it and jump when one joins, and Prometheus
would take both for traffic.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.agent.exporter import metrics
from iolens.agent.exporter.job_ranking import OTHER, JobGroup, JobRanking, ListedJobs
from iolens.agent.exporter.reading import MetricReading
from iolens.agent.exporter.text import Lines, add, labels
from iolens.errors import InputError
from iolens.schema import DIRECTIONS, METADATA_OPERATIONS
from iolens.visible_text import shown_job_id

_COUNTERS: Final = {
    "read_bytes": metrics.JOB_READ_BYTES,
    "write_bytes": metrics.JOB_WRITE_BYTES,
    "read_ops": metrics.JOB_READ_SAMPLES,
    "write_ops": metrics.JOB_WRITE_SAMPLES,
}
_OPERATIONS: Final = frozenset(METADATA_OPERATIONS)


@dataclass(slots=True)
class BusiestJobs:
    """The jobs of all targets under a root as Prometheus samples."""

    ranking: JobRanking

    @classmethod
    def of(cls, root: Path, most: int, filesystem: str | None = None) -> BusiestJobs:
        """The busiest `most` jobs of each file system."""
        return cls(JobRanking(root, most, filesystem))

    def read(self) -> MetricReading[list[str]]:
        """One reading."""
        try:
            ranked = self.ranking.read()
        except InputError as error:
            return MetricReading({}, 1, str(error))
        lines: Lines = {}
        for group, jobs in ranked.groups.items():
            add(lines, metrics.JOBS, labels(component=group.component, filesystem=group.filesystem), len(jobs.totals))
            _add_counters(lines, group, jobs, ranked.busiest[group])
            _add_rates(lines, group, jobs, ranked.busiest[group])
        return MetricReading(lines, ranked.problems)


def _add_counters(lines: Lines, group: JobGroup, jobs: ListedJobs, busiest: list[str]) -> None:
    for target, steady in jobs.samples:
        where = labels(component=group.component, filesystem=group.filesystem, target=target)
        for job_id in busiest:
            counters = steady.counters(job_id) if job_id in steady.sample.sets else {}
            named = f"{where},{labels(jobid=shown_job_id(job_id))}"
            for counter, metric in _COUNTERS.items():
                if counter in counters:
                    operation = counter.replace("_ops", "_bytes")  # the line of job_stats it comes from
                    add(lines, metric, f'{named},operation="{operation}"', counters[counter])
            if group.component == "mdt":
                for operation in sorted(_OPERATIONS.intersection(counters)):
                    if counters[operation]:
                        add(lines, metrics.JOB_STATS, f'{named},operation="{operation}"', counters[operation])


def _add_rates(lines: Lines, group: JobGroup, jobs: ListedJobs, busiest: list[str]) -> None:
    if not jobs.measured:
        return
    shown = set(busiest)
    metric, directions = (metrics.JOB_RATE, DIRECTIONS) if group.component == "ost" else (metrics.JOB_OPERATIONS, ("",))
    for direction in directions:
        head = {"direction": direction} if direction else {}
        rest = 0.0
        for job_id, rates in jobs.rates.items():
            if job_id in shown:
                continue
            rest += rates.get(direction, 0.0)
        for job_id in busiest:
            rate = jobs.rates.get(job_id, {}).get(direction, 0.0)
            add(lines, metric, labels(**head, filesystem=group.filesystem, jobid=shown_job_id(job_id)), rate)
        add(lines, metric, labels(**head, filesystem=group.filesystem, jobid=OTHER), rest)
