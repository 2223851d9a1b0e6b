"""What `iolens job begin` and `end` sampled on the nodes of a job: one file for each job and node.

The lines are those of a spool segment (`spool.py`). Each sample is one line of plain JSON, which says whose it is and
how many lines follow, and those lines. A file may be cut at any byte: what is whole before that counts. Of each job
one node brings the row of `jobs`, for jobs of which no scheduler's record is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from iolens.counters.differences import Baseline, CounterStep, Movement, advance
from iolens.counters.rows import interval_rows
from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem, Row, Sample
from iolens.schema import CLIENT_RPCS, JOBS
from iolens.sources.job_samples import END, SUFFIX, JobSample, job_samples
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.schedulers.node_lists import compact_nodes

_TEXTS: Final = ("cluster", "user", "name")
_START: Final = re.compile(rb'[0-9a-f]{8} \{"format":"iolens-job"')


@dataclass
class NodeJob:
    """One job on one node: the last begin, the end that follows it, and what cannot be known."""

    path: Path
    begin: JobSample | None = None
    end: JobSample | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def job_id(self) -> str:
        """The scheduler's number."""
        return self._any.job_id

    @property
    def node(self) -> str:
        """The host."""
        return self._any.node

    @property
    def _any(self) -> JobSample:
        sample = self.end or self.begin
        assert sample is not None
        return sample

    @property
    def rebooted(self) -> bool:
        """Whether the node started anew between begin and end."""
        return (
            self.begin is not None
            and self.end is not None
            and None not in (self.begin.boot_id, self.end.boot_id)
            and self.begin.boot_id != self.end.boot_id
        )

    @property
    def seconds(self) -> float | None:
        """How long it took: by the time since boot, which nobody sets, where there was no reboot."""
        if self.begin is None or self.end is None:
            return None
        uptimes = self.begin.uptime_us, self.end.uptime_us
        if not self.rebooted and uptimes[0] is not None and uptimes[1] is not None and uptimes[1] >= uptimes[0]:
            return (uptimes[1] - uptimes[0]) / 1e6
        return max(self.end.time_us - self.begin.time_us, 0) / 1e6

    @property
    def restarted(self) -> set[str]:
        """File systems whose counters began anew during the job, by a reboot, another mount or a reset."""
        known = set() if self.begin is None else _filesystems(self.begin)
        return known & {
            sample.filesystem
            for sample, step in self._steps
            if any(movement.after_reset for movement in step.movements.values())
        }

    @property
    def unmounted(self) -> set[str]:
        """File systems that were there at the begin and are not at the end."""
        if self.begin is None or self.end is None:
            return set()
        return _filesystems(self.begin) - _filesystems(self.end)

    @property
    def sampled(self) -> list[tuple[str, str]]:
        """Tables and file systems that the node counted at both ends, moved or not."""
        ends = [
            {(item.table, item.filesystem) for item in sample.items if isinstance(item, Sample)} if sample else set()
            for sample in (self.begin, self.end)
        ]
        return sorted(ends[0] & ends[1])

    @property
    def rows(self) -> list[Row]:
        """What the job moved on this node: rows of the client tables, from its begin to its end."""
        return [
            Row(sample.table, row) for sample, step in self._steps for row in interval_rows(sample, step, SOURCE.name)
        ]

    @property
    def summed_rows(self) -> list[Row]:
        """The same with RPCs summed over OSTs, which a report of many nodes and OSTs does not tell apart."""
        summed = (
            (sample, _over_targets(step) if sample.table == CLIENT_RPCS.name else step) for sample, step in self._steps
        )
        return [Row(sample.table, row) for sample, step in summed for row in interval_rows(sample, step, SOURCE.name)]

    @property
    def record(self) -> Row | None:
        """What the samples tell of the job itself; `ended` is NULL, so that any record of a scheduler counts more."""
        if self.begin is None or self.end is None:
            return None
        both = (self.end, self.begin)
        texts = {name: next(filter(None, (getattr(item, name) for item in both)), None) for name in _TEXTS}
        nodes = self.end.job_nodes or self.begin.job_nodes or [self.node]
        start_us = self.begin.time_us
        duration_s = self.seconds or 0.0
        times = {"start": start_us, "time": start_us + max(round(duration_s * 1e6), 1), "duration_s": duration_s}
        about = {"source": SOURCE.name, "job_id": self.job_id, "nodes": len(nodes), "node_list": compact_nodes(nodes)}
        return Row(JOBS.name, {**about, **times, **texts, "processes": self.end.processes or self.begin.processes})

    @property
    def rank(self) -> int:
        """The node's place among those of the job, 0 where they are not known; the first brings the row of `jobs`."""
        names = [_short(name) for name in self._any.job_nodes]
        return names.index(_short(self.node)) if _short(self.node) in names else 0

    @cached_property
    def _steps(self) -> list[tuple[Sample, CounterStep]]:
        """By table and file system, from the begin to the end."""
        if self.begin is None or self.end is None:
            return []
        before = {(item.table, item.filesystem): item for item in self.begin.items if isinstance(item, Sample)}
        samples = [item for item in self.end.items if isinstance(item, Sample)]
        return [self._step(item, before.get((item.table, item.filesystem))) for item in samples]

    def _step(self, item: Sample, first: Sample | None) -> tuple[Sample, CounterStep]:
        """One table of one file system. One that was not mounted at the begin has counted all it shows since."""
        assert self.begin is not None
        start_us = self.begin.time_us
        end_us = start_us + max(round((self.seconds or 0.0) * 1e6), 1)
        labels = {**item.labels, "job_id": self.job_id}
        sample = Sample(item.table, item.filesystem, self.node, end_us, end_us, item.sets, labels)
        step = advance(Baseline(start_us, start_us, {} if first is None else first.sets), sample)
        for name, refused in step.refused.items():
            what = f"{item.table}.{name} of {item.filesystem} moved more than a node can: {', '.join(sorted(refused))}"
            self.problems.append(Problem(str(self.path), None, f"{what}; left out"))
        return sample, step


