"""Rows become matrices as they would one by one, however they are ordered, repeated, cut or out of step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.intervals.tick_matrix import Edges, TickMatrix, Ticks, ticks_of
from iolens.store.frames import FrameSelection
from tests.analyses.telemetry import T0_US, made_up, made_up_devices, table_of

TICK_US = 10_000_000
PART_US = 5 * TICK_US
TARGETS = ("a", "b", "c")
Row = dict[str, Any]


def row(target: str, end_us: int, duration_us: int = TICK_US, **measures: float | None) -> Row:
    common = {"target": target, "time": T0_US + end_us, "start": T0_US + end_us - duration_us}
    return {**common, "duration_s": duration_us / 1e6, "target_kind": "ost", **measures}


def frame(rows: list[Row]) -> pa.Table:
    time, number = pa.timestamp("us", "UTC"), pa.int64()
    schema = {
        "target": pa.string(), "time": time, "start": time, "duration_s": pa.float64(), "target_kind": pa.string(),
        "read_bytes": number, "write_bytes": number, "read_ops": number, "write_ops": number,
    }  # fmt: skip
    return pa.table({name: pa.array([item.get(name) for item in rows], kind) for name, kind in schema.items()})


@dataclass
class Parts(FrameSelection):
    """As a store gives them: parts by the short day in which the tick of a row ends."""

    def tick_days(self, tables: Sequence[str], tick_us: int) -> Iterator[Any]:
        (table,) = tables
        rows = self.frames[table]
        tick, rest = np.divmod(rows.column("time").cast(pa.int64()).to_numpy(), tick_us)
        day = ((tick + (2 * rest > tick_us)) * tick_us - 1) // PART_US
        for item in np.unique(day):
            part = FrameSelection({table: rows.filter(pa.array(day == item))})
            part.end_us = int(item + 1) * PART_US + tick_us // 2  # type: ignore[assignment]
            yield part


whole = Ticks(TARGETS, ("ost",), TICK_US, frozenset({"read_bytes", "write_ops"}))

rows_ = st.lists(
    st.builds(
        row,
        st.sampled_from(TARGETS),
        st.integers(1, 40).map(lambda tick: tick * TICK_US) | st.integers(1, 40 * TICK_US),  # in step, or not
        st.sampled_from([TICK_US, TICK_US, TICK_US // 2, 7 * TICK_US, 20 * TICK_US]),
        read_bytes=st.integers(0, 10**15) | st.none(),
        write_ops=st.integers(0, 1000) | st.none(),
    ),
    min_size=1,
    max_size=40,
)


def one_by_one(rows: list[Row], name: str) -> dict[tuple[int, str], float]:
    """Sums of what is known by nearest tick and target."""
    values: dict[tuple[int, str], float] = defaultdict(float)
    for item in rows:
        if item[name] is not None:
            tick, rest = divmod(item["time"], TICK_US)
            values[(tick + (2 * rest > TICK_US)) * TICK_US, item["target"]] += item[name]
    return values


@pytest.mark.parametrize("kind", [FrameSelection, Parts])
@given(rows=rows_)
@settings(max_examples=40)
def test_matrices_are_those_of_a_count_one_by_one(kind: type, rows: list[Row]) -> None:
    matrices = list(whole.matrices(kind({"target_io": frame(rows)})))
    ends = np.concatenate([matrix.end_us for matrix in matrices])
    assert np.all(np.diff(ends) > 0)  # in time order, every tick once
    for name in ("duration_s", "read_bytes", "write_ops"):
        result = {}
        for matrix in matrices:
            values = matrix.duration_s if name == "duration_s" else matrix.measures[name]
            for line, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
                result[int(matrix.end_us[line]), matrix.targets[column]] = values[line, column]
        assert result == pytest.approx(one_by_one(rows, name))


def test_a_row_of_many_ticks_ends_among_those_of_the_next_day() -> None:
    rows = [row("a", 50 * TICK_US, 48 * TICK_US, read_bytes=7)]
    rows += [row("b", tick * TICK_US, read_bytes=tick) for tick in range(1, 61)]
    matrices = list(whole.matrices(Parts({"target_io": frame(rows)})))
    ends = np.concatenate([matrix.end_us for matrix in matrices])
    assert ends.tolist() == [T0_US + tick * TICK_US for tick in range(1, 61)]
    at_50 = next(matrix for matrix in matrices if T0_US + 50 * TICK_US in matrix.end_us)
    line = at_50.end_us.tolist().index(T0_US + 50 * TICK_US)
    assert at_50.measures["read_bytes"][line].tolist()[:2] == [7, 50]
    assert at_50.rate("read_bytes")[line, 0] == pytest.approx(7 / 480)


def test_ticks_far_apart_take_no_space() -> None:
    far = replace(whole, tick_us=1)
    rows = [row("a", TICK_US, read_bytes=1), row("b", 10**15, read_bytes=2)]
    (matrix,) = far.matrices(FrameSelection({"target_io": frame(rows)}))
    assert matrix.duration_s.shape == (2, 3)


def test_a_tick_follows_the_one_before_it_unless_one_is_missing() -> None:
    ends = np.array([1, 2, 4, 5, 9]) * TICK_US
    matrix = TickMatrix(ends, TICK_US, ("a",), np.ones((5, 1)), {})
    assert matrix.follows.tolist() == [False, True, False, True, False]


def test_time_is_covered_once_however_long_samples_are() -> None:
    """A missed sample of one target does not make the time longer that all of them observed."""
    nan = np.nan
    matrix = TickMatrix(
        np.array([1, 2, 3, 9]) * TICK_US,
        TICK_US,
        ("a", "b"),
        np.array([[10.0, 10.0], [10.0, nan], [10.0, 20.0], [60.0, 10.0]]),
        {},
    )
    assert matrix.covered_s().tolist() == [10.0, 10.0, 10.0, 60.0]
    before = Edges(0, 10.0, 5_000_000)
    assert before.twice_s(Edges.of(matrix, matrix.covered_s())) == 5.0


def test_targets_tick_and_measures_are_found() -> None:
    part = made_up(1, ticks=50, targets=3, missing=0.2)
    result = ticks_of(FrameSelection({"target_io": part.table("target_io")}))
    assert result is not None
    assert result.targets == tuple(f"scratch-OST{number:04x}" for number in range(3))
    assert result.tick_us == 5_000_000
    assert result.known == {"read_bytes", "write_bytes", "read_ops", "write_ops"}
    assert result.kinds == ("ost",)


@pytest.mark.parametrize(
    ("kinds", "taken"),
    [
        (["ost", "device", "server"], "ost"),
        (["device", "controller"], "controller"),
        (["server", "filesystem"], "server"),
        ([None, "server"], None),
        (["lun", None], "lun"),
        (["mdt", "device"], "device"),
    ],
)
def test_the_same_bytes_are_counted_once(kinds: list[str | None], taken: str | None) -> None:
    rows = [
        {**row(f"{kind}-{number}", tick * TICK_US, read_bytes=5), "target_kind": kind}
        for kind in kinds
        for number in range(2)
        for tick in range(1, 4)
    ]
    selection = FrameSelection({"target_io": frame(rows)})
    result = ticks_of(selection)
    assert result is not None
    assert result.targets == (f"{taken}-0", f"{taken}-1")
    assert result.left_out == {f"{kind}-{n}" for kind in kinds for n in range(2) if kind not in (taken, "mdt")}
    (matrix,) = result.matrices(selection)
    assert matrix.measures["read_bytes"].tolist() == [[5, 5]] * 3


def test_a_target_is_expected_while_it_is_there() -> None:
    """A target that was added, or taken away, is not missing before or after."""
    rows = [row("a", tick * TICK_US, read_bytes=1) for tick in range(1, 11)]
    rows += [row("b", tick * TICK_US, read_bytes=1) for tick in (4, 5, 8)]
    result = ticks_of(FrameSelection({"target_io": frame(rows)}))
    assert result is not None
    ends = T0_US + np.arange(1, 11) * TICK_US
    assert result.expected(ends).tolist() == [1, 1, 1, 2, 2, 2, 2, 2, 1, 1]


def test_nothing_is_none() -> None:
    assert ticks_of(FrameSelection({"target_io": frame([])})) is None
    assert ticks_of(FrameSelection({})) is None


def test_rows_of_no_length_are_no_samples() -> None:
    rows = [row("a", TICK_US, 0, read_bytes=5), row("a", 2 * TICK_US, read_bytes=7)]
    result = ticks_of(selection := FrameSelection({"target_io": frame(rows)}))
    assert result is not None
    (matrix,) = result.matrices(selection)
    assert matrix.measures["read_bytes"].tolist() == [[7]]


def test_measures_nobody_tells_are_left_out() -> None:
    devices = [{**up_device, "write_bytes": None, "write_ops": None} for up_device in made_up_devices(1, 20, 2)]
    selection = FrameSelection({"target_io": table_of("target_io", devices)})
    result = ticks_of(selection)
    assert result is not None
    assert result.known == {"read_bytes", "read_ops"}
    assert all(set(matrix.measures) == result.known for matrix in result.matrices(selection))
