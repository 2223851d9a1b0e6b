"""Utilization of plain disks for people: named apart from FSU by histograms, beside the kernel's %util."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import iolens
from iolens.analyses.utilization.analysis import Utilization
from iolens.analyses.utilization.targets import target_outliers
from iolens.views.render import figures as f
from iolens.views.render.tables import to_csv, to_terminal
from iolens.views.report.centre import report_html
from iolens.views.utilization.figures import figures
from iolens.views.utilization.tables import tables
from tests.analyses.telemetry import made_up_devices, table_of
from tests.views.test_report import ABOUT, Page

from .results import busy_day


@pytest.fixture(scope="module")
def result() -> Utilization:
    frame = table_of("target_io", made_up_devices(1, ticks=300, devices=6))
    answer = iolens.utilization(target_io=frame, filesystem="node1")
    assert isinstance(answer, Utilization)
    return answer


def test_the_headline_names_which_fsu_it_is(result: Utilization) -> None:
    header = to_csv(tables(result)[0]).splitlines()[0].split(",")
    assert {"mean_fsu_bytes_pct", "mean_util_pct"} <= set(header)
    assert "mean_fsu_pct" not in header
    assert "mean_fsu_bytes_pct" not in to_csv(tables(busy_day())[0])


def test_two_models_side_by_side_have_a_line_each(result: Utilization) -> None:
    shown = to_terminal(tables(replace(busy_day(), compare=result))[:1])
    assert "Mean FSU " in shown
    assert "Mean FSU by bytes " in shown
    assert "Kernel's %util " in shown


def test_what_counters_cannot_tell_is_said(result: Utilization) -> None:
    shown = to_terminal(tables(result))
    assert "which I/Os are optimal is not known" in shown
    assert "do not tell single sizes" in shown


def test_figures_are_those_there_is_something_to_show_in(result: Utilization, tmp_path: Path) -> None:
    assert list(figures(result)) == ["bandwidth", "histogram", "heatmap", "util"]
    assert list(figures(busy_day())) == ["bandwidth", "histogram", "sizes", "heatmap"]
    figure = figures(result)["util"]()
    assert [mark.label for mark in figure.panels[0].marks] == ["%util (kernel)", "FSU"]
    both = figures(replace(busy_day(), compare=result))["util"]()
    assert [panel.message for panel in both.panels] == ["no data in this window", ""]
    for suffix in (".png", ".html"):
        f.draw(figure, tmp_path / f"util{suffix}")
        assert (tmp_path / f"util{suffix}").stat().st_size > 10_000


def test_the_report_puts_it_beside_the_kernels_view(result: Utilization) -> None:
    page = Page(report_html([result], ABOUT))
    assert "Beside the kernel's %util" in page.closed
    assert "Sizes of disk I/Os" not in page.closed
    assert "It is called FSU by bytes" in page.text


def test_a_disk_that_differs_is_found_by_either_model(result: Utilization) -> None:
    lines = [replace(line, mean_fsu_bytes_pct=10 + place / 10) for place, line in enumerate(result.per_target)]
    lines[2] = replace(lines[2], mean_fsu_bytes_pct=60.0)
    answer = target_outliers(lines)
    assert [(outlier.target, outlier.mean_pct) for outlier in answer.outliers] == [("sdc", 60.0)]
