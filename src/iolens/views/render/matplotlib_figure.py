"""Figure descriptions drawn for paper and slides: SVG, PNG and PDF by matplotlib, without pyplot's global state."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib import dates, ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine

from iolens.views.render import atomic, figures

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from numpy.typing import NDArray

WIDTH_IN: Final = 6.6
PANEL_HEIGHT_IN: Final = 3.0
POINTS_PER_IN: Final = 72
PNG_DPI: Final = 200
LEGEND_WIDTH, LEGEND_HANDLE = 92, 6  # characters: above a panel, and of a handle with its margins
LEGEND_ROW: Final = 16  # points
COLOUR_MAP: Final = "magma_r"
_MANY_POINTS: Final = 4000  # beyond this, dots in SVG and PDF become one picture; axes and text stay vectors

_STYLE: Final[Any] = {
    "font.size": 10, "axes.titlesize": 10, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "legend.fontsize": 9, "axes.edgecolor": "#888888", "axes.linewidth": 0.7, "axes.labelcolor": "#222222",
    "xtick.color": "#888888", "ytick.color": "#888888", "xtick.labelcolor": "#222222", "ytick.labelcolor": "#222222",
    "grid.color": "#E6E6E6", "grid.linewidth": 0.6, "axes.axisbelow": True, "text.parse_math": False,
    "svg.fonttype": "none", "svg.hashsalt": "iolens", "pdf.fonttype": 42, "axes.unicode_minus": True,
}  # fmt: skip
_NO_DATE: Final = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure, the same bytes


class _DrawnOnce(Canvas):
    """`savefig` draws everything twice, first without output to have the layout; the layout alone is enough."""

    def draw(self, renderer: RendererBase) -> None:
        """Lay out, or draw what is laid out."""
        engine = self.get_layout_engine()
        if isinstance(engine, ConstrainedLayoutEngine) and self.canvas.is_saving():
            engine.execute(self)
        else:
            super().draw(renderer)


def draw(figure: figures.Figure, path: Path) -> None:
    """Draw the figure into an SVG, PNG or PDF file."""
    atomic.write(path, to_bytes(figure, path.suffix.lower().removeprefix(".")))


def to_bytes(figure: figures.Figure, kind: str) -> bytes:
    """The figure as the content of a file of that kind: `svg`, `png` or `pdf`."""
    with mpl.rc_context(_STYLE), _without_missing_glyphs():
        canvas = _canvas(figure)
        out = io.BytesIO()
        canvas.savefig(out, format=kind, dpi=PNG_DPI, metadata=_NO_DATE[kind])
    return out.getvalue()


def draw_with(figure: figures.Figure, renderer: RendererBase) -> None:
    """Draw the figure with a renderer of another library that takes points for pixels."""
    style = {**_STYLE, "font.family": "DejaVu Sans"}  # that comes with matplotlib, whoever uses it
    with mpl.rc_context(style), _without_missing_glyphs():
        canvas = _canvas(figure)
        canvas.set_dpi(POINTS_PER_IN)
        canvas.draw(renderer)


@contextmanager
def _without_missing_glyphs() -> Iterator[None]:
    """A sign that no font has is drawn as a box; no message is needed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        yield


def size_pt(figure: figures.Figure) -> tuple[float, float]:
    """Width and height of the drawing, in points."""
    height_in = 0.35 + PANEL_HEIGHT_IN * sum(panel.height for panel in figure.panels)
    return POINTS_PER_IN * WIDTH_IN, POINTS_PER_IN * height_in


