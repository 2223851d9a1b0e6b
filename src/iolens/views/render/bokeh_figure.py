"""Figure descriptions as interactive HTML by Bokeh: one file with everything inside, nothing fetched, ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models.annotations import BoxAnnotation, ColorBar, Label, Legend, LegendItem, Span, Title
from bokeh.models.axes import LinearAxis, LogAxis
from bokeh.models.formatters import NumeralTickFormatter
from bokeh.models.mappers import LogColorMapper
from bokeh.models.ranges import DataRange1d, Range1d
from bokeh.models.sources import ColumnDataSource
from bokeh.models.text import PlainText
from bokeh.models.tickers import FixedTicker
from bokeh.models.tools import HoverTool
from bokeh.models.widgets import Div
from bokeh.palettes import Magma256
from bokeh.plotting import figure as new_plot
from bokeh.resources import INLINE

from iolens.views.render import atomic, figures

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PANEL_HEIGHT_PX: Final = 400
_MANY_POINTS: Final = 10_000  # beyond this, the graphics card draws
_GRID: Final = "#E6E6E6"
SLANT: Final = 0.6  # radians of names below an axis
_MATHEMATICS: Final = ("$$", "\\(", "\\[")
_TOOLS: Final = "box_zoom,xwheel_zoom,xpan,reset,save"


def draw(figure: figures.Figure, path: Path) -> None:
    """Draw the figure into a self-contained HTML file."""
    atomic.write(path, to_html(figure))


def to_html(figure: figures.Figure) -> str:
    """The figure as a whole page."""
    title = figures.legible(figure).title
    head = Div(text=title, render_as_text=True, styles={"font-size": "18px", "font-weight": "bold"})
    plots = layout(figure)
    plots.children = [head, *plots.children]
    return file_html(plots, INLINE, title=title)


def layout(figure: figures.Figure) -> Any:
    """The panels one above the other, without the figure's title."""
    plots = [_plot(panel) for panel in figures.legible(figure).panels]
    if figure.linked_x:
        for plot in plots[1:]:
            plot.x_range = plots[0].x_range
    return column(*plots, sizing_mode="stretch_width")


def _plot(panel: figures.Panel) -> Any:
    plot = _empty_plot(panel)
    legend: dict[str, list[Any]] = {}
    for mark in panel.marks:
        drawn = _MARKS[type(mark)](plot, mark, panel)
        if drawn is not None:
            legend.setdefault(getattr(mark, "label", ""), []).append(drawn)
    if legend:
        _legend(plot, legend)
    if panel.message:
        _message(plot, panel)
    return plot


def _empty_plot(panel: figures.Panel) -> Any:
    many = (
        sum(len(mark.x) for mark in panel.marks if isinstance(mark, figures.PointsMark | figures.LineMark))
        > _MANY_POINTS
    )
    plot = new_plot(
        height=round(PANEL_HEIGHT_PX * panel.height),
        sizing_mode="stretch_width",
        tools=_TOOLS,
        active_drag="box_zoom",
        active_scroll=None,
        x_axis_type="datetime" if panel.x.scale == "time" else panel.x.scale,
        y_axis_type="log" if panel.y.scale == "log" else "linear",
        x_range=_range(panel.x),
        y_range=_range(panel.y),
        output_backend="webgl" if many else "canvas",
    )
    plot.toolbar.logo = None
    plot.title = Title(text=_plain(panel.title), text_font_style="normal")
    plot.outline_line_color = None
    plot.xgrid.grid_line_color = None if panel.x.ticks else _GRID
    plot.ygrid.grid_line_color = _GRID
    _axis(plot.xaxis[0], panel.x)
    _axis(plot.yaxis[0], panel.y)
    if panel.right is not None:
        _right_axis(plot, panel.right)
    return plot


def _legend(plot: Any, legend: dict[str, list[Any]]) -> None:
    items = [LegendItem(label={"value": label}, renderers=drawn) for label, drawn in legend.items()]
    box = Legend(items=items, orientation="horizontal", click_policy="hide", border_line_color=None)
    plot.add_layout(box, "above")


