"""Imbalance against plain Python, straight from the definition."""

from __future__ import annotations

import json
import statistics
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import iolens
from iolens.analyses.imbalance.analysis import Imbalance
from iolens.analyses.imbalance.spreads import SpreadSeries, spread
from iolens.api import OpenStore
from iolens.errors import NotKnownError, UsageError
from iolens.store.store import Store
from iolens.units import from_epoch_us
from iolens.views.render.json_text import to_json
from tests.analyses.imbalance.test_imbalance_periods import BALANCED, GAP, UNBALANCED, one_by_one
from tests.analyses.load_rows import MISSING, TICK_US, rows_of, spider
from tests.analyses.telemetry import T0_US, made_up, made_up_devices, table_of
from tests.analyses.utilization.test_utilization import _as, assert_same


def end_of(tick: int) -> datetime:
    return from_epoch_us(T0_US + (tick + 1) * TICK_US)


def start_of(tick: int) -> datetime:
    return from_epoch_us(T0_US + tick * TICK_US)


def opened(folder: Path, rows: list[dict]) -> OpenStore:
    Store(folder).append("target_io", table_of("target_io", rows))
    return iolens.open(str(folder))


def measured(load: np.ndarray, background: np.ndarray | None = None, **options) -> Imbalance:
    answer = iolens.imbalance(target_io=table_of("target_io", rows_of(load, background=background)), **options)
    assert isinstance(answer, Imbalance)
    return answer


@pytest.fixture(scope="module")
def load() -> np.ndarray:
    """With missing samples, a gap, and a stretch in which one target alone reports."""
    made = spider()
    random = np.random.default_rng(2)
    made[random.random(made.shape) < 0.02] = MISSING
    made[500:520] = MISSING
    made[900:905, 1:] = MISSING
    return made


@pytest.fixture(scope="module")
def result(load: np.ndarray) -> Imbalance:
    return measured(load)


def stds(load: np.ndarray) -> dict[int, float]:
    """By tick: Python's own standard deviation with n − 1."""
    known = {tick: [item for item in row if not np.isnan(item)] for tick, row in enumerate(load.tolist())}
    return {tick: statistics.stdev(row) for tick, row in known.items() if len(row) >= 2}


@pytest.fixture(scope="module")
def expected(load: np.ndarray) -> dict[int, float]:
    return stds(load)


def test_the_standard_deviation_is_with_n_less_one_over_reporting_targets(
    expected: dict[int, float], result: Imbalance
) -> None:
    assert result.samples == len(expected) == 3000 - 25
    values = sorted(expected.values())
    assert np.allclose(np.sort(result.series.std), values, rtol=1e-9)
    for percent, answer in ((80, result.std_p80_bytes_per_s), (95, result.std_p95_bytes_per_s)):
        place = (len(values) - 1) * percent / 100
        low, high = values[int(place)], values[int(place) + 1]
        assert answer == pytest.approx(low + (high - low) * (place - int(place)))
    assert result.extremes["std"].max_bytes_per_s == pytest.approx(values[-1])
    assert result.coverage.ticks_left_out == 5
    assert result.coverage.gaps == 2


def test_lifetimes_and_distances_equal_a_count_tick_by_tick(
    load: np.ndarray, expected: dict[int, float], result: Imbalance
) -> None:
    for threshold in result.thresholds:
        states = [
            GAP if tick not in expected else UNBALANCED if expected[tick] >= threshold.std_bytes_per_s else BALANCED
            for tick in range(len(load))
        ]
        lifetimes, distances, cut = one_by_one(states)
        assert result.periods[threshold.name].lifetimes.tolist() == lifetimes
        assert result.periods[threshold.name].distances.tolist() == distances
        answer = result.lifetimes[threshold.name]
        assert (answer.count, answer.max_s) == (len(lifetimes), max(lifetimes) * 2.0)
        assert answer.p90_s == pytest.approx(np.quantile(lifetimes, 0.9) * 2.0)
        assert result.distances[threshold.name].p50_s == pytest.approx(statistics.median(distances) * 2.0)
        assert (threshold.ticks, threshold.periods, threshold.periods_cut) == (sum(lifetimes), len(lifetimes), cut)
        assert threshold.hours == pytest.approx(sum(lifetimes) * 2.0 / 3600)
    assert [round(threshold.ticks_pct, 1) for threshold in result.thresholds] == [20.0, 5.0]


