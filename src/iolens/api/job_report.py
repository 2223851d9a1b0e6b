"""The report of one job: from its folder of samples, or from what the store holds.

From a folder it needs only the standard library, for it is printed on compute nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from iolens.analyses.job_report import FileSystemTotals, JobDetails, JobReport, MissingNode, job_report
from iolens.config import load_config
from iolens.errors import InputError
from iolens.findings import Thresholds, checked_thresholds
from iolens.records import Note
from iolens.sources.job_files import NodeJob, job_files, read_job_file
from iolens.sources.job_samples import JobSample
from iolens.units import from_epoch_us
from iolens.visible_text import some_names

CLOCK_TOLERANCE_S: Final = 60.0
NAMED: Final = 4  # names in a sentence; more are counted


def report_of_folder(folder: Path, thresholds: Thresholds | None = None) -> JobReport:
    """The report of the job whose samples are in `folder`; nodes are read one after the other."""
    if not folder.is_dir():
        raise InputError(str(folder), "no such folder", "the folder of a job: files NODE.job")
    collected = _FolderSums()
    for path in job_files(folder):
        try:
            collected.add(read_job_file(path))
        except InputError as error:
            collected.missing.append(MissingNode(path.stem, f"its file cannot be read: {error.problem}"))
    if not collected.begun and not collected.missing:
        raise InputError(str(folder), "no sample of a job", "the folder of a job: files NODE.job")
    return collected.report(thresholds)


def configured_thresholds(config: str | None) -> Thresholds:
    """Thresholds of findings that the configuration sets."""
    known = load_config(config)
    return checked_thresholds(known.findings, str(known.path))


def written_report(report: JobReport, format_: str) -> str:
    """The report as people or programs read it."""
    if format_ == "json":
        from iolens.views.render.json_text import to_json

        return to_json(report)
    from iolens.views.job_report import job_report_text

    return job_report_text(report)


class _FolderSums:
    """What the nodes read so far did, and what of them is missing."""

    def __init__(self) -> None:
        self.totals: defaultdict[str, FileSystemTotals] = defaultdict(FileSystemTotals)
        self.missing: list[MissingNode] = []
        self.notes: dict[str, None] = {}
        self.begun: dict[str, JobSample] = {}
        self.ended: dict[str, JobSample] = {}
        self.shared: dict[str, set[str]] = {}  # other jobs, by node

    def add(self, node_job: NodeJob) -> None:
        """Count one node."""
        node, begin, end = node_job.node, node_job.begin, node_job.end
        for row in node_job.summed_rows:
            self.totals[str(row.values["filesystem"])].add(row.table, row.values)
        for table, filesystem in node_job.sampled:
            if filesystem in self.totals:
                self.totals[filesystem].sampled(table)
        if begin is not None:
            self.begun[node] = replace(begin, items=())  # the counters of a thousand nodes are not kept
        if end is not None:
            self.ended[node] = replace(end, items=())
        self.missing += [MissingNode(node, reason) for reason in _reasons(node_job)]
        others = {*(begin.other_jobs if begin else ()), *(end.other_jobs if end else ())}
        if others:
            self.shared[node] = others
        for problem in node_job.problems:
            self.notes[f"{problem.reason} ({node})" if isinstance(problem, Note) else f"{node}: {problem.reason}"] = (
                None
            )

    def report(self, thresholds: Thresholds | None) -> JobReport:
        """Everything together."""
        samples = [*self.ended.values(), *self.begun.values()]
        known = {node for sample in samples for node in sample.job_nodes}
        seen = {*self.begun, *self.ended, *(item.node for item in self.missing)}
        silent = [MissingNode(node, "no sample: it did not answer") for node in sorted(known - seen)]
        details = _details(samples, self.begun.values(), self.ended.values(), len(known | seen))
        notes = [*self._shared_notes(), *self._clock_notes(), *self.notes]
        missing = sorted([*self.missing, *silent], key=lambda item: item.node)
        return job_report(details, self.totals, missing, notes, thresholds)

    def _shared_notes(self) -> Iterator[str]:
        """Counters belong to the node: what another job did there at the same time is in the sums."""
        if self.shared:
            others = sorted(set().union(*self.shared.values()))
            yield (
                f"{some_names(sorted(self.shared), NAMED)} shared with job {some_names(others, NAMED)}: what those did "
                "there at the same time is in the sums too"
            )

    def _clock_notes(self) -> Iterator[str]:
        """Jobs begin on all nodes at about the same time."""
        times = sorted(sample.time_us for sample in self.begun.values())
        if not times:
            return
        middle = times[len(times) // 2]
        for node, sample in sorted(self.begun.items()):
            apart_s = (sample.time_us - middle) / 1e6
            if abs(apart_s) > CLOCK_TOLERANCE_S:
                order = "after" if apart_s > 0 else "before"
                yield f"{node} began {abs(apart_s):,.0f} s {order} the others: late, or its clock is wrong"


def _reasons(node_job: NodeJob) -> Iterator[str]:
    """What of one node is not in the sums."""
    if node_job.begin is None:
        yield "no sample at the begin: what it did is not known"
    elif node_job.end is None:
        yield "no sample at the end: it died, or the job still runs there"
    elif node_job.rebooted:
        yield "rebooted during the job: what it did before is not in the sums"
    elif node_job.restarted:
        names = some_names(sorted(node_job.restarted), NAMED)
        yield f"the counters of {names} began anew (mounted again, or reset): what came before is not in the sums"
    if node_job.unmounted and not node_job.rebooted:
        names = some_names(sorted(node_job.unmounted), NAMED)
        yield f"{names} was no longer mounted at the end: what the job did there is not known"


def _details(
    samples: list[JobSample], begun: Iterable[JobSample], ended: Iterable[JobSample], nodes: int
) -> JobDetails:
    def first(name: str) -> object:
        return next((value for sample in samples if (value := getattr(sample, name)) is not None), None)

    start_us = min((sample.time_us for sample in begun), default=None)
    end_us = max((sample.time_us for sample in ended), default=None)
    job_id, cluster, user, name = (first(field) for field in ("job_id", "cluster", "user", "name"))
    processes = first("processes")
    return JobDetails(
        None if job_id is None else str(job_id),
        None if cluster is None else str(cluster),
        None if user is None else str(user),
        None if name is None else str(name),
        None if start_us is None else from_epoch_us(start_us),
        None if end_us is None or (start_us is not None and end_us < start_us) else from_epoch_us(end_us),
        nodes,
        processes if isinstance(processes, int) else None,
    )
