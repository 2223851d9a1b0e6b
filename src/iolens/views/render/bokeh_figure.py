"""Figure descriptions as interactive HTML by Bokeh: one file with everything inside, nothing fetched, ever.

Models are written as the JSON that Bokeh's program reads: building them with Bokeh's Python classes took most of the
time of a report. Only what differs from the program's defaults is written.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from bokeh import __version__ as bokeh_version
from bokeh.core.serialization import Buffer
from bokeh.util.paths import bokehjs_path
from numpy.typing import NDArray

from iolens.views.render import atomic, figures

PANEL_HEIGHT_PX: Final = 400
FEW_BARS: Final = 60  # have a white line between them
LINE_PX: Final = 18  # of a text in the panel
CHARACTER_PX: Final = 7
SLANT: Final = 0.6  # radians of names below an axis
_MATHEMATICS: Final = ("$$", "\\(", "\\[")
_NUMBERS: Final = count(1)
_WORDS: Final[dict[str, Any]] = {"text_color": figures.RULE, "text_font_size": "12px"}

Model = dict[str, Any]


def draw(figure: figures.Figure, path: Path) -> None:
    """Draw the figure into a self-contained HTML file."""
    atomic.write(path, to_html(figure))


def to_html(figure: figures.Figure) -> str:
    """The figure as a whole page."""
    title = html.escape(figures.legible(figure).title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ margin: 1rem; font-family: sans-serif; }} h1 {{ font-size: 1.1rem; }}</style>
</head>
<body>
<h1>{title}</h1>
<div id="figure"></div>
<script>
{program()}
</script>
<script>
Bokeh.embed.embed_item({json_for_script(item(figure))}, "figure").then((views) => views.roots.forEach(followZoom));
</script>
</body>
</html>
"""


def program() -> str:
    """Bokeh's own program without its widgets, mathematics and graphics-card parts, and what figures do on zoom."""
    bokeh = (Path(bokehjs_path()) / "js" / "bokeh.min.js").read_text("utf-8")
    return "\n".join([bokeh, 'Bokeh.set_log_level("error");', (Path(__file__).parent / "zoom.js").read_text("utf-8")])


def json_for_script(value: Any) -> str:
    """JSON that no text in it can end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def item(figure: figures.Figure) -> dict[str, Any]:
    """The panels one above the other, without the figure's title, as `Bokeh.embed.embed_item` takes them."""
    plots = [_plot(panel) for panel in figures.legible(figures.drawn(figure)).panels]
    if figure.linked_x:
        for plot in plots[1:]:
            plot["attributes"]["x_range"] = _ref(plots[0]["attributes"]["x_range"])
    root = _model("Column", children=plots, sizing_mode="stretch_width")
    document = {"version": bokeh_version, "title": "", "roots": [root]}
    return {"target_id": None, "root_id": root["id"], "doc": document, "version": bokeh_version}


# Models.


def _model(name: str, **attributes: Any) -> Model:
    return {"type": "object", "name": name, "id": f"i{next(_NUMBERS)}", "attributes": attributes}


def _ref(model: Model) -> Model:
    return {"id": model["id"]}


def _field(name: str) -> Model:
    return {"type": "field", "field": name}


def _value(value: Any) -> Model:
    return {"type": "value", "value": value}


def _mapping(entries: dict[Any, Any]) -> Model:
    return {"type": "map", "entries": [[key, value] for key, value in entries.items()]}


def _array(values: NDArray[Any], kind: type = np.float32) -> Model:
    array: NDArray[Any] = np.ascontiguousarray(values, dtype=kind)
    data = {"type": "bytes", "data": Buffer("", array.tobytes()).to_base64()}  # type: ignore[arg-type]
    return {
        "type": "ndarray", "array": data, "shape": list(array.shape), "dtype": array.dtype.name, "order": "little",
    }  # fmt: skip


def _plain(text: str) -> Any:
    """A name is never mathematics, whatever signs it holds: that would ask for a program that is not in the file."""
    return _model("PlainText", text=text) if any(sign in text for sign in _MATHEMATICS) else text


# A panel.


