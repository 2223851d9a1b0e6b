"""Ages of bytes from the newest scan."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iolens.analyses.contents.scans import ages
from iolens.records import Rows
from iolens.schema import TABLES
from iolens.sources.contents.inode_counts import InodeCounts
from iolens.store.frames import FrameSelection
from iolens.store.rows import columns_to_arrow

DAY_S = 86_400
FIRST, SECOND = 1_600_000_000_000_000, 1_610_000_000_000_000


def row(time: int, histogram: str, low: int | None, high: int | None, size: int | None, **more: Any) -> dict[str, Any]:
    """One bin of one owner's histogram; ages in days."""
    return {
        "time": time, "source": "scan", "filesystem": "scratch", "scan": f"scan-{time}", "owner": "one",
        "inode_type": "file", "histogram": histogram, "bin_from": None if low is None else low * DAY_S,
        "bin": None if high is None else high * DAY_S, "count": 1, "bytes": size, **more,
    }  # fmt: skip


def selection(rows: list[dict[str, Any]], **settings: Any) -> FrameSelection:
    kinds = {"time": pa.timestamp("us", tz="UTC"), "bin": pa.int64(), "bin_from": pa.int64(), "bytes": pa.int64()}
    names = list(row(0, "atime", 0, 1, 0))
    columns = {name: pa.array([item[name] for item in rows], kinds.get(name)) for name in names}
    return FrameSelection({"contents": pa.table(columns)}, "scratch", **settings)


SCAN = [
    row(SECOND, "atime", 0, 1, 100),
    row(SECOND, "atime", 1, 7, 20),
    row(SECOND, "atime", 1, 7, 40, owner="two"),
    row(SECOND, "atime", 7, None, 8),
    row(SECOND, "mtime", 0, 7, 168),
    row(SECOND, "size", 0, 1, 168),
]


def test_owners_add_up_in_bins_in_order() -> None:
    result = ages(selection(SCAN[::-1]), "atime")
    assert result is not None
    assert result.distribution.starts.tolist() == [0, 1, 7]
    assert result.distribution.ends.tolist() == [1, 7, np.inf]
    assert result.distribution.bytes.tolist() == [100, 60, 8]
    assert result.time == datetime(2021, 1, 7, 6, 13, 20, tzinfo=UTC)
    assert result.scan == f"scan-{SECOND}"
    by_change = ages(selection(SCAN), "mtime")
    assert by_change is not None
    assert by_change.distribution.bytes.tolist() == [168]


def test_the_newest_scan_of_the_window_counts() -> None:
    rows = [*SCAN, row(FIRST, "atime", 0, 1, 999)]
    newest = ages(selection(rows), "atime")
    assert newest is not None
    assert newest.distribution.total == 168
    until = datetime(2021, 1, 1, tzinfo=UTC)
    before = ages(selection(rows, window=(None, until)), "atime")
    assert before is not None
    assert before.distribution.total == 999


def test_a_bin_without_a_lower_bound_begins_where_the_last_ended() -> None:
    result = ages(selection([row(SECOND, "atime", None, 2, 5), row(SECOND, "atime", None, 9, 6)]), "atime")
    assert result is not None
    assert result.distribution.starts.tolist() == [0, 2]


def test_two_sources_at_one_time_are_not_added() -> None:
    result = ages(selection([*SCAN, *({**item, "source": "robinhood"} for item in SCAN)]), "atime")
    assert result is not None
    assert result.distribution.total == 168
    assert result.source == "robinhood"


def test_ages_are_those_of_files_alone() -> None:
    """Directories have ages too, and a purge does not delete them."""
    result = ages(selection([*SCAN, row(SECOND, "atime", 0, 1, 4096, inode_type="dir")]), "atime")
    assert result is not None
    assert result.distribution.total == 168


def test_a_purge_of_a_counted_scan() -> None:
    """The bins of every listing: from those of at this very time to those without an end."""
    now_s = SECOND // 1_000_000
    days = [-1, 0, 0.01, 0.5, 1, 20, 28, 28.5, 29, 200, 5000]
    counts = InodeCounts(SECOND)
    used = [round(now_s - age * DAY_S) for age in days]
    counts.add([counts.code("ada", None, "file")] * len(days), [1000] * len(days), atimes_s=used)
    counts.add([counts.code("ada", None, "dir")], [4096], atimes_s=[now_s])
    (item,) = counts.rows("scratch", "whole")
    assert isinstance(item, Rows)
    columns = {**item.columns, "source": "scan"}
    table = columns_to_arrow(TABLES["contents"], columns, item.count)
    result = ages(FrameSelection({"contents": table}, "scratch"), "atime")
    assert result is not None
    left = result.distribution.younger(28)
    assert (left.low, left.likely, left.high) == (7000, 7000, 7000)  # 28 days is the end of a bin
    inside = result.distribution.younger(29)
    assert (inside.low, inside.high) == (7000, 9000)
    by_day = result.distribution.by_day()
    assert by_day.sum() == result.distribution.total == 11_000
    assert by_day[0] == 5000  # what is dated after the scan is as young as can be


@pytest.mark.parametrize("rows", [[], [row(SECOND, "size", 0, 1, 5)], [row(SECOND, "atime", 0, 1, None)]])
def test_without_ages_there_are_none(rows: list[dict[str, Any]]) -> None:
    assert ages(selection(rows), "atime") is None
    assert ages(FrameSelection({}, "scratch"), "atime") is None
