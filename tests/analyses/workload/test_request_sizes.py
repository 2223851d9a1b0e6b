"""Request sizes and their peaks, and the 99th percentiles of size and bandwidth in the same minute."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.intervals.tick_matrix import ticks_of
from iolens.analyses.workload import request_sizes as request_sizes_
from iolens.analyses.workload.analysis import workload
from iolens.analyses.workload.request_sizes import (
    RequestSize,
    SizeBandwidth,
    SizePeak,
    SizesAgainstBandwidth,
    WindowPeaks,
    _high,
    _large,
    holds_requests,
    request_sizes,
    size_peaks,
)
from iolens.errors import NotKnownError
from iolens.schema import size_column
from iolens.store.frames import FrameSelection
from iolens.views.render.json_text import to_plain
from iolens.views.workload.tables import size_bandwidth, tables
from tests.analyses.telemetry import T0_US, made_up, table_of
from tests.analyses.workload_rows import SIZES, made_up_centre

KIB = 1024


@pytest.fixture(scope="module")
def centre():
    return made_up_centre(3, targets=3, ticks=900)


@pytest.fixture(scope="module")
def selection(centre) -> FrameSelection:
    return FrameSelection(centre.tables)


def test_shares_are_those_of_the_requests(centre, selection: FrameSelection) -> None:
    result = request_sizes(selection)
    assert [(item.direction, item.size_bytes) for item in result] == [
        (direction, size * KIB) for direction in ("read", "write") for size, _ in SIZES[direction]
    ]
    for side in ("read", "write"):
        mine = [item for item in result if item.direction == side]
        assert sum(item.requests for item in mine) == np.nansum(centre.measures[f"{side}_ops"])
        assert [item.pdf for item in mine] == pytest.approx([share for _, share in SIZES[side]], abs=0.02)
        assert mine[-1].cdf == pytest.approx(1.0)
        assert [item.cdf for item in mine] == pytest.approx(np.cumsum([item.pdf for item in mine]))


def test_disk_ios_stand_in_where_no_requests_are_counted() -> None:
    part = made_up(1, ticks=40, targets=2)
    selection = FrameSelection({name: part.table(name) for name in ("target_io", "target_sizes")})
    assert not holds_requests(selection)
    result = request_sizes(selection)
    assert {item.size_bytes for item in result} == {4096, 65536, 1 << 20, 1 << 22}
    for direction in ("read", "write"):
        mine = [item for item in result if item.direction == direction]
        assert sum(item.pdf for item in mine) == pytest.approx(1.0)
    for entry in result:
        assert entry.requests == sum(row[size_column(entry.direction, entry.size_bytes)] for row in part.sizes)


def test_sizes_are_given_where_they_are_all_there_is() -> None:
    """Three ticks of two targets, one of which misses the last."""
    rows = [
        {
            "target": target, "target_kind": "ost", "source": "test", "filesystem": "scratch",
            "time": T0_US + (tick + 1) * 5_000_000, "start": T0_US + tick * 5_000_000, "duration_s": 5.0,
            "date": T0_US // 86_400_000_000, "read_ios_4096": 3, "read_ios_1048576": 1,
        }
        for target, ticks in (("a", 3), ("b", 2)) for tick in range(ticks)
    ]  # fmt: skip
    frames = FrameSelection({"target_sizes": table_of("target_sizes", rows)})
    result = workload(frames, sections=["sizes"])
    assert [(size.size_bytes, size.requests, size.pdf) for size in result.sizes] == [
        (4096, 15, 0.75), (1_048_576, 5, 0.25),
    ]  # fmt: skip
    assert (result.samples, result.tick_s, result.coverage.missing_samples) == (5, 5.0, 1)
    assert result.coverage.notes == ["no target tells its bytes: sizes alone are known"]
    with pytest.raises(NotKnownError, match="no target's bytes are known"):
        workload(frames)


def test_no_sizes_is_an_empty_list() -> None:
    part = made_up(1, ticks=4, targets=1)
    assert request_sizes(FrameSelection({"target_io": part.table("target_io")})) == []
    assert size_peaks([], linear=True) == []


def sizes(shares: dict[int, float], direction: str = "read") -> list[RequestSize]:
    return [RequestSize(direction, size * KIB, round(1000 * share), share, 0.0) for size, share in shares.items()]


def test_peaks_stand_above_their_neighbours_and_hold_one_in_twenty() -> None:
    """Paper S: below 16 KiB, at 512 KiB and at 1 MiB; the slope beside a peak is none, nor is a small bump."""
    result = size_peaks(sizes({16: 0.2, 32: 0.1, 256: 0.04, 496: 0.1, 512: 0.3, 528: 0.06, 1024: 0.2}), linear=True)
    assert result == [
        SizePeak("read", 16 * KIB, pytest.approx(20.0)),
        SizePeak("read", 512 * KIB, pytest.approx(30.0)),
        SizePeak("read", 1024 * KIB, pytest.approx(20.0)),
    ]


def test_peaks_of_powers_of_two() -> None:
    result = size_peaks(sizes({4: 0.3, 8: 0.2, 512: 0.1, 1024: 0.4}), linear=False)
    assert [item.size_bytes // KIB for item in result] == [4, 1024]


def test_two_equal_neighbours_are_one_peak() -> None:
    assert len(size_peaks(sizes({16: 0.5, 32: 0.5}), linear=True)) == 1


def test_directions_have_their_own_peaks() -> None:
    both = sizes({16: 0.5, 1024: 0.5}) + sizes({512: 1.0}, "write")
    assert [(size_peak.direction, size_peak.size_bytes // KIB) for size_peak in size_peaks(both, linear=True)] == [
        ("read", 16),
        ("read", 1024),
        ("write", 512),
    ]


# Size against bandwidth.


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e9) | st.just(np.nan)), min_size=1, max_size=40))
def test_the_bandwidth_of_a_window_is_its_99th_percentile(samples: list[tuple[int, float]]) -> None:
    samples = sorted(samples, key=lambda item: item[0])
    window, rates = np.array([sample[0] for sample in samples]), np.array([[sample[1]] for sample in samples])
    windows, column, values = _high(window, rates)
    expected = {}
    for entry in np.unique(window).tolist():
        mine = rates[window == entry, 0]
        if not np.isnan(mine).all():
            expected[entry] = np.nanquantile(mine, 0.99)
    assert column.tolist() == [0] * len(expected)
    assert dict(zip(windows.tolist(), values.tolist(), strict=True)) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8), st.integers(1, 500)), max_size=30))
def test_the_size_of_a_window_is_the_first_that_reaches_99_percent(rows: list[tuple[int, int, int]]) -> None:
    key, size, count = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    keys, sizes_ = _large(key, size, count.astype(float))
    expected = {}
    for item in sorted(set(key.tolist())):
        mine = sorted((row[1], row[2]) for row in rows if row[0] == item)
        total, reached = sum(number for _, number in mine), 0
        for edge, number in mine:
            reached += number
            if reached * 100 >= 99 * total:
                expected[item] = edge
                break
    assert dict(zip(keys.tolist(), sizes_.tolist(), strict=True)) == expected


def test_every_minute_with_both_is_a_point(centre, selection: FrameSelection) -> None:
    ticks = ticks_of(selection)
    assert ticks is not None
    result = WindowPeaks()
    for matrice in ticks.matrices(selection):
        result.add(matrice)
    pairs = {item.direction: item for item in result.against(selection, ticks.targets)}
    minute = (centre.end_us - 1) // 60_000_000
    for direction, matrice in pairs.items():
        expected = []
        for number in np.unique(minute):
            for column in range(3):
                inside = minute == number
                if centre.measures[f"{direction}_ops"][inside, column].sum() > 0:
                    expected.append(np.quantile(centre.measures[f"{direction}_bytes"][inside, column] / 2.0, 0.99))
        assert sorted(matrice.bytes_per_s) == pytest.approx(sorted(expected))
        assert set(matrice.size_bytes.tolist()) <= {size * KIB for size, _ in SIZES[direction]}


def test_windows_are_thinned_where_they_are_many(centre, selection: FrameSelection) -> None:
    ticks = ticks_of(selection)
    assert ticks is not None
    result = WindowPeaks(every=8)
    for matrice in ticks.matrices(selection):
        result.add(matrice)
    minutes = {int(window) for name in ("read", "write") for part in result.parts[name] for window in part[0]}
    assert minutes
    assert all(minute % 8 == 0 for minute in minutes)
    assert all(item.size_bytes.size for item in result.against(selection, ticks.targets))


def test_the_fastest_minutes_stay_however_many_are_left_out(
    centre, selection: FrameSelection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And however the ticks were divided."""
    ticks = ticks_of(selection)
    assert ticks is not None
    monkeypatch.setattr(request_sizes_, "FASTEST", 2)
    whole, thinned, divided = WindowPeaks(), WindowPeaks(every=1 << 20), WindowPeaks(every=1 << 20)
    for matrix in ticks.matrices(selection):
        whole.add(matrix)
        thinned.add(matrix)
        part = WindowPeaks(every=1 << 20)
        part.add(matrix)
        divided.take(part)
    everything = {pair.direction: pair for pair in whole.against(selection, ticks.targets)}
    few = {pair.direction: pair for pair in thinned.against(selection, ticks.targets)}
    again = {pair.direction: pair for pair in divided.against(selection, ticks.targets)}
    for direction, pair in few.items():
        largest = np.sort(everything[direction].bytes_per_s)[-2:]
        assert np.sort(pair.bytes_per_s).tolist() == largest.tolist() == np.sort(again[direction].bytes_per_s).tolist()
        lines = list(pair.lines())
        assert max(line.max_bytes_per_s for line in lines) == largest[-1]
        assert {(line.windows, line.taken_every, line.median_bytes_per_s) for line in lines} == {(0, 1 << 20, None)}


