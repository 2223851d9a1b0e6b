"""A capacity plan for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.plans.capacity import CapacityPlan, plan_capacity
from iolens.plans.inputs import value
from iolens.views import tables as t
from iolens.views.formats import draw_figures, figures_of, tables_of
from iolens.views.plan_capacity import labels
from tests.plans.test_capacity import grown, inputs, scanned


def given() -> CapacityPlan:
    return plan_capacity(inputs(daily_growth_bytes=133e12))


def measured() -> CapacityPlan:
    several = inputs()
    several["ssi"] = [value("ssi", one, "test") for one in (3, 4)]
    return plan_capacity(several, growth=grown(), ages=[scanned()])


def test_published_capacities_are_printed() -> None:
    text = t.to_terminal(tables_of(given()), 120)
    assert "22.3 PB" in text
    assert "C = SSI · (purge_days / purge_fraction) · daily_growth" in text
    assert "No ages of files are known" in text


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


def test_cases_are_told_apart_by_what_differs() -> None:
    assert labels(measured()) == ["SSI 3", "SSI 4"]
    assert labels(given()) == ["SSI 3"]


@pytest.mark.parametrize("plan", [given(), measured()], ids=["given", "measured"])
def test_every_figure_is_drawn(plan: CapacityPlan, tmp_path: Path) -> None:
    assert list(figures_of(plan)) == ["growth", "cases", "purges", "ages"]
    for path in draw_figures(plan, [f"{name}={tmp_path / name}.svg" for name in figures_of(plan)]):
        assert path.stat().st_size > 1000
    assert draw_figures(plan, [str(tmp_path / "default.html")])
