"""How old the bytes of a file system's files are, by the age histograms of its newest scan (table `contents`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import narwhals as nw
import numpy as np

from iolens.analyses.contents.scans import FILE, newest, scan_rows, sums
from iolens.models.growth import AgeDistribution
from iolens.store.selection import Selection

DAY_S: Final = 86_400.0

Clock = Literal["atime", "mtime"]
CLOCKS: Final[tuple[Clock, ...]] = ("atime", "mtime")


@dataclass(frozen=True, slots=True)
class Ages:
    """Bytes by age since last access or modification, as one scan found them."""

    clock: Clock
    time: datetime
    scan: str | None
    source: str | None
    distribution: AgeDistribution


def ages(selection: Selection, clock: Clock) -> Ages | None:
    """Ages of files by one clock from the newest scan of the window that has them; None without one."""
    rows = scan_rows(selection)
    if rows is None:
        return None
    rows = rows.filter(nw.col("histogram") == clock, nw.col("inode_type") == FILE, ~nw.col("bytes").is_null())
    scan = newest(selection, rows)
    if scan is None:
        return None
    bins = [
        (above, up_to, float(inode_sum.bytes or 0))
        for (above, up_to), inode_sum in sums(scan.of(rows), "bin_from", "bin")
    ]
    return Ages(clock, scan.time, scan.scan, scan.source, _distribution(bins))


def _distribution(bins: list[tuple[int | None, int | None, float]]) -> AgeDistribution:
    """Bins in order, in days; a bin without a lower bound begins where the one before it ends."""
    days = [(above, np.inf if up_to is None else up_to / DAY_S, size) for above, up_to, size in bins]
    days.sort(key=lambda item: (item[1], -1 if item[0] is None else item[0]))
    ends = np.array([end for _, end, _ in days])
    before = np.concatenate([[0.0], ends[:-1]])
    starts = [low if above is None else above / DAY_S for (above, _, _), low in zip(days, before, strict=True)]
    return AgeDistribution(np.minimum(starts, ends), ends, np.array([size for *_, size in days]))
