"""Latency of system calls: counts add, means weigh, and a factor counts only beyond the spread."""

from __future__ import annotations

import random
from typing import Any

import pytest

from iolens.analyses.bench_latency import BenchLatency, CallLatency, OperationLatency, bench_latency
from iolens.errors import UsageError
from tests.analyses.call_rows import CALLS, LUSTRE, NFS, US, call_row, study_rows


def call(result: BenchLatency, place: str, direction: str, name: str) -> CallLatency:
    (item,) = (item for item in result.calls if (item.place, item.direction, item.call) == (place, direction, name))
    return item


def operation(result: BenchLatency, place: str, direction: str) -> OperationLatency:
    (item,) = (item for item in result.operations if (item.place, item.direction) == (place, direction))
    return item


@pytest.fixture
def result() -> BenchLatency:
    return bench_latency(study_rows({"nfs": NFS, "lustre": LUSTRE}))


def test_calls_are_in_the_order_of_an_operation_the_idle_one_last(result: BenchLatency) -> None:
    for direction in ("write", "read"):
        names = [item.call for item in result.calls if item.direction == direction and item.place == "nfs"]
        assert names == [*CALLS[direction], "getppid"]


def test_the_factors_of_the_paper_come_out(result: BenchLatency) -> None:
    """Made up after Fig. 10: open 1.6, fstat 40 and write 2 times as long on Lustre as on NFS."""
    for name, factor in (("open", 1.6), ("fstat", 40.0), ("write", 2.0), ("close", 1.0)):
        against = call(result, "lustre", "write", name).against
        assert against is not None
        assert against.factor == pytest.approx(factor)
    assert result.reference == "nfs"
    assert all(item.against is None for item in result.calls if item.place == "nfs")


def test_counts_add_and_means_weigh_by_calls() -> None:
    rows = [call_row("a", "write", "open", 10.0, 0, calls=100), call_row("a", "write", "open", 40.0, 1, calls=300)]
    item = call(bench_latency(rows), "a", "write", "open")
    assert (item.calls, item.iterations) == (400, 2)
    assert item.mean_s == pytest.approx(32.5 * US)
    assert [item.lowest_mean_s, item.highest_mean_s] == pytest.approx([10.0 * US, 40.0 * US])


def test_median_and_p99_are_those_of_the_middle_iteration() -> None:
    rows = [call_row("a", "write", "open", mean, iteration) for iteration, mean in enumerate((10.0, 11.0, 500.0))]
    item = call(bench_latency(rows), "a", "write", "open")
    assert item.median_s == pytest.approx(10.0 * US)
    assert item.p99_s == pytest.approx(33.0 * US)


def test_an_operation_is_the_sum_of_its_calls(result: BenchLatency) -> None:
    item = operation(result, "nfs", "write")
    assert item.mean_s == pytest.approx((100 + 12 + 20 + 30 + 4 * 10) * US)  # without getppid
    assert (item.operations, item.calls_per_operation) == (300, 8.0)
    assert item.idle_s == pytest.approx(9.0 * US)  # the median of getppid
    assert item.idle_pct == pytest.approx(100 * 8 * 9 / 202)


def test_calls_that_were_made_again_or_once_only_do_not_change_the_number_of_operations() -> None:
    rows = [*study_rows({"a": NFS}, factors=(1.0,)), call_row("a", "write", "read", 5.0, calls=1)]
    again = next(row for row in rows if (row["direction"], row["call"]) == ("write", "open"))
    again["operations"] += 2
    item = operation(bench_latency(rows), "a", "write")
    assert (item.operations, item.calls_per_operation) == (100, 8.03)


def test_what_is_above_the_idle_call_is_by_medians_and_beside_the_mean(result: BenchLatency) -> None:
    item = call(result, "nfs", "write", "open")
    assert item.mean_s == pytest.approx(100.0 * US)  # nothing is subtracted
    assert item.above_idle_s == pytest.approx((99.0 - 9.0) * US)


def test_shares_are_of_the_operation(result: BenchLatency) -> None:
    assert call(result, "nfs", "write", "open").share_pct == pytest.approx(100 * 100 / 202)
    assert call(result, "nfs", "write", "getppid").share_pct is None
    mine = [item.share_pct for item in result.calls_of(operation(result, "lustre", "read"))]
    assert sum(share for share in mine if share is not None) == pytest.approx(100.0)


def test_bytes_are_of_the_call_that_moves_them(result: BenchLatency) -> None:
    assert call(result, "nfs", "write", "write").bytes == 2400
    assert call(result, "nfs", "write", "open").bytes is None


