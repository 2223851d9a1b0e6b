"""All that the store has of one job: the scheduler's record, logs, counters of nodes, job_stats of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from iolens.analyses.job_page.results import TimesFrom
from iolens.analyses.job_page.served import PartsOf, ServedJob, parts_by, served_ids, served_job
from iolens.analyses.job_report.results import JobReport
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.page_advice import thresholds_of
from iolens.api.page_names import names_in, unknown_name
from iolens.api.stored_job_report import report_of_opened_job
from iolens.api.stored_runs import StoredRuns
from iolens.errors import InputError, UsageError
from iolens.store.scope import Scope
from iolens.units import epoch_us, from_epoch_us

SLACK_US: Final = 60_000_000  # clocks of schedulers and nodes differ
AROUND_US: Final = 3_600_000_000  # intervals of job_stats that began so long before the job may reach into it

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredJob:
    """All the store has of a job; times in microseconds since 1970."""

    job_id: str
    record: Row | None
    runs: Sequence[Row]
    report: JobReport | None  # by counters of its nodes
    served: Mapping[str, ServedJob]  # by file system
    notes: list[str] = field(default_factory=list)

    @property
    def times(self) -> tuple[int, int, TimesFrom]:
        """Start and end by the record, else by the logs, the samples of nodes or job_stats; and by which of them."""
        if self.record is not None:
            return self.record["start"], self.record["time"], "record"
        if self.runs:
            return min(row["start"] for row in self.runs), max(row["time"] for row in self.runs), "log"
        if self.report is not None and self.report.start is not None and self.report.end is not None:
            return epoch_us(self.report.start), epoch_us(self.report.end), "nodes"
        served = self.served.values()
        return min(item.start_us for item in served), max(item.end_us for item in served), "servers"

    @property
    def user(self) -> str | None:
        """By the record, else by a log."""
        named = [row["user"] for row in (*([self.record] if self.record else []), *self.runs) if row["user"]]
        return str(named[0]) if named else None


def stored_job(
    opened: StoreAnalyses, job_id: str, asked: Scope, cluster: str | None = None, name_others: bool = False
) -> StoredJob:
    """The job; of several of one id the last in the scope's window. `name_others`: notes may name other jobs."""
    record, notes = _record(opened, job_id, asked, cluster)
    runs = [row for row in StoredRuns(opened.store).named(job_id) if row["job_id"] == job_id and _is_of(row, record)]
    report = _report(opened, job_id, record, name_others)
    served = _served(opened, job_id, record)
    if record is None and not runs and report is None and not served:
        raise unknown_name(opened, "job", job_id, _known_jobs(opened))
    return StoredJob(job_id, record, runs, report, served, notes)


def _record(opened: StoreAnalyses, job_id: str, asked: Scope, cluster: str | None) -> tuple[Row | None, list[str]]:
    """The last record of the id in the window, and what is to be said of others."""
    records: list[dict[str, Any]] = opened.store.jobs(asked.since, asked.until, job_id=job_id)
    rows = [row for row in records if cluster in (None, row["cluster"])]
    clusters = sorted({str(row["cluster"]) for row in rows})
    if len(clusters) > 1:
        raise UsageError(f"several clusters have a job {job_id}: {', '.join(clusters)}; choose with --cluster")
    notes = [f"the id was used {len(rows)} times: this is the last"] if len(rows) > 1 else []
    return (rows[-1] if rows else None), notes


def _is_of(run: Row, record: Row | None) -> bool:
    """Whether a run began in the time of the record."""
    return record is None or record["start"] - SLACK_US <= run["start"] <= record["time"] + SLACK_US


def _report(opened: StoreAnalyses, job_id: str, record: Row | None, name_others: bool) -> JobReport | None:
    """By counters of the job's nodes; None: there are none."""
    cluster = None if record is None else record["cluster"]
    try:
        report = report_of_opened_job(opened.store, job_id, cluster, thresholds_of(opened), name_others=name_others)
    except InputError:
        return None
    return report if report.filesystems and _is_in(report.start, record) else None


def _is_in(start: datetime | None, record: Row | None) -> bool:
    """Whether a report is of the same start of the job as the record."""
    if record is None or start is None:
        return True
    return bool(record["start"] - SLACK_US <= epoch_us(start) <= record["time"] + SLACK_US)


def _served(opened: StoreAnalyses, job_id: str, record: Row | None) -> dict[str, ServedJob]:
    """What job_stats tell, by file system."""
    result = {}
    for name in sorted(opened.store.targets_by_filesystem()):
        scope, ran_us = Scope(name), None
        if record is not None:
            first_us, last_us = max(record["start"] - AROUND_US, 0), record["time"] + SLACK_US
            scope, ran_us = Scope(name, from_epoch_us(first_us), from_epoch_us(last_us)), (record["start"], last_us)
        question = partial(served_job, job_id=job_id, parts_of=parts_of_ids(opened, name), ran_us=ran_us)
        if (served := opened.ask(question, scope)) is not None:
            result[name] = served
    return result


def parts_of_ids(opened: StoreAnalyses, filesystem: str) -> PartsOf:
    """How ids of the file system's job_stats are taken apart."""
    return parts_by(opened.config.filesystem(filesystem).jobid_name)


def _known_jobs(opened: StoreAnalyses) -> set[str]:
    """Ids of records, logs and job_stats."""
    ids = names_in(opened, "jobs", "job_id") | names_in(opened, "runs", "job_id")
    for name in opened.store.targets_by_filesystem():
        parts_of = parts_of_ids(opened, name)
        served = opened.ask(lambda selection: served_ids(selection) if selection.holds("job_io") else [], name)
        ids |= {job for text in served if (job := parts_of(text).job_id) is not None}
    return ids
