"""Imbalance as tables, figures and sections of the report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.imbalance.analysis import Imbalance
from iolens.views.imbalance.figures import figures
from iolens.views.imbalance.report import report_methods
from iolens.views.imbalance.tables import tables, threshold_name, verdict
from iolens.views.render import figures as f
from iolens.views.render.tables import show_seconds, to_csv, to_terminal
from iolens.views.report.centre import report_html
from tests.analyses.load_rows import rows_of, spider
from tests.analyses.telemetry import table_of
from tests.views.documented import DOCS, undocumented
from tests.views.test_report import ABOUT, Page

NAMES = ["snapshot", "extremes", "std-cdf", "dispersion", "lifetimes", "distances", "hot-targets"]


def of(load: np.ndarray, background: np.ndarray | None = None, **options) -> Imbalance:
    answer = iolens.imbalance(target_io=table_of("target_io", rows_of(load, background=background)), **options)
    return replace(answer, filesystem="scratch")


@pytest.fixture(scope="module")
def result() -> Imbalance:
    load = spider(1, ticks=1500, targets=12)
    load[700:, 8] = 0.0
    return of(load, np.where(np.arange(12) == 4, 1e5, 0.0) * np.ones((1500, 1)))


@pytest.fixture(scope="module")
def even() -> Imbalance:
    """Nothing was ever unbalanced."""
    return of(np.full((30, 3), 1e6))


@pytest.fixture(scope="module")
def idle() -> Imbalance:
    return of(np.zeros((30, 3)))


@pytest.fixture(scope="module")
def many() -> Imbalance:
    return of(spider(2, ticks=60, targets=40), thresholds=[1e6], percentiles=[], with_background=False)


def test_the_verdict_says_how_much_how_long_and_who(result: Imbalance) -> None:
    reported = verdict(result)
    assert reported.startswith("For 80 % of the time the standard deviation between targets was at most ")
    assert re.search(
        r"It reached [\d.]+ kB/s \d+ times: nine in ten of these periods lasted at most [\d.]+ s", reported
    )
    assert "Most often hot: c03, " in reported
    assert "c08 moves nothing while its peers do." in reported
    assert "c03 moves far more than its peers." in reported


def test_an_even_load_has_a_verdict_too(even: Imbalance, idle: Imbalance) -> None:
    for item in (even, idle):
        assert verdict(item) == (
            "For 80 % of the time the standard deviation between targets was at most 0 B/s, for 95 % at most 0 B/s."
        )
        assert "No tick was unbalanced." in to_terminal(tables(item))


def test_tables_show_what_the_result_says(result: Imbalance) -> None:
    shown = to_terminal(tables(result))
    assert "80th percentile" in shown
    assert "95th percentile" in shown
    assert "moved nothing while its peers did, to the end" in shown
    assert "Background I/O" in shown
    assert "None" not in shown
    first = to_csv(tables(result)[0]).splitlines()
    assert first[0].startswith("threshold,std_bytes_per_s,ticks_pct,periods,lifetime_p50_s,")
    assert len(first) == 3


def test_many_targets_are_cut_and_say_so(many: Imbalance) -> None:
    shown = {table.title: table for table in tables(many)}
    assert len(shown["Targets against their peers"].rows) == 12
    assert "12 of 40 targets" in shown["Targets against their peers"].note
    hot = shown["Hot targets at the 1 MB/s"]
    assert len(hot.rows) in (12, len(many.hot_targets))


def test_the_strangest_target_comes_first(result: Imbalance) -> None:
    table = next(table for table in tables(result) if table.title == "Targets against their peers")
    assert [row[0] for row in table.rows[:2]] == ["c08", "c03"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.0, "2 s"), (58.0, "58 s"), (90.0, "1.5 min"), (600.0, "10 min"), (7200.0, "2 h"), (0.5, "0.5 s")],
)
def test_durations_are_shown_in_the_unit_that_suits(value: float, shown: str) -> None:
    assert show_seconds(value) == shown


@pytest.mark.parametrize(
    ("percentile", "name"),
    [(80.0, "80th"), (99.9, "99.9th"), (91.0, "91st"), (92.0, "92nd"), (93.0, "93rd"), (11.0, "11th"), (12.0, "12th")],
)
def test_percentiles_have_names(result: Imbalance, percentile: float, name: str) -> None:
    assert threshold_name(replace(result.thresholds[0], percentile=percentile)) == f"{name} percentile"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["result", "even", "idle", "many"])
def test_every_figure_is_described_and_drawn(
    which: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    result = request.getfixturevalue(which)
    assert list(figures(result)) == NAMES
    figure = figures(result)[name]()
    assert figure.name == name
    for suffix, beginning in ((".svg", b"<?xml"), (".html", b"<!DOCTYPE html>")):
        f.draw(figure, tmp_path / f"figure{suffix}")
        assert (tmp_path / f"figure{suffix}").read_bytes().lstrip().startswith(beginning)


def test_a_snapshot_adds_up_to_the_load_and_names_its_numbers(result: Imbalance) -> None:
    panel = figures(result)["snapshot"]().panels[0]
    bars = [mark for mark in panel.marks if isinstance(mark, f.Bars)]
    assert [mark.label for mark in bars] == ["read", "written", "background"]
    first = result.snapshots[0]
    factor = 1e6 if first.max_bytes_per_s >= 1e6 else 1e3
    total = sum(mark.heights for mark in bars) * factor
    assert total.max() == pytest.approx(first.max_bytes_per_s)
    assert total.std(ddof=1) == pytest.approx(first.std_bytes_per_s)
    assert re.search(r"min [\d.]+, max [\d.]+, mean [\d.]+, std [\d.]+ [kM]B/s$", panel.title)


def test_what_is_not_in_the_numbers_is_labelled_so() -> None:
    answer = of(spider(1, ticks=60, targets=4), np.ones((60, 4)), with_background=False)
    labels = [mark.label for mark in figures(answer)["snapshot"]().panels[0].marks if isinstance(mark, f.Bars)]
    assert labels[-1] == "background, not in the numbers"


def test_curves_of_durations_end_at_one_and_pass_their_percentiles(result: Imbalance) -> None:
    panel = figures(result)["lifetimes"]().panels[0]
    curves = [mark for mark in panel.marks if isinstance(mark, f.LineMark)]
    assert [mark.label for mark in curves] == ["80th percentile", "95th percentile"]
    for mark, name in zip(curves, ("p80", "p95"), strict=True):
        lifetimes = result.periods[name].lifetimes * result.tick_s
        assert (mark.y[0], mark.y[-1], mark.x[-1]) == (0.0, 1.0, lifetimes.max())
        for x, y in zip(mark.x[1::2], mark.y[1::2], strict=True):
            assert y == pytest.approx((lifetimes <= x).mean())


def test_thresholds_lie_on_the_curve(result: Imbalance) -> None:
    panel = figures(result)["std-cdf"]().panels[0]
    dots = [mark for mark in panel.marks if isinstance(mark, f.PointsMark)]
    assert [round(float(mark.y[0]), 2) for mark in dots] == [0.8, 0.95]
    assert dots[0].label.startswith("p80: ")


def test_dots_of_the_dispersion_stand_for_every_tick(result: Imbalance) -> None:
    marks = figures(result)["dispersion"]().panels[0].marks
    dots = [mark for mark in marks if isinstance(mark, f.PointsMark)]
    assert sum(len(mark.x) for mark in dots) <= result.samples
    top = max(float(mark.y.max()) for mark in dots)
    unit = 1e6 if "MB/s" in figures(result)["dispersion"]().panels[0].y.label else 1e3
    assert top * unit == pytest.approx(result.extremes["std"].max_bytes_per_s, rel=0.13)  # a cell is that wide


def test_the_map_of_hot_targets_adds_up_to_their_hours(result: Imbalance) -> None:
    mine = {hot_target.target: hot_target.hours for hot_target in result.hot_targets if hot_target.threshold == "p80"}
    assert result.hot_map is not None
    by_target = dict(zip(result.hot_map.targets, np.nansum(result.hot_map.seconds, axis=1) / 3600, strict=True))
    assert {name: hours for name, hours in by_target.items() if hours} == pytest.approx(mine)


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_its_sections(result: Imbalance, even: Imbalance) -> None:
    page = Page(report_html([result], ABOUT))
    assert page.closed.count("Load imbalance") == 2  # the section, and how to read it
    assert "c08 moves nothing while its peers do." in page.text
    Page(report_html([even], ABOUT))
    assert report_methods([]) == []


def test_every_key_is_documented() -> None:
    assert undocumented(Imbalance, "imbalance.md") == []


def test_the_page_names_every_figure() -> None:
    text = (DOCS / "imbalance.md").read_text("utf-8")
    assert [name for name in NAMES if f"`{name}`" not in text] == []
