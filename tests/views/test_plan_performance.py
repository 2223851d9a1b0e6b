"""A performance plan for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.plans.cases import value
from iolens.plans.performance import plan_performance
from iolens.views.plan_performance import Rate, measure_name
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from tests.plans.test_performance import SSI3, asked


def test_bandwidth_and_operations_stand_in_one_table_with_their_units() -> None:
    given = [value("write_bytes_per_s", 90e9, "option"), value("ops_per_s", 1.5e6, "option")]
    table = tables_of(plan_performance([SSI3], given=given))[0]
    text = t.to_terminal([table], 140)
    assert "270 GB/s" in text
    assert "4,500,000 /s" in text
    assert t.to_csv(table).splitlines()[1].startswith("3.0,write_bytes_per_s,,90000000000.0,270000000000.0,")


def test_rates_are_numbers() -> None:
    rate = Rate.of("ops_per_s", 0.25)
    assert rate == 0.25
    assert str(rate) == "0.25 /s"
    assert Rate.of("ops_per_s", None) is None
    assert measure_name("made_up_per_s") == "made up"


def test_the_distribution_ends_at_all_ticks() -> None:
    panels = figures_of(plan_performance([SSI3], asked()))["demand"]().panels
    assert [len(panel.marks) for panel in panels] == [3, 3]  # bandwidth, operations
    for panel in panels:
        for mark in panel.marks:
            assert isinstance(mark, f.LineMark)
            assert mark.y[-1] == 100


@pytest.mark.parametrize("suffix", ["png", "html"])
def test_figures_are_drawn(tmp_path: Path, suffix: str) -> None:
    plan = plan_performance([SSI3, value("ssi", 4, "test")], asked())
    for path in draw_figures(plan, [f"{name}={tmp_path}/{name}.{suffix}" for name in figures_of(plan)]):
        assert path.stat().st_size > 5000
    given = plan_performance([SSI3], given=[value("parsecs_per_s", 3.0, "option")])
    assert list(figures_of(given)) == ["required"]
    draw_figures(given, [f"{tmp_path}/given.{suffix}"])
