"""Latency as tables, figures and sections of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.latency import Latency
from iolens.views import figures as f
from iolens.views.latency import figures, is_slow, slowness, tables, verdict
from iolens.views.latency_report import report_methods, report_sections, report_summary
from iolens.views.report import report_html
from iolens.views.tables import to_terminal
from tests.analyses.telemetry import made_up_devices, made_up_io_times, table_of
from tests.views.documented import undocumented
from tests.views.test_report import ABOUT, Page


def of(**tables: list[dict]) -> Latency:
    found = iolens.latency(**{name: table_of(name, rows) for name, rows in tables.items()})
    assert isinstance(found, Latency)
    return replace(found, filesystem="scratch")


@pytest.fixture(scope="module")
def result() -> Latency:
    return of(target_histograms=made_up_io_times(1, ticks=120, targets=5))


@pytest.fixture(scope="module")
def waits() -> Latency:
    return of(target_io=made_up_devices(1, ticks=200, devices=4))


@pytest.fixture(scope="module")
def empty() -> Latency:
    return of(target_histograms=[])


def test_the_verdict_names_percentiles_and_the_slow(result: Latency) -> None:
    told = verdict(result)
    assert told.startswith("99 % of reads took at most ")
    assert told.endswith("scratch-OST0001 is far slower than its peers.")


def test_one_bin_is_chance_and_two_are_not(result: Latency) -> None:
    line = result.per_target[0]
    assert not is_slow(replace(line, p99_ratio=2.0, slow_pct=3.0))
    assert is_slow(replace(line, p99_ratio=4.0, slow_pct=3.0))
    assert is_slow(replace(line, p99_ratio=2.0, slow_pct=10.0))
    assert not is_slow(replace(line, p99_ratio=None, slow_pct=None, mean_wait_ratio=1.9))
    assert is_slow(replace(line, p99_ratio=None, slow_pct=None, mean_wait_ratio=2.0))


def test_a_mean_is_never_called_a_percentile(waits: Latency) -> None:
    assert "ms on average" in verdict(waits)
    shown = to_terminal(tables(waits))
    assert "Percentiles" not in shown
    labels = [mark.label for panel in figures(waits)["latency"]().panels for mark in panel.marks]
    assert set(labels) == {"mean wait"}
    heat = next(mark for mark in figures(waits)["heatmap"]().panels[0].marks if isinstance(mark, f.HeatMap))
    assert heat.label == "mean wait (ms), log scale"


def test_the_slowest_come_first(result: Latency) -> None:
    table = next(table for table in tables(result) if table.title.startswith("Targets of"))
    assert table.rows[0][:2] == ("scratch-OST0001", "read")
    scores = sorted(map(slowness, result.per_target), reverse=True)
    ratio = [column.name for column in table.columns].index("p99_ratio")
    assert [row[ratio] for row in table.rows] == [score[0] for score in scores]
    assert "mean_wait_ms" not in [column.name for column in table.columns]  # nobody has one


def test_many_targets_are_cut_to_the_slowest_and_say_so() -> None:
    many = of(target_histograms=made_up_io_times(2, ticks=5, targets=20))
    table = next(table for table in tables(many) if table.title.startswith("Targets of"))
    assert len(table.rows) == 12
    assert f"12 slowest of {len(many.per_target)}" in table.note


@pytest.mark.parametrize("name", ["latency", "heatmap"])
@pytest.mark.parametrize("which", ["result", "waits", "empty"])
def test_every_figure_is_drawn(which: str, name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    figure = figures(request.getfixturevalue(which))[name]()
    for suffix, beginning in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".html", b"<!DOCTYPE html>")):
        f.draw(figure, tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").read_bytes().lstrip().startswith(beginning)


def test_reads_and_writes_share_a_scale_with_numbers_on_it(result: Latency) -> None:
    reads, writes = figures(result)["latency"]().panels
    assert reads.y == writes.y
    assert len(reads.y.ticks) >= 3
    assert all(reads.y.low <= place <= reads.y.high for place, _ in reads.y.ticks)
    assert [mark.label for mark in reads.marks] == ["50 % within", "95 % within", "99 % within"]


def test_the_heat_map_has_a_row_for_every_target(result: Latency) -> None:
    heat = next(mark for mark in figures(result)["heatmap"]().panels[0].marks if isinstance(mark, f.HeatMap))
    assert heat.rows == tuple(f"OST{number:04x}" for number in range(5))
    slow = next(one for one in result.over_time if (one.target, one.direction) == ("scratch-OST0001", "read"))
    assert np.array_equal(heat.values[1], slow.p99_ms, equal_nan=True)


def test_an_empty_window_says_so(empty: Latency) -> None:
    shown = to_terminal(tables(empty))
    assert shown.count("No data in this window.") == 2
    assert "None" not in shown


def test_the_report_has_a_section_where_there_is_something_to_say(result: Latency, empty: Latency) -> None:
    page = Page(report_html([result], ABOUT))
    assert page.headings.count("Latency of disk I/Os") == 1
    assert "right to a factor of two" in page.text
    assert (report_summary(empty), report_sections(empty), report_methods([empty])) == ([], [], [])


def test_every_key_is_documented() -> None:
    assert undocumented(Latency, "latency.md") == []