loads_and_gaps = hnp.arrays(
    float, st.tuples(st.integers(2, 40), st.integers(2, 5)), elements=st.sampled_from([0.0, 0.0, 3.0, 600.0, MISSING])
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(loads_and_gaps, st.sampled_from([50.0, 80.0, 95.0]))
def test_random_series_with_gaps_equal_a_count_tick_by_tick(series: np.ndarray, percentile: float) -> None:
    expected = stds(series)
    if not expected:
        return
    answer = measured(series, percentiles=[percentile])
    threshold = answer.thresholds[0]
    assert threshold.std_bytes_per_s == pytest.approx(np.quantile(list(expected.values()), percentile / 100))
    limit = threshold.std_bytes_per_s * (1 - 1e-12)
    states = [
        GAP if tick not in expected else UNBALANCED if expected[tick] >= limit and expected[tick] > 0 else BALANCED
        for tick in range(len(series))
    ]
    name = f"p{percentile:g}"
    lifetimes, distances, _ = one_by_one(states)
    assert answer.periods[name].lifetimes.tolist() == lifetimes
    assert answer.periods[name].distances.tolist() == distances


def test_least_mean_and_most_are_over_targets_of_a_tick(
    load: np.ndarray, expected: dict[int, float], result: Imbalance
) -> None:
    whole = load[list(expected)]
    for name, values in (
        ("minimum", np.nanmin(whole, 1)),
        ("mean", np.nanmean(whole, 1)),
        ("maximum", np.nanmax(whole, 1)),
    ):
        answer = result.extremes[name]
        assert answer.p95_bytes_per_s == pytest.approx(np.quantile(values, 0.95))
        assert answer.max_bytes_per_s == pytest.approx(values.max())


def test_hot_targets_are_those_that_were_made_hot(
    load: np.ndarray, expected: dict[int, float], result: Imbalance
) -> None:
    for threshold in result.thresholds:
        hot: dict[int, list[int]] = {target: [] for target in range(24)}
        hottest = dict.fromkeys(hot, 0)
        outstanding = dict.fromkeys(hot, 0)
        for tick, std in expected.items():
            if std < threshold.std_bytes_per_s:
                continue
            row = {target: item for target, item in enumerate(load[tick].tolist()) if not np.isnan(item)}
            first = max(row, key=lambda target: row[target])
            usual = statistics.fmean(row.values())
            above = {target for target, item in row.items() if item > usual + 2 * std}
            hottest[first] += 1
            for target in above:
                outstanding[target] += 1
            for target in above | {first}:
                hot[target].append(tick)
        mine = {
            hot_target.target: hot_target for hot_target in result.hot_targets if hot_target.threshold == threshold.name
        }
        assert set(mine) == {f"c{target:02d}" for target, ticks in hot.items() if ticks}
        for target, ticks in hot.items():
            if ticks:
                line = mine[f"c{target:02d}"]
                assert line.hottest_pct == pytest.approx(100 * hottest[target] / threshold.ticks)
                assert line.outstanding_pct == pytest.approx(100 * outstanding[target] / threshold.ticks)
                assert line.hours == pytest.approx(len(ticks) * 2 / 3600)
                assert (line.first, line.last) == (start_of(ticks[0]), end_of(ticks[-1]))
                mine_only = set(ticks)
                states = [UNBALANCED if tick in mine_only else BALANCED for tick in range(len(load))]
                assert line.longest_s == max(one_by_one(states)[0]) * 2
        assert next(iter(mine)) == "c03"  # the longest first, and c03 was made hot six times in ten
        assert mine["c03"].hottest_pct > 40


def test_known_periods_come_back() -> None:
    """Loads are equal but for 30 periods of 5 ticks, 45 apart, in which c07 moves a hundred times as much."""
    load = np.full((1500, 24), 1e6)
    for start in range(40, 1500, 50):
        load[start : start + 5, 7] = 1e8
    answer = measured(load, thresholds=[1e7], percentiles=[95])
    name = "10000000_bytes_per_s"
    assert list(answer.lifetimes) == ["p95", name]
    assert (answer.lifetimes[name].count, answer.lifetimes[name].p50_s, answer.lifetimes[name].max_s) == (
        30,
        10.0,
        10.0,
    )
    assert (answer.distances[name].count, answer.distances[name].p50_s, answer.distances[name].max_s) == (
        29,
        90.0,
        90.0,
    )
    by_value = [hot_target for hot_target in answer.hot_targets if hot_target.threshold == name]
    assert [(item.target, item.hottest_pct, item.outstanding_pct, item.longest_s) for item in by_value] == [
        ("c07", 100.0, 100.0, 10.0)
    ]
    assert answer.thresholds[1].percentile is None
    std = 99e6 / 24**0.5  # one target off by d: std = d/√n
    assert answer.extremes["std"].max_bytes_per_s == pytest.approx(std)
    assert answer.std_p80_bytes_per_s == 0
    high = next(peer for peer in answer.peers if peer.target == "c07")
    assert (high.finding, round(high.load_ratio, 2)) == (
        "high",
        round((0.9 * 1 + 0.1 * 100) / (0.9 + 0.1 * 123 / 24), 2),
    )


def test_equal_loads_are_balanced_even_where_the_percentile_is_zero() -> None:
    load = np.full((100, 3), 0.1e6)  # a mean of three tenths is not a tenth exactly
    load[50, 1] = 5e6
    answer = measured(load)
    assert [(threshold.std_bytes_per_s, threshold.ticks) for threshold in answer.thresholds] == [(0.0, 1), (0.0, 1)]
    assert "p80 of the standard deviation is zero" in answer.coverage.notes[0]


def test_dispersion_counts_ticks_by_mean_load(load: np.ndarray, expected: dict[int, float], result: Imbalance) -> None:
    means = {tick: np.nanmean(load[tick]) for tick in expected}
    assert sum(item.ticks for item in result.dispersion) == result.samples
    for entry in result.dispersion:
        mine = [tick for tick, mean in means.items() if entry.mean_from_bytes_per_s <= mean < entry.mean_to_bytes_per_s]
        assert entry.ticks == len(mine)
        values = [expected[tick] for tick in mine]
        assert entry.std_p50_bytes_per_s == pytest.approx(np.quantile(values, 0.5))
        assert entry.std_p95_bytes_per_s == pytest.approx(np.quantile(values, 0.95))
        ratio = statistics.median(expected[tick] / means[tick] for tick in mine)
        assert entry.std_over_mean == pytest.approx(ratio, rel=1e-6)


def test_silence_has_a_bin_of_its_own() -> None:
    load = np.zeros((10, 3))
    load[3] = 5e6
    first = measured(load).dispersion[0]
    assert (first.mean_from_bytes_per_s, first.mean_to_bytes_per_s, first.ticks, first.std_over_mean) == (0, 0, 9, None)


# Snapshots.


def test_the_worst_ticks_of_two_days_are_shown() -> None:
    ticks = 86_400 // 2
    load = np.full((200, 4), 1e6)
    load[30, 2], load[90, 1], load[150, 0], load[170, 0] = 9e6, 8e6, 5e6, 6e6
    rows = rows_of(load, first_tick=ticks - 100)
    answer = iolens.imbalance(target_io=table_of("target_io", rows))
    assert [snapshot.time for snapshot in answer.snapshots] == [
        end_of(ticks - 70),
        end_of(ticks + 70),
    ]  # not the second of day 1
    first = answer.snapshots[0]
    assert (first.min_bytes_per_s, first.mean_bytes_per_s, first.max_bytes_per_s) == (1e6, 3e6, 9e6)
    assert first.std_bytes_per_s == pytest.approx(4e6)
    assert [target.read_bytes_per_s + target.write_bytes_per_s for target in first.targets] == [1e6, 1e6, 9e6, 1e6]
    assert first.targets[0].background_bytes_per_s is None


def test_within_one_day_the_worst_ticks_of_two_hours_are_shown() -> None:
    load = np.full((4000, 3), 1e6)
    load[100, 0], load[200, 0], load[3000, 1] = 9e6, 8e6, 5e6
    assert [snapshot.time for snapshot in measured(load).snapshots] == [end_of(100), end_of(3000)]


def test_times_can_be_asked_for(load: np.ndarray) -> None:
    asked = [start_of(1000), start_of(20) + timedelta(seconds=1.5)]
    answer = measured(load, at=asked)
    assert [snapshot.time for snapshot in answer.snapshots] == [end_of(20), end_of(1000)]
    reporting = [f"c{target:02d}" for target in np.flatnonzero(~np.isnan(load[20]))]
    assert [target.target for target in answer.snapshots[0].targets] == reporting


def test_a_time_without_data_is_refused_with_the_nearest(load: np.ndarray) -> None:
    with pytest.raises(
        UsageError, match="no two targets report at 2020-09-14T00:16:41Z; they do from 2020-09-14T00:16:38Z"
    ):
        measured(load, at=[start_of(500) + timedelta(seconds=1)])


# One target against its peers.


def test_a_target_that_stops_while_its_peers_go_on_is_dead() -> None:
    load = spider(3, ticks=2000, targets=8)
    load[1200:, 5] = 0.0
    load[1500:1700] = 0.0  # nobody moves: it is neither longer nor over
    load[1990, 2] = MISSING
    answer = {peer.target: peer for peer in measured(load).peers}
    dead = answer["c05"]
    assert (dead.finding, dead.still_silent) == ("dead", True)
    assert dead.longest_silent_s == (800 - 200) * 2.0
    assert (dead.silent_from, dead.silent_to) == (start_of(1200), end_of(1999))
    assert dead.silent_pct == pytest.approx(100 * 600 / 1800)
    assert dead.active_pct == pytest.approx(60.0)
    assert {item.finding for name, item in answer.items() if name not in ("c03", "c05")} == {"usual"}
    assert answer["c03"].finding == "high"  # which was made hot
    assert answer["c02"].reported_pct == pytest.approx(99.95)


def test_a_silence_that_ended_is_no_death_and_a_missing_sample_ends_it() -> None:
    load = spider(4, ticks=2000, targets=8)
    load[300:900, 1] = 0.0
    answer = {peer.target: peer for peer in measured(load).peers}
    assert (answer["c01"].finding, answer["c01"].longest_silent_s, answer["c01"].still_silent) == (
        "silent",
        1200.0,
        False,
    )
    load[500, 1] = MISSING
    assert next(peer for peer in measured(load).peers if peer.target == "c01").longest_silent_s == 399 * 2.0


def test_what_moves_while_nobody_else_does_is_not_silent() -> None:
    load = spider(5, ticks=1000, targets=6)
    load[:, 4] = 0.0
    load[400:500] = 0.0
    load[450, 4] = 1e6  # alone
    item = next(peer for peer in measured(load).peers if peer.target == "c04")
    assert (item.longest_silent_s, item.silent_to) == (1000.0, end_of(999))
    assert item.silent_pct == 100.0


def test_few_are_not_silent_by_chance() -> None:
    """Everybody pauses now and then for as long as that."""
    random = np.random.default_rng(6)
    load = np.repeat(random.choice([0.0, 1e6], (20, 6), p=[0.3, 0.7]), 400, axis=0)
    assert {peer.finding for peer in measured(load).peers} == {"usual"}


def test_a_target_far_below_its_peers_is_named() -> None:
    load = spider(7, ticks=2000, targets=12)
    load[:, 6] *= 0.1
    low = next(peer for peer in measured(load).peers if peer.target == "c06")
    assert low.finding == "low"
    assert low.load_ratio < 0.15
    assert low.robust_z < -3.5


def test_a_target_that_reports_half_the_time_is_compared_in_that_time() -> None:
    """The second half is ten times as busy for all."""
    load = np.full((1000, 8), 1e6)
    load[500:] = 1e7
    load[500:, 3] = MISSING
    answer = next(peer for peer in measured(load).peers if peer.target == "c03")
    assert (answer.finding, answer.load_ratio, answer.reported_pct) == ("usual", 1.0, 50.0)
    assert answer.mean_bytes_per_s == 1e6


# Background.


def test_background_is_counted_flagged_and_can_be_left_out() -> None:
    load = np.full((400, 6), 1e6)
    scrub = np.zeros(load.shape)
    scrub[100:200, 2] = 3e6
    scrub[:, 5] = MISSING
    answer, without = measured(load, scrub), measured(load, scrub, with_background=False)
    std = 3e6 / 6**0.5
    assert answer.std_p80_bytes_per_s == pytest.approx(std)
    assert without.std_p80_bytes_per_s == 0
    assert answer.background is not None
    assert without.background is not None
    assert (answer.background.included, without.background.included) == (True, False)
    for item in (answer.background, without.background):
        assert item.with_std_p80_bytes_per_s == pytest.approx(std)
        assert item.without_std_p80_bytes_per_s == 0
        assert (item.targets, item.bytes) == (5, 600_000_000)
        assert item.share_pct == pytest.approx(100 * 3e6 * 100 / (3e6 * 100 + 1e6 * 2400))
    assert "1 of 6 targets do not tell background" in answer.coverage.notes[0]
    busy = next(peer for peer in answer.peers if peer.target == "c02")
    assert busy.background_pct == pytest.approx(100 * 300 / 700)
    assert next(peer for peer in answer.peers if peer.target == "c05").background_pct is None
    assert measured(load).background is None


def test_scrubbing_does_not_hide_a_dead_target() -> None:
    load = spider(8, ticks=1000, targets=6)
    load[:, 0] = 0.0
    answer = measured(load, np.full(load.shape, 1e5))
    assert answer.peers[0].finding == "dead"


# Where the rows come from.


@pytest.mark.parametrize("rows_for_workers", [1 << 40, 1], ids=["here", "workers"])
def test_midnights_parts_and_workers_do_not_change_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_for_workers: int
) -> None:
    io = [
        *made_up(1, ticks=200, targets=4, first_tick=17280 - 100, missing=0.5).io,
        *made_up(2, ticks=100, targets=4, first_tick=2 * 17280 - 50).io,
    ]
    store = opened(tmp_path, io)
    whole = json.loads(to_json(store.imbalance()))
    monkeypatch.setattr("iolens.store.selection.ROWS_OF_DAYS", 1)
    monkeypatch.setattr("iolens.store.selection.ROWS_AT_ONCE", 100)
    monkeypatch.setattr("iolens.store.parts.FEWEST_ROWS", rows_for_workers)
    assert_same(json.loads(to_json(store.imbalance())), whole)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_frames_of_a_user_work_too(load: np.ndarray, result: Imbalance, kind: str) -> None:
    answer = iolens.imbalance(target_io=_as(kind, table_of("target_io", rows_of(load))))
    assert_same(json.loads(to_json(answer)), json.loads(to_json(result)))


