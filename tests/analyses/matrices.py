"""Matrices of ticks × targets written down by hand."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.units import epoch_us

START = "2020-09-14T00:00:00+00:00"


def matrix(
    tick_s: float = 60.0, start: str = START, ticks: list[int] | None = None, duration_s: list | None = None, **measures
) -> TickMatrix:
    """One row per tick (numbers from 1 on, all of them unless given), one column per target; a number is a column."""
    columns = {name: _columns(values) for name, values in measures.items()}
    shape = next(iter(columns.values())).shape
    numbers = np.array(ticks if ticks is not None else range(1, shape[0] + 1), np.int64)
    tick_us = round(tick_s * 1e6)
    end_us = epoch_us(datetime.fromisoformat(start)) + numbers * tick_us
    reported = np.any([~np.isnan(values) for values in columns.values()], axis=0)
    length = np.where(reported, tick_s, np.nan) if duration_s is None else _columns(duration_s)
    names = tuple(f"t{number}" for number in range(shape[1]))
    return TickMatrix(end_us, tick_us, names, length, columns)


def _columns(values) -> np.ndarray:
    array = np.array(values, float)
    return array[:, None] if array.ndim == 1 else array
