"""What was ingested, for people: a line for each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.ingest_log import IngestLog
    from iolens.views.render.tables import TableView


_BATCHES: Final = (
    t.text("batch", "Batch"), t.time("time", "Ingested"), t.text("source", "Source"), t.text("origin", "Origin"),
    t.count("rows", "Rows"), t.text("rows_by_table", "By table"), t.count("refused", "Refused"),
    t.time("undone", "Taken back"), t.time("first_time", "First data"), t.time("last_time", "Last data"),
)  # fmt: skip


def tables(result: IngestLog) -> list[TableView]:
    """One table, newest first."""
    rows = [
        t.row_of(
            batch,
            _BATCHES,
            {"rows_by_table": ", ".join(f"{name} {count:,}" for name, count in batch.rows_by_table.items()) or None},
        )
        for batch in result.batches
    ]
    left = result.batches_known - len(result.batches)
    older = f"; {left:,} older ones not shown (--top)" if left else ""
    note = f"{counted(result.batches_known, 'batch')}, {result.undone:,} taken back{older}."
    return [t.TableView(f"Batches of {result.store}", _BATCHES, rows, note, name="batches", keep=("batch", "undone"))]