def test_targets_of_other_kinds_are_not_peers(tmp_path: Path) -> None:
    load = spider(1, ticks=300, targets=4)
    luns = [{**row, "target": f"lun-{row['target']}"} for row in rows_of(load * 0.1, kind="lun")]
    answer = opened(tmp_path, [*rows_of(load), *luns]).imbalance()
    assert answer.targets == 4
    assert answer.std_p80_bytes_per_s == pytest.approx(measured(load).std_p80_bytes_per_s)
    assert answer.coverage.targets_of_other_kinds == ["lun-c00", "lun-c01", "lun-c02", "lun-c03"]
    assert answer.coverage.missing_targets == []


def test_a_direction_that_nobody_tells_is_said_and_one_that_a_target_leaves_out_is_not_zero() -> None:
    rows = rows_of(spider(1, ticks=200, targets=4))
    reads = [{**row, "write_bytes": None} for row in rows]
    answer = iolens.imbalance(target_io=table_of("target_io", reads))
    assert answer.coverage.notes == ["no target tells the bytes of its writes: loads are of the other direction alone"]
    some = [{**row, "write_bytes": None} if row["target"] == "c01" else row for row in rows]
    answer = iolens.imbalance(target_io=table_of("target_io", some))
    assert answer.peers[1].reported_pct == 0
    assert answer.peers[1].load_ratio is None
    assert "c01: never in a tick with others" in answer.coverage.notes[0]


