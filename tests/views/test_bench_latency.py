"""Latency of system calls as tables, figures and words."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.analyses.bench_latency import BenchLatency, bench_latency
from iolens.views.bench_latency import (
    FIGURES,
    NO_DATA,
    cost_words,
    direction_words,
    figures,
    one_operation,
    shown_factor,
    shown_latency,
    tables,
)
from iolens.views.render.figures import Bars
from iolens.views.render.tables import to_terminal
from tests.analyses.call_rows import LUSTRE, NFS, study_rows
from tests.views.documented import undocumented


def compared() -> BenchLatency:
    return bench_latency(study_rows({"nfs": NFS, "lustre": LUSTRE}))


def one_place() -> BenchLatency:
    return bench_latency(study_rows({"nfs": NFS}, tool="loop"))


def two_tools() -> BenchLatency:
    rows = study_rows({"nfs": NFS}) + study_rows({"lustre": LUSTRE}, tool="loop", time=10**9)
    return bench_latency(rows)


def nothing() -> BenchLatency:
    return bench_latency([])


def test_every_key_is_documented() -> None:
    assert undocumented(BenchLatency, "bench-latency.md") == []


def test_the_words_name_what_dominates_and_the_largest_factor() -> None:
    assert direction_words(compared(), "write").splitlines() == [
        "An 8-byte write on nfs takes 202 µs in 8 calls, most of it in open (50 %) and close (15 %).",
        "An 8-byte write on lustre takes 750 µs in 8 calls, most of it in fstat (64 %). That is 3.7 times as long as on"
        " nfs. Of its calls fstat differs most: 480 µs, 40.0 times as long as on nfs.",
    ]


def test_the_words_follow_the_numbers() -> None:
    result = compared()
    operation = next(item for item in result.operations if (item.place, item.direction) == ("lustre", "read"))
    item = result.most_different_call(operation)
    assert item is not None
    assert item.against is not None
    assert operation.against is not None
    words = direction_words(result, "read")
    assert f"takes {operation.mean_s * 1e6:.0f} µs in 7 calls" in words
    assert f"That is {operation.against.factor:.1f} times as long as on nfs." in words
    assert f"{item.call} differs most: {item.mean_s * 1e6:.0f} µs, {item.against.factor:.1f} times" in words


def test_a_factor_within_the_spread_is_not_in_words() -> None:
    result = bench_latency(study_rows({"nfs": NFS, "lustre": LUSTRE}, factors=(0.01, 1.0, 100.0)))
    words = direction_words(result, "write")
    assert "times as long" not in words
    assert words.endswith("No single call differs from nfs by more than iterations, or getppid, do.")


def test_with_few_iterations_nothing_is_said_of_a_difference() -> None:
    result = bench_latency(study_rows({"nfs": NFS, "lustre": LUSTRE}, factors=(1.0, 1.0)))
    assert "differ" not in direction_words(result, "write")
    assert any("from 3 iterations on" in note for note in result.notes)


def test_a_cost_of_measuring_that_is_most_of_the_time_is_a_warning() -> None:
    result = bench_latency(study_rows({"memory": {"getppid": 21.0, "open": 30.0}}))
    (warning,) = cost_words(result)
    read = next(item for item in result.operations if item.direction == "read")
    assert read.idle_pct == pytest.approx(100 * 7 * 20 / (6 * 21 + 30))
    assert warning.startswith("tracing with strace costs about 20 µs per call")
    assert f"up to {read.idle_pct:.0f} % of an operation" in warning
    assert tables(result)[0].warnings == (f"T{warning[1:]}.",)
    assert cost_words(compared()) == ()


def test_tables_have_every_call_of_every_place() -> None:
    operations, writes, reads = tables(compared())
    assert (operations.name, writes.name, reads.name) == ("operations", "write_calls", "read_calls")
    assert [row[:2] for row in writes.rows[2:6]] == [
        ("open", "nfs"), ("open", "lustre"), ("ioctl", "nfs"), ("ioctl", "lustre"),
    ]  # fmt: skip
    assert (len(writes.rows), len(reads.rows)) == (18, 16)
    names = [column.name for column in writes.columns]
    fstat = dict(zip(names, next(row for row in writes.rows if row[:2] == ("fstat", "lustre")), strict=True))
    assert fstat["mean_us"] == pytest.approx(480.0)
    assert fstat["factor"] == pytest.approx(40.0)
    assert fstat["differs"] == "yes"
    assert fstat["calls"] == 300


def test_tables_of_nothing_say_so() -> None:
    text = to_terminal(tables(nothing()), 80)
    assert text.count(NO_DATA) == 2


def test_bars_are_the_means_of_the_calls() -> None:
    result = compared()
    figure = figures(result)["write"]()
    bars = [mark for mark in figure.panels[0].marks if isinstance(mark, Bars)]
    assert [mark.label for mark in bars] == ["nfs", "lustre"]
    for mark in bars:
        means = [item.mean_s * 1e6 for item in result.calls if (item.place, item.direction) == (mark.label, "write")]
        assert mark.heights == pytest.approx(np.array(means))


def test_the_axis_is_logarithmic_only_where_calls_differ_much() -> None:
    assert figures(compared())["write"]().panels[0].y.scale == "log"
    alike = bench_latency(study_rows({"memory": {"getppid": 21.0, "open": 30.0}}))
    assert figures(alike)["write"]().panels[0].y.scale == "linear"


def test_a_place_with_another_tool_is_named_with_it() -> None:
    labels = [mark.label for mark in figures(two_tools())["read"]().panels[0].marks if isinstance(mark, Bars)]
    assert labels == ["nfs (strace)", "lustre (loop)"]


def test_figures_of_nothing_have_a_message() -> None:
    assert tuple(figures(nothing())) == FIGURES
    assert figures(nothing())["read"]().panels[0].message == NO_DATA


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (8, "an 8-byte write"), (64, "a 64-byte write"), (11, "an 11-byte write"), (800, "an 800-byte write"),
        (4096, "a 4 KiB write"), (8192, "an 8 KiB write"), (None, "a small write"),
    ],
)  # fmt: skip
def test_an_operation_has_its_size(size: int | None, words: str) -> None:
    assert one_operation(bench_latency(study_rows({"a": NFS}, transfer_bytes=size)), "write") == words


def test_numbers_have_three_digits_and_their_unit() -> None:
    assert [shown_latency(value) for value in (3.8e-7, 2.02e-4, 1.234e-3, 2.5)] == [
        "0.38 µs", "202 µs", "1.23 ms", "2.5 s",
    ]  # fmt: skip
    assert [shown_factor(value) for value in (0.025, 1.62, 39.94, 120.4)] == ["0.025", "1.6", "39.9", "120"]