class _Plot:
    """A panel while its marks are added."""

    def __init__(self, panel: figures.Panel) -> None:
        self.panel = panel
        self.renderers: list[Model] = []
        self.center: list[Model] = []
        self.right: list[Model] = []
        self.tools: list[Model] = []
        self.legend: dict[str, list[Model]] = {}
        self.rules = 0

    def glyph(self, name: str, columns: dict[str, Any], mark: Any, label: str, **attributes: Any) -> Model:
        """A renderer of its own data, in the legend where it has a label."""
        source = _model("ColumnDataSource", data=_mapping(columns), selected=_model("Selection"))
        more: dict[str, Any] = {"y_range_name": "right"} if getattr(mark, "side", "left") == "right" else {}
        zoom = getattr(mark, "zoom", None)
        if zoom is not None:
            more |= {"tags": [zoom[0], _place(zoom[1], self.panel.x)], "visible": zoom[0] == "out"}
        if name == "Image":
            more["level"] = "image"
        drawn = _model(
            "GlyphRenderer", data_source=source, view=_model("CDSView", filter=_model("AllIndices")),
            glyph=_model(name, **{key: _field(key) for key in columns if key not in _HIDDEN}, **attributes), **more,
        )  # fmt: skip
        self.renderers.append(drawn)
        if zoom is not None and zoom[0] == "in" and self.legend:
            label = next(reversed(self.legend))  # of the median that it takes the place of
        if label:
            self.legend.setdefault(label, []).append(drawn)
        return drawn

    def hover(self, drawn: Model, tips: list[tuple[str, str]], *, visible: bool = False) -> None:
        """What the pointer shows."""
        times = {name: "datetime" for name in ("@x", "$x") if any("%F" in tip and name in tip for _, tip in tips)}
        self.tools.append(
            _model(
                "HoverTool",
                renderers=[_ref(drawn)],
                tooltips=[list(tip) for tip in tips],
                formatters=_mapping(times),
                visible=visible,
            )
        )


_HIDDEN: Final = ("name", "height", "target")


def _plot(panel: figures.Panel) -> Model:
    plot = _Plot(panel)
    for mark in panel.marks:
        _MARKS[type(mark)](plot, mark)
    below, left = _axis(panel.x), _axis(panel.y)
    grids = [] if panel.x.ticks else [_grid(below, 0)]
    if any(isinstance(mark, figures.HeatMapMark) for mark in panel.marks):
        grids = []
    else:
        grids.append(_grid(left, 1))
    attributes: dict[str, Any] = {
        "height": round(PANEL_HEIGHT_PX * panel.height),
        "sizing_mode": "stretch_width",
        "x_range": _range(panel.x),
        "y_range": _range(panel.y),
        "x_scale": _scale(panel.x),
        "y_scale": _scale(panel.y),
        "title": _model("Title", text=_plain(panel.title), text_font_style="normal"),
        "outline_line_color": None,
        "renderers": plot.renderers,
        "below": [below],
        "left": [left],
        "center": [*grids, *plot.center],
    }
    if panel.right is not None:
        attributes["extra_y_ranges"] = _mapping({"right": _range(panel.right)})
        attributes["extra_y_scales"] = _mapping({"right": _scale(panel.right)})
        plot.right.append(_axis(panel.right, y_range_name="right"))
    if plot.right:
        attributes["right"] = plot.right
    if plot.legend:
        attributes["above"] = [_legend(plot)]
    if panel.message:
        _message(attributes, panel)
    attributes["toolbar"] = _toolbar(plot.tools)  # after all it refers to
    return _model("Figure", **attributes)


def _toolbar(hovers: list[Model]) -> Model:
    zoom = _model("BoxZoomTool")
    tools = [
        zoom, _model("WheelZoomTool", dimensions="width"), _model("PanTool", dimensions="width"), _model("ResetTool"),
        _model("SaveTool"), *hovers,
    ]  # fmt: skip
    return _model("Toolbar", tools=tools, logo=None, active_drag=_ref(zoom), active_scroll=None)


def _grid(axis: Model, dimension: int) -> Model:
    return _model("Grid", axis=_ref(axis), dimension=dimension, grid_line_color=figures.GRID)


def _legend(plot: _Plot) -> Model:
    """A click hides a mark; where zooming chooses between marks, it fades them."""
    items = [
        _model("LegendItem", label=_value(label), renderers=[_ref(drawn) for drawn in several])
        for label, several in plot.legend.items()
    ]
    chooses = any(drawn["attributes"].get("tags") for drawn in plot.renderers)
    return _model(
        "Legend", items=items, orientation="horizontal", click_policy="mute" if chooses else "hide",
        border_line_color=None, padding=2,
        spacing=14, margin=2,
    )  # fmt: skip


def _message(attributes: dict[str, Any], panel: figures.Panel) -> None:
    """Words instead of marks, and no numbers that would pretend to measure something."""
    axes = [*attributes["left"], *attributes.get("right", []), *(attributes["below"] if panel.x.low is None else [])]
    for axis in axes:
        colours = ("major_label_text_color", "major_tick_line_color", "minor_tick_line_color")
        axis["attributes"] |= dict.fromkeys(colours)
    place: Any = {"x": 200, "y": PANEL_HEIGHT_PX / 2 - 60, "x_units": "screen", "y_units": "screen"}
    attributes["center"].append(
        _model("Label", **place, text=_plain(panel.message), text_color=figures.RULE, text_font_size="18px")
    )


# Axes.


