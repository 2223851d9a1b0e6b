"""One run in detail, wherever it came from: its row of `runs`, its files, its ranks, its activity over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iolens.analyses.runs.columns import RunColumns
from iolens.records import Rows
from iolens.run_tables import RUN_FILES, RUN_RANKS, RUN_SERIES, RUNS


@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """A run; `run` is its row of `runs`, times in microseconds since 1970, None what is not known."""

    run: Mapping[str, Any]
    files: RunColumns = field(default_factory=RunColumns)
    ranks: RunColumns = field(default_factory=RunColumns)
    series: RunColumns = field(default_factory=RunColumns)

    @classmethod
    def of(cls, rows: Mapping[str, Rows]) -> RunRecord:
        """From the rows of a log, by table."""
        tables = {name: RunColumns.of(rows.get(name)) for name in (RUN_FILES.name, RUN_RANKS.name, RUN_SERIES.name)}
        return cls(first_row(rows[RUNS.name]), *tables.values())


def first_row(rows: Rows) -> dict[str, Any]:
    """The first row as plain values; a column that the source did not give is None."""
    given = {name: _first(column) for name, column in rows.columns.items()}
    return {column.name: given.get(column.name) for column in RUNS.columns}


def _first(column: Any) -> Any:
    """The first value of a column as Python knows it; NaN and masked are None."""
    if column is None or isinstance(column, str | bytes) or not hasattr(column, "__getitem__"):
        value = column
    else:
        value = column[0]
    if isinstance(value, np.ndarray):  # of one place, as only a masked array has for NULL
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value