def _canvas(figure: figures.Figure) -> Canvas:
    figure = figures.legible(figure)
    heights = [panel.height for panel in figure.panels]
    width_pt, height_pt = size_pt(figure)
    canvas = _DrawnOnce(figsize=(width_pt / POINTS_PER_IN, height_pt / POINTS_PER_IN), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(figure.title, x=0.008, ha="left", fontsize=12, fontweight="bold", color="#222222")
    column = canvas.subplots(len(heights), 1, squeeze=False, sharex=figure.linked_x, height_ratios=heights)
    for axes, panel in zip(column[:, 0], figure.panels, strict=True):
        axes.xaxis.set_tick_params(labelbottom=True)
        _panel(axes, panel)
    return canvas


def _panel(axes: Axes, panel: figures.Panel) -> None:
    sides = {"left": axes}
    if panel.right is not None:
        sides["right"] = axes.twinx()
    for mark in panel.marks:
        _MARKS[type(mark)](sides[getattr(mark, "side", "left")], mark, panel)
    _axis(axes, "x", panel.x)
    _axis(axes, "y", panel.y)
    if panel.right is not None:
        _axis(sides["right"], "y", panel.right)
    _furniture(list(sides.values()), panel)


def _furniture(sides: list[Axes], panel: figures.Panel) -> None:
    front = sides[0]
    for axes in sides:
        axes.spines["top"].set_visible(False)
        axes.spines["right"].set_visible(len(sides) > 1)
    if not any(isinstance(mark, figures.HeatMapMark) for mark in panel.marks):
        front.grid(axis="y" if panel.x.ticks else "both")
    handles = _legend_entries(sides, panel)
    columns = legend_columns([len(label) for label in handles])
    if handles:
        box = front.legend(
            handles.values(), handles.keys(), loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=columns,
            frameon=False, borderaxespad=0.2, columnspacing=1.4, handlelength=1.2, handletextpad=0.5,
        )  # fmt: skip
        for handle in box.legend_handles:
            _enlarge(handle)
    rows = math.ceil(len(handles) / columns)
    front.set_title(panel.title, loc="left", pad=6 + LEGEND_ROW * rows, color="#444444")
    if panel.message:
        _message(sides, panel)


def _legend_entries(sides: list[Axes], panel: figures.Panel) -> dict[str, Any]:
    """Handles by label, in the order of the marks."""
    artists = {label: handle for axes in sides for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    ordered = dict.fromkeys(getattr(mark, "label", "") for mark in panel.marks)
    return {label: artists[label] for label in [*ordered, *artists] if label in artists}


def legend_columns(lengths: Sequence[int]) -> int:
    """As many columns as fit above a panel, given the characters of each label; labels go down a column first."""
    for columns in range(len(lengths), 1, -1):
        widest = [int(column.max()) for column in np.array_split(np.array(lengths), columns)]
        if sum(width + LEGEND_HANDLE for width in widest) <= LEGEND_WIDTH:
            return columns
    return 1


def _message(sides: list[Axes], panel: figures.Panel) -> None:
    """Words instead of marks, and no numbers that would pretend to measure something."""
    for axes in sides:
        axes.set_yticks([])
    front = sides[0]
    if panel.x.low is None:
        front.tick_params(axis="x", bottom=False, labelbottom=False)
    front.text(0.5, 0.5, panel.message, transform=front.transAxes, ha="center", va="center", color="#666666", size=13)


def _enlarge(handle: Any) -> None:
    if hasattr(handle, "set_markersize"):
        handle.set_markersize(6)
        handle.set_alpha(1)


def _axis(axes: Axes, which: str, axis: figures.Axis) -> None:
    here = axes.xaxis if which == "x" else axes.yaxis
    here.set_label_text(axis.label)
    if axis.scale == "log":
        axes.set(**{f"{which}scale": "log"})
    _TICKS[axis.scale](here)
    low, high = (_place(end, axis) for end in (axis.low, axis.high))
    if which == "x":
        axes.set_xlim(low, high)
    else:
        axes.set_ylim(low, high)
    if axis.ticks:
        here.set_ticks([at for at, _ in axis.ticks], labels=_tick_names(axis, which))
        if axis.slanted:
            for label in here.get_ticklabels():
                label.set(rotation=35, ha="right", rotation_mode="anchor")
        here.set_minor_locator(ticker.NullLocator())


def _tick_names(axis: figures.Axis, which: str) -> list[str]:
    names = [name for _, name in axis.ticks]
    crowded = which == "x" and not axis.slanted and sum(map(len, names)) > 60
    return [name.replace(" ", "\n") for name in names] if crowded else names


def _number_ticks(axis: Any) -> None:
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _time_ticks(axis: Any) -> None:
    locator = dates.AutoDateLocator(tz="UTC", minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    locator.intervald[dates.MINUTELY] = [1, 2, 5, 10, 15, 30]  # without 2, ten minutes would have three ticks
    form = dates.ConciseDateFormatter(locator, tz="UTC", show_offset=False)  # type: ignore[no-untyped-call]
    axis.set_major_formatter(form)


_TICKS: Final[dict[str, Callable[[Any], None]]] = {
    "linear": _number_ticks,
    "log": _number_ticks,
    "time": _time_ticks,
}


def _place(value: float | None, axis: figures.Axis) -> float | None:
    return value if value is None or axis.scale != "time" else float(_days(np.array([value]))[0])


def _places(values: NDArray[Any], axis: figures.Axis) -> NDArray[Any]:
    return _days(values) if axis.scale == "time" else values


def _days(microseconds: NDArray[Any]) -> NDArray[Any]:
    """Matplotlib's time: days since 1970."""
    return np.asarray(microseconds, dtype=float) / 86_400e6


def _points(axes: Axes, mark: figures.PointsMark, panel: figures.Panel) -> None:
    many = len(mark.x) > _MANY_POINTS
    axes.plot(
        _places(mark.x, panel.x), mark.y, linestyle="none", marker="o", markersize=mark.weight * (1.5 if many else 2.6),
        markeredgewidth=0, alpha=0.6 if many else 0.8, color=mark.colour, label=mark.label, rasterized=many,
    )  # fmt: skip


def _line(axes: Axes, mark: figures.LineMark, panel: figures.Panel) -> None:
    axes.plot(_places(mark.x, panel.x), mark.y, linewidth=1.0, color=mark.colour, label=mark.label)


def _band(axes: Axes, mark: figures.BandMark, panel: figures.Panel) -> None:
    axes.fill_between(
        _places(mark.x, panel.x), mark.low, mark.high, color=mark.colour, linewidth=0, label=mark.label, zorder=0.8
    )


def _bars(axes: Axes, mark: figures.Bars, panel: figures.Panel) -> None:
    bottoms = 0 if mark.bottoms is None else mark.bottoms
    starts, ends = _places(mark.starts, panel.x), _places(mark.ends, panel.x)
    axes.bar(
        starts, mark.heights, width=ends - starts, bottom=bottoms, align="edge", color=mark.colour,
        label=mark.label, edgecolor="white", linewidth=0.3,
    )  # fmt: skip


def _heat_map(axes: Axes, mark: figures.HeatMapMark, panel: figures.Panel) -> None:
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    colours = mpl.colormaps[COLOUR_MAP].with_extremes(bad=figures.NO_DATA)
    image = axes.imshow(
        np.ma.masked_invalid(np.maximum(mark.values[::-1], mark.low)), norm=LogNorm(mark.low, mark.high), cmap=colours,
        extent=(start, end, -0.5, len(mark.values) - 0.5), origin="lower", aspect="auto", interpolation="nearest",
    )  # fmt: skip
    if np.isnan(mark.values).any():
        axes.fill([], [], color=figures.NO_DATA, label=mark.grey)
    bar = axes.get_figure().colorbar(image, ax=axes, pad=0.015, fraction=0.05)  # type: ignore[union-attr]
    bar.set_label(mark.label)
    if mark.high < 100 * mark.low:  # too few powers of ten to read a colour by
        bar.ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.yaxis.set_minor_formatter(ticker.NullFormatter())
    bar.outline.set_visible(False)
    if mark.groups:
        _group_lines(axes, mark, panel)


def _group_lines(axes: Axes, mark: figures.HeatMapMark, panel: figures.Panel) -> None:
    """Thin lines between groups of rows."""
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    axes.hlines(mark.borders, start, end, color=figures.GROUP_LINE, linewidth=0.6)


def _span(axes: Axes, mark: figures.Span, panel: figures.Panel) -> None:
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    axes.axvspan(start, end, color=mark.colour, linewidth=0.8, label=mark.label, zorder=0.4)
    if mark.text:
        axes.text(
            (start + end) / 2, 0.985, mark.text, transform=axes.get_xaxis_transform(), ha="center", va="top",
            size=8.5, color="#7A4A00", clip_on=True,
        )  # fmt: skip


def _rule(axes: Axes, mark: figures.Rule, panel: figures.Panel) -> None:
    style: dict[str, Any] = {"color": figures.RULE, "linewidth": 0.9, "linestyle": (0, (4, 3))}
    words: dict[str, Any] = {"color": figures.RULE, "size": 8.5, "clip_on": True}
    if mark.direction == "vertical":
        at = float(_places(np.array([mark.at]), panel.x)[0])
        axes.axvline(at, **style)
        axes.annotate(
            mark.text, (at, 1), xycoords=axes.get_xaxis_transform(), xytext=(4, -3), textcoords="offset points",
            va="top", **words,
        )  # fmt: skip
    else:
        axes.axhline(mark.at, **style)
        axes.annotate(
            mark.text, (1, mark.at), xycoords=axes.get_yaxis_transform(), xytext=(-3, 2), textcoords="offset points",
            ha="right", va="bottom", **words,
        )  # fmt: skip


_MARKS: Final[dict[type, Callable[[Axes, Any, figures.Panel], None]]] = {
    figures.PointsMark: _points,
    figures.LineMark: _line,
    figures.BandMark: _band,
    figures.Bars: _bars,
    figures.HeatMapMark: _heat_map,
    figures.Span: _span,
    figures.Rule: _rule,
}