def test_lines_are_of_all_minutes_and_points_keep_the_ends_of_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_sizes_, "MOST_POINTS", 3)
    size = np.array([4, 4, 4, 4, 8, 8, 8, 8]) * KIB
    fast = np.array([1.0, 9.0, 2.0, 3.0, 5.0, 6.0, 50.0, 4.0])
    pair = SizesAgainstBandwidth("read", size, fast, np.ones(8, bool), 1)
    assert list(pair.lines()) == [
        SizeBandwidth("read", 4 * KIB, 4, 1, 2.5, 9.0),
        SizeBandwidth("read", 8 * KIB, 4, 1, 5.5, 50.0),
    ]
    assert sorted(pair.thinned().bytes_per_s.tolist()) == [1.0, 3.0, 4.0, 9.0, 50.0]


def test_bandwidth_by_size_is_in_json_and_tables(centre) -> None:
    opened = workload(FrameSelection({name: centre.tables[name] for name in ("target_io", "target_histograms")}))
    lines = to_plain(opened)["size_bandwidth"]
    assert {line["direction"] for line in lines} == {"read", "write"}
    table = size_bandwidth(opened)
    assert [row[4] for row in table.rows] == [line["max_bytes_per_s"] for line in lines]
    assert "size_bandwidth" in {view.name for view in tables(opened)}


def test_targets_without_bandwidth_are_no_points(centre) -> None:
    sizes_ = centre.tables["target_histograms"]
    strange = sizes_.set_column(
        sizes_.column_names.index("target"), "target", pa.array(["elsewhere"] * sizes_.num_rows)
    )
    selection = FrameSelection({"target_io": centre.tables["target_io"], "target_histograms": strange})
    ticks = ticks_of(selection)
    assert ticks is not None
    result = WindowPeaks()
    for matrice in ticks.matrices(selection):
        result.add(matrice)
    assert result.against(selection, ticks.targets) == []
