"""The metadata load as tables, figures and sections of the report."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.metadata import Metadata
from iolens.views.metadata import figures, report_answers, report_methods, report_sections, tables, verdict
from iolens.views.render import figures as f
from iolens.views.render.tables import to_terminal
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo
from tests.analyses.metadata.test_metadata import CALIBRATION
from tests.analyses.telemetry import made_up_metadata, table_of
from tests.views.documented import undocumented
from tests.views.test_report import ABOUT, Page


@pytest.fixture(scope="module")
def result() -> Metadata:
    frame = table_of("metadata_ops", made_up_metadata(1, ticks=200, targets=2))
    answer = iolens.metadata(metadata_ops=frame, filesystem="scratch", costs=CALIBRATION)
    assert isinstance(answer, Metadata)
    return answer


@pytest.fixture(scope="module")
def empty() -> Metadata:
    answer = iolens.metadata(filesystem="scratch", metadata_ops=table_of("metadata_ops", []))
    assert isinstance(answer, Metadata)
    return answer


def text(result: Metadata, title: str) -> str:
    return to_terminal([table for table in tables(result) if table.title.startswith(title)])


def test_the_verdict_says_what_is_assumed(result: Metadata) -> None:
    reported = verdict(replace(result, busy_time_pct=12.3, assumed_time_pct=4.5))
    assert reported == (
        "With data for 89.2 % of the window: busy 12.3 % of the time by MDU (above 30 %)."
        " 4.5 % of the modelled time is assumed: mdtest does not measure those operations."
    )
    assert verdict(replace(result, busy_time_pct=12.3, assumed_time_pct=0.0)).endswith("by MDU (above 30 %).")
    assert "not known" in verdict(replace(result, mean_mdu_pct=None))
    whole = replace(result, busy_time_pct=12.3, coverage=replace(result.coverage, complete_pct=95.0))
    assert verdict(whole).startswith("Busy 12.3 % of the time by MDU")


def test_tables_show_kinds_costs_and_targets(result: Metadata) -> None:
    kinds = text(result, "Operations by kind").splitlines()
    assert kinds[3].split()[0] == "getattr"
    assert "assumed" in next(line for line in kinds if line.startswith("setattr"))
    costs = text(result, "Calibration by hand")
    assert "2,000   measured" in next(line for line in costs.splitlines() if line.startswith("open"))
    assert "all others" in costs
    assert "scratch-MDT0001" in text(result, "Metadata targets")
    assert "a sketch, right to 0.5 %" in text(replace(result, percentile_error_pct=0.5), "scratch: metadata load")


def test_an_empty_window_says_so_and_prints_no_number_for_what_is_unknown(empty: Metadata) -> None:
    shown = to_terminal(tables(empty))
    assert shown.count("No data in this window.") == 4
    assert "nan" not in shown
    assert "None" not in shown


@pytest.mark.parametrize("name", ["operations", "mdu"])
def test_every_figure_is_drawn(result: Metadata, empty: Metadata, name: str, tmp_path: Path) -> None:
    for item in (result, empty, replace(result, series=None)):
        for suffix, beginning in ((".png", b"\x89PNG"), (".html", b"<!DOCTYPE html>")):
            path = tmp_path / f"figure{suffix}"
            f.draw(figures(item)[name](), path)
            assert path.read_bytes().lstrip().startswith(beginning)


def test_kinds_are_stacked_on_each_other(result: Metadata) -> None:
    bars = [mark for mark in figures(result)["operations"]().panels[0].marks if isinstance(mark, f.Bars)]
    assert [bar.label for bar in bars][:3] == ["getattr", "open", "close"]
    assert bars[-1].label == "others"
    for below, above in itertools.pairwise(bars):
        assert above.bottoms == pytest.approx(below.bottoms + below.heights)
    total = np.sum(list(result.series.ops_per_s.values()), axis=0)
    total = total[np.isfinite(total)]  # a bucket in which nobody reported has no bar
    assert bars[-1].bottoms + bars[-1].heights == pytest.approx(total)
    assert bars[0].ends - bars[0].starts == pytest.approx(np.full(len(total), result.series.bucket_s * 1e6))


def test_bars_stand_at_their_time_in_both_renderers(result: Metadata) -> None:
    from bokeh.core.serialization import Deserializer

    from iolens.views.render.bokeh_figure import item
    from iolens.views.render.matplotlib_figure import to_bytes

    figure = figures(result)["operations"]()
    (plot,) = item(figure)["doc"]["roots"][0]["attributes"]["children"]
    columns = dict(plot["attributes"]["renderers"][0]["attributes"]["data_source"]["attributes"]["data"]["entries"])
    assert Deserializer().decode(columns["left"])[0] == result.series.start_us[0] / 1000
    assert b"Sep" in to_bytes(figure, "svg") or b"00:" in to_bytes(figure, "svg")


def test_mdu_without_a_calibration_shows_service_times_or_says_so(result: Metadata) -> None:
    def labels(metadata: Metadata) -> list[str]:
        return [
            mark.label
            for mark in figures(metadata)["mdu"]().panels[0].marks
            if isinstance(mark, f.LineMark | f.PointsMark)
        ]

    assert labels(result) == ["by service times", "MDU"]
    bare = replace(result, series=replace(result.series, mdu_pct=None))
    assert labels(bare) == ["by service times"]
    neither = replace(result, series=replace(bare.series, mdu_service_pct=None))
    assert "not known" in figures(neither)["mdu"]().panels[0].message


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_a_section_where_there_is_something_to_say(result: Metadata, empty: Metadata) -> None:
    page = Page(report_html([result], ABOUT))
    assert page.closed.count("Load on the metadata servers") == 1
    assert "With data for 89.2 % of the window: the metadata servers did" in page.text
    assert "Metadata Utilization (MDU) is the share of time" in page.text
    assert (report_answers(empty), report_sections(empty), report_methods([empty])) == ([], [], [])
    assert report_html([empty], ReportInfo("1", ABOUT.generated))


def test_every_key_is_documented() -> None:
    assert undocumented(Metadata, "metadata.md") == []
