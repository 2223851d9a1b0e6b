"""Drives for people: tables that say what they mean, figures in every format, the report, the documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses.drives.analysis import Drives, drives
from iolens.store.frames import FrameSelection
from iolens.views.drives import report_answers, report_methods, report_sections, verdict
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo
from tests.analyses.drive_rows import drive, made_up_drives, selection
from tests.views.documented import undocumented


@cache
def fleet(drives_: int = 40, days: int = 20, **options: Any) -> Drives:
    """Alike but for two that are hardly used; every one wears a point in ten days."""
    rows = [
        drive(
            f"d{number:02}", day, written + 10 * day, 2 * written + 25 * day + (90_000 if number < 2 else number),
            host=f"node{number // 4}", model="flash", wear_pct=float(5 + number + day // 10),
        )
        for number in range(drives_)
        for written in (10_000 if number < 2 else 500_000 + number,)
        for day in range(days)
    ]  # fmt: skip
    return drives(selection(rows), **options)


def nothing() -> Drives:
    return drives(FrameSelection({}, "burst"))


def one_drive() -> Drives:
    return drives(selection([drive("only", 0, 5000, None, capacity_bytes=None)]))


def table(result: Drives, title: str) -> t.TableView:
    return next(item for item in tables_of(result) if item.title.startswith(title))


def test_the_verdict_explains_high_amplification() -> None:
    reported = verdict(fleet())
    assert reported.startswith("40 drives of 40 kB. Write amplification: median 2 (2 … 10.8), 2.01 for all together.")
    assert "The most worn has used 45.0 % of its rated life." in reported
    assert reported.endswith(
        "2 drives have a WAF above 3, because of low use:"
        " in the median the host has written them 10.2 times over, the others 500 times."
    )


@pytest.mark.parametrize(
    ("low_use", "says"),
    [(1, "1 of them because of low use: in"), (0, "2 drives have a WAF above 3, which low use does")],
)
def test_the_verdict_admits_what_low_use_does_not_explain(low_use: int, says: str) -> None:
    usual = fleet()
    assert says in verdict(replace(usual, outliers=replace(usual.outliers, low_use=low_use)))


def test_the_verdict_of_little() -> None:
    assert verdict(nothing()) == "No readings of drives in this window."
    assert verdict(one_drive()) == "1 drive."
    assert "1 drive has a WAF above 3," in verdict(drives(selection([drive("a", 0, 9, 90)]), waf_limit=3.0))


def test_tables_show_the_fleet_outliers_and_groups() -> None:
    result = fleet(rated_dwpd=1.0, group_by="host")
    spread = {row[0]: row for row in table(result, "Spread").rows}
    assert spread["WAF"][1] == 40
    assert spread["DWPD in the window"][2] == pytest.approx(0.01)
    assert spread["Wear in the window (points)"][2] == 1.0
    left = table(result, "Years left")
    assert [row[1] for row in left.rows] == [40, 40, 40, 40]
    assert "Rating: 1 DWPD over 5 years of 365 days; the most written drive has used 27.4 % of it." in left.note
    assert [row[0] for row in table(result, "High write").rows] == ["d00", "d01"]
    assert table(result, "High write").rows[0][-1] == "low use"
    assert table(result, "Drives that wear").rows[0][0] == "d39"
    assert "10 of 40; JSON has all." in table(result, "Drives that wear").note
    assert len(table(result, "By host").rows) == 10
    assert table(result, "Coverage").rows[0][9] == []


def test_rows_without_a_number_are_left_out() -> None:
    assert [row[0] for row in table(one_drive(), "Spread").rows] == ["Power-on time (h)"]
    assert "needs --rated-dwpd" in table(one_drive(), "Years left").note
    assert [item.title for item in tables_of(nothing())] == ["burst: drives"]


def test_many_names_are_shortened_and_centuries_are_not_counted() -> None:
    rows = [drive(f"d{number}", day, 9 - day, None) for number in range(9) for day in (0, 1)]
    shown = t.to_terminal([table(drives(selection(rows)), "Coverage")], 100)
    assert "d5, and 3 more" in shown
    slow = fleet(4, 3, rated_dwpd=1000.0)
    assert "> 100" in t.to_terminal([table(replace(slow, per_drive=[
        replace(life, years_left_by_wear=None, window_years_left_by_wear=None) for life in slow.per_drive
    ]), "Drives that wear")])  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [fleet, lambda: fleet(3, 1), nothing, one_drive,
     lambda: drives(selection(made_up_drives(1, 30, 20)), rated_dwpd=3.0)],
    ids=["usual", "once", "empty", "one", "mixed"],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_every_figure_is_drawn_in_every_case(made: Callable[[], Drives], suffix: str, tmp_path: Path) -> None:
    result = made()
    names = list(figures_of(result))
    assert names == ["waf", "dwpd", "wear"]
    for path in draw_figures(result, [f"{name}={tmp_path / name}.{suffix}" for name in names]):
        assert path.stat().st_size > 1000
    assert max(map(len, t.to_terminal(tables_of(result), 100).splitlines())) <= 100
    assert t.to_markdown(tables_of(result)).startswith("## burst: drives")
    assert t.to_parquet(tables_of(result)[0])


def marks(panel: f.Panel, kind: type) -> list[Any]:
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def test_lifetime_writes_stand_against_amplification() -> None:
    top, bottom = figures_of(fleet())["waf"]().panels
    (bars,) = marks(top, f.Bars)
    assert sum(bars.heights) == 40
    assert "median 2, " in bars.label
    usual, high = marks(bottom, f.PointsMark)
    assert (len(usual.x), len(high.x)) == (38, 2)
    assert max(high.y) < min(usual.y)
    assert (bottom.x.scale, bottom.y.scale) == ("log", "log")
    assert {text for _, text in bottom.x.ticks} >= {"2", "5", "10"}
    assert [rule.at for rule in marks(bottom, f.Rule)] == [pytest.approx(3.0, rel=0.01), pytest.approx(250.1, rel=0.01)]


def test_both_axes_are_logarithmic_in_a_browser_too() -> None:
    from iolens.views.render.bokeh_figure import item

    _, bottom = item(figures_of(fleet())["waf"]())["doc"]["roots"][0]["attributes"]["children"]
    assert [bottom["attributes"][name]["name"] for name in ("x_scale", "y_scale")] == ["LogScale", "LogScale"]
    assert [bottom["attributes"][name][0]["name"] for name in ("below", "left")] == ["LogAxis", "LogAxis"]


def test_drive_writes_per_day_of_life_and_window() -> None:
    top, bottom = figures_of(fleet(rated_dwpd=2.0))["dwpd"]().panels
    assert sum(marks(top, f.Bars)[0].heights) == 40
    life, window = marks(bottom, f.LineMark)
    assert (life.label, window.label) == ("lifetime", "in the window")
    assert life.y[-1] == window.y[-1] == 100
    assert np.all(np.diff(life.x) >= 0)
    assert [rule.text for rule in marks(bottom, f.Rule)] == ["rated 2"]
    assert bottom.x.high is not None
    assert bottom.x.high > 2.0


def test_wear_over_time() -> None:
    top, bottom = figures_of(fleet())["wear"]().panels
    most, mean, least = marks(top, f.LineMark)
    assert (most.y[-1], mean.y[-1], least.y[-1]) == (45.0, 25.5, 6.0)
    assert len(marks(bottom, f.LineMark)) == 2
    assert bottom.right is not None
    unworn = drives(selection([drive("a", day, 5, 5, wear_pct=0.0) for day in (0, 1)]))
    assert figures_of(unworn)["wear"]().panels[0].message == "every drive reports 0 %"
    assert figures_of(one_drive())["wear"]().panels[0].message == "no drive reports its wear"
    assert "read once" in figures_of(one_drive())["wear"]().panels[1].message


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_drives() -> None:
    page = report_html([fleet()], ReportInfo("0", datetime(2020, 10, 14, tzinfo=UTC)))
    assert "High write amplification" in page
    assert "Wear of drives" in page
    assert report_answers(nothing()) == report_sections(nothing()) == report_methods([nothing()]) == []


def test_every_key_is_documented() -> None:
    assert undocumented(Drives, "drives.md") == []
