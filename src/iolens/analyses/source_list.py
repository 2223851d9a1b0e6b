"""Sources, origins and agents of a store, what was refused of their input, its tables, and what is not rolled up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class IngestActivity:
    """What the batches of a source, or of one of its origins, brought; None where no batch says.

    An origin is a path or an address; of agents, whose segments have a path each, it is the host.
    """

    source: str
    origin: str | None  # None: all of the source
    origins: int
    first_time: datetime | None  # of the data
    last_time: datetime | None
    last_ingest: datetime
    batches: int
    samples: int | None
    rows: int | None
    resets: int | None
    repeated: int | None
    older: int | None
    refused: int | None


@dataclass(frozen=True, slots=True)
class AgentActivity:
    """One host with an agent: by its batches, and by the last days of its own health reports.

    Ticks are summed over the starts of the agent in these days; `lag_s` is the time between the newest report of any
    agent and that of this one.
    """

    host: str
    last_tick: datetime | None
    lag_s: float | None
    starts: int | None
    ticks: int | None
    late_ticks: int | None
    missed_ticks: int | None
    lost_ticks: int | None
    spool_bytes: int | None
    segments_waiting: int | None
    trouble: str | None
    last_time: datetime | None  # of its data
    last_ingest: datetime | None


@dataclass(frozen=True, slots=True)
class RefusedInput:
    """A batch with places that were not understood, and the first reasons."""

    time: datetime  # of the ingest
    source: str
    origin: str | None
    refused: int
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class TableExtent:
    """A table or rollup by its log; times are those of its rows."""

    name: str
    rows: int
    files: int
    bytes: int
    first_time: datetime | None
    last_time: datetime | None


@dataclass(frozen=True, slots=True)
class RollupBacklog:
    """Days of a rollup that are not made, or lack rows that came later."""

    table: str
    days: list[date]


@dataclass(frozen=True, slots=True)
class SourceList:
    """Batches of a window, newest first; the lists of origins and refused inputs are cut.

    A batch is in the window if its data overlap it, or, where it has no time of data, if it was ingested then.
    """

    store: str
    window_start: datetime | None
    window_end: datetime | None
    batches: int
    rows: int
    refused: int
    sources: list[IngestActivity]
    origins_known: int
    origins: list[IngestActivity]
    agents: list[AgentActivity]
    refused_inputs_known: int
    refused_inputs: list[RefusedInput]
    tables: list[TableExtent]
    rollup_backlog: list[RollupBacklog]