@pytest.mark.parametrize(
    ("first", "second", "beyond"),
    [
        ((10.0, 11.0, 12.0), (13.0, 14.0, 15.0), True),
        ((10.0, 11.0, 12.0), (7.0, 8.0, 9.0), True),
        ((10.0, 11.0, 13.5), (13.0, 14.0, 15.0), False),  # one pass in common
        ((10.0, 11.0), (13.0, 14.0, 15.0), None),  # too few
    ],
)
def test_places_differ_if_every_pass_does(
    first: tuple[float, ...], second: tuple[float, ...], beyond: bool | None
) -> None:
    rows = [call_row("a", "write", "open", mean, i) for i, mean in enumerate(first)]
    rows += [call_row("b", "write", "open", mean, i, time=10**9) for i, mean in enumerate(second)]
    against = call(bench_latency(rows), "b", "write", "open").against
    assert against is not None
    assert against.beyond_spread is beyond
    assert against.low == pytest.approx(min(second) / max(first))
    assert against.high == pytest.approx(max(second) / min(first))


def test_the_call_that_differs_most_is_the_farthest_from_1(result: BenchLatency) -> None:
    item = result.most_different_call(operation(result, "lustre", "write"))
    assert item is not None
    assert item.call == "fstat"
    faster = bench_latency(study_rows({"lustre": LUSTRE, "nfs": NFS}))
    item = faster.most_different_call(operation(faster, "nfs", "write"))
    assert item is not None
    assert item.call == "fstat"
    assert item.against is not None
    assert item.against.factor == pytest.approx(1 / 40)


def test_a_difference_that_the_idle_call_has_too_is_not_the_file_systems() -> None:
    slow = {name: (1.6 if name == "getppid" else 1.5) * mean for name, mean in NFS.items()}
    result = bench_latency(study_rows({"a": NFS, "b": slow}))
    against = call(result, "b", "write", "open").against
    assert against is not None
    assert against.beyond_spread
    assert result.most_different_call(operation(result, "b", "write")) is None
    assert not result.is_different(operation(result, "b", "write"))


def test_the_slowest_calls_are_those_that_take_more_than_half(result: BenchLatency) -> None:
    assert [item.call for item in result.slowest_calls(operation(result, "lustre", "write"))] == ["fstat"]
    assert [item.call for item in result.slowest_calls(operation(result, "nfs", "write"))] == ["open", "close"]


def test_the_order_of_rows_does_not_matter(result: BenchLatency) -> None:
    rows = study_rows({"nfs": NFS, "lustre": LUSTRE}, time=None)
    random.Random(1).shuffle(rows)
    assert bench_latency(rows, ["nfs", "lustre"]).operations == result.operations


def test_the_first_place_by_time_is_the_reference_unless_another_is_named() -> None:
    rows = [call_row("late", "write", "open", 10.0, time=5), call_row("early", "write", "open", 10.0, time=3)]
    assert bench_latency(rows).places == ["early", "late"]
    assert bench_latency(rows, ["late", "unknown"]).places == ["late", "early"]


def test_times_of_two_tools_have_no_factor() -> None:
    rows = study_rows({"a": NFS}) + study_rows({"b": NFS}, tool="loop", time=10**9)
    result = bench_latency(rows)
    assert {item.against for item in result.calls} == {item.against for item in result.operations} == {None}
    assert any("not comparable" in note for note in result.notes)


def test_rows_without_numbers_are_counted() -> None:
    whole = call_row("a", "write", "open", 10.0)
    broken: list[dict[str, Any]] = [
        {**whole, "duration_s": None},
        {**whole, "operations": 0},
        {**whole, "direction": "stat"},
        {name: value for name, value in whole.items() if name != "tool"},
    ]
    result = bench_latency([whole, *broken])
    assert result.rows_left_out == 4
    assert "4 rows without seconds or number of calls left out" in result.notes
    assert call(result, "a", "write", "open").calls == 100


def test_rows_of_other_benchmarks_are_not_looked_at() -> None:
    other = {"study": "sequential", "tool": "sequential", "direction": "write", "duration_s": 1.0, "operations": 9}
    result = bench_latency([other, {**other, "call": "write"}])
    assert (result.calls, result.operations, result.rows_left_out, result.reference) == ([], [], 0, None)


def test_a_row_needs_only_its_numbers() -> None:
    bare = {"call": "open", "direction": "write", "tool": "loop", "duration_s": 0.5, "operations": 5}
    (item,) = bench_latency([bare]).calls
    assert (item.mean_s, item.median_s, item.p99_s, item.place) == (0.1, None, None, "(no name)")


def test_two_sizes_are_not_one_study() -> None:
    rows = [call_row("a", "write", "open", 10.0), call_row("a", "write", "open", 10.0, 1, transfer_bytes=64)]
    with pytest.raises(UsageError, match="8 and 64 bytes"):
        bench_latency(rows)


def test_times_of_zero_make_no_factor() -> None:
    """strace prints microseconds: a call may take none."""
    result = bench_latency(study_rows({"a": {"getppid": 0.0}, "b": {"getppid": 0.0}}))
    assert all(item.against is None and item.share_pct is None for item in result.calls)


def test_what_reads_found_in_the_page_cache_is_said() -> None:
    rows = study_rows({"a": NFS}, page_cache="warm")
    assert bench_latency(rows).notes == ["files were read from the page cache, where writing had left them"]
