"""Rows of the client tables summed for one job, or for some nodes between two times, one row per node and kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolens.schema import CLIENT_IO, CLIENT_METADATA, CLIENT_OPS, CLIENT_RPCS, Table
from iolens.store.duckdb_engine import connection, relation
from iolens.store.placing import files_between
from iolens.store.tables import Tables

_TAKEN: Final = {
    CLIENT_IO.name: ((), ("read_bytes", "write_bytes")),
    CLIENT_RPCS.name: (("direction", "pages", "page_bytes"), ("rpcs",)),
    CLIENT_METADATA.name: (("operation",), ("count", "sum_us")),
    CLIENT_OPS.name: (("target", "operation"), ("count", "sum_us")),
}
"""By table: what tells sums apart beside file system and node, and what is summed."""
_OF_JOB: Final = "job_id = $3"
_OF_NODES: Final = """job_id IS NULL AND 2 * (least(epoch_us, $2) - greatest(start_us, $1)) > epoch_us - start_us
                   AND (list_contains($3, node) OR list_contains($3, split_part(node, '.', 1)))"""


@dataclass(frozen=True)
class ClientWindow:
    """Which rows count: those of a job's own samples (`job_id`), or of `nodes` by whatever sampled them.

    Of nodes, an interval counts when more than half of it lies within [start_us, end_us), so that it never counts for
    two jobs that follow each other. Nodes may be named without the domain that their own names have.
    """

    start_us: int
    end_us: int
    job_id: str | None = None
    nodes: Sequence[str] = ()


def client_sums(tables: Tables, window: ClientWindow) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Table and columns of each sum; `source` says who sampled it, `samples` how often, `end_us` until when."""
    for table in (CLIENT_IO, CLIENT_RPCS, CLIENT_METADATA, CLIENT_OPS):
        yield from ((table.name, row) for row in _summed(tables, table, window))


def _summed(tables: Tables, table: Table, window: ClientWindow) -> list[dict[str, Any]]:
    handle = tables.load(table.name)
    if handle is None:
        return []
    kinds, values = _TAKEN[table.name]
    names = ("filesystem", "node", "source", *kinds)
    columns = ", ".join(f'"{name}"' for name in names)
    # Bytes are null where they were never read; times are unknown as soon as one of the summed rows has none.
    sums = [f'CAST(sum("{name}") AS BIGINT) AS "{name}"' for name in values if name != "sum_us"]
    sums += ['CASE WHEN count("sum_us") = count(*) THEN CAST(sum("sum_us") AS BIGINT) END AS "sum_us"'] * (
        "sum_us" in values
    )
    chosen = _OF_JOB if window.job_id is not None else _OF_NODES
    sql = f"""SELECT {columns}, {", ".join(sums)}, sum(duration_s) AS duration_s, count(*) AS samples,
                     min(start_us) AS start_us, max(epoch_us) AS end_us, bool_or(after_reset) AS after_reset
              FROM rows WHERE start_us <= $2 AND epoch_us >= $1 AND {chosen}
              GROUP BY {columns} ORDER BY {columns}"""  # noqa: S608 (names of the schema)
    rows = relation(tables, table.name, files_between(handle, window.start_us, window.end_us))
    assert rows is not None
    who: object = window.job_id if window.job_id is not None else list(window.nodes)
    answer = connection().execute(sql, [window.start_us, window.end_us, who])
    keys = [column[0] for column in answer.description or ()]
    return [dict(zip(keys, row, strict=True)) for row in answer.fetchall()]
