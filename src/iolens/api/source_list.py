"""What brought data into a store, when, and what was refused: by the table `batches` and the reports of agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from iolens.analyses.source_list.results import (
    AgentActivity,
    IngestActivity,
    RefusedInput,
    RollupBacklog,
    SourceList,
    TableExtent,
)
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.schema import LATEST_US
from iolens.store.duckdb_engine import EPOCH, query
from iolens.store.ledger import in_force
from iolens.store.maintenance import stored_tables
from iolens.store.rollup import rollup_backlog
from iolens.store.scope import Scope
from iolens.store.snapshot import Snapshot
from iolens.store.tables import UPKEEP, Tables
from iolens.units import DAY_US, epoch_us, from_epoch_us

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
