"""What was ingested into a store, batch by batch: by the table `batches`."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any, Final

from iolens.analyses.ingest_log.results import IngestedBatch, IngestLog
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.store.duckdb_engine import query
from iolens.store.ledger import RESENT, CaptureKey, undone_captures
from iolens.store.tables import PARTS_PER_SEQUENCE, UPKEEP
from iolens.units import epoch_us, from_epoch_us

MOST_LISTED: Final = 50
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


def _time(time_us: int | None) -> datetime | None:
    return None if time_us is None else from_epoch_us(time_us)