def _message(plot: Any, panel: figures.Panel) -> None:
    """Words instead of marks, and no numbers that would pretend to measure something."""
    for axis in [*plot.yaxis, *(plot.xaxis if panel.x.low is None else [])]:
        axis.major_label_text_color = axis.major_tick_line_color = axis.minor_tick_line_color = None
    middle: Any = {"x": 200, "y": PANEL_HEIGHT_PX / 2 - 60, "x_units": "screen", "y_units": "screen"}
    plot.add_layout(Label(**middle, text=_plain(panel.message), text_color="#666666", text_font_size="18px"))


def _range(axis: figures.Axis) -> Any:
    if axis.low is not None and axis.high is not None:
        return Range1d(start=_place(axis.low, axis), end=_place(axis.high, axis))
    free = DataRange1d()
    if axis.low is not None:
        free.start = _place(axis.low, axis)
    if axis.high is not None:
        free.end = _place(axis.high, axis)
    return free


def _axis(here: Any, axis: figures.Axis) -> None:
    here.axis_label = _plain(axis.label)
    here.axis_label_text_font_style = "normal"
    if axis.scale != "time":
        here.formatter = NumeralTickFormatter(format="0,0.[0000]")
    if axis.ticks:
        here.ticker = FixedTicker(ticks=[at for at, _ in axis.ticks])
        here.major_label_overrides = {_key(at): _plain(name) for at, name in axis.ticks}
    if axis.slanted:
        here.major_label_orientation = SLANT


def _plain(text: str) -> Any:
    """A name is never mathematics, whatever signs it holds: that would ask for a program that is not in the file."""
    return PlainText(text=text) if any(sign in text for sign in _MATHEMATICS) else text


def _key(at: float) -> float | int:
    return int(at) if float(at).is_integer() else at


def _right_axis(plot: Any, axis: figures.Axis) -> None:
    plot.extra_y_ranges = {"right": _range(axis)}
    kind = LogAxis if axis.scale == "log" else LinearAxis
    here = kind(y_range_name="right")
    _axis(here, axis)
    plot.add_layout(here, "right")


def _place(value: float, axis: figures.Axis) -> float:
    return value / 1000 if axis.scale == "time" else value


def _places(values: NDArray[Any], axis: figures.Axis) -> NDArray[Any]:
    """Bokeh's time: milliseconds since 1970."""
    return np.asarray(values, dtype=float) / 1000 if axis.scale == "time" else values


def _range_name(mark: Any) -> str:
    return "right" if mark.side == "right" else "default"


def _unit_axis(mark: Any, panel: figures.Panel) -> figures.Axis:
    return panel.right if mark.side == "right" and panel.right is not None else panel.y


def _hover(plot: Any, drawn: Any, mark: Any, panel: figures.Panel) -> None:
    x = (panel.x.label, "@x{%F %T}") if panel.x.scale == "time" else (panel.x.label, "@x")
    tips = [x, (f"{mark.label}, {_unit_axis(mark, panel).label}", "@y{0,0.00}")]
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=tips, formatters={"@x": "datetime"}, visible=False))


def _points(plot: Any, mark: figures.PointsMark, panel: figures.Panel) -> Any:
    seen = np.isfinite(mark.y)
    source = ColumnDataSource({"x": _places(mark.x[seen], panel.x), "y": mark.y[seen].astype(np.float32)})
    size = mark.weight * (2.5 if len(mark.x) > 4000 else 4)
    drawn = plot.scatter(
        "x",
        "y",
        source=source,
        size=size,
        color=mark.colour,
        alpha=0.6,
        line_color=None,
        y_range_name=_range_name(mark),
    )
    _hover(plot, drawn, mark, panel)
    return drawn


def _line(plot: Any, mark: figures.LineMark, panel: figures.Panel) -> Any:
    source = ColumnDataSource({"x": _places(mark.x, panel.x), "y": mark.y})
    drawn = plot.line("x", "y", source=source, color=mark.colour, line_width=1.3, y_range_name=_range_name(mark))
    _hover(plot, drawn, mark, panel)
    return drawn


def _band(plot: Any, mark: figures.BandMark, panel: figures.Panel) -> Any:
    return plot.varea(_places(mark.x, panel.x), mark.low, mark.high, fill_color=mark.colour, level="underlay")


