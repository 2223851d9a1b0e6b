"""Which scans there are, which one counts, and sums that are exact beyond what a column can hold."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.contents.scans import InodeSum, added, newest, one_per_time, scan_rows, scans, sums
from iolens.records import Capture, Row
from iolens.store.frames import FrameSelection
from iolens.store.store import Store
from tests.analyses.contents_rows import JANUARY_US, MARCH_US, row, selection, table_of


def counted_scans(rows: list[dict[str, Any]], **settings: Any) -> list[tuple[int, str | None, str | None]]:
    chosen = selection(rows, **settings)
    frame = scan_rows(chosen)
    assert frame is not None
    return [(scan.time_us, scan.source, scan.scan) for scan in scans(chosen, frame)]


def test_scans_in_time_order_the_preferred_of_a_time_last() -> None:
    rows = [
        row("size", 0, 1, 1, source="robinhood"),
        row("size", 0, 1, 1, scan="b"),
        row("size", 0, 1, 1, scan="a"),
        row("size", 0, 1, 1, scan="a", owner="bob"),
        row("size", 0, 1, 1, time=JANUARY_US),
    ]
    assert counted_scans(rows) == [
        (JANUARY_US, "scan", None), (MARCH_US, "scan", "b"), (MARCH_US, "scan", "a"), (MARCH_US, "robinhood", None),
    ]  # fmt: skip
    assert counted_scans(rows, source_order=["scan"])[-1] == (MARCH_US, "scan", "a")


def test_of_one_time_the_scan_that_tells_most_counts() -> None:
    rows = [row("total", None, None, 1, source="rbh-report"), row("size", 0, 1, 1, source="robinhood")]
    assert counted_scans(rows)[-1][1] == "rbh-report"
    assert counted_scans([*rows, row("atime", 0, 1, 1, source="robinhood")])[-1][1] == "robinhood"


def test_one_scan_counts_of_each_time() -> None:
    chosen = selection([row("size", 0, 1, 1, scan=name, time=time) for name in "ab" for time in (JANUARY_US, MARCH_US)])
    frame = scan_rows(chosen)
    assert frame is not None
    assert [(item.time_us, item.scan) for item in one_per_time(scans(chosen, frame))] == [
        (JANUARY_US, "a"), (MARCH_US, "a"),
    ]  # fmt: skip
    counts = newest(chosen, frame)
    assert counts is not None
    assert counts.time == datetime(2010, 3, 28, tzinfo=UTC)
    assert counts.histograms == {"size"}


def test_a_scan_without_a_name_is_not_mixed_with_one_that_has_one() -> None:
    chosen = selection([row("size", 0, 1, 5), row("size", 0, 1, 7, scan="other")])
    frame = scan_rows(chosen)
    assert frame is not None
    each = {scan.scan: sums(scan.of(frame), "histogram")[0][1].inodes for scan in scans(chosen, frame)}
    assert each == {None: 5, "other": 7}


def test_a_window_without_scans_has_none() -> None:
    window = (datetime(2010, 2, 1, tzinfo=UTC), datetime(2010, 3, 1, tzinfo=UTC))
    assert counted_scans([row("size", 0, 1, 1), row("size", 0, 1, 1, time=JANUARY_US)], window=window) == []


def test_a_frame_that_is_no_table_of_scans_has_no_rows() -> None:
    assert scan_rows(FrameSelection({"contents": table_of([]).select(["time", "owner"])}, "scratch")) is None


LARGE = 2**62 + 12_345_678_901


@pytest.mark.parametrize("stored", [False, True], ids=["frame", "store"])
def test_sums_are_exact_beyond_what_a_column_can_hold(tmp_path: Path, stored: bool) -> None:
    rows = [row("size", 2**62, None, 1, owner=f"owner{n}", bytes=LARGE + n, allocated_bytes=n) for n in range(5)]
    chosen: Any = selection(rows)
    if stored:
        store = Store(tmp_path)
        store.ingest([Capture("made up", "one", lambda: (Row("contents", item) for item in rows))], "scan")
        chosen = store.select("scratch")
    frame = scan_rows(chosen)
    assert frame is not None
    assert sums(frame, "inode_type") == [(("file",), InodeSum(5, 5 * LARGE + 10, 10))]


def test_a_sum_is_known_where_all_of_it_is() -> None:
    rows = [row("size", 0, 1, 1, bytes=1), row("size", 0, 1, 2, owner="bob"), row("size", 1, 2, 3, bytes=6)]
    frame = scan_rows(selection(rows))
    assert frame is not None
    assert sorted(sums(frame, "bin")) == [((1,), InodeSum(3, None, None)), ((2,), InodeSum(3, 6, None))]
    assert added([InodeSum(1, 2, None), InodeSum(3, 4, 5)]) == InodeSum(4, 6, None)
    assert added([]) == InodeSum(0, 0, 0)
