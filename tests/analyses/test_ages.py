"""Ages of bytes from the newest scan."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iolens.analyses.ages import ages
from iolens.store.selection import FrameSelection

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
    columns = {name: pa.array([one[name] for one in rows], kinds.get(name)) for name in names}
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
    found = ages(selection(SCAN[::-1]), "atime")
    assert found is not None
    assert found.distribution.starts.tolist() == [0, 1, 7]
    assert found.distribution.ends.tolist() == [1, 7, np.inf]
    assert found.distribution.bytes.tolist() == [100, 60, 8]
    assert found.time == datetime(2021, 1, 7, 6, 13, 20, tzinfo=UTC)
    assert found.scan == f"scan-{SECOND}"
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
    found = ages(selection([row(SECOND, "atime", None, 2, 5), row(SECOND, "atime", None, 9, 6)]), "atime")
    assert found is not None
    assert found.distribution.starts.tolist() == [0, 2]


def test_two_sources_at_one_moment_are_not_added() -> None:
    found = ages(selection([*SCAN, *({**one, "source": "robinhood"} for one in SCAN)]), "atime")
    assert found is not None
    assert found.distribution.total == 168
    assert found.source == "robinhood"


@pytest.mark.parametrize("rows", [[], [row(SECOND, "size", 0, 1, 5)], [row(SECOND, "atime", 0, 1, None)]])
def test_without_ages_there_are_none(rows: list[dict[str, Any]]) -> None:
    assert ages(selection(rows), "atime") is None
    assert ages(FrameSelection({}, "scratch"), "atime") is None
