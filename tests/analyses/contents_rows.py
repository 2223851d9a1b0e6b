"""Made-up scans: rows of `contents` that a test can write down by hand, or count from made-up files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iolens.records import Rows
from iolens.schema import TABLES
from iolens.sources.contents.inode_counts import DAY_S, InodeCounts
from iolens.store.frames import FrameSelection
from iolens.store.rows import to_arrow

MARCH_US = 1_269_734_400_000_000  # 2010-03-28
DAY_US = 86_400_000_000
JANUARY_US = MARCH_US - 62 * DAY_US  # 2010-01-25


def row(histogram: str, low: int | None, high: int | None, count: int | None, **more: Any) -> dict[str, Any]:
    """One bin of one holder's histogram, in March unless said otherwise."""
    return {
        "time": MARCH_US, "source": "scan", "filesystem": "scratch", "scan": None, "owner": "ada", "project": None,
        "inode_type": "file", "histogram": histogram, "bin_from": low, "bin": high, "count": count, **more,
    }  # fmt: skip


def total(count: int | None, size: int | None, **more: Any) -> dict[str, Any]:
    """A holder of whom only totals are known."""
    return row("total", None, None, count, bytes=size, **more)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return to_arrow(TABLES["contents"], rows)


def selection(rows: list[dict[str, Any]], **settings: Any) -> FrameSelection:
    return FrameSelection({"contents": table_of(rows)}, "scratch", **settings)


def scanned(
    time_us: int, files: dict[tuple[str | None, str | None], int], seed: int = 1, filesystem: str = "scratch"
) -> list[dict[str, Any]]:
    """A scan of so many files for each owner and project, with directories beside them."""
    random = np.random.default_rng(seed)
    now = time_us // 1_000_000
    counts = InodeCounts(time_us)
    for (owner, project), number in files.items():
        sizes = random.lognormal(9, 3, number).astype(np.int64)
        used = now - random.exponential(90 * DAY_S, number).astype(np.int64)
        changed = used - random.exponential(90 * DAY_S, number).astype(np.int64)
        code = counts.code(owner, project, "file")
        counts.add([code] * number, sizes, -(-sizes // 4096) * 4096, atimes_s=used, mtimes_s=changed)
        code, some = counts.code(owner, project, "dir"), number // 10 + 1
        counts.add([code] * some, [4096] * some, [4096] * some, atimes_s=[now] * some, mtimes_s=[now] * some)
        counts.add_widths([code] * some, random.integers(0, 40, some))
    return [row for item in counts.rows(filesystem, "whole") for row in _each(item)]


def _each(item: object) -> list[dict[str, Any]]:
    assert isinstance(item, Rows)
    return [
        {name: column[place] if isinstance(column, list) else column for name, column in item.columns.items()}
        | {"source": "scan"}
        for place in range(item.count)
    ]
