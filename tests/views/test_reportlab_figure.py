"""Figures on a page: every mark is drawn, where matplotlib draws it, in its colour, inside its frame."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from reportlab.pdfgen.canvas import Canvas

from iolens.views.plan_rationale.pdf import BOLD, REGULAR, _register_fonts
from iolens.views.render import figures as f
from iolens.views.render.reportlab_figure import FigureOnPage, _cubic

X = np.linspace(0.0, 10.0, 30)
RED, GREEN, BLUE = "#CC3311", "#009988", "#0077BB"


def figure(*marks: f.Mark, title: str = "") -> f.Figure:
    return f.Figure("test", title, (f.Panel("panel é", f.Axis("x, km"), f.Axis("y"), marks),))


def drawn(item: f.Figure) -> str:
    """The page's own commands."""
    _register_fonts()
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=0, invariant=1)
    flowable = FigureOnPage(item, (REGULAR, BOLD), (400.0, 300.0))
    flowable.wrap(500.0, 800.0)
    flowable.drawOn(canvas, 50.0, 100.0)
    canvas.save()
    return out.getvalue().decode("latin-1")


def colours(page: str) -> set[tuple[int, ...]]:
    """Every colour that the page sets."""
    result = re.findall(r"(?m)^([0-9.]+) ([0-9.]+) ([0-9.]+) (?:rg|RG)$", page)
    return {tuple(round(255 * float(part)) for part in item) for item in result}


def rgb(text: str) -> tuple[int, ...]:
    """A colour of ours in the same form."""
    return tuple(int(text[place : place + 2], 16) for place in (1, 3, 5))


def test_every_kind_of_mark_is_drawn_in_its_colour() -> None:
    bars = f.Bars(X[:-1], X[1:], X[1:], "bars", BLUE, tuple(map(str, X[1:])))
    marks: dict[str, f.Mark] = {
        "points": f.PointsMark(X, X, "points", RED),
        "line": f.LineMark(X, X, "line", RED),
        "band": f.BandMark(X, X, X + 1, "band", GREEN),
        "bars": bars,
        "rule": f.Rule(5.0, "vertical", "rule"),
        "span": f.Span(2.0, 3.0, "span", GREEN),
    }
    bare = drawn(figure())
    for name, mark in marks.items():
        page = drawn(figure(mark))
        wanted = rgb(getattr(mark, "colour", f.RULE))
        assert wanted in colours(page) - colours(bare), name


def test_a_figure_keeps_its_shape_and_its_bounds() -> None:
    item = FigureOnPage(figure(f.LineMark(X, X, "line", RED)), (REGULAR, BOLD), (400.0, 300.0))
    assert item.wrap(500.0, 800.0) == (500.0, pytest.approx(400.0 * 3.0 / 6.6))
    tall = f.Figure("tall", "", figure().panels * 4)
    high = FigureOnPage(tall, (REGULAR, BOLD), (400.0, 300.0))
    assert high.wrap(500.0, 800.0)[1] == 300.0


def test_a_heat_map_is_a_picture_in_its_place() -> None:
    cells = np.array([[1.0, 10.0], [100.0, np.nan]])
    page = drawn(figure(f.HeatMapMark(0.0, 2.0, ("a", "b"), cells, 1.0, 100.0, "how much")))
    assert "/Subtype /Image" in page


def test_dashes_and_clips_do_not_leak_into_the_next_stroke() -> None:
    page = drawn(figure(f.Rule(5.0, "vertical", "rule"), f.LineMark(X, X, "line", RED)))
    depth = 0
    for word in page.split("stream", 1)[1].split("endstream")[0].split():
        depth += (word == "q") - (word == "Q")
        assert depth >= 0
    assert depth == 0


def test_a_curve_with_one_control_point_passes_where_it_should() -> None:
    start, control, end = (0.0, 0.0), (1.0, 2.0), (2.0, 0.0)
    c1x, c1y, c2x, c2y, ex, ey = _cubic(start, (*control, *end))
    for share in np.linspace(0.0, 1.0, 7):
        rest = 1.0 - share
        quadratic = [
            rest**2 * a + 2 * rest * share * b + share**2 * c for a, b, c in zip(start, control, end, strict=True)
        ]
        cubic = [
            rest**3 * a + 3 * rest**2 * share * b + 3 * rest * share**2 * c + share**3 * d
            for a, b, c, d in zip(start, (c1x, c1y), (c2x, c2y), (ex, ey), strict=True)
        ]
        assert cubic == pytest.approx(quadratic)


def test_the_same_figure_gives_the_same_commands() -> None:
    item = figure(f.LineMark(X, X, "line", RED))
    assert drawn(item) == drawn(item)
