"""How old the bytes of a file system are, by the age histograms of its newest scan (table `contents`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.models.purge import AgeDistribution
from iolens.store.selection import Selection
from iolens.units import epoch_us, from_epoch_us

TABLE: Final = "contents"
DAY_S: Final = 86_400.0

Clock = Literal["atime", "mtime"]
CLOCKS: Final[tuple[Clock, ...]] = ("atime", "mtime")


@dataclass(frozen=True, slots=True)
class Ages:
    """Bytes by age since last access or modification, as one scan found them."""

    clock: Clock
    time: datetime
    scan: str | None
    source: str
    distribution: AgeDistribution


def ages(selection: Selection, clock: Clock) -> Ages | None:
    """Ages by one clock from the newest scan of the window that has them; None without one."""
    frame = selection.frame(TABLE)
    if not {"histogram", "bin", "bin_from", "bytes"} <= set(frame.collect_schema().names()):
        return None
    rows = frame.filter(nw.col("histogram") == clock, ~nw.col("bytes").is_null())
    since, until = selection.window
    if since is not None:
        rows = rows.filter(nw.col("epoch_us") >= epoch_us(since))
    if until is not None:
        rows = rows.filter(nw.col("epoch_us") < epoch_us(until))
    newest = rows.select(nw.col("epoch_us").max()).collect(backend="pyarrow").to_native().to_pylist()
    if not newest or newest[0]["epoch_us"] is None:
        return None
    moment = int(newest[0]["epoch_us"])
    sums = (
        rows.filter(nw.col("epoch_us") == moment)
        .group_by("source", "scan", "bin_from", "bin")
        .agg(nw.col("bytes").sum().alias("bytes"))
    )
    found = sums.collect(backend="pyarrow").to_native().to_pylist()
    first = min(found, key=lambda row: (row["source"], str(row["scan"])))
    same = [row for row in found if (row["source"], row["scan"]) == (first["source"], first["scan"])]
    return Ages(clock, from_epoch_us(moment), first["scan"], first["source"], _distribution(same))


def _distribution(rows: list[dict[str, Any]]) -> AgeDistribution:
    """Bins in order, in days; a bin without a lower bound begins where the one before it ends."""
    ends = np.array([np.inf if row["bin"] is None else row["bin"] / DAY_S for row in rows])
    order = np.argsort(ends, kind="stable")
    ends, sizes = ends[order], np.array([float(row["bytes"]) for row in rows])[order]
    before = np.concatenate([[0.0], ends[:-1]])
    given = [rows[place]["bin_from"] for place in order]
    starts = np.array([low if start is None else start / DAY_S for start, low in zip(given, before, strict=True)])
    return AgeDistribution(np.minimum(starts, ends), ends, sizes)
