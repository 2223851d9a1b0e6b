"""One job out of the store: which is meant, and its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from iolens.analyses.job_page import PartsOf, ServedJob, TimesFrom, parts_by, served_ids, served_job
from iolens.analyses.job_report import FileSystemTotals, JobDetails, JobReport, MissingNode, job_report
from iolens.api.page_parts import names_in, thresholds_of, unknown_name
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_runs import StoredRuns
from iolens.config import load_config
from iolens.errors import InputError, UsageError
from iolens.findings import Thresholds
from iolens.schema import CLIENT_IO, LATEST_US
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import SAMPLED, ClientWindow, client_sums
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import epoch_us, from_epoch_us
from iolens.visible_text import counted, some_names

# The report of a job, or of some nodes between two times, from what the store holds -----------------------------------

NAMED: Final = 4  # names in a sentence; more are counted
ClientSum = tuple[str, Mapping[str, Any]]


def report_of_stored_job(
    url: str | None, config: str | None, job_id: str, cluster: str | None = None, thresholds: Thresholds | None = None
) -> JobReport:
    """A job by its id: from the samples of its begin and end, else from what its nodes counted while it ran."""
    return report_of_opened_job(_opened(url, config), job_id, cluster, thresholds)


def report_of_opened_job(
    store: Store,
    job_id: str,
    cluster: str | None = None,
    thresholds: Thresholds | None = None,
    *,
    name_others: bool = True,
) -> JobReport:
    """The same of a store that is open. `name_others`: notes name the jobs that its nodes were shared with."""
    records = [row for row in store.jobs(job_id=job_id) if cluster in (None, row["cluster"])]
    clusters = sorted({str(row["cluster"]) for row in records})
    if len(clusters) > 1:
        raise UsageError(f"several clusters have a job {job_id}: {', '.join(clusters)}; choose with --cluster")
    record = records[-1] if records else None
    notes = [f"it began {len(records)} times: this is the last"] if len(records) > 1 else []
    sums, from_samples = _sums_of_job(store, job_id, record if len(records) > 1 else None), True
    if not sums and record is not None:
        sums, from_samples = _sums_of_nodes(store, record), False
    if not sums and record is None:
        raise InputError(store.url, f"no job {job_id}, neither of a scheduler nor sampled", "a job id of this store")
    nodes = _nodes(record)
    if not from_samples and record is not None:
        notes += [*_window_notes(sums), *_shared_notes(store, record, nodes, name_others)]
    return _report_of_rows(_details(job_id, record, sums, nodes), sums, nodes, notes, thresholds)


def report_of_nodes(
    url: str | None,
    config: str | None,
    node_list: str,
    window: tuple[datetime, datetime],
    thresholds: Thresholds | None = None,
) -> JobReport:
    """What some nodes counted between two times, whoever ran there."""
    try:
        nodes = expand_nodes(node_list)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from None
    store = _opened(url, config)
    start_us, end_us = (epoch_us(end) for end in window)
    sums = list(client_sums(store.tables, ClientWindow(start_us, end_us, nodes=nodes)))
    if not sums:
        raise InputError(
            store.url, f"no sample of {some_names(nodes, NAMED)} between these times", "nodes of the store"
        )
    details = JobDetails(None, start=window[0], end=window[1], nodes=len(nodes))
    return _report_of_rows(details, sums, nodes, list(_window_notes(sums)), thresholds)


def _opened(url: str | None, config: str | None) -> Store:
    store = Store(load_config(config).store_url(url))
    store.check_that_it_exists()
    return store


def _sums_of_job(store: Store, job_id: str, record: Mapping[str, Any] | None) -> list[ClientSum]:
    start_us, end_us = (0, LATEST_US) if record is None else (record["start"], record["time"])
    return list(client_sums(store.tables, ClientWindow(start_us, end_us, job_id=job_id)))


def _sums_of_nodes(store: Store, record: Mapping[str, Any]) -> list[ClientSum]:
    return list(client_sums(store.tables, ClientWindow(record["start"], record["time"], nodes=_nodes(record))))


def _nodes(record: Mapping[str, Any] | None) -> list[str]:
    try:
        return expand_nodes(str(record["node_list"])) if record is not None and record["node_list"] else []
    except ValueError:
        return []


def _details(
    job_id: str, record: Mapping[str, Any] | None, sums: Sequence[ClientSum], nodes: Sequence[str]
) -> JobDetails:
    if record is not None and record["source"] == SAMPLED and sums:  # one node's times are not those of all
        record = {
            **record,
            "start": min(row["start_us"] for _, row in sums),
            "time": max(row["end_us"] for _, row in sums),
        }
    if record is not None:
        end = from_epoch_us(record["time"]) if record["ended"] is not False else None
        count = record["nodes"] if record["nodes"] is not None else len(nodes) or None
        about = record["cluster"], record["user"], record["name"]
        return JobDetails(job_id, *about, from_epoch_us(record["start"]), end, count, record["processes"])
    start_us, end_us = min(row["start_us"] for _, row in sums), max(row["end_us"] for _, row in sums)
    count = len({row["node"] for _, row in sums})
    return JobDetails(job_id, start=from_epoch_us(start_us), end=from_epoch_us(end_us), nodes=count)


def _report_of_rows(
    details: JobDetails,
    sums: Sequence[ClientSum],
    nodes: Sequence[str],
    notes: list[str],
    thresholds: Thresholds | None,
) -> JobReport:
    chosen, more = _one_source_each(sums)
    totals: defaultdict[str, FileSystemTotals] = defaultdict(FileSystemTotals)
    for table, row in chosen:
        totals[row["filesystem"]].add(table, row)
    return job_report(details, totals, list(_missing(sums, nodes)), [*notes, *more], thresholds)


def _missing(sums: Sequence[ClientSum], nodes: Iterable[str]) -> Iterator[MissingNode]:
    sampled = {name for _, row in sums for name in (row["node"], row["node"].partition(".")[0])}
    yield from (MissingNode(node, "no sample of it in the store") for node in sorted(set(nodes) - sampled))
    restarted = sorted({row["node"] for _, row in sums if row["after_reset"]})
    yield from (
        MissingNode(node, "its counters began anew: what came before, since the last sample, is not in the sums")
        for node in restarted
    )


def _one_source_each(sums: Sequence[ClientSum]) -> tuple[list[ClientSum], list[str]]:
    """Of a node that was sampled by two sources the one that covers more time; the same bytes must not count twice."""
    covered: dict[tuple[str, str], dict[str, float]] = {}
    for table, row in sums:
        if table == CLIENT_IO.name:
            by_source = covered.setdefault((row["filesystem"], row["node"]), {})
            by_source[row["source"]] = by_source.get(row["source"], 0.0) + (row["duration_s"] or 0.0)
    chosen = {key: max(sorted(times), key=times.__getitem__) for key, times in covered.items()}
    kept = [
        (table, row)
        for table, row in sums
        if chosen.get((row["filesystem"], row["node"]), row["source"]) == row["source"]
    ]
    twice = sorted({node for (_, node), times in covered.items() if len(times) > 1})
    note = f"{some_names(twice, NAMED)} sampled by more than one source: the one that covers most time is used"
    return kept, [note] if twice else []


def _window_notes(sums: Sequence[ClientSum]) -> Iterator[str]:
    """From samples of the clock the begin and the end of a job are known to one interval."""
    intervals = [
        row["duration_s"] / row["samples"] for table, row in sums if table == CLIENT_IO.name and row["samples"]
    ]
    if intervals:
        yield (
            f"from samples of the nodes every {max(intervals):,.0f} s or less: what other programs did there in that "
            "time is in the sums too"
        )


def _shared_notes(store: Store, record: Mapping[str, Any], nodes: Sequence[str], name_others: bool) -> Iterator[str]:
    mine = set(nodes)
    window = from_epoch_us(record["start"]), from_epoch_us(record["time"])
    others = [
        str(row["job_id"])
        for row in store.jobs(*window)
        if (row["cluster"], row["job_id"], row["start"]) != (record["cluster"], record["job_id"], record["start"])
        and row["start"] < record["time"]
        and row["time"] > record["start"]  # one that ended when this one began was not there with it
        and mine & set(_nodes(row))
    ]
    if others:
        names = (
            f"job {some_names(sorted(set(others)), NAMED)}" if name_others else counted(len(set(others)), "other job")
        )
        yield f"its nodes were shared with {names}: what those did there is in the sums too"


# All that the store has of one job ------------------------------------------------------------------------------------
# The scheduler's record, logs, counters of nodes, job_stats of servers.

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
