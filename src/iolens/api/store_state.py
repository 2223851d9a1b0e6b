"""What a store holds: its file systems, what brought data and when, what was ingested, what is rolled up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from iolens.analyses.centre_state import (
    CentreState,
    FileSystemState,
    LastReading,
    LatestFullness,
    RollupSpan,
    latest_fullness,
)
from iolens.analyses.ingest_log import IngestedBatch, IngestLog
from iolens.analyses.results import pct
from iolens.analyses.source_list import (
    AgentActivity,
    IngestActivity,
    RefusedInput,
    RollupBacklog,
    SourceList,
    TableExtent,
)
from iolens.api.store_analyses import StoreAnalyses
from iolens.config import FileSystemConfig
from iolens.errors import IolensError
from iolens.schema import LATEST_US
from iolens.store.duckdb_engine import EPOCH, query
from iolens.store.ledger import RESENT, CaptureKey, in_force, undone_captures
from iolens.store.maintenance import stored_tables
from iolens.store.rollup import rollup_backlog
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.snapshot import Snapshot
from iolens.store.store import RESOLUTIONS
from iolens.store.tables import PARTS_PER_SEQUENCE, UPKEEP, Tables
from iolens.target_names import kind_by_name
from iolens.units import DAY_US, epoch_us, from_epoch_us, iso

# What is stored -------------------------------------------------------------------------------------------------------
# From when to when, of the tables that an analysis reads, and for how many days.

LOAD: Final = ("target_sizes", "target_io")
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "blame": ("job_io", *LOAD, "metadata_ops"),
    "capacity": ("target_capacity",),
    "contents": ("contents",),
    "drives": ("drives",),
    "latency": ("target_histograms", "target_io"),
    "metadata": ("metadata_ops",),
}


def nothing_stored(opened: StoreAnalyses, analysis: str, filesystem: str) -> str:
    """`scratch: nothing is stored of this window; stored is 2026-01-05T00:00:00Z to 2026-01-06T00:00:00Z`."""
    stored = stored_words(opened, analysis, filesystem)
    if not stored:
        return f"{filesystem}: nothing is stored that {analysis} reads"
    return f"{filesystem}: nothing is stored of this window; {stored}"


def stored_words(opened: StoreAnalyses, analysis: str, filesystem: str | None) -> str:
    """`stored is 2026-01-05T00:00:00Z to 2026-01-06T00:00:00Z`; empty where nothing is."""
    extent = opened.store.select(filesystem).extent_us(*READ.get(analysis, LOAD))
    return "" if extent is None else "stored is {} to {}".format(*(iso(from_epoch_us(end)) for end in extent))


def stored_days(opened: StoreAnalyses) -> dict[str, int]:
    """Whole days from the first to the last disk I/O that is stored, by file system; by the log alone."""
    names = opened.store.targets_by_filesystem()
    return {name: whole_days(opened.store.select(name).extent_us(*LOAD)) for name in names}


def whole_days(extent_us: tuple[int, int] | None) -> int:
    """How many fit between its ends."""
    return 0 if extent_us is None else (extent_us[1] - extent_us[0]) // DAY_US


# What follows a rollup ------------------------------------------------------------------------------------------------
# Answers over long windows, which read the widest one, begin with parts that are remembered.

LONG_WINDOWS: Final = "1h"  # the rollup that months and years are read from


def remember_long_windows(opened: StoreAnalyses) -> None:
    """Make the parts of utilization over all data, which the store then remembers; what cannot be made is left."""
    for name in opened.store.targets_by_filesystem():
        with suppress(IolensError):  # who asks for it hears why
            opened.analyse("utilization", Scope(name, resolution=LONG_WINDOWS))


# What brought data into a store, when, and what was refused -----------------------------------------------------------
# By the table `batches` and the reports of agents.

MOST_LISTED: Final = 50
REASONS: Final = 5
HEALTH_DAYS: Final = 7  # of reports of agents that are read where no window is given

# Batches of our own upkeep bring nothing. What was appended without a source is called as its identity begins.
_BROUGHT: Final = f"""
    split_part(batch, '/', 1) NOT IN ({", ".join(f"'{name}'" for name in (*UPKEEP, "resent"))})
    AND epoch_us(coalesce(last_time, time)) >= ? AND epoch_us(coalesce(first_time, time)) < ?"""
_NAMES: Final = r"""
    coalesce(source, split_part(batch, '/', 1)) AS named,
    nullif(regexp_extract(batch, '(?s)^(?:rebuild/)?(?:again[0-9]+/)?agent/(.*)/[^/]*/[0-9]+$', 1), '') AS host,
    coalesce(host, origin) AS place"""
ACTIVITY: Final = f"""
    SELECT grouping(place), host, named, place, epoch_us(min(first_time)), epoch_us(max(last_time)), max(epoch_us),
           count(*), sum(samples)::BIGINT, sum(rows)::BIGINT, sum(resets)::BIGINT, sum(repeated)::BIGINT,
           sum(older)::BIGINT, sum(refused)::BIGINT, count(*) FILTER (refused > 0)
    FROM (SELECT *, {_NAMES} FROM stored WHERE {_BROUGHT} AND {{in_force}})
    GROUP BY GROUPING SETS ((named), (named, place, host)) ORDER BY max(epoch_us) DESC, named, place"""  # noqa: S608
REFUSED: Final = f"""
    SELECT epoch_us, {_NAMES}, refused, problems FROM stored WHERE refused > 0 AND {_BROUGHT} AND {{in_force}}
    ORDER BY epoch_us DESC, batch, part LIMIT ?"""  # noqa: S608
HEALTH: Final = """
    WITH starts AS (
        SELECT host, run, max(epoch_us) AS last_us, max(ticks) AS ticks, max(late_ticks) AS late,
               max(missed_ticks) AS missed, max(lost_ticks) AS lost,
               arg_max({spool: spool_bytes, waiting: segments_waiting, trouble: trouble}, epoch_us) AS newest
        FROM stored WHERE epoch_us >= ? AND epoch_us < ? AND host IS NOT NULL GROUP BY host, run)
    SELECT * EXCLUDE (state), state.spool, state.waiting, state.trouble FROM (
    SELECT host, max(last_us), count(*), sum(ticks)::BIGINT, sum(late)::BIGINT, sum(missed)::BIGINT,
           sum(lost)::BIGINT, arg_max(newest, {time: last_us, run: run}) AS state
    FROM starts GROUP BY host)"""


def source_list(
    opened: StoreAnalyses, since: datetime | None = None, until: datetime | None = None, top: int = MOST_LISTED
) -> SourceList:
    """Sources, the `top` newest origins and refused inputs, all agents, tables, and days that are not rolled up."""
    return opened.ask_all(lambda _: _listed(opened, since, until, top), Scope(None, since, until))


def _listed(opened: StoreAnalyses, since: datetime | None, until: datetime | None, top: int) -> SourceList:
    tables = opened.store.tables
    window_us = 0 if since is None else epoch_us(since), LATEST_US if until is None else epoch_us(until)
    batches = tables.load("batches")
    known = "true" if batches is None else in_force(tables, batches)
    activity, refusals = (sql.replace("{in_force}", known) for sql in (ACTIVITY, REFUSED))
    rows = [] if batches is None else query(tables, batches, "batches", activity, window_us)
    refused = [] if batches is None else query(tables, batches, "batches", refusals, [*window_us, top])
    groups = [_Group(*row) for row in rows]
    origins = [group for group in groups if not group.is_source and group.place is not None]
    counts = Counter(group.source for group in origins)
    sources = [group.activity(counts[group.source]) for group in groups if group.is_source]
    return SourceList(
        opened.store.url,
        since,
        until,
        sum(source.batches for source in sources),
        sum(source.rows or 0 for source in sources),
        sum(source.refused or 0 for source in sources),
        sources,
        len(origins),
        [group.activity(1) for group in origins[:top]],
        _agents(tables, origins, since, window_us),
        sum(group.refused_batches for group in groups if group.is_source),
        [_refused(row) for row in refused],
        [
            TableExtent(table.name, table.rows, table.files, table.bytes, table.first_time, table.last_time)
            for table in stored_tables(tables)
        ],
        [RollupBacklog(name, days) for name, days in rollup_backlog(tables).items()],
    )


class _Group(NamedTuple):
    """Batches of a source, or of one origin; times in microseconds since 1970."""

    is_source: int
    host: str | None
    source: str
    place: str | None
    first_us: int | None
    last_us: int | None
    ingest_us: int
    batches: int
    samples: int | None
    rows: int | None
    resets: int | None
    repeated: int | None
    older: int | None
    refused: int | None
    refused_batches: int

    def activity(self, origins: int) -> IngestActivity:
        """As a result says it."""
        return IngestActivity(
            self.source,
            self.place,
            origins,
            _time(self.first_us),
            _time(self.last_us),
            from_epoch_us(self.ingest_us),
            self.batches,
            self.samples,
            self.rows,
            self.resets,
            self.repeated,
            self.older,
            self.refused,
        )


def _refused(row: Sequence[Any]) -> RefusedInput:
    time_us, source, _, place, refused, problems = row
    return RefusedInput(from_epoch_us(time_us), source, place, refused, _reasons(problems))


def _reasons(text: str | None) -> list[str]:
    """The first of the stored reasons; none where the text is not the list that we wrote."""
    try:
        reasons = json.loads(text or "[]")
    except ValueError:
        return []
    return [str(reason) for reason in reasons[:REASONS]] if isinstance(reasons, list) else []


@dataclass(frozen=True, slots=True)
class HostHealth:
    """The reports of a host's agent: when the last was, counts over its starts, and its state then."""

    last_us: int | None = None
    starts: int | None = None
    ticks: int | None = None
    late_ticks: int | None = None
    missed_ticks: int | None = None
    lost_ticks: int | None = None
    spool_bytes: int | None = None
    segments_waiting: int | None = None
    trouble: str | None = None


