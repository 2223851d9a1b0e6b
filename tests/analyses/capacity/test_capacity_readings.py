"""Which readings are complete, whatever targets come, go and fall silent."""

from __future__ import annotations

import random

import numpy as np
import pytest

from iolens.analyses.capacity.readings import Usage, gather
from iolens.analyses.intervals.buckets import local_days
from tests.analyses.capacity_rows import DAY_US, T0_US, reading, readings, selection


def usage(rows: list[dict], unit: str = "bytes") -> Usage:
    return gather(selection(rows), "bytes", "inodes").usage(unit)  # type: ignore[arg-type]


def test_a_reading_is_the_exact_sum_over_targets() -> None:
    huge = 9_007_199_254_740_993  # one more than doubles can tell
    result = usage(reading(0, {"a": huge, "b": huge + 1}, total=4 * huge)).readings
    assert result.used.tolist() == [2 * huge + 1]
    assert result.total.tolist() == [8 * huge]
    assert result.complete.tolist() == [True]
    assert result.mean_pct == pytest.approx([25.0])


def test_a_missing_target_makes_a_reading_incomplete() -> None:
    rows = [*reading(0, {"a": 1, "b": 2}), *reading(1, {"a": 1}), *reading(2, {"a": 1, "b": 2})]
    assert usage(rows).readings.complete.tolist() == [True, False, True]


def test_a_target_that_says_nothing_is_missing() -> None:
    rows = [*reading(0, {"a": 1, "b": 2}), *reading(1, {"a": 1, "b": None}), *reading(2, {"a": 1, "b": 2})]
    assert usage(rows).readings.complete.tolist() == [True, False, True]
    never = [*reading(0, {"a": 1, "b": None}), *reading(5, {"a": 1, "b": None})]
    assert usage(never).readings.complete.tolist() == [True, True]


def test_a_new_target_is_expected_from_its_first_reading_on() -> None:
    rows = [row for day in range(10) for row in reading(day, {"a": 1, **({"b": 2} if day >= 5 else {})})]
    result = usage(rows).readings
    assert result.complete.all()
    assert len(set(result.target_set[:5].tolist())) == 1
    assert len(set(result.target_set[5:].tolist())) == 1
    assert result.target_set[4] != result.target_set[5]


def test_a_target_that_was_taken_away_is_not_expected_any_more() -> None:
    rows = [row for day in range(10) for row in reading(day, {"a": 1, **({"b": 2} if day < 5 else {})})]
    result = usage(rows).readings
    assert result.complete.all()
    assert result.target_set[4] != result.target_set[5]


def test_a_target_exchanged_for_another_is_another_set() -> None:
    rows = [row for day in range(10) for row in reading(day, {"a": 1, "b" if day < 5 else "c": 2})]
    result = usage(rows).readings
    assert result.complete.all()
    assert result.targets.tolist() == [2] * 10
    assert result.target_set[4] != result.target_set[5]


def test_the_last_reading_may_not_have_come_from_all_servers_yet() -> None:
    rows = [*readings([0, 1, 2, 3], [10] * 4, targets=3), *reading(4, {"OST0000": 3})]
    assert usage(rows).readings.complete.tolist() == [True] * 4 + [False]


def test_within_a_day_every_target_is_expected_throughout() -> None:
    rows = [*reading(0, {"a": 1}), *reading(0.01, {"a": 1, "b": 1}), *reading(0.02, {"a": 1, "b": 1})]
    assert usage(rows).readings.complete.tolist() == [False, True, True]


@pytest.mark.parametrize("seed", range(20))
def test_completeness_against_brute_force(seed: int) -> None:
    """Targets that live for a while and miss readings now and then; ends are kept clear of the day of grace."""
    dice = random.Random(seed)
    lives = {f"t{n}": (dice.choice([0, 0, 8, 12]), dice.choice([17, 22, 29, 29])) for n in range(5)}
    sets: dict[int, set[str]] = {}
    for day in range(30):
        alive = {name for name, (first, last) in lives.items() if first <= day <= last}
        edges = {name for name in alive if day in lives[name]}
        sets[day] = edges | {name for name in alive if dice.random() < 0.9}
    rows = [row for day, names in sets.items() for row in reading(day, dict.fromkeys(sorted(names), 1))]
    result = usage(rows).readings
    days = (result.time_us - T0_US) // DAY_US
    expected = {day: {name for name, (first, last) in lives.items() if first <= day <= last} for day in sets}
    assert result.complete.tolist() == [sets[int(day)] == expected[int(day)] for day in days]
    for item in range(len(days)):
        for other in range(item):
            same = all(
                expected[day] == expected[int(days[item])] for day in range(int(days[other]), int(days[item]) + 1)
            )
            assert (result.target_set[item] == result.target_set[other]) == same