def test_devices_are_targets_too(tmp_path: Path) -> None:
    answer = opened(tmp_path, made_up_devices(1, ticks=100, devices=4)).imbalance()
    assert answer.targets == 4
    assert answer.coverage.target_kinds == ["device"]


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (np.full((5, 1), 1e6), "only c00 reports"),
        (np.array([[1e6, MISSING], [MISSING, 1e6]]), "no two targets report at the same time"),
        (np.full((5, 2), MISSING), "no target's bytes are known"),
    ],
)
def test_one_target_has_no_imbalance(load: np.ndarray, message: str) -> None:
    with pytest.raises(NotKnownError, match=message):
        measured(load)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percentiles": [100]}, "above 0 and below 100, not 100"),
        ({"percentiles": [float("nan")]}, "above 0 and below 100"),
        ({"percentiles": []}, "needs a threshold"),
        ({"thresholds": [0.0]}, "above zero"),
        ({"thresholds": [float("inf")]}, "above zero"),
    ],
)
def test_thresholds_are_checked(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        measured(np.ones((4, 2)), **options)


def test_huge_rates_and_a_single_tick(tmp_path: Path) -> None:
    answer = opened(tmp_path, rows_of(np.array([[4e18, 0.0, 1.0]]))).imbalance()
    assert answer.samples == 1
    assert answer.std_p80_bytes_per_s == pytest.approx(4e18 / 3**0.5)
    assert (answer.lifetimes["p80"].max_s, answer.distances["p80"].max_s) == (2.0, None)
    json.loads(to_json(answer))


def test_a_tick_costs_a_few_bytes() -> None:
    """As documented: 26 with 48 targets."""
    series = SpreadSeries(48, TICK_US)
    random = np.random.default_rng(1)
    for part in range(3):
        ends = (np.arange(1000) + 1 + 1000 * part) * TICK_US
        series.add(ends, spread(random.random((1000, 48))))
    assert sum(part.nbytes for parts in series.pieces.values() for part in parts) == 3000 * 26
    assert series.std.size == 3000
    assert series.follows.sum() == 2999


def test_the_window_is_that_of_the_question(tmp_path: Path, load: np.ndarray, expected: dict[int, float]) -> None:
    store = opened(tmp_path, rows_of(load))
    answer = store.imbalance(since="2020-09-14T00:10:00Z", until="2020-09-14T00:20:00Z")
    assert (answer.window_start, answer.window_end) == (
        datetime(2020, 9, 14, 0, 10, tzinfo=UTC), datetime(2020, 9, 14, 0, 20, tzinfo=UTC),
    )  # fmt: skip
    inside = [std for tick, std in expected.items() if 300 <= tick < 600]
    assert answer.samples == len(inside)
    assert answer.std_p80_bytes_per_s == pytest.approx(np.quantile(inside, 0.8))
