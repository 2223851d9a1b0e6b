"""A capacity plan for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iolens.analyses.demand import SystemUsage
from iolens.plans.capacity import CapacityPlan, plan_capacity
from iolens.plans.cases import value
from iolens.views.plan_capacity import labels
from iolens.views.render import tables as t
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from tests.plans.designs import MADE
from tests.plans.test_capacity import grown, inputs, scanned


def given() -> CapacityPlan:
    return plan_capacity(inputs(daily_growth_bytes=133e12))


def measured() -> CapacityPlan:
    several = inputs()
    several["ssi"] = [value("ssi", item, "test") for item in (3, 4)]
    return plan_capacity(several, growth=grown(), ages=[scanned()])


def test_published_capacities_are_printed() -> None:
    text = t.to_terminal(tables_of(given()), 120)
    assert "22.3 PB" in text
    assert "C = SSI · (purge_days / purge_fraction) · daily_growth" in text
    assert "The ages of files are not known" in text


def test_every_input_says_where_it_comes_from() -> None:
    rows = tables_of(measured())[1].rows
    assert [row[0] for row in rows] == ["ssi", "ssi", "purge_days", "purge_fraction", "daily_growth"]
    assert "59 days of growth" in rows[-1][-1]
    assert rows[0][3] is None  # a value has no ends


def test_purges_on_ages_are_tabled() -> None:
    purges = next(table for table in tables_of(measured()) if table.title == "Purge policies")
    assert "survive_pct" in [column.name for column in purges.columns]
    assert "Ages by atime of the scan of 2020-09-14" in purges.note
    assert tables_of(measured())[-1].title == "Ages of bytes"
    assert "survive_pct" not in [column.name for column in tables_of(given())[2].columns]


def test_cases_are_distinguished_by_what_differs() -> None:
    assert labels(measured()) == ["SSI 3", "SSI 4"]
    assert labels(given()) == ["SSI 3"]


@pytest.mark.parametrize("plan", [given(), measured()], ids=["given", "measured"])
def test_every_figure_is_drawn(plan: CapacityPlan, tmp_path: Path) -> None:
    assert list(figures_of(plan)) == ["growth", "cases", "purges", "ages"]
    for path in draw_figures(plan, [f"{name}={tmp_path / name}.svg" for name in figures_of(plan)]):
        assert path.stat().st_size > 1000
    assert draw_figures(plan, [str(tmp_path / "default.html")])


def test_every_curve_of_the_purges_says_whose_it_is() -> None:
    """They are of the reference system itself, whatever SSI the plan is for."""
    several = inputs(purge_days=28.0)
    several["daily_growth_bytes"] = [value("daily_growth_bytes", item, "test") for item in (100.0, 200.0)]
    plan = plan_capacity(several, ages=[scanned()])
    figure = figures_of(plan)["purges"]()
    assert figure.title == "Usage of the reference system (SSI 1) under purge policies"
    names = [mark.label for mark in figure.panels[0].marks]
    assert names == [
        "SSI 1, kept 28 d, purged every 28 d, 100 B/day", "SSI 1, kept 28 d, purged every 28 d, 200 B/day",
    ]  # fmt: skip
    assert [case.name for case in plan.cases] == [
        "SSI 3, 28 days, fraction 0.5, 100 B/day", "SSI 3, 28 days, fraction 0.5, 200 B/day",
    ]  # fmt: skip


@pytest.mark.parametrize("form", [t.to_terminal, t.to_markdown])
def test_what_does_not_fit_stands_before_the_numbers(form: Callable[[list[t.TableView]], str]) -> None:
    plan = plan_capacity(inputs(daily_growth_bytes=133e12), usage=SystemUsage("scratch", MADE, 10**18, None))
    text = form(tables_of(plan))
    assert "Warning:" in text
    assert "less than the 1 EB that scratch held on 2026-01-02: 22.3 PB" in text
    assert text.index("scratch held") < text.index("Purge fraction")
    assert "Warning:" not in form(tables_of(given()))
    assert "scratch held" not in t.to_csv(tables_of(plan)[0])