def _over_targets(step: CounterStep) -> CounterStep:
    """Counters `<target>:<direction>:<pages>` of all sets summed over targets."""
    moved: dict[str, int] = {}
    for movement in step.movements.values():
        for counter, count in movement.moved.items():
            kind = counter[counter.index(":") :]
            moved[kind] = moved.get(kind, 0) + count
    return replace(step, movements={"": Movement(moved, any(part.after_reset for part in step.movements.values()))})


class JobFiles:
    """Samples at the begin and the end of jobs."""

    name = "job-files"
    summary = "what `iolens job begin` and `end` sampled: a folder of jobs, or single files"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins as a job's file does."""
        return _START.match(head) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture for each job and node that has ended."""
        read, refused = read_each(paths, read_job_file)
        yield from refused
        recording = {id(node_job) for node_job in _recording(read)}
        for node_job in sorted(read, key=lambda item: (item.job_id, item.node)):
            items = partial(job_items, node_job, with_record=id(node_job) in recording)
            yield Capture(str(node_job.path), content_identity(node_job.path), items)


SOURCE: Final = JobFiles()


def read_job_file(path: Path) -> NodeJob:
    """The last begin of a job's file and the end after it; a job that was requeued has begun more than once."""
    node_job = NodeJob(path)
    for sample in job_samples(path, node_job.problems):
        if sample.point == END:
            node_job.end = sample
        else:
            if node_job.begin is not None and node_job.end is None:
                node_job.problems.append(
                    Note(str(path), None, "began twice: the earlier begin has no end and is left out")
                )
            node_job.begin, node_job.end = sample, None
    if node_job.begin is None and node_job.end is None:
        reason = str(node_job.problems[0].reason) if node_job.problems else "no sample of a job"
        raise InputError(str(path), reason, "a file of `iolens job begin`")
    return node_job


def job_files(folder: Path) -> list[Path]:
    """The files of all nodes in a job's folder."""
    return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)


def _recording(node_jobs: Iterable[NodeJob]) -> Iterator[NodeJob]:
    """Of each job the first of its nodes that has ended; all of them where nobody says which nodes it had."""
    by_job: dict[str, list[NodeJob]] = {}
    for node_job in node_jobs:
        if node_job.begin is not None and node_job.end is not None:
            by_job.setdefault(node_job.job_id, []).append(node_job)
    for own in by_job.values():
        first = min(node_job.rank for node_job in own)
        yield from (node_job for node_job in own if node_job.rank == first)


def job_items(node_job: NodeJob, *, with_record: bool) -> Iterator[Item]:
    """Rows of the job on this node, and what is wrong with its samples; `with_record`: the row of `jobs` too."""
    rows = node_job.rows  # which may add problems
    yield from node_job.problems
    if node_job.begin is None:
        yield Problem(str(node_job.path), None, "no sample at the begin of the job: what it moved is not known")
    elif node_job.end is None:
        yield Problem(str(node_job.path), None, "no sample at the end of the job: it still runs, or the node died")
    yield from rows
    if with_record and node_job.record is not None:
        yield node_job.record


def _short(host: str) -> str:
    """A host's name without its domain, which schedulers and kernels leave out or not."""
    return host.partition(".")[0]


def _filesystems(sample: JobSample) -> set[str]:
    return {item.filesystem for item in sample.items if isinstance(item, Sample)}
