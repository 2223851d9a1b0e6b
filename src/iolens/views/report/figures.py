"""Figures of a report: a still picture for paper and for browsers without JavaScript, and data to draw it live."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from iolens.views.render.figures import Figure, HeatMapMark, Panel

MOST_CELLS: Final = 150_000  # of a heat map; more would only make the file larger than a screen can show


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One figure as the page holds it; `live_json` is safe inside a script element; empty: still only."""

    title: str
    alternative: str
    still: str
    live_json: str


def report_figure(figure: Figure) -> ReportFigure:
    """Draw the figure both ways."""
    from iolens.views.render.bokeh_figure import item, json_for_script

    drawn = bounded(figure)
    return ReportFigure(figure.title, alternative(figure), still(drawn), json_for_script(item(drawn)))


def still_figure(figure: Figure) -> ReportFigure:
    """Draw the still picture only."""
    return ReportFigure(figure.title, alternative(figure), still(figure), "")


def alternative(figure: Figure) -> str:
    """What is read out in place of the picture."""
    return f"{figure.title}: {'; '.join(dict.fromkeys(panel.title for panel in figure.panels))}"


def bounded(figure: Figure) -> Figure:
    """The figure with heat maps no finer than a screen can show."""
    return replace(figure, panels=tuple(_bounded(panel) for panel in figure.panels))


def bokeh_script() -> str:
    """The program that draws figures, once for the whole page."""
    from iolens.views.render.bokeh_figure import program

    return program()


def still(figure: Figure) -> str:
    """A data URI; the title stands in the page already."""
    from iolens.views.render.matplotlib_figure import to_bytes

    picture = to_bytes(replace(figure, title=""), "svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"


def _bounded(panel: Panel) -> Panel:
    return replace(panel, marks=tuple(_merged(mark) if isinstance(mark, HeatMapMark) else mark for mark in panel.marks))


def _merged(mark: HeatMapMark) -> HeatMapMark:
    """The heat map with neighbouring columns averaged until it is small enough."""
    rows, columns = mark.values.shape
    every = -(-rows * columns // MOST_CELLS)
    if every < 2:
        return mark
    wide = -(-columns // every) * every
    padded = np.pad(mark.values, ((0, 0), (0, wide - columns)), constant_values=np.nan)
    groups = padded.reshape(rows, -1, every)
    known = np.isfinite(groups)
    counts = known.sum(axis=2)
    sums = np.where(known, groups, 0.0).sum(axis=2)
    values = np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    step = (mark.end - mark.start) / columns
    return replace(mark, values=values, end=mark.start + step * wide)
