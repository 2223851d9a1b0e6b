"""Inodes in bins: against a count one by one, in parts, and at the ends of what numbers can hold."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolens.records import Rows
from iolens.sources.contents.inode_counts import AGES, DAY_S, ENDS, LARGEST, POWERS, InodeCounts

NOW_S = 1_700_000_000
GROUPS = [("ada", "climate", "file"), ("ada", None, "dir"), (None, None, "file"), ("bob", "climate", "symlink")]

inodes = st.lists(
    st.tuples(
        st.sampled_from(GROUPS),
        st.integers(0, LARGEST),
        st.integers(0, 2**50),
        st.integers(NOW_S - 20 * 365 * DAY_S, NOW_S + DAY_S),
        st.integers(NOW_S - 20 * 365 * DAY_S, NOW_S + DAY_S),
    ),
    max_size=60,
)


def counted(entries: list[Any]) -> InodeCounts:
    counts = InodeCounts(NOW_S * 1_000_000)
    columns = [list(column) for column in zip(*entries, strict=True)] if entries else [[]] * 5
    codes = [counts.code(*group) for group in columns[0]]
    counts.add(codes, columns[1], columns[2], atimes_s=columns[3], mtimes_s=columns[4])
    return counts


def table(counts: InodeCounts) -> list[dict[str, Any]]:
    result = []
    for item in counts.rows("scratch", "first"):
        assert isinstance(item, Rows)
        for place in range(item.count):
            result.append(
                {name: column[place] if isinstance(column, list) else column for name, column in item.columns.items()}
            )
    return result


def one_by_one(entries: list[Any]) -> dict[Any, list[int]]:
    """The definition: what is larger than the end before and at most the bin's own."""
    sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for group, size, allocated, atime, mtime in entries:
        for histogram, value in (("size", size), ("atime", NOW_S - atime), ("mtime", NOW_S - mtime)):
            end = next((item for item in ENDS[histogram] if value <= item), None)
            for place, number in enumerate((1, size, allocated)):
                sums[*group, histogram, end][place] += number
    return dict(sums)


def as_sums(rows: list[dict[str, Any]]) -> dict[Any, list[int]]:
    names = ("owner", "project", "inode_type", "histogram", "bin")
    sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        for place, name in enumerate(("count", "bytes", "allocated_bytes")):
            sums[tuple(row[name] for name in names)][place] += row[name]
    return dict(sums)


@given(inodes)
def test_bins_are_those_of_a_count_one_by_one(entries: list[Any]) -> None:
    rows = table(counted(entries))
    assert as_sums(rows) == one_by_one(entries)
    assert all(0 <= row[name] <= LARGEST for row in rows for name in ("bytes", "allocated_bytes"))


@given(inodes, st.integers(0, 60))
def test_parts_merge_to_the_whole(entries: list[Any], cut: int) -> None:
    first, second = counted(entries[:cut]), counted(entries[cut:])
    first.merge(second)
    whole = list(counted(entries).rows("scratch"))
    parts = list(first.rows("scratch"))
    assert [getattr(item, "columns", item) for item in parts] == [getattr(item, "columns", item) for item in whole]


def test_a_row_says_when_where_and_which_scan() -> None:
    (row,) = [item for item in table(counted([(GROUPS[0], 5, 512, NOW_S, NOW_S)])) if item["histogram"] == "size"]
    assert row == {
        "time": NOW_S * 1_000_000, "filesystem": "scratch", "scan": "first", "owner": "ada", "project": "climate",
        "inode_type": "file", "histogram": "size", "bin_from": 4, "bin": 8, "piece": None, "count": 1,
        "bytes": 5, "allocated_bytes": 512,
    }  # fmt: skip


def test_ends_of_bins() -> None:
    sizes = [0, 1, 2, 3, 4, 2**62, 2**62 + 1]
    counts = InodeCounts(0)
    counts.add([counts.code("ada", None, "file")] * len(sizes), sizes)
    ends = [(row["bin_from"], row["bin"], row["count"]) for row in table(counts)]
    assert ends == [(None, 0, 1), (0, 1, 1), (1, 2, 1), (2, 4, 2), (2**61, 2**62, 1), (2**62, None, 1)]
    assert {row["allocated_bytes"] for row in table(counts)} == {None}


def test_ages_from_the_future_and_from_long_ago() -> None:
    ages = [-5, 0, 1, DAY_S, DAY_S + 1, 100 * 365 * DAY_S]
    counts = InodeCounts(NOW_S * 1_000_000)
    counts.add([counts.code(None, None, "file")] * len(ages), [1] * len(ages), mtimes_s=[NOW_S - age for age in ages])
    rows = [row for row in table(counts) if row["histogram"] == "mtime"]
    assert [(row["bin_from"], row["bin"], row["count"]) for row in rows] == [
        (None, 0, 2), (0, 3600, 1), (6 * 3600, DAY_S, 1), (DAY_S, 2 * DAY_S, 1), (AGES[-1], None, 1),
    ]  # fmt: skip


def test_widths_have_no_bytes() -> None:
    counts = InodeCounts(0)
    counts.add_widths([counts.code("ada", None, "dir")] * 3, [0, 3, 4])
    assert [(row["bin"], row["count"], row["bytes"]) for row in table(counts)] == [(0, 1, None), (4, 2, None)]


def test_bytes_that_no_column_holds_take_several_rows() -> None:
    """Files above 4 EiB were left out of their bin, with all others in it."""
    counts = InodeCounts(0)
    code = counts.code("ada", None, "file")
    counts.add([code] * 4, [2**62 + 1, LARGEST, LARGEST, 7], mtimes_s=[0] * 4)
    rows = {name: [row for row in table(counts) if row["histogram"] == name] for name in ("size", "mtime")}
    whole = 2**62 + 1 + 2 * LARGEST
    large = [row for row in rows["size"] if row["bin"] is None]
    assert [(row["bin_from"], row["piece"], row["count"]) for row in large] == [(2**62, n, 1) for n in (1, 2, 3)]
    assert sum(row["bytes"] for row in large) == whole
    assert [row["piece"] for row in rows["size"] if row["bin"] == 8] == [None]
    assert (sum(row["count"] for row in rows["mtime"]), sum(row["bytes"] for row in rows["mtime"])) == (4, whole + 7)


def test_sums_are_exact_where_floats_are_not() -> None:
    counts = InodeCounts(0)
    code = counts.code("ada", None, "file")
    counts.add([code] * 1001, [2**53 + 1] * 1001)
    assert [row["bytes"] for row in table(counts)] == [1001 * (2**53 + 1)]


def test_powers_begin_with_nothing() -> None:
    assert POWERS[:4] == (0, 1, 2, 4)
