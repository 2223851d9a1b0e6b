"""Percentiles of targets and of their sum, and peaks that do not come at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.analyses.workload.bandwidth import EVERYTHING, Bandwidths, PeakAgainstSum
from tests.analyses.matrices import matrix

nan = np.nan
values = st.one_of(st.just(nan), st.just(0.0), st.floats(1.0, 1e12))
pairs = st.integers(1, 20).flatmap(
    lambda ticks: st.tuples(*(hnp.arrays(np.float64, (ticks, 3), elements=values) for _ in range(2)))
)


def settled(*matrices: TickMatrix, expected: list[int] | None = None) -> Bandwidths:
    """Fed with matrices; in every tick all targets are expected, or as many as given."""
    count = matrices[0].duration_s.shape[1]
    result = Bandwidths(count, matrices[0].tick_us)
    for item in matrices:
        result.add(item)
    result.settle(lambda end_us: np.full(end_us.size, count) if expected is None else np.array(expected))
    return result


@given(pairs, st.integers(0, 20))
def test_sums_and_percentiles_are_those_of_a_count_one_by_one(pair: tuple[np.ndarray, np.ndarray], cut: int) -> None:
    read, write = (np.where(np.isnan(pair[0]), nan, item) for item in pair)  # a sample tells both or none
    write[np.isnan(write)] = 0.0
    write[np.isnan(read)] = nan
    parts = [part for part in np.split(np.arange(len(read)), [min(cut, len(read))]) if part.size]
    result = settled(
        *(
            matrix(2.0, ticks=(part + 1).tolist(), read_bytes=read[part] * 2.0, write_bytes=write[part] * 2.0)
            for part in parts
        )
    )
    whole = ~np.isnan(read).any(axis=1)  # nine in ten of three are three
    assert result.ticks_left_out == (~whole).sum()
    for direction, rates in (("read", read), ("write", write), (EVERYTHING, read + write)):
        sums = rates[whole].sum(axis=1)
        expected = np.quantile(sums, [0.95, 1.0]) if sums.size else [None, None]
        assert result.together[direction].quantiles([0.95, 1.0]) == pytest.approx(expected)
    for column in range(3):
        mine = read[~np.isnan(read[:, column]), column]
        expected = np.quantile(mine, [0.95, 0.99]) if mine.size else [None, None]
        assert result.by_target["read"].quantiles([0.95, 0.99], column) == pytest.approx(expected)


def test_peaks_at_once_and_one_by_one() -> None:
    """Two targets that take turns: together they never reach what each reaches alone."""
    result = settled(matrix(1.0, read_bytes=[[100, 0], [0, 100], [50, 50]], write_bytes=[[7, 0]] * 3))
    assert result.peaks() == [
        PeakAgainstSum(95.0, "read", 100.0, pytest.approx(2 * 95.0)),
        PeakAgainstSum(95.0, "write", 7.0, 7.0),
        PeakAgainstSum(99.0, "read", 100.0, pytest.approx(2 * 99.0)),
        PeakAgainstSum(99.0, "write", 7.0, 7.0),
        PeakAgainstSum(100.0, "read", 100.0, 200.0),
        PeakAgainstSum(100.0, "write", 7.0, 7.0),
    ]


def test_nine_in_ten_targets_make_a_sum() -> None:
    rates = np.ones((3, 10))
    rates[1, 0] = nan
    rates[2, :2] = nan
    result = settled(matrix(1.0, read_bytes=rates))
    assert result.ticks_left_out == 1
    assert result.together["read"].count() == 2


def test_a_target_that_came_later_is_not_missed_before() -> None:
    result = settled(matrix(1.0, read_bytes=[[5, nan], [6, nan], [7, 8], [9, nan]]), expected=[1, 1, 2, 2])
    assert result.ticks_left_out == 1
    assert result.together["read"].quantiles([0.0, 0.5, 1.0]) == [5.0, 6.0, 15.0]


def test_the_answer_does_not_depend_on_how_the_window_is_cut() -> None:
    rates = np.ones((6, 4))
    rates[:3, 1:] = nan
    whole = settled(matrix(1.0, read_bytes=rates))
    parts = settled(matrix(1.0, read_bytes=rates[:3]), matrix(1.0, ticks=[4, 5, 6], read_bytes=rates[3:]))
    assert whole.ticks_left_out == parts.ticks_left_out == 3


def test_a_direction_nobody_tells_in_a_tick_is_not_zero() -> None:
    result = settled(matrix(1.0, read_bytes=[5, 6], write_bytes=[nan, 3]))
    assert result.together["write"].quantiles([0.0, 1.0]) == [3.0, 3.0]
    assert result.together[EVERYTHING].quantile(0.0) == 5.0


def test_only_reads() -> None:
    result = settled(matrix(1.0, read_bytes=[5, 6]))
    assert {peak.direction for peak in result.peaks()} == {"read"}
    assert result.together["write"].quantile(0.5) is None
