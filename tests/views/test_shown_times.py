"""The zone of the reader: tables, sentences and figures have it, machines get UTC."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.units import epoch_us
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.bokeh_figure import item
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.json_text import to_json
from iolens.views.render.matplotlib_figure import to_bytes
from iolens.views.render.shown_times import short_time, show_time, shown_in, time_with_zone, window_with_zone, zone_name
from tests.views.results import START, busy_day

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Los_Angeles"]
HOUR_US = 3_600_000_000


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_times_are_utc_unless_somebody_says_otherwise() -> None:
    noon = utc("2026-07-01T12:00:00.5")
    assert (show_time(noon), zone_name()) == ("2026-07-01 12:00:00", "UTC")
    with shown_in("Europe/Berlin"):
        assert time_with_zone(noon) == "2026-07-01 14:00:00 Europe/Berlin"
        assert time_with_zone(utc("2026-01-01T12:00")) == "2026-01-01 13:00:00 Europe/Berlin"
        assert show_time(datetime(2026, 1, 1, 12)) == "2026-01-01 13:00:00"  # without a zone: UTC, as everywhere
        with shown_in("Asia/Tokyo"):
            assert short_time(noon) == "2026-07-01 21:00"
        with shown_in(None):
            assert zone_name() == "Europe/Berlin"
        assert window_with_zone(noon, noon + timedelta(seconds=90)) == (
            "2026-07-01 14:00 to 2026-07-01 14:01:30 Europe/Berlin"
        )
    assert zone_name() == "UTC"


def test_an_hour_that_comes_twice_says_which_it_is() -> None:
    with shown_in("Europe/Berlin"):
        shown = [show_time(utc(f"2026-10-25T0{hour}:30")) for hour in (0, 1, 2)]
        assert shown == ["2026-10-25 02:30:00+02:00", "2026-10-25 02:30:00+01:00", "2026-10-25 03:30:00"]
        assert short_time(utc("2026-10-25T01:30")) == "2026-10-25 02:30+01:00"


@given(st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)), st.sampled_from(ZONES))
def test_what_is_shown_can_be_read_again(time: datetime, zone: str) -> None:
    value = time.replace(tzinfo=UTC, microsecond=0)
    with shown_in(zone):
        read = datetime.fromisoformat(show_time(value))
    assert (read if read.tzinfo else read.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC) == value


def test_tables_show_the_zone_once_per_column_and_machines_get_utc() -> None:
    columns = (t.time("start", "From"), t.count("rows", "Rows"))
    table = t.TableView("Title", columns, [(utc("2026-01-01T12:00"), 1)])
    plain, data = t.to_terminal([table]), t.to_csv(table)
    assert "From (UTC)" in plain
    with shown_in("Europe/Berlin"):
        text = t.to_terminal([table])
        assert "From (Europe/Berlin)" in text
        assert "2026-01-01 13:00:00" in text
        assert "| From (Europe/Berlin) |" in t.to_markdown([table])
        sideways = t.TableView("Title", (columns[1], columns[0]), [(1, utc("2026-01-01T12:00"))], sideways=True)
        assert re.search(r"From \(Europe/Berlin\) +2026-01-01 13:00:00", t.to_terminal([sideways]))
        assert t.to_csv(table) == data == "start,rows\n2026-01-01T12:00:00Z,1\n"
        assert json.loads(to_json(busy_day()))["window_start"] == "2012-10-22T00:00:00Z"


def time_figure(first: datetime, last: datetime) -> f.Figure:
    low, high = (float(epoch_us(time)) for time in (first, last))
    x = np.array([epoch_us(first), epoch_us(last)])
    marks = (
        f.PointsMark(x, np.array([1.0, 2.0]), "points", f.READ),
        f.BandMark(x, np.array([0.0, 0.0]), np.array([1.0, 1.0]), "band", f.WRITE),
        f.Bars(x, x + 1, np.array([1.0, 1.0]), "bars", f.READ, ("a", "b")),
        f.Span(low, high, "span", f.STEADY),
        f.HeatMapMark(low, high, ("a",), np.ones((1, 2)), 0.1, 1.0, "heat"),
        f.Rule(low, "vertical", "then"),
        f.Rule(5.0, "horizontal", "limit"),
    )
    panels = (f.Panel("", f.Axis("time", "time", low, high), f.Axis("y"), marks), f.Panel("", f.Axis("s"), f.Axis("y")))
    return f.Figure("figure", "Title", panels)


def test_time_axes_are_moved_to_the_clock_of_the_zone() -> None:
    figure = time_figure(utc("2026-01-05T23:00"), utc("2026-01-06T23:00"))
    assert f.legible(figure).panels[0].x.label == "time (UTC)"
    assert f.legible(figure).panels[0].x.low == figure.panels[0].x.low
    with shown_in("Europe/Berlin"):
        panel, other = f.legible(figure).panels
    midnight = epoch_us(utc("2026-01-06T00:00"))
    assert (panel.x.label, panel.x.low) == ("time (Europe/Berlin)", midnight)
    points, band, bars, span, heat, vertical, horizontal = panel.marks
    assert [points.x[0], band.x[0], bars.starts[0], bars.ends[0] - 1, span.start, heat.start, vertical.at] == [
        midnight
    ] * 7  # type: ignore[union-attr]
    assert heat.end - heat.start == 24 * HOUR_US  # type: ignore[union-attr]
    assert (points.y.tolist(), horizontal.at) == ([1.0, 2.0], 5.0)  # type: ignore[union-attr]
    assert other == figure.panels[1]


def test_a_figure_in_which_clocks_change_names_the_offset_it_keeps() -> None:
    with shown_in("Europe/Berlin"):
        panel = f.legible(time_figure(utc("2026-03-28T23:00"), utc("2026-03-29T22:00"))).panels[0]
    assert panel.x.label == "time (UTC+01:00)"
    assert (panel.x.low, panel.x.high) == (epoch_us(utc("2026-03-29T00:00")), epoch_us(utc("2026-03-29T23:00")))


def test_both_renderers_show_the_zone_and_move_once() -> None:
    figure = figures_of(busy_day())["bandwidth"]()
    with shown_in("Asia/Tokyo"):
        svg = re.findall(r"<text[^>]*>([^<]*)</text>", to_bytes(figures_of(busy_day())["bandwidth"](), "svg").decode())
        plot = item(figure)["doc"]["roots"][0]["attributes"]["children"][0]["attributes"]
    assert any("time (Asia/Tokyo)" in text for text in svg)
    assert not any("UTC" in text for text in svg)
    assert plot["below"][0]["attributes"]["axis_label"] == "time (Asia/Tokyo)"
    assert plot["x_range"]["attributes"]["start"] == epoch_us(START) / 1000 + 9 * 3_600_000


@pytest.mark.parametrize("name", ["bandwidth", "heatmap", "histogram"])
def test_titles_of_figures_are_of_the_zone(name: str) -> None:
    with shown_in("Europe/Berlin"):
        assert figures_of(busy_day())[name]().panels[0].title == (
            "scratch, 2012-10-22 02:00 to 2012-10-23 02:00 Europe/Berlin"
        )


def test_sentences_and_tables_of_an_answer_are_of_the_zone() -> None:
    with shown_in("Europe/Berlin"):
        text = t.to_terminal(tables_of(busy_day()))
    assert "2012-10-22 16:00:00" in text  # the plateau from 14:00 UTC
    assert "2012-10-22 14:00:00" not in text
