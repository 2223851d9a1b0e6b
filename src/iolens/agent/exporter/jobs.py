"""The busiest jobs of a Lustre server, and all others as one: a series per job would kill a Prometheus."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from iolens.agent.exporter import metrics
from iolens.agent.exporter.fsu import Baselines, Steady
from iolens.agent.exporter.metrics import Lines, add, labels
from iolens.agent.exporter.reading import MetricReading
from iolens.errors import InputError
from iolens.records import Item, Problem, Sample
from iolens.schema import DIRECTIONS, METADATA_OPERATIONS, SUMMED_OPERATIONS
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.lustre.parameters import JOB_STATS, LEAVES
from iolens.visible_text import BLANK_ID, shown_job_id

# Which jobs of a Lustre server are busiest, for exporters that must not serve them all --------------------------------
# Decided by what they moved lately, old bytes fading with a half-life, so that the choice does not flicker. Needs only
# the standard library.

OTHER: Final = "other"
_NEVER_ALONE: Final = frozenset({OTHER, BLANK_ID})  # ids that are called like what is no id
HALF_LIFE_S: Final = 300.0
LONGEST_ID: Final = 128  # Lustre allows 32; a longer one is never singled out
_ALL_BUT_JOBS: Final = frozenset().union(*LEAVES.values()) - {JOB_STATS}
_COUNTED_ONCE: Final = frozenset(SUMMED_OPERATIONS)

Reader = Callable[[Path, int, "str | None", "frozenset[str]"], "Iterator[Item]"]


class JobGroup(NamedTuple):
    """Jobs are ranked within the OSTs or the MDTs of one file system."""

    component: str
    filesystem: str

    def counted(self, counters: Mapping[str, int]) -> int:
        """What makes a job busy: bytes on an OST, operations on an MDT."""
        if self.component == "ost":
            return counters.get("read_bytes", 0) + counters.get("write_bytes", 0)
        return sum(counters[name] for name in _COUNTED_ONCE.intersection(counters))


@dataclass(slots=True)
class ListedJobs:
    """All jobs of a group in one reading."""

    totals: dict[str, int] = field(default_factory=dict)  # since the server knows the job
    moved: dict[str, int] = field(default_factory=dict)  # since the last reading
    rates: dict[str, dict[str, float]] = field(default_factory=dict)  # by job and direction, over all targets
    measured: bool = False
    samples: list[tuple[str, Steady]] = field(default_factory=list)  # by target

    def take(self, group: JobGroup, target: str, steady: Steady) -> None:
        """The jobs of one more target."""
        step = steady.step
        self.samples.append((target, steady._replace(step=replace(step, movements={}))))  # thousands of jobs: keep less
        for job_id, counter_set in step.baseline.sets.items():
            self.totals[job_id] = self.totals.get(job_id, 0) + group.counted(counter_set.counters)
        if step.duration_s > 0:
            self.measured = True
            for job_id, movement in step.movements.items():
                self._move(group, job_id, movement.moved, step.duration_s)

    def _move(self, group: JobGroup, job_id: str, moved: Mapping[str, int], duration_s: float) -> None:
        counted = group.counted(moved)
        if not counted:
            return
        self.moved[job_id] = self.moved.get(job_id, 0) + counted
        rates = self.rates.setdefault(job_id, {})
        parts = (
            {"": counted}
            if group.component != "ost"
            else {direction: moved.get(f"{direction}_bytes", 0) for direction in DIRECTIONS}
        )
        for direction, part in parts.items():
            rates[direction] = rates.get(direction, 0.0) + part / duration_s


@dataclass(frozen=True)
class RankedJobs:
    """The jobs of every group, and those of them that are served; places not understood."""

    groups: Mapping[JobGroup, ListedJobs]
    busiest: Mapping[JobGroup, list[str]]
    problems: int
    sizes: Sequence[Sample] = ()  # I/Os by size of the busiest jobs, by target, where they were asked for


@dataclass
class JobRanking:
    """Reads job_stats of all targets under a root, and only those; sizes of I/Os only `with_sizes`."""

    root: Path
    most: int
    filesystem: str | None = None
    read_items: Reader = read_tree
    with_sizes: bool = False
    baselines: Baselines = field(default_factory=Baselines)
    _scores: dict[JobGroup, dict[str, float]] = field(default_factory=dict)
    _read_at: float | None = None

    def read(self) -> RankedJobs:
        """One reading; InputError when there is nothing to read."""
        groups: dict[JobGroup, ListedJobs] = {}
        problems = 0
        sizes: list[Sample] = []
        self.baselines.begin()
        for item in self.read_items(self.root, time.time_ns() // 1000, self.filesystem, _ALL_BUT_JOBS):
            if isinstance(item, Sample) and item.table == "job_io":
                group = JobGroup(item.labels["target_kind"], item.filesystem)
                groups.setdefault(group, ListedJobs()).take(group, item.target, self.baselines.take(item))
            elif isinstance(item, Sample) and item.table == "job_sizes" and self.with_sizes:
                sizes.append(item)
            problems += isinstance(item, Problem)
        self._score(groups)
        busiest = {group: self._busiest(group, jobs) for group, jobs in groups.items()}
        return RankedJobs(groups, busiest, problems, [_of_jobs(item, busiest) for item in sizes])

    def _score(self, groups: Mapping[JobGroup, ListedJobs]) -> None:
        """Let old bytes fade and add the new ones; jobs that are gone are forgotten."""
        now = time.monotonic()
        fade = 0.5 ** ((now - self._read_at) / HALF_LIFE_S) if self._read_at is not None else 0.0
        self._read_at = now
        before = self._scores
        self._scores = {
            group: {
                job_id: before.get(group, {}).get(job_id, 0.0) * fade + jobs.moved.get(job_id, 0)
                for job_id in jobs.totals
            }
            for group, jobs in groups.items()
        }

    def _busiest(self, group: JobGroup, jobs: ListedJobs) -> list[str]:
        """The jobs that moved most of late; before anything has moved, those that moved most at all."""
        scores = self._scores[group]
        eligible = (job_id for job_id in jobs.totals if job_id not in _NEVER_ALONE and len(job_id) <= LONGEST_ID)
        return heapq.nlargest(self.most, eligible, key=lambda job_id: (scores[job_id], jobs.totals[job_id], job_id))


def _of_jobs(sample: Sample, busiest: Mapping[JobGroup, Sequence[str]]) -> Sample:
    """Only the sets of jobs that are served."""
    wanted = busiest.get(JobGroup(sample.labels["target_kind"], sample.filesystem), ())
    return replace(sample, sets={job: sample.sets[job] for job in wanted if job in sample.sets})


# The busiest jobs of a Lustre server, and all others as one -----------------------------------------------------------
# A series per job would kill Prometheus.
#
# Rates are gauges: a counter of "all others" would fall when a job leaves it and jump when one joins, and Prometheus
# would take both for traffic.

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
