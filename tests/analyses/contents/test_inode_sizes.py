"""Sizes of inodes from the newest scan."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from iolens.analyses.contents.scans import inode_sizes, sizes_of_rows
from iolens.errors import UsageError
from iolens.store.frames import FrameSelection
from tests.analyses.telemetry import made_up

FIRST, SECOND = 1_600_000_000_000_000, 1_610_000_000_000_000


def row(time: int, kind: str, low: int | None, high: int | None, count: int, **more: Any) -> dict[str, Any]:
    return {
        "time": time, "source": "scan", "filesystem": "scratch", "scan": f"scan-{time}", "owner": "one",
        "inode_type": kind, "histogram": "size", "bin_from": low, "bin": high, "count": count, "bytes": None, **more,
    }  # fmt: skip


def selection(rows: list[dict[str, Any]], **settings: Any) -> FrameSelection:
    whole = dict.fromkeys(("bin", "bin_from", "bytes", "count"), pa.int64())
    types: dict[str, Any] = {"time": pa.timestamp("us", tz="UTC"), "scan": pa.string(), **whole}
    columns = {name: pa.array([item[name] for item in rows], types.get(name)) for name in row(0, "file", 0, 1, 0)}
    return FrameSelection({"contents": pa.table(columns)}, "scratch", **settings)


SCAN = [
    row(FIRST, "file", 0, 1, 999),
    row(SECOND, "file", 0, 1, 5, bytes=5),
    row(SECOND, "file", 0, 1, 2, bytes=2, owner="two"),
    row(SECOND, "file", 4, 8, 1),
    row(SECOND, "file", 4, 8, 3, bytes=24, owner="two"),
    row(SECOND, "dir", 2048, 4096, 2),
    row(SECOND, "file", 0, 3600, 77, histogram="atime"),
]


def test_owners_of_the_newest_scan_add_up() -> None:
    result = inode_sizes(selection(SCAN[::-1]))
    assert result is not None
    assert result.files.count.tolist() == [7, 4]
    assert result.files.has_bytes.tolist() == [True, False]  # one owner's bytes of the second bin are not known
    assert result.files.bytes[0] == 7
    assert result.others["dir"].count.tolist() == [2]
    assert result.time == datetime.fromtimestamp(SECOND / 1e6, UTC)
    assert result.origin == "scratch: scan of 2021-01-07T06:13:20Z (scan)"


def test_the_window_chooses_the_scan() -> None:
    window = (None, datetime(2020, 12, 1, tzinfo=UTC))
    result = inode_sizes(selection(SCAN, window=window))
    assert result is not None
    assert result.files.total == 999
    late = (datetime(2021, 2, 1, tzinfo=UTC), None)
    assert inode_sizes(selection(SCAN, window=late)) is None


def test_a_store_without_scans_has_none() -> None:
    assert inode_sizes(FrameSelection({"target_io": made_up(1, 3, 1).table("target_io")}, "scratch")) is None


def test_a_scan_without_files_says_so() -> None:
    with pytest.raises(UsageError, match="it counts no files by size"):
        inode_sizes(selection([row(FIRST, "dir", 0, 1, 5)]))


def test_rows_that_are_in_no_store_do_as_well() -> None:
    result = sizes_of_rows(SCAN[1:], "file here.csv")
    assert (result.files.total, result.origin, result.time) == (11, "file here.csv", None)