def _bars(plot: Any, mark: figures.Bars, panel: figures.Panel) -> Any:
    floor = (panel.y.low or 1e-9) if panel.y.scale == "log" else 0.0
    bottoms = np.full(len(mark.heights), floor) if mark.bottoms is None else mark.bottoms
    tops = mark.heights if mark.bottoms is None else mark.bottoms + mark.heights
    left, right = _places(mark.starts, panel.x), _places(mark.ends, panel.x)
    columns = {"left": left, "right": right, "bottom": bottoms, "top": np.maximum(tops, bottoms)}
    source = ColumnDataSource({**columns, "name": list(mark.names), "height": mark.heights})
    drawn = plot.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, fill_color=mark.colour,
        line_color="white", line_width=0.4,
    )  # fmt: skip
    tips = [("", "@name"), (f"{mark.label}, {panel.y.label}", "@height{0,0.[0000]}")]
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=tips, visible=False))
    return drawn


def _heat_map(plot: Any, mark: figures.HeatMapMark, panel: figures.Panel) -> None:
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    colours = LogColorMapper(palette=Magma256[::-1], low=mark.low, high=mark.high, nan_color=figures.NO_DATA)
    # One picture per row, so that the row's name is the picture's and needs no code in the page to be looked up.
    rows = len(mark.values)
    columns = {
        "image": [row[np.newaxis].astype(np.float32) for row in mark.values],
        "y": [rows - 1.5 - row for row in range(rows)],
        "target": list(mark.rows),
    }
    drawn = plot.image(
        image="image", x=start, y="y", dw=end - start, dh=1, source=ColumnDataSource(columns), color_mapper=colours,
    )  # fmt: skip
    plot.add_layout(
        ColorBar(
            color_mapper=colours,
            title=_plain(f"{mark.label}; grey: {mark.grey}"),
            formatter=NumeralTickFormatter(format="0,0.[00]"),
        ),
        "right",
    )
    plot.grid.visible = False
    when = (panel.x.label, "$x{%F %T}") if panel.x.scale == "time" else (panel.x.label, "$x{0,0.000}")
    tips = [when, (mark.row_kind, "@target"), (mark.label, "@image{0.00}")]
    formatters: Any = {"$x": "datetime"} if panel.x.scale == "time" else {}
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=tips, formatters=formatters))
    if mark.groups:
        _group_lines(plot, mark, panel)


def _group_lines(plot: Any, mark: figures.HeatMapMark, panel: figures.Panel) -> None:
    """Thin lines between groups of rows."""
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    count = len(mark.borders)
    plot.segment([start] * count, mark.borders, [end] * count, mark.borders, color=figures.GROUP_LINE, line_width=1)


def _span(plot: Any, mark: figures.Span, panel: figures.Panel) -> Any:
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    shade: Any = {"fill_color": mark.colour, "fill_alpha": 1, "line_color": mark.colour}
    plot.add_layout(BoxAnnotation(left=start, right=end, level="underlay", **shade))
    if mark.text:
        words: Any = {"text_align": "center", "text_color": "#7A4A00", "text_font_size": "12px"}
        plot.add_layout(Label(x=(start + end) / 2, y=8, y_units="screen", text=_plain(mark.text), **words))
    return plot.quad(
        left=[start], right=[start], bottom=[np.nan], top=[np.nan], fill_color=mark.colour, line_color=None
    )


def _rule(plot: Any, mark: figures.Rule, panel: figures.Panel) -> None:
    style: Any = {"line_color": figures.RULE, "line_dash": "dashed", "line_width": 1}
    if mark.direction == "vertical":
        at = _place(mark.at, panel.x)
        plot.add_layout(Span(location=at, dimension="height", **style))
        plot.add_layout(Label(x=at, y=250, y_units="screen", x_offset=4, text=_plain(mark.text), **_WORDS))
    else:
        side: Any = {"y_range_name": _range_name(mark)}
        plot.add_layout(Span(location=mark.at, dimension="width", **style, **side))
        plot.add_layout(Label(x=8, y=mark.at, x_units="screen", y_offset=2, text=_plain(mark.text), **_WORDS, **side))


_WORDS: Final[dict[str, Any]] = {"text_color": figures.RULE, "text_font_size": "12px"}
_MARKS: Final[dict[type, Callable[[Any, Any, figures.Panel], Any]]] = {
    figures.PointsMark: _points,
    figures.LineMark: _line,
    figures.BandMark: _band,
    figures.Bars: _bars,
    figures.HeatMapMark: _heat_map,
    figures.Span: _span,
    figures.Rule: _rule,
}
