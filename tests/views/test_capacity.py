"""Capacity and growth for people: tables that say what they mean, figures in every format, the report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.capacity.analysis import Capacity, capacity
from iolens.analyses.growth import growth
from iolens.views.capacity import report_answers, report_methods, report_sections, verdict
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from iolens.views.render.window_axes import midnight_us
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo
from tests.analyses.capacity_rows import reading, readings, selection


@cache
def filled(days: int = 120, targets: int = 3) -> Capacity:
    random = np.random.default_rng(1)
    used = 500_000 + np.cumsum(random.normal(3000, 1500, days)).astype(int)
    used[days // 2 :] -= 150_000
    rows = readings(range(days), used, targets=targets)
    for day in range(days):
        rows += reading(day, {"MDT0000": 5}, kind="mdt", used_inodes=400 + day, total_inodes=1000)
    return capacity(selection(rows))


def nothing() -> Capacity:
    return capacity(selection([]))


def table(result: object, title: str) -> t.TableView:
    return next(item for item in tables_of(result) if item.title.startswith(title))


def test_the_verdict_says_how_full_and_when() -> None:
    days = np.arange(400)
    result = capacity(selection(readings(days, 200_000 + 1000 * days)))
    assert verdict(result).startswith("599 kB are used, 29.9 % of its capacity, +1 kB a day (least squares).")
    assert "90 % is expected on 2025-01-31" in verdict(result)


@pytest.mark.parametrize(
    ("used", "says"),
    [
        ([], "No readings of capacity in this window."),
        ([500], "500 B are used, 0.025 % of its capacity; too little data: 0 days of 7."),
        ([1000, 1100], "1.1 kB are used, 0.055 % of its capacity; too little data: 2 days of 7."),
        ([1_000_000, 1_900_000], "too little data: 2 days of 7. 90 % is reached."),
        (range(900, 700, -10), "At this pace 90 % is never reached."),
        ([*[1_000_000] * 19, 1_900_000], "90 % was reached on 2020-10-03."),
        (range(1000, 1020), "90 % is more than a century away."),
    ],
)
def test_the_verdict_in_other_cases(used: list[int], says: str) -> None:
    assert says in verdict(capacity(selection(readings(range(len(used)), used))))


def test_an_interval_that_may_never_end_says_so() -> None:
    random = np.random.default_rng(2)
    result = capacity(
        selection(readings(range(60), (500_000 + 10 * np.arange(60) + random.normal(0, 20_000, 60)).astype(int)))
    )
    assert "… never" in str(table(result, "Projection").rows[0]) or result.threshold_state != "projected"


def test_events_and_projections_are_tabled() -> None:
    result = filled()
    assert [row[0] for row in table(result, "Purges and surges").rows] == ["purge"]
    assert [row[0] for row in table(result, "Projection").rows] == ["least squares", "Theil–Sen"]
    assert table(result, "Inodes").rows[0][2] == 519
    assert len(table(result, "Usage").rows) == 14
    assert "The last 14 of 120 readings" in table(result, "Usage").note


def test_many_targets_show_the_ends() -> None:
    result = table(filled(days=5, targets=60), "Fullness of targets")
    assert len(result.rows) == 20
    assert "of 61; JSON has all." in result.note


def test_targets_that_came_are_tabled() -> None:
    rows = [*readings(range(5), [100] * 5), *readings(range(5, 10), [100] * 5, targets=3)]
    assert table(capacity(selection(rows)), "Targets came").rows == [(datetime(2020, 9, 19, tzinfo=UTC), 2, 3)]


@pytest.mark.parametrize(
    "made", [filled, nothing, lambda: capacity(selection(readings([0], [5])))], ids=["usual", "empty", "one"]
)
@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_every_figure_is_drawn_in_every_case(made: Callable[[], Capacity], suffix: str, tmp_path: Path) -> None:
    result = made()
    names = list(figures_of(result))
    assert names == ["usage", "targets", "inodes"]
    for path in draw_figures(result, [f"{name}={tmp_path / name}.{suffix}" for name in names]):
        assert path.stat().st_size > 1000
    assert t.to_terminal(tables_of(result), 100)
    assert t.to_markdown(tables_of(result)).startswith("## scratch: capacity")
    assert t.to_parquet(tables_of(result)[0])


def test_usage_figure_shades_events_and_looks_ahead() -> None:
    result = filled()
    (panel,) = figures_of(result)["usage"]().panels
    kinds = [type(mark).__name__ for mark in panel.marks]
    assert kinds.count("Span") == 1
    assert kinds.count("LineMark") == 2
    assert panel.x.high is not None
    assert panel.x.high > 1_600_041_600_000_000 + 120 * 86_400_000_000


def test_usage_figure_reaches_the_date_of_the_threshold() -> None:
    """Twenty days of readings, and nearly a year until the threshold."""
    used = 400_000 + 4_000 * np.arange(20)
    result = capacity(selection(readings(range(20), used.tolist())))
    assert result.outlook is not None
    dates = {course.threshold_date for course in result.outlook.courses}
    (panel,) = figures_of(result)["usage"]().panels
    assert None not in dates
    for day in dates:
        assert day is not None
        assert panel.x.low < midnight_us(day) < panel.x.high
        assert any(isinstance(mark, f.Rule) and mark.text.startswith(day.isoformat()) for mark in panel.marks)


def test_growth_is_shown_with_what_was_left_out(tmp_path: Path) -> None:
    result = growth(selection(readings(range(22), [10, 20, 30, 25, 45, 46, 48, 50, 52, *[54] * 13])))
    assert t.to_terminal(tables_of(result), 100).lower().count("days of growth") == 1
    (panel,) = figures_of(result)["growth"]().panels
    assert sum(panel.marks[0].heights) == 8  # type: ignore[union-attr]
    few = figures_of(growth(selection(readings(range(22), [10, 20, *[20] * 20]))))["growth"]()
    assert (few.has_content, few.message) == (False, "1 day of growth: a distribution needs 7.")
    empty = growth(selection([]))
    assert "No day of growth is known." in t.to_terminal(tables_of(empty), 100)
    for number, item in enumerate((result, empty)):
        assert draw_figures(item, [str(tmp_path / f"{number}.svg")])


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_capacity_and_growth() -> None:
    rows = readings(range(30), range(100_000, 400_000, 10_000))
    results = [capacity(selection(rows)), growth(selection(rows))]
    page = report_html(results, ReportInfo("0", datetime(2020, 10, 14, tzinfo=UTC)))
    assert "Purges and surges" in page
    assert "Daily growth" in page
    assert report_answers(nothing()) == report_sections(nothing()) == report_methods([nothing()]) == []