def _range(axis: figures.Axis) -> Model:
    ends = {
        name: _place(end, axis) for name, end in (("start", axis.low), ("end", axis.high)) if end is not None
    }  # fmt: skip
    return _model("Range1d" if len(ends) == 2 else "DataRange1d", **ends)


def _scale(axis: figures.Axis) -> Model:
    return _model("LogScale" if axis.scale == "log" else "LinearScale")


def _axis(axis: figures.Axis, **more: Any) -> Model:
    """Names of ticks that would overlap are left out."""
    more |= {
        "axis_label": _plain(axis.label), "axis_label_text_font_style": "normal",
        "major_label_policy": _model("NoOverlap", min_distance=8),
    }  # fmt: skip
    if axis.slanted:
        more["major_label_orientation"] = SLANT
    if axis.scale == "time":
        return _model("DatetimeAxis", formatter=_times(), **more)
    more["formatter"] = _model("NumeralTickFormatter", format="0,0.[0000]")
    if axis.ticks:
        ticks = sorted(_key(at) for at, _ in axis.ticks)  # the policy goes from one to the next
        more["ticker"] = _model("FixedTicker", ticks=ticks)
        more["major_label_overrides"] = _mapping({_key(at): _plain(name) for at, name in axis.ticks})
    return _model("LogAxis" if axis.scale == "log" else "LinearAxis", **more)


def _times() -> Model:
    """The date stands below the first time and where it changes, the year below the first day or month."""
    days = dict.fromkeys(("seconds", "minsec", "minutes", "hourmin", "hours"), "%d %b %Y")
    below = _model(
        "DatetimeTickFormatter", **days, milliseconds="%d %b %Y", days="%Y", months="%Y", years="",
        boundary_scaling=False, hide_repeats=True,
    )  # fmt: skip
    return _model(
        "DatetimeTickFormatter", seconds="%T", minsec="%T", minutes="%H:%M", hourmin="%H:%M", hours="%H:%M",
        days="%d %b", months="%b", years="%Y", boundary_scaling=False, context=below, context_which="all",
    )  # fmt: skip


def _key(at: float) -> float | int:
    return int(at) if float(at).is_integer() else at


def _place(value: float, axis: figures.Axis) -> float:
    return float(value) / 1000 if axis.scale == "time" else float(value)


def _places(values: NDArray[Any], axis: figures.Axis) -> Model:
    """Bokeh's time: milliseconds since 1970."""
    if axis.scale == "time":
        return _array(np.asarray(values, dtype=float) / 1000, np.float64)
    return _array(values, np.float64)


# Marks.


def _tips(mark: Any, panel: figures.Panel, column: str = "y") -> list[tuple[str, str]]:
    unit = panel.right if getattr(mark, "side", "left") == "right" and panel.right is not None else panel.y
    x = (panel.x.label, "@x{%F %T}") if panel.x.scale == "time" else (panel.x.label, "@x")
    return [x, (f"{mark.label}, {unit.label}", f"@{column}{{0,0.00}}")]


def _points(plot: _Plot, mark: figures.PointsMark) -> None:
    known = np.isfinite(mark.y)
    columns = {"x": _places(mark.x[known], plot.panel.x), "y": _array(mark.y[known])}
    size = mark.weight * (2.5 if len(mark.x) > 4000 else 4)
    drawn = plot.glyph(
        "Scatter", columns, mark, mark.label, size=_value(size), fill_color=_value(mark.colour), fill_alpha=_value(0.6),
        line_color=_value(None),
    )  # fmt: skip
    plot.hover(drawn, _tips(mark, plot.panel))


def _line(plot: _Plot, mark: figures.LineMark) -> None:
    columns = {"x": _places(mark.x, plot.panel.x), "y": _array(mark.y)}
    drawn = plot.glyph("Line", columns, mark, mark.label, line_color=mark.colour, line_width=1.5 * mark.weight)
    plot.hover(drawn, _tips(mark, plot.panel))


def _band(plot: _Plot, mark: figures.BandMark) -> None:
    columns = {"x": _places(mark.x, plot.panel.x), "y1": _array(mark.low), "y2": _array(mark.high)}
    plot.glyph("VArea", columns, mark, mark.label, fill_color=mark.colour, fill_alpha=mark.alpha)


def _bars(plot: _Plot, mark: figures.Bars) -> None:
    panel = plot.panel
    floor = (panel.y.low or 1e-9) if panel.y.scale == "log" else 0.0
    bottoms = np.full(len(mark.heights), floor) if mark.bottoms is None else mark.bottoms
    tops = np.maximum(mark.heights if mark.bottoms is None else mark.bottoms + mark.heights, bottoms)
    same = len(set(mark.names)) == 1 and len(mark.names) > 1
    columns = {
        "left": _places(mark.starts, panel.x), "right": _places(mark.ends, panel.x), "bottom": _array(bottoms),
        "top": _array(tops), **({} if same else {"name": list(mark.names)}), "height": _array(mark.heights),
    }  # fmt: skip
    drawn = plot.glyph(
        "Quad", columns, mark, mark.label, fill_color=_value(mark.colour),
        line_color=_value("white" if len(mark.heights) <= FEW_BARS else None), line_width=_value(0.4),
    )  # fmt: skip
    what = [] if same else [("", "@name")]
    plot.hover(drawn, [*what, (f"{mark.label}, {panel.y.label}", "@height{0,0.[0000]}")])