def _agents(
    tables: Tables, origins: Sequence[_Group], since: datetime | None, window_us: tuple[int, int]
) -> list[AgentActivity]:
    """Hosts of batches and of reports; those of the longest silence first."""
    health = _health(tables, since, window_us)
    batches = {group.host: (group.last_us, group.ingest_us) for group in reversed(origins) if group.host is not None}
    newest_us = max((report.last_us or 0 for report in health.values()), default=0)
    agents = [
        _agent(host, health.get(host, HostHealth()), newest_us, *batches.get(host, (None, None)))
        for host in sorted({*health, *batches})
    ]
    return sorted(agents, key=lambda agent: (agent.lag_s is not None, -(agent.lag_s or 0)))


def _agent(host: str, health: HostHealth, newest_us: int, last_us: int | None, ingest_us: int | None) -> AgentActivity:
    return AgentActivity(
        host,
        _time(health.last_us),
        None if health.last_us is None else (newest_us - health.last_us) / 1e6,
        health.starts,
        health.ticks,
        health.late_ticks,
        health.missed_ticks,
        health.lost_ticks,
        health.spool_bytes,
        health.segments_waiting,
        health.trouble,
        _time(last_us),
        _time(ingest_us),
    )


def _health(tables: Tables, since: datetime | None, window_us: tuple[int, int]) -> dict[str, HostHealth]:
    """By host, from the files of the window; where it has no begin, of the last days that have any."""
    handle = tables.load("agent_health")
    if handle is None or not (days := Snapshot.of(handle).days()):
        return {}
    first_us, until_us = window_us
    last_us = min(until_us, (max(days).toordinal() - EPOCH + 1) * DAY_US)
    first_us = last_us - HEALTH_DAYS * DAY_US if since is None else first_us
    wanted = range(first_us // DAY_US - 1, last_us // DAY_US + 1)
    rows = query(tables, handle, "agent_health", HEALTH, [first_us, until_us], days=wanted)
    return {host: HostHealth(*report) for host, *report in rows}


def _time(time_us: int | None) -> datetime | None:
    return None if time_us is None else from_epoch_us(time_us)


# The file systems of a store, by its logs and a few small questions, so that every page can ask -----------------------

OBSERVED_BY: Final = ("target_io", "target_sizes", "metadata_ops")  # whose rows say when a file system was observed
CLIENT: Final = ("client_io", "client_rpcs", "client_metadata")
OTHERS: Final = ("target_capacity", "job_io", "contents", "drives")
UNKNOWN_KIND: Final = "unknown"
LAST_READINGS: Final = """
    SELECT filesystem, arg_max(target_kind, epoch_us), max(epoch_us), arg_max(total_bytes, epoch_us),
           arg_max(used_bytes, epoch_us)
    FROM stored WHERE used_bytes IS NOT NULL GROUP BY filesystem, target"""

Readings = dict[str, list[LastReading]]  # by file system
Rollups = dict[str, list[Snapshot]]  # by resolution


def centre_state(opened: StoreAnalyses) -> CentreState:
    """Every file system that any batch named. Tables of load are not read, but by their logs."""
    return opened.ask_all(lambda everything: _state(opened, everything), Scope())


def _state(opened: StoreAnalyses, everything: StoreSelection) -> CentreState:
    for table in (*OBSERVED_BY, *CLIENT, *OTHERS):
        everything.snapshot(table)  # read once for all file systems
    rollups = {resolution: _rolled(everything, resolution) for resolution in RESOLUTIONS}
    known = sorted(opened.store.targets_by_filesystem().items())
    selections = [everything.of_filesystem(name, targets) for name, targets in known]
    readings = _last_readings(everything, selections)
    return CentreState(
        opened.store.url,
        everything.snapshot("jobs").rows > 0,
        everything.snapshot("runs").rows > 0,
        [
            _filesystem(selection, opened.config.filesystem(name), latest_fullness(readings.get(name, ())), rollups)
            for (name, _), selection in zip(known, selections, strict=True)
        ],
    )


def _filesystem(
    selection: StoreSelection, configured: FileSystemConfig, fullness: LatestFullness | None, rollups: Rollups
) -> FileSystemState:
    selection.source_order, selection.servers = configured.sources, configured.servers
    extent_us = selection.extent_us(*OBSERVED_BY)
    return FileSystemState(
        selection.filesystem,
        len(selection.targets_known),
        _kinds(selection),
        selection.target_servers().servers or None,
        from_epoch_us(extent_us[0]) if extent_us else None,
        from_epoch_us(extent_us[1]) if extent_us else None,
        from_epoch_us(fullness.time_us) if fullness else None,
        fullness.total_bytes if fullness else None,
        fullness.used_bytes if fullness else None,
        pct(fullness.used_bytes, fullness.total_bytes) if fullness else None,
        configured.peak_bytes_per_s,
        selection.holds("target_sizes"),
        selection.holds("metadata_ops"),
        selection.holds("job_io"),
        any(selection.holds(table) for table in CLIENT),
        selection.holds("contents"),
        selection.holds("drives"),
        list(_rollup_spans(selection.filesystem, rollups)),
    )


def _kinds(selection: StoreSelection) -> dict[str, int]:
    """How many targets of each kind: by their names, which Lustre's tell, else by the rows of the last day."""
    kinds = {target: kind_by_name(target) for target in selection.targets_known}
    if None in kinds.values() and (days := selection.days("target_io")):
        last = selection.frame("target_io", max(days), max(days)).select("target", "target_kind")
        rows = last.unique().collect(backend="pyarrow").to_native().to_pylist()
        seen = {row["target"]: row["target_kind"] for row in rows}
        kinds = {target: kind or seen.get(target) for target, kind in kinds.items()}
    return dict(Counter(kind or UNKNOWN_KIND for kind in kinds.values()).most_common())


def _last_readings(everything: StoreSelection, selections: Iterable[StoreSelection]) -> Readings:
    """By file system, the last reading of each target in the last two days of that file system."""
    handle = everything.tables.load("target_capacity")
    ends = [extent[1] for selection in selections if (extent := selection.extent_us("target_capacity"))]
    if handle is None or not ends:
        return {}
    days = {day for end_us in ends for day in ((end_us - DAY_US) // DAY_US, end_us // DAY_US)}
    readings: Readings = {}
    for filesystem, *reading in query(everything.tables, handle, "target_capacity", LAST_READINGS, days=days):
        readings.setdefault(filesystem, []).append(LastReading(*reading))
    return readings


def _rolled(everything: StoreSelection, resolution: str) -> list[Snapshot]:
    """What the logs say of a rollup of load."""
    handles = (everything.tables.load(f"{resolution}/{table}") for table in OBSERVED_BY)
    return [Snapshot.of(handle) for handle in handles if handle is not None]


def _rollup_spans(filesystem: str, rollups: Rollups) -> Iterator[RollupSpan]:
    for resolution, snapshots in rollups.items():
        days = {day for snapshot in snapshots for day in snapshot.with_value("filesystem", filesystem).days()}
        if days:
            yield RollupSpan(resolution, min(days), max(days))


# What was ingested into a store, batch by batch: by the table `batches` -----------------------------------------------

_LISTED: Final = f"""
    SELECT batch, part // {PARTS_PER_SEQUENCE} AS sequence, max(epoch_us) AS time_us, any_value(source) AS source,
           any_value(origin), list(rows_by_table), coalesce(sum(refused), 0)::BIGINT, epoch_us(min(first_time)),
           epoch_us(max(last_time)), count(*) OVER ()
    FROM stored WHERE split_part(batch, '/', 1) NOT IN ({", ".join(f"'{name}'" for name in (*UPKEEP, RESENT))})
    GROUP BY ALL HAVING (source = ? OR ? IS NULL) AND time_us >= ? ORDER BY time_us DESC, batch, sequence DESC
    LIMIT ?"""  # noqa: S608 (constants)


def ingest_log(
    opened: StoreAnalyses, source: str | None = None, since: datetime | None = None, top: int = MOST_LISTED
) -> IngestLog:
    """The `top` newest batches, of one source and ingested since a time where that is asked."""
    tables = opened.store.tables
    opened.store.check_that_it_exists()
    handle = tables.load("batches")
    if handle is None:
        return IngestLog(opened.store.url, 0, 0, [])
    undone = undone_captures(tables, handle)
    since_us = 0 if since is None else epoch_us(since)
    rows = query(tables, handle, "batches", _LISTED, [source, source, since_us, top])
    return IngestLog(opened.store.url, rows[0][-1] if rows else 0, len(undone), [_batch(row, undone) for row in rows])


def _batch(row: Any, undone: dict[CaptureKey, int]) -> IngestedBatch:
    identity, sequence, time_us, source, origin, texts, refused, first, last, _ = row
    key = CaptureKey(identity, sequence)
    by_table = Counter[str]()
    for text in texts:
        by_table.update(json.loads(text or "{}"))
    return IngestedBatch(
        f"{key}",
        from_epoch_us(time_us),
        source,
        origin,
        sum(by_table.values()),
        dict(sorted(by_table.items())),
        refused,
        _time(first),
        _time(last),
        _time(undone.get(key)),
    )
