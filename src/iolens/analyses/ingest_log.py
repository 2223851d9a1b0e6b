"""Batches of a store, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class IngestedBatch:
    """One capture that was ingested: a file, or a segment of an agent."""

    batch: str  # by which `store undo` knows it
    time: datetime  # of the ingest
    source: str | None
    origin: str | None
    rows: int
    rows_by_table: dict[str, int]
    refused: int
    first_time: datetime | None  # of the data
    last_time: datetime | None
    undone: datetime | None  # when it was taken back


@dataclass(frozen=True, slots=True)
class IngestLog:
    """The newest batches, and how many there are in all."""

    store: str
    batches_known: int
    undone: int
    batches: list[IngestedBatch]