def sums(day: float, used: int, targets: int | None) -> list[dict]:
    return reading(day, {"scratch": used}, kind="filesystem", targets=targets)


def test_sums_of_fewer_targets_are_incomplete() -> None:
    rows = [row for day in range(9) for row in sums(day, 100, 138 if day == 4 else 248)]
    assert usage(rows).readings.complete.tolist() == [True] * 4 + [False] + [True] * 4


def test_sums_over_a_grown_system_are_complete() -> None:
    rows = [row for day in range(9) for row in sums(day, 100, 248 if day < 4 else 300)]
    result = usage(rows).readings
    assert result.complete.all()
    assert result.target_set[3] != result.target_set[4]


def test_a_last_sum_of_fewer_targets_is_incomplete() -> None:
    rows = [row for day in range(9) for row in sums(day, 100, 138 if day == 8 else 248)]
    assert usage(rows).readings.complete.tolist() == [True] * 8 + [False]


def test_sums_of_unknown_numbers_of_targets_stand() -> None:
    rows = [row for day in range(3) for row in sums(day, 100, None)]
    assert usage(rows).readings.complete.all()


def test_sums_serve_only_on_days_without_targets() -> None:
    rows = [*sums(0.2, 7, 2), *sums(1.2, 7, 2), *readings([1.5, 2.5], [10, 11])]
    result = usage(rows)
    assert result.readings.used.tolist() == [7, 10, 11]
    assert "1 sums over the whole file system are left out" in result.notes[0]
    assert result.readings.target_set[0] != result.readings.target_set[1]


def test_metadata_targets_hold_inodes_not_bytes() -> None:
    rows = [
        *readings([0, 1], [10, 12], used_inodes=99, total_inodes=1000),
        *reading(0, {"MDT0000": 5}, kind="mdt", used_inodes=40, total_inodes=50),
        *reading(1, {"MDT0000": 5}, kind="mdt", used_inodes=42, total_inodes=50),
    ]
    assert usage(rows).readings.used.tolist() == [10, 12]
    inodes = usage(rows, "inodes")
    assert inodes.kinds == ("mdt",)
    assert inodes.readings.used.tolist() == [40, 42]
    assert inodes.readings.total.tolist() == [50, 50]


def test_osts_come_before_the_devices_below_them() -> None:
    rows = [*readings([0, 1], [10, 12]), *readings([0, 1], [500, 500], kind="device")]
    assert usage(rows).kinds == ("ost",)
    assert usage(rows).readings.used.tolist() == [10, 12]


def test_targets_read_at_times_of_their_own() -> None:
    """No two answer in the same second, so the last of each target in a day is the reading."""
    rows = [
        row
        for day in range(20)
        for number in range(4)
        for hour in (1, 5)
        for row in reading(day + (hour + number / 10) / 24, {f"t{number}": day * 10 + hour})
    ]
    result = usage(rows)
    assert result.readings.complete.all()
    assert result.readings.used.tolist() == [4 * (day * 10 + 5) for day in range(20)]
    assert "times of their own" in result.notes[0]


def test_nothing_at_all() -> None:
    result = usage([])
    assert len(result.readings) == 0
    assert result.readings.thinned()[1] == "as read"


def test_an_unknown_capacity_is_not_a_full_one() -> None:
    result = usage(reading(0, {"a": 5}, total=None)).readings
    assert not result.has_total.any()
    assert np.isnan(result.mean_pct).all()
    assert not usage(reading(0, {"a": 5}, total=0)).readings.has_total.any()


def test_frequent_readings_are_thinned_to_days() -> None:
    """The last complete one of each day, not the last."""
    rows = [row for quarter in range(4 * 12) for row in readings([quarter / 4], [quarter])]
    rows += reading(5.9, {"OST0000": 9999})
    result = usage(rows).readings
    thinned, step = result.thinned()
    assert step == "daily"
    assert len(thinned) == 12
    assert thinned.used.tolist() == [4 * day + 3 for day in range(12)]


def test_days_are_local() -> None:
    """23:30 UTC is already tomorrow in Berlin, and summer time shifts the border."""
    winter, summer = 1_610_000_000_000_000 // DAY_US * DAY_US, 1_625_000_000_000_000 // DAY_US * DAY_US
    hour = DAY_US // 24
    times = np.array([winter + 22 * hour + hour // 2, winter + 23 * hour, summer + 22 * hour])
    assert (local_days(times, "Europe/Berlin") - times // DAY_US).tolist() == [0, 1, 1]
    assert (local_days(times, None) == times // DAY_US).all()
    assert local_days(np.array([], dtype=np.int64), "Europe/Berlin").size == 0
