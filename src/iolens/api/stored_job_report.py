"""The report of a job, or of some nodes between two times, from what the store holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from iolens.analyses.job_report.report import job_report
from iolens.analyses.job_report.results import JobDetails, JobReport, MissingNode
from iolens.analyses.job_report.totals import FileSystemTotals
from iolens.config import load_config
from iolens.errors import InputError, UsageError
from iolens.findings import Thresholds
from iolens.schema import CLIENT_IO, LATEST_US
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import SAMPLED, ClientWindow, client_sums
from iolens.store.store import Store
from iolens.units import epoch_us, from_epoch_us
from iolens.visible_text import counted, some_names

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
    return _report(_details(job_id, record, sums, nodes), sums, nodes, notes, thresholds)


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
    return _report(details, sums, nodes, list(_window_notes(sums)), thresholds)


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


def _report(
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
