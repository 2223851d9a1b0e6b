"""How much of each UTC day was observed: one with less than 95 % of its samples is listed, and left out of means.

A row belongs to the day in which its interval starts. An interval that is longer than a target's others (samples were
missed in it) counts as one sample: its bytes are known, when they moved is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

DAY_S: Final = 86_400.0
DAY_US: Final = 86_400_000_000
FIRST_DAY: Final = date(1970, 1, 1)
COMPLETE_PCT: Final = 95.0


def is_complete(covered_pct: float) -> bool:
    """Whether a day counts in means and medians."""
    return covered_pct >= COMPLETE_PCT


def day_of(number: int) -> date:
    """The date of a day counted from 1970."""
    return FIRST_DAY + timedelta(days=number)


def tick_length() -> nw.Expr:
    """Seconds of a row by its ticks."""
    return ((nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64) / nw.lit(1e6, nw.Float64)).alias("tick_s")


def observed() -> list[nw.Expr]:
    """What `covered_pct` needs of the rows of one day and target: how many there are, and how long they are."""
    return [nw.len().alias("rows"), nw.col("duration_s").sum(), nw.col("tick_s").median().alias("sample_s")]


def per_day(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """`observed` of each target and UTC day (`bucket`)."""
    day = (nw.col("start_us") // DAY_US).alias("bucket")
    return frame.select("target", day, "duration_s", tick_length()).group_by("target", "bucket").agg(*observed())


def covered_pct(columns: Mapping[str, NDArray[Any]]) -> dict[int, float]:
    """By day: samples taken ÷ samples expected, from `bucket` (the day), `target` and what was `observed` of both.

    A target is expected from its first to its last day.
    """
    if not columns:
        return {}
    days, where = np.unique(columns["bucket"], return_inverse=True)
    sampled = np.minimum(columns["duration_s"], columns["rows"] * columns["sample_s"])
    seconds = np.bincount(where, weights=np.minimum(sampled, DAY_S), minlength=len(days))
    shares = 100.0 * seconds / (DAY_S * _expected(days, columns["bucket"], columns["target"].tolist()))
    return dict(zip(days.tolist(), np.minimum(shares, 100.0).tolist(), strict=True))


def joined(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """What `covered_pct` needs of several chunks."""
    names = ("bucket", "target", "rows", "duration_s", "sample_s")
    return {name: np.concatenate([part[name] for part in parts]) for name in names} if parts else {}


def _expected(days: NDArray[np.int64], buckets: NDArray[np.int64], targets: Sequence[str]) -> NDArray[np.int64]:
    """How many targets there were on each day."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for day, target in zip(buckets.tolist(), targets, strict=True):
        first[target] = min(day, first.get(target, day))
        last[target] = max(day, last.get(target, day))
    begins, ends = np.sort(list(first.values())), np.sort(list(last.values()))
    return np.asarray(np.searchsorted(begins, days, "right") - np.searchsorted(ends, days, "left"))
