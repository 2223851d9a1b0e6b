"""Latency as tables, figures and sections of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.latency.analysis import Latency
from iolens.views.latency import figures, report_answers, report_methods, report_sections, slowness, tables, verdict
from iolens.views.render import figures as f
from iolens.views.render.tables import to_terminal
from iolens.views.report.centre import report_html
from tests.analyses.telemetry import made_up_devices, made_up_io_times, table_of
from tests.views.documented import undocumented
from tests.views.test_report import ABOUT, Page


def of(**tables: list[dict]) -> Latency:
    answer = iolens.latency(**{name: table_of(name, rows) for name, rows in tables.items()})
    assert isinstance(answer, Latency)
    return replace(answer, filesystem="scratch")


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
    reported = verdict(result)
    assert reported.startswith("99 % of reads took at most ")
    assert [(line.target, line.direction) for line in result.per_target if line.finding == "slower"] == [
        ("scratch-OST0001", "read")
    ]
    slow = next(line for line in result.per_target if line.finding == "slower")
    answer = slow.evidence
    assert answer is not None
    assert (
        f"scratch-OST0001 is far slower than its peers: {answer.beyond_twice_pct:.2g} % of scratch-OST0001's "
        in reported
    )
    assert f"reads took more than {2 * answer.tail_ms:.0f} ms" in reported
    assert reported.endswith(f"slower in {answer.periods_slower} of {answer.periods} periods of 4 min.")
    assert answer.periods_slower >= answer.periods_needed


def test_thirteen_writes_one_bin_apart_make_no_verdict() -> None:
    """The words follow the finding, and the table says why there is none."""
    first = next(row for row in made_up_io_times(1, ticks=2, targets=1) if row["histogram"] == "io_time_ms")
    bins = {"a": {4: 9000}, "b": {4: 9000}, "c": {4: 9000}, "d": {4: 8, 8: 5}}
    rows = [
        {**first, "target": target, "direction": "write", "bin": edge, "count": count}
        for target, counts in bins.items()
        for edge, count in counts.items()
    ]
    answer = of(target_histograms=rows)
    last = next(line for line in answer.per_target if line.target == "d")
    assert (last.p99_ratio, last.finding, last.p99_low_ms, last.p99_high_ms) == (2.0, "unknown", 8.0, None)
    assert last.slow_pct == pytest.approx(38.46, abs=0.01)
    assert "slower" not in verdict(answer)
    table = next(table for table in tables(answer) if table.title.startswith("Targets of"))
    assert "Unknown: d, writes: 13 I/Os; 1,000 are needed." in table.note


def test_the_finding_does_not_depend_on_the_buckets_that_are_shown(result: Latency) -> None:
    rows = table_of("target_histograms", made_up_io_times(1, ticks=120, targets=5))
    wide = iolens.latency(target_histograms=rows, every_s=3600)
    assert (wide.bucket_s, wide.period_s) == (3600.0, result.period_s)
    assert [line.finding for line in wide.per_target] == [line.finding for line in result.per_target]
    assert [line.evidence for line in wide.per_target] == [line.evidence for line in result.per_target]


def test_slow_by_mean_wait_says_so() -> None:
    rows = made_up_devices(1, ticks=400, devices=5)
    slow = [{**row, "read_wait_us": row["read_wait_us"] * (6 if row["target"] == "sdb" else 1)} for row in rows]
    reported = verdict(of(target_io=slow))
    assert "sdb is far slower than its peers: sdb's reads waited " in reported
    assert " times as long, slower in " in reported


def test_a_mean_is_never_called_a_percentile(waits: Latency) -> None:
    assert "ms on average" in verdict(waits)
    shown = to_terminal(tables(waits))
    assert "Percentiles" not in shown
    labels = [mark.label for panel in figures(waits)["latency"]().panels for mark in panel.marks]
    assert set(labels) == {"mean wait"}
    heat = next(mark for mark in figures(waits)["heatmap"]().panels[0].marks if isinstance(mark, f.HeatMapMark))
    assert heat.label.startswith("mean wait (ms), log, largest ")


def test_the_slowest_come_first(result: Latency) -> None:
    table = next(table for table in tables(result) if table.title.startswith("Targets of"))
    assert table.rows[0][:2] == ("scratch-OST0001", "read")
    scores = sorted(map(slowness, result.per_target), reverse=True)
    ratio = [column.name for column in table.columns].index("p99_ratio")
    assert [row[ratio] for row in table.rows] == [score[1] for score in scores]
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
    heat = next(mark for mark in figures(result)["heatmap"]().panels[0].marks if isinstance(mark, f.HeatMapMark))
    assert heat.rows == tuple(f"OST{number:04x}" for number in range(5))
    slow = next(item for item in result.over_time if (item.target, item.direction) == ("scratch-OST0001", "read"))
    assert np.array_equal(heat.values[1], slow.p99_ms, equal_nan=True)


def test_an_empty_window_says_so(empty: Latency) -> None:
    shown = to_terminal(tables(empty))
    assert shown.count("No data in this window.") == 2
    assert "None" not in shown


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_a_section_where_there_is_something_to_say(result: Latency, empty: Latency) -> None:
    page = Page(report_html([result], ABOUT))
    assert page.closed.count("Latency of disk I/Os") == 1
    assert "right to a factor of two" in page.text
    assert (report_answers(empty), report_sections(empty), report_methods([empty])) == ([], [], [])


def test_every_key_is_documented() -> None:
    assert undocumented(Latency, "latency.md") == []