def _heat_map(plot: _Plot, mark: figures.HeatMapMark) -> None:
    panel = plot.panel
    start, end = (_place(at, panel.x) for at in (mark.start, mark.end))
    kind = "LinearColorMapper" if mark.linear else "LogColorMapper"
    colours = _model(kind, palette=list(figures.HEAT), low=mark.low, high=mark.high, nan_color=figures.NO_DATA)
    # One picture per row, so that the row's name is the picture's and needs no code in the page to be looked up.
    rows = len(mark.values)
    columns = {
        "image": [_array(row[np.newaxis]) for row in mark.values],
        "y": [rows - 1.5 - row for row in range(rows)],
        "target": list(mark.rows),
    }
    drawn = plot.glyph(
        "Image", columns, mark, "", x=_value(start), dw=_value(end - start), dh=_value(1), color_mapper=colours
    )
    plot.right.append(
        _model(
            "ColorBar",
            color_mapper=_ref(colours),
            title=_plain(f"{mark.label}; grey: {mark.grey}"),
            formatter=_model("NumeralTickFormatter", format="0,0.[00]"),
            major_label_policy=_model("NoOverlap", min_distance=5),
            title_text_font_style="normal",
        )
    )
    when = (panel.x.label, "$x{%F %T}" if panel.x.scale == "time" else "$x{0,0.000}")
    plot.hover(drawn, [when, (mark.row_kind, "@target"), (mark.label, "@image{0.00}")], visible=True)
    for border in mark.borders:
        plot.center.append(
            _model("Span", location=border, dimension="width", line_color=figures.GROUP_LINE, line_width=1)
        )


def _span(plot: _Plot, mark: figures.Span) -> None:
    start, end = (_place(at, plot.panel.x) for at in (mark.start, mark.end))
    plot.center.append(
        _model(
            "BoxAnnotation",
            left=start,
            right=end,
            level="underlay",
            fill_color=mark.colour,
            fill_alpha=1,
            line_color=mark.colour,
        )
    )
    if mark.text:
        words: Any = {"text_align": "center", "text_color": figures.SPAN_TEXT, "text_font_size": "12px"}
        place: Any = {"x": (start + end) / 2, "y": 8, "y_units": "screen"}
        plot.center.append(_model("Label", **place, text=_plain(mark.text), **words))
    if mark.label and mark.label not in plot.legend:
        nowhere = _array(np.array([np.nan]), np.float64)
        columns = dict.fromkeys(("left", "right", "bottom", "top"), nowhere)
        plot.glyph("Quad", columns, mark, mark.label, fill_color=_value(mark.colour), line_color=_value(None))


def _rule(plot: _Plot, mark: figures.Rule) -> None:
    """Texts of vertical rules stand below each other, so that near ones do not overlap."""
    style: Any = {"line_color": figures.RULE, "line_dash": [6], "line_width": 1}
    text = _plain(mark.text)
    side: dict[str, Any]
    if mark.direction == "vertical":
        at = _place(mark.at, plot.panel.x)
        plot.center.append(_model("Span", location=at, dimension="height", **style))
        if not mark.text:
            return
        top = round(PANEL_HEIGHT_PX * plot.panel.height) - 150 - LINE_PX * plot.rules
        y = top if plot.panel.has_texts_on_top else 6 + LINE_PX * plot.rules
        plot.rules += 1
        at_right = mark.at > ((plot.panel.x.low or 0) + 2 * (plot.panel.x.high or np.inf)) / 3
        side = {"text_align": "right", "x_offset": -4} if at_right else {"x_offset": 4}
        place: Any = {"x": at, "y": y, "y_units": "screen", **side}
    else:
        side = {"y_range_name": "right"} if mark.side == "right" else {}
        plot.center.append(_model("Span", location=float(mark.at), dimension="width", **style, **side))
        place = {"x": 8, "y": float(mark.at), "x_units": "screen", "y_offset": 2, **side}
    plot.center.append(_model("Label", **place, text=text, **_WORDS))


_MARKS: Final[dict[type, Callable[[_Plot, Any], None]]] = {
    figures.PointsMark: _points,
    figures.LineMark: _line,
    figures.BandMark: _band,
    figures.Bars: _bars,
    figures.HeatMapMark: _heat_map,
    figures.Span: _span,
    figures.Rule: _rule,
}
