"""Minutes of all targets together: Table III of paper D, what is missing, long samples and long ticks."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.workload.bandwidth import DURATIONS, IdlePeriods, Maintenance, Minutes, Throughput, outside
from tests.analyses.matrices import matrix

nan = np.nan
MIB = 1 << 20
BUSY, IDLE, ZERO, MISSING = 100.0, 1.0, 0.0, None


def of_minutes(rates: list[float | None], peak: float | None = None) -> Throughput:
    """One target, one sample a minute, bytes per second; None is missing."""
    ticks = [number for number, rate in enumerate(rates, 1) if rate is not None]
    answer = Minutes(60_000_000)
    known = [rate * 60.0 for rate in rates if rate is not None]
    answer.add(matrix(ticks=ticks, read_bytes=known, write_bytes=[0.0] * len(known)))
    result = answer.result(("read", "write"), peak)
    assert result is not None
    return result


def counted(lines: list[IdlePeriods]) -> dict[int, tuple[int, int]]:
    return {line.from_min: (line.count, line.minutes) for line in lines if line.count}


def test_idle_periods_by_hand() -> None:
    """Busy, 1 idle, busy, 6 idle with a minute missing in the middle: two periods of 3; then 2 without a byte."""
    rates = [BUSY, IDLE, BUSY, *[IDLE] * 3, MISSING, *[IDLE] * 3, BUSY, ZERO, ZERO, BUSY]
    result = of_minutes(rates)
    assert result.peak_bytes_per_s == BUSY
    assert result.idle_below_bytes_per_s == 5.0
    assert counted(result.idle_periods) == {1: (1, 1), 2: (3, 8)}
    assert counted(result.zero_periods) == {2: (1, 2)}
    assert (result.observed_minutes, result.wall_minutes) == (13, 14)
    second = result.idle_periods[1]
    assert (second.share_pct, second.wall_share_pct) == (pytest.approx(800 / 13), pytest.approx(800 / 14))
    assert (result.longest_idle_min, result.longest_zero_min) == (3, 2)
    assert result.idle_pct == pytest.approx(900 / 13)
    assert result.mean_bytes_per_s == pytest.approx((4 * BUSY + 7 * IDLE) / 13)
    assert result.peak_time == datetime(2020, 9, 14, 0, 1, tzinfo=UTC)


states = st.lists(st.sampled_from([BUSY, IDLE, IDLE, ZERO, MISSING]), min_size=1, max_size=120)


@given(states.filter(lambda rates: any(rate is not None for rate in rates)))
def test_idle_periods_are_those_of_a_count_one_by_one(rates: list[float | None]) -> None:
    result = of_minutes(rates, peak=BUSY)
    lengths, run = [], 0
    for rate in [*rates, BUSY]:
        if rate is not None and rate < 5.0:
            run += 1
        else:
            lengths += [run] if run else []
            run = 0
    for line, (low, high) in zip(result.idle_periods, DURATIONS, strict=True):
        mine = [length for length in lengths if length >= low and (high is None or length <= high)]
        assert (line.from_min, line.to_min, line.count, line.minutes) == (low, high, len(mine), sum(mine))
    known = [rate for rate in rates if rate is not None]
    assert result.longest_idle_min == max(lengths, default=0)
    assert result.below_third_of_peak_pct == pytest.approx(100 * sum(rate < 33 for rate in known) / len(known))


TABLE_III = {
    1: (1420, 1420, 1.7), 2: (2259, 7053, 8.4), 6: (775, 5882, 7.0), 11: (383, 5530, 6.6), 21: (104, 2581, 3.1),
    31: (50, 1756, 2.1), 41: (30, 1369, 1.6), 51: (19, 1052, 1.3), 61: (169, 30935, 37.1),
}  # fmt: skip
OBSERVED, WALL = 63_211, 83_460


def lengths_of(low: int, high: int | None, count: int, minutes: int) -> list[int]:
    """As many lengths as a line counts, with its sum; the longest period lasted 19 hours."""
    first = [1140] if high is None else []
    rest, left = count - len(first), minutes - sum(first)
    result = [*first, *(left // rest + (place < left % rest) for place in range(rest))]
    assert all(low <= item <= (high or 1140) for item in result)
    return result


def intrepid() -> list[float | None]:
    """Minutes with the idle periods, mean, peak and bursts of paper D §4, in an order of our own."""
    periods = [
        length
        for (low, high), (count, minutes, _) in zip(DURATIONS, TABLE_III.values(), strict=True)
        for length in lengths_of(low, high, count, minutes)
    ]
    np.random.default_rng(1).shuffle(periods)
    busy = OBSERVED - sum(periods)
    high = round(0.02 * OBSERVED) - 1
    loud = [35_890.0] + [13_000.0] * high + [3_000.0] * (busy - 1 - high)
    quiet = (1_984.0 * OBSERVED - sum(loud)) / sum(periods)
    assert quiet < 0.05 * 35_890
    rates: list[float | None] = []
    for place, length in enumerate(periods):
        rates += [loud.pop(), *[quiet] * length]
        if place == 100:
            rates += [loud.pop(), *[MISSING] * (WALL - OBSERVED)]
    return [*rates, *loud]


def test_the_numbers_of_paper_d_come_back() -> None:
    """Table III; mean 1,984 and peak 35,890 MiB/s; 98 % of the time below a third; the longest period 19 hours."""
    result = of_minutes([None if rate is None else rate * MIB for rate in intrepid()])
    assert (result.observed_minutes, result.wall_minutes) == (OBSERVED, WALL)
    for line in result.idle_periods:
        count, minutes, share = TABLE_III[line.from_min]
        assert (line.count, line.minutes) == (count, minutes)
        assert line.wall_share_pct == pytest.approx(share, abs=0.051)
    assert result.mean_bytes_per_s / MIB == pytest.approx(1984)
    assert result.peak_bytes_per_s / MIB == pytest.approx(35_890)
    assert result.below_third_of_peak_pct == pytest.approx(98.0, abs=0.01)
    assert result.longest_idle_min == 19 * 60


def test_a_given_peak_is_what_idle_is_measured_by() -> None:
    result = of_minutes([10.0, 40.0, 3.0], peak=1000.0)
    assert (result.peak_bytes_per_s, result.peak_origin, result.largest_bytes_per_s) == (1000.0, "given", 40.0)
    assert result.idle_pct == 100.0
    assert of_minutes([10.0]).peak_origin == "largest minute"


def test_no_traffic_at_all_is_idle() -> None:
    result = of_minutes([0.0] * 10)
    assert counted(result.idle_periods) == counted(result.zero_periods) == {6: (1, 10)}
    assert result.below_third_of_peak_pct is None
    assert (result.mean_bytes_per_s, result.idle_pct, result.zero_pct) == (0.0, 100.0, 100.0)


def test_targets_and_directions_add_up() -> None:
    answer = Minutes(60_000_000)
    answer.add(matrix(read_bytes=[[60, 120], [0, nan]], write_bytes=[[600, 0], [60, nan]]))
    result = answer.result(("read", "write"))
    assert result is not None
    assert (result.mean_bytes_per_s, result.peak_bytes_per_s) == (7.0, 13.0)
    assert (result.peak_read_bytes_per_s, result.peak_write_bytes_per_s) == (3.0, 10.0)
    assert (result.read_bytes_per_day, result.write_bytes_per_day) == (1.5 * 86400, 5.5 * 86400)


def test_a_direction_nobody_tells_is_none() -> None:
    answer = Minutes(60_000_000)
    answer.add(matrix(read_bytes=[60, 120]))
    result = answer.result(("read",))
    assert result is not None
    assert (result.write_bytes_per_day, result.peak_write_bytes_per_s) == (None, None)
    assert result.mean_bytes_per_s == 1.5


def test_short_ticks_make_minutes_however_they_are_cut() -> None:
    read = np.random.default_rng(1).integers(0, 1000, (60, 2)).astype(float)
    whole, parts = Minutes(5_000_000), Minutes(5_000_000)
    whole.add(matrix(5.0, read_bytes=read, write_bytes=read))
    for part in np.split(np.arange(60), [7, 31]):
        parts.add(matrix(5.0, ticks=(part + 1).tolist(), read_bytes=read[part], write_bytes=read[part]))
    for result in (whole, parts):
        minutes, rates, _ = result.series()
        assert minutes.size == 5
        assert rates == pytest.approx(read.reshape(5, 24).sum(axis=1) / 60.0)


def test_a_minute_seen_for_less_than_half_is_missing() -> None:
    result = Minutes(5_000_000)
    ticks = [*range(1, 13), 13, 14, *range(25, 37)]  # of the second minute, 10 s
    result.add(matrix(5.0, ticks=ticks, read_bytes=[50.0] * 26))
    minutes, rates, _ = result.series()
    assert np.diff(minutes).tolist() == [2]
    assert rates.tolist() == [10.0, 10.0]


def test_a_minute_seen_for_most_is_measured_by_what_was_seen() -> None:
    result = Minutes(5_000_000)
    result.add(matrix(5.0, ticks=[1, 2, 3, 7, 8, 9, 10, 11, 12], read_bytes=[50.0] * 9))
    assert result.series()[1].tolist() == [10.0]


def test_a_sample_after_an_outage_is_no_peak() -> None:
    """An hour was missed; the next sample tells of all its bytes, at the same rate as before and after."""
    ticks = [*range(1, 61), 660, *range(661, 721)]
    length = [5.0] * 60 + [3000.0] + [5.0] * 60
    answer = Minutes(5_000_000)
    answer.add(matrix(5.0, ticks=ticks, duration_s=length, read_bytes=[7.0 * item for item in length]))
    result = answer.result(("read",))
    assert result is not None
    assert result.largest_bytes_per_s == pytest.approx(7.0)
    assert result.mean_bytes_per_s == pytest.approx(7.0)
    assert result.observed_minutes == 11  # five before, five after, and the minute in which the long one ends


def test_a_missed_sample_of_one_target_loses_no_bytes() -> None:
    """Its next sample is longer, and has the bytes of both."""
    second = [5.0, nan, 10.0] * 8
    result = Minutes(5_000_000)
    length = np.column_stack([np.full(24, 5.0), second])
    result.add(matrix(5.0, duration_s=length.tolist(), read_bytes=np.column_stack([np.full(24, 50.0), second])))
    assert result.series()[1] == pytest.approx([11.0, 11.0])


@pytest.mark.parametrize(("tick_s", "minutes"), [(60.0, 1), (300.0, 5), (3600.0, 60)])
def test_long_ticks_stand_for_their_minutes(tick_s: float, minutes: int) -> None:
    answer = Minutes(round(tick_s * 1e6))
    answer.add(matrix(tick_s, read_bytes=[tick_s * rate for rate in (100.0, 1.0, 1.0, 0.0, 100.0)]))
    result = answer.result(("read",))
    assert result is not None
    assert (result.observed_minutes, result.longest_idle_min, result.longest_zero_min) == (
        5 * minutes,
        3 * minutes,
        minutes,
    )
    assert sum(line.minutes for line in result.idle_periods) == 3 * minutes
    assert result.peak_bytes_per_s == 100.0


def test_nothing_is_none() -> None:
    assert Minutes(5_000_000).result(("read",)) is None


# Maintenance.


def test_long_stretches_without_a_byte_are_found() -> None:
    result = Minutes(60_000_000)
    rates = [1.0, *[0.0] * 119, 1.0, *[0.0] * 120, 1.0]
    result.add(matrix(read_bytes=rates))
    (window,) = result.maintenance()
    assert (window.origin, window.name) == ("found", "no activity")
    assert window.start == datetime(2020, 9, 14, 2, 1, tzinfo=UTC)
    assert window.end == datetime(2020, 9, 14, 4, 1, tzinfo=UTC)


def test_missing_is_no_maintenance() -> None:
    result = Minutes(60_000_000)
    result.add(matrix(ticks=[1, 2, 300, 301], read_bytes=[1.0, 0.0, 0.0, 1.0]))
    assert result.maintenance() == []


def test_minutes_in_which_no_target_tells_a_direction_are_neither_idle_nor_maintenance() -> None:
    """Reads stand still all the time; for three of six hours nobody tells of writes, in the last only one target."""
    writes = [[1.0, 1.0], *[[nan, nan]] * 180, [1.0, 1.0], *[[0.0, nan]] * 178]
    result = Minutes(60_000_000)
    result.add(matrix(read_bytes=np.zeros((360, 2)), write_bytes=writes))
    throughput = result.result(("read", "write"))
    assert throughput is not None
    assert (throughput.observed_minutes, throughput.wall_minutes, throughput.longest_zero_min) == (180, 360, 178)
    (window,) = result.maintenance()
    assert window.start == datetime(2020, 9, 14, 3, 2, tzinfo=UTC)


def test_a_direction_that_is_never_counted_is_not_waited_for() -> None:
    result = Minutes(60_000_000)
    result.add(matrix(read_bytes=[1.0, 0.0, 1.0]))
    assert result.series()[0].size == 3


def test_ticks_that_end_in_a_window_are_left_out() -> None:
    some = matrix(read_bytes=[1.0, 2.0, 3.0, 4.0])
    start, end = datetime(2020, 9, 14, 0, 1, tzinfo=UTC), datetime(2020, 9, 14, 0, 3, tzinfo=UTC)
    rest = outside(some, [Maintenance(start, end, "x", "configured")])
    assert rest.measures["read_bytes"].ravel().tolist() == [1.0, 4.0]
    assert rest.follows.tolist() == [False, False]
    assert outside(some, []) is some
