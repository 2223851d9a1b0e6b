"""An endurance plan for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.plans.endurance import plan_endurance
from iolens.plans.inputs import value
from iolens.views import figures as f
from iolens.views import tables as t
from iolens.views.formats import draw_figures, figures_of, tables_of
from tests.plans.test_endurance import HIGH, LOW, case, measured


def test_published_numbers_are_printed_with_the_verdict() -> None:
    text = t.to_terminal(tables_of(plan_endurance([LOW, HIGH])), 140)
    assert "0.232" in text
    assert "0.38" in text
    assert "Drives of 1 DWPD suffice for every case: at most 0.38 are needed." in text
    assert "25.0" in text
    assert "not measured: taken as 1" in text


def test_no_class_is_said_to_suffice_when_none_does() -> None:
    text = t.to_terminal(tables_of(plan_endurance([case(fswpd=10.0)])), 140)
    assert "No class on offer suffices for every case" in text


def test_days_and_larger_drives_have_tables_where_they_are_known() -> None:
    titles = [table.title for table in tables_of(measured())]
    assert "File-system writes per day" in titles
    drive = value("reference_drive_bytes", 1.6e12, "test")
    more = plan_endurance([LOW], reference_drive=drive, drive_sizes=[3_200_000_000_000])
    assert "Drives of another size (Eq. 4)" in [table.title for table in tables_of(more)]


def test_figure_3_shows_every_day() -> None:
    figure = figures_of(measured())["fswpd"]()
    (bars,) = [mark for mark in figure.panels[0].marks if isinstance(mark, f.Bars)]
    assert bars.heights.sum() == 200
    assert figure.panels[0].y.scale == "log"


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_figures_are_drawn(tmp_path: Path, suffix: str) -> None:
    drawn = draw_figures(measured(), [f"fswpd={tmp_path}/a.{suffix}", f"dwpd={tmp_path}/b.{suffix}"])
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert list(figures_of(plan_endurance([LOW]))) == ["dwpd"]


def test_csv_has_numbers_under_the_keys() -> None:
    lines = t.to_csv(tables_of(plan_endurance([LOW]))[0]).splitlines()
    assert lines[0].startswith("ssi,fswpd,data,parity,waf,dwpd,")
    assert lines[1].startswith("3.0,0.024,10,2,2.68,0.2315")
