"""Figure descriptions drawn for paper and slides: SVG, PNG and PDF by matplotlib, without pyplot's global state."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib import dates, ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap, LogNorm, Normalize, to_rgb
from matplotlib.figure import Figure as Canvas

from iolens.views.render import atomic, figures
from iolens.visible_text import shortened

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.colors import Colormap
    from numpy.typing import NDArray

WIDTH_IN: Final = 6.6
PANEL_HEIGHT_IN: Final = 3.0
POINTS_PER_IN: Final = 72
TITLE_PT: Final = 24  # above all panels
PNG_DPI: Final = 200
LEGEND_WIDTH, LEGEND_HANDLE = 80, 6  # characters: above a panel, and of a handle with its margins
LEGEND_ROW: Final = 16  # points
LETTER_PT: Final = 5.6  # width of a letter of 9 points: wide ones, so that nothing touches
LINE_PT: Final = 12
HALF_DATE_PT: Final = 34.0  # right of an axis that ends at a date
TITLE_LETTERS: Final = 84
LABEL_LETTERS: Final = 20  # of a name beside the end of its line: longer ones go into the legend
LABELLED_LINES: Final = 4  # so many lines are named at their end, more in a legend
FEW_BARS: Final = 60  # have a white line between them
DARK: Final = 0.62  # luminance of the lightest colour that can be read as text
_MANY_POINTS: Final = 1000  # beyond this, dots in SVG and PDF become one picture; axes and text stay vectors

_STYLE: Final[Any] = {
    "font.size": 10, "axes.titlesize": 10, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "legend.fontsize": 9, "axes.edgecolor": "#888888", "axes.linewidth": 0.7, "axes.labelcolor": figures.TEXT,
    "xtick.color": "#888888", "ytick.color": "#888888", "xtick.labelcolor": figures.TEXT,
    "ytick.labelcolor": figures.TEXT, "grid.color": figures.GRID, "grid.linewidth": 0.6, "axes.axisbelow": True,
    "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "iolens", "pdf.fonttype": 42,
    "axes.unicode_minus": True,
}  # fmt: skip
_NO_DATE: Final = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure, the same bytes


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
    heights = sum(panel.height for panel in figures.drawn(figure).panels)
    return POINTS_PER_IN * WIDTH_IN, (TITLE_PT if figure.title else 0) + POINTS_PER_IN * PANEL_HEIGHT_IN * heights


@dataclass(slots=True)
class _DrawnPanel:
    """A panel on its way to its place: axes, and the space in points that its texts take on each side."""

    panel: figures.Panel
    axes: Axes
    right: Axes | None
    above_pt: float = 0.0
    below_pt: float = 0.0
    colours: Axes | None = None

    @property
    def sides(self) -> list[Axes]:
        """Left, and right where there is one."""
        return [self.axes] if self.right is None else [self.axes, self.right]


def _canvas(figure: figures.Figure) -> Canvas:
    """Panels below each other. Texts are measured by their letters: matplotlib's own layout takes long."""
    figure = figures.legible(figures.still(figure))
    width_pt, height_pt = size_pt(figure)
    canvas = Canvas(figsize=(width_pt / POINTS_PER_IN, height_pt / POINTS_PER_IN))
    FigureCanvasAgg(canvas)
    top_pt = height_pt
    if figure.title:
        words: Any = {"ha": "left", "va": "top", "fontsize": 12, "fontweight": "bold", "color": figures.TEXT}
        canvas.text(0.008, 1 - 4 / height_pt, shortened(figure.title, TITLE_LETTERS - 10), **words)
        top_pt -= TITLE_PT
    shared: Axes | None = None
    panels = []
    for panel in figure.panels:
        slot_pt = POINTS_PER_IN * PANEL_HEIGHT_IN * panel.height
        drawn = _panel(canvas, panel, shared)
        bottom, height = top_pt - slot_pt + drawn.below_pt, slot_pt - drawn.above_pt - drawn.below_pt
        for axes in drawn.sides:
            axes.set_position((0.12, bottom / height_pt, 0.8, height / height_pt))
        panels.append(drawn)
        top_pt -= slot_pt
        shared = (shared or drawn.axes) if figure.linked_x else None
    left_pt = max(_side_pt(drawn.axes, drawn.panel.y) for drawn in panels)
    right_pt = max(_right_pt(drawn) for drawn in panels)
    for drawn in panels:
        _place_panel(drawn, left_pt, right_pt, width_pt)
    return canvas


def _place_panel(drawn: _DrawnPanel, left_pt: float, right_pt: float, width_pt: float) -> None:
    place = drawn.axes.get_position()
    width = (width_pt - left_pt - right_pt) / width_pt
    for axes in drawn.sides:
        axes.set_position((left_pt / width_pt, place.y0, width, place.height))
        axes.yaxis.set_label_coords(*_label_place(drawn, axes, left_pt, right_pt, width_pt))
    if drawn.panel.x.ticks and not drawn.panel.x.slanted:
        _thin(drawn.axes, drawn.panel.x, width_pt * width)
    if drawn.colours is not None:
        drawn.colours.set_position(((width_pt - right_pt + 6) / width_pt, place.y0, 10 / width_pt, place.height))
    _name_lines(drawn, place.height * drawn.axes.get_figure().get_figheight() * POINTS_PER_IN)  # type: ignore[union-attr]


def _thin(axes: Axes, x: figures.Axis, width_pt: float) -> None:
    """Leave out names of ticks that would touch the one before."""
    where = axes.transData + axes.transAxes.inverted()
    end_pt, names = -math.inf, []
    for (at, _), name in zip(x.ticks, _tick_names(x, "x"), strict=True):
        middle_pt = width_pt * float(where.transform((at, axes.get_ylim()[0]))[0])
        half_pt = LETTER_PT * max(map(len, name.split("\n"))) / 2
        fits = middle_pt - half_pt > end_pt + LETTER_PT
        names.append(name if fits else "")
        end_pt = middle_pt + half_pt if fits else end_pt
    _name_ticks(axes.xaxis, x, names)


def _label_place(
    drawn: _DrawnPanel, axes: Axes, left_pt: float, right_pt: float, width_pt: float
) -> tuple[float, float]:
    """Of the name of a y axis: at the outer edge, in parts of the panel."""
    inside_pt = width_pt - left_pt - right_pt
    return ((15 - left_pt) / inside_pt, 0.5) if axes is drawn.axes else (1 + (right_pt - 10) / inside_pt, 0.5)


def _side_pt(axes: Axes, axis: figures.Axis) -> float:
    return 30 + LETTER_PT * _longest(axes.yaxis, axis)


def _longest(here: Any, axis: figures.Axis) -> int:
    """Letters of the longest name of a tick."""
    if axis.ticks:
        names = [name for _, name in axis.ticks]
    else:
        low, high = sorted(here.get_view_interval())
        at = [place for place in here.get_majorticklocs() if low <= place <= high]
        names = here.get_major_formatter().format_ticks(at)
    return max(map(len, names), default=0)


def _right_pt(drawn: _DrawnPanel) -> float:
    panel = drawn.panel
    if panel.right is not None and drawn.right is not None:
        return _side_pt(drawn.right, panel.right)
    if drawn.colours is not None:
        return 62.0
    spare_pt = HALF_DATE_PT if panel.x.scale == "time" else 16.0
    return max([spare_pt, *(14 + LETTER_PT * len(line.label) for line in _named_lines(panel))])


def _panel(canvas: Canvas, panel: figures.Panel, shared: Axes | None) -> _DrawnPanel:
    axes = canvas.add_axes((0.12, 0.1, 0.8, 0.8), sharex=shared)
    drawn = _DrawnPanel(panel, axes, axes.twinx() if panel.right is not None else None)
    sides = {"left": axes, "right": drawn.right or axes}
    for mark in panel.marks:
        if isinstance(mark, figures.HeatMapMark):
            drawn.colours = canvas.add_axes((0.93, 0.1, 0.02, 0.8))
            _heat_map(axes, drawn.colours, mark, panel)
        else:
            _MARKS[type(mark)](sides[getattr(mark, "side", "left")], mark, panel)
    _axis(axes, "x", panel.x)
    _axis(axes, "y", panel.y)
    if panel.right is not None and drawn.right is not None:
        _axis(drawn.right, "y", panel.right)
    _furniture(drawn)
    return drawn


def _furniture(drawn: _DrawnPanel) -> None:
    panel, sides, front = drawn.panel, drawn.sides, drawn.axes
    for axes in sides:
        axes.spines["top"].set_visible(False)
        axes.spines["right"].set_visible(len(sides) > 1)
    if drawn.colours is None:
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
    title = textwrap.fill(panel.title, TITLE_LETTERS)
    front.set_title(title, loc="left", y=1.0, pad=6 + LEGEND_ROW * rows, color="#444444")
    drawn.above_pt = 10 + LEGEND_ROW * rows + (LINE_PT + 1) * (title.count("\n") + 1 if title else 0)
    drawn.below_pt = _below_pt(panel.x)
    if panel.message:
        _message(sides, panel)


def _below_pt(axis: figures.Axis) -> float:
    """Ticks of an x axis, in two lines where they are times or crowded, and its label."""
    label = 16 if axis.label else 4
    if axis.slanted:
        return label + 8 + LETTER_PT * 0.6 * max((len(name) for _, name in axis.ticks), default=0)
    lines = 2 if axis.scale == "time" else 1 + max((name.count("\n") for name in _tick_names(axis, "x")), default=0)
    return label + 8 + LINE_PT * lines


def _named_lines(panel: figures.Panel) -> list[figures.LineMark]:
    """Lines that are named at their end: where they are few, on one axis, and of a colour that can be read."""
    lines = [mark for mark in panel.marks if isinstance(mark, figures.LineMark) and mark.label]
    few = 0 < len({line.label for line in lines}) == len(lines) <= LABELLED_LINES
    return lines if few and panel.right is None and all(_can_be_named(line, panel.x) for line in lines) else []


def _can_be_named(line: figures.LineMark, x: figures.Axis) -> bool:
    """Whether a short name fits beside its end, which is near that of the axis."""
    known = line.x[np.isfinite(line.y)]
    reaches = x.low is None or x.high is None or x.scale == "log" or not len(known)
    near_end = reaches or known[-1] >= x.low + 0.8 * (x.high - x.low)  # type: ignore[operator]
    return len(line.label) <= LABEL_LETTERS and _is_dark(line.colour) and bool(near_end)


@lru_cache
def _is_dark(colour: str) -> bool:
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < DARK


def _name_lines(drawn: _DrawnPanel, height_pt: float) -> None:
    """Names at the right, each at the height where its line ends, moved apart where they would overlap."""
    front, lines = drawn.axes, _named_lines(drawn.panel)
    if not lines:
        return
    where = front.transData + front.transAxes.inverted()
    ends = {}
    for line in lines:
        known = np.flatnonzero(np.isfinite(line.y))
        if len(known):
            at = where.transform((front.get_xlim()[1], float(line.y[known[-1]])))[1]
            ends[line.label] = min(max(float(at), 0.0), 1.0), line
    for (_, line), at in zip(*_apart(ends, LINE_PT / height_pt), strict=True):
        front.annotate(
            line.label, (1, at), xycoords="axes fraction", xytext=(4, 0), textcoords="offset points", va="center",
            color=line.colour, size=9, annotation_clip=False,
        )  # fmt: skip


def _apart(ends: dict[str, tuple[float, Any]], gap: float) -> tuple[list[tuple[float, Any]], list[float]]:
    """The same from bottom to top, and heights at least `gap` apart that do not leave the panel."""
    ordered = sorted(ends.values(), key=lambda end: end[0])
    heights: list[float] = []
    for at, _ in ordered:
        heights.append(max(at, heights[-1] + gap) if heights else at)
    too_high = max(0.0, heights[-1] - 1.0) if heights else 0.0
    for place in range(len(heights) - 1, -1, -1):
        limit = 1.0 if place == len(heights) - 1 else heights[place + 1] - gap
        heights[place] = min(heights[place], limit) if too_high else heights[place]
    return ordered, heights


def _legend_entries(sides: list[Axes], panel: figures.Panel) -> dict[str, Any]:
    """Handles by label, in the order of the marks."""
    artists = {label: handle for axes in sides for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    ordered = dict.fromkeys(getattr(mark, "label", "") for mark in panel.marks)
    named = {line.label for line in _named_lines(panel)}
    return {label: artists[label] for label in [*ordered, *artists] if label in artists and label not in named}


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
    words: Any = {"ha": "center", "va": "center", "color": figures.RULE, "size": 13}
    front.text(0.5, 0.5, panel.message, transform=front.transAxes, **words)


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
        _name_ticks(here, axis, _tick_names(axis, which))
        if axis.slanted:
            for label in here.get_ticklabels():
                label.set(rotation=35, ha="right", rotation_mode="anchor")


def _name_ticks(here: Any, axis: figures.Axis, names: list[str]) -> None:
    here.set_major_locator(ticker.FixedLocator([at for at, _ in axis.ticks]))
    here.set_major_formatter(ticker.FixedFormatter(names))


def _tick_names(axis: figures.Axis, which: str) -> list[str]:
    names = [name for _, name in axis.ticks]
    crowded = which == "x" and not axis.slanted and sum(map(len, names)) > 60
    return [name.replace(" ", "\n") for name in names] if crowded else names


def _number_ticks(axis: Any) -> None:
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(ticker.NullLocator())


def _time_ticks(axis: Any) -> None:
    locator = dates.AutoDateLocator(tz="UTC", minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    locator.intervald[dates.MINUTELY] = [1, 2, 5, 10, 15, 30]  # without 2, ten minutes would have three ticks
    axis.set_major_formatter(DatedTicks())


class DatedTicks(ticker.Formatter):
    """Times with their date below the first and where it changes; days and months with their year."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One tick alone."""
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """What stands at each tick, in two lines where the second has changed."""
        times = dates.num2date(list(values), tz="UTC")  # type: ignore[no-untyped-call]
        step = min(np.diff(np.asarray(values)), default=0.0)
        whole_days = all(time.hour == time.minute == time.second == 0 for time in times)
        if step >= 27 and all(time.day == 1 for time in times):
            pairs = [(f"{time:%b}", f"{time:%Y}") for time in times]
        elif step >= 1 and whole_days:
            pairs = [(f"{time.day} {time:%b}", f"{time:%Y}") for time in times]
        else:
            clock = "%H:%M" if all(time.second == 0 and time.microsecond == 0 for time in times) else "%H:%M:%S"
            pairs = [(f"{time:{clock}}", f"{time.day} {time:%b %Y}") for time in times]
        before = ["", *(second for _, second in pairs)]
        return [
            first if second == last else f"{first}\n{second}"
            for (first, second), last in zip(pairs, before, strict=False)
        ]


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
    axes.plot(_places(mark.x, panel.x), mark.y, linewidth=mark.weight, color=mark.colour, label=mark.label)


def _band(axes: Axes, mark: figures.BandMark, panel: figures.Panel) -> None:
    axes.fill_between(
        _places(mark.x, panel.x), mark.low, mark.high, color=mark.colour, linewidth=0, label=mark.label, zorder=0.8,
        alpha=mark.alpha if mark.alpha < 1 else None,
    )  # fmt: skip


def _bars(axes: Axes, mark: figures.Bars, panel: figures.Panel) -> None:
    """All of a mark at once: a shape of its own for each takes long. Many that touch become one outline."""
    floor = (panel.y.low or 1e-9) if panel.y.scale == "log" else 0.0
    bottoms = np.full(len(mark.heights), floor) if mark.bottoms is None else np.asarray(mark.bottoms, dtype=float)
    tops = np.maximum(mark.heights + (0.0 if mark.bottoms is None else mark.bottoms), bottoms)
    starts, ends = _places(mark.starts, panel.x), _places(mark.ends, panel.x)
    if len(starts) > FEW_BARS:
        gaps = 2 * (np.flatnonzero(~np.isclose(starts[1:], ends[:-1], rtol=1e-12)) + 1)
        x = np.stack([starts, ends], axis=1).ravel()
        low, high = (np.insert(np.repeat(values, 2), gaps, np.nan) for values in (bottoms, tops))
        axes.fill_between(np.insert(x, gaps, x[gaps]), low, high, color=mark.colour, linewidth=0, label=mark.label)
        return
    corners = np.stack([starts, bottoms, starts, tops, ends, tops, ends, bottoms], axis=1).reshape(-1, 4, 2)
    style: Any = {"facecolors": mark.colour, "edgecolors": "white", "linewidths": 0.3}
    axes.add_collection(PolyCollection(list(corners), label=mark.label, **style))
    axes.autoscale_view()


@lru_cache
def _colour_map() -> Colormap:
    return ListedColormap(figures.HEAT).with_extremes(bad=figures.NO_DATA)


def _heat_map(axes: Axes, beside: Axes, mark: figures.HeatMapMark, panel: figures.Panel) -> None:
    start, end = _places(np.array([mark.start, mark.end]), panel.x)
    scale = Normalize(mark.low, mark.high) if mark.linear else LogNorm(mark.low, mark.high)
    image = axes.imshow(
        np.ma.masked_invalid(np.clip(mark.values[::-1], mark.low, mark.high)), norm=scale, cmap=_colour_map(),
        extent=(start, end, -0.5, len(mark.values) - 0.5), origin="lower", aspect="auto", interpolation="nearest",
    )  # fmt: skip
    if np.isnan(mark.values).any():
        axes.fill([], [], color=figures.NO_DATA, label=mark.grey)
    bar = axes.get_figure().colorbar(image, cax=beside)  # type: ignore[union-attr]
    bar.set_label(mark.label)
    if mark.linear:
        bar.ax.yaxis.set_major_locator(ticker.MaxNLocator(6))
    elif mark.high < 100 * mark.low:  # too few powers of ten to read a colour by
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
            size=8.5, color=figures.SPAN_TEXT, clip_on=True,
        )  # fmt: skip


def _rule(axes: Axes, mark: figures.Rule, panel: figures.Panel) -> None:
    """Texts of vertical rules stand below each other, so that near ones do not overlap."""
    style: dict[str, Any] = {"color": figures.RULE, "linewidth": 0.9, "linestyle": (0, (4, 3))}
    words: dict[str, Any] = {"color": figures.RULE, "size": 8.5, "clip_on": True, "textcoords": "offset points"}
    if mark.direction == "horizontal":
        axes.axhline(mark.at, **style)
        place: Any = {"xycoords": axes.get_yaxis_transform(), "xytext": (-3, 2), "ha": "right", "va": "bottom"}
        axes.annotate(mark.text, (1, mark.at), **place, **words)
        return
    at = float(_places(np.array([mark.at]), panel.x)[0])
    axes.axvline(at, **style)
    texts = [
        rule for rule in panel.marks if isinstance(rule, figures.Rule) and rule.direction == "vertical" and rule.text
    ]
    if mark.text:
        number = texts.index(mark)
        at_top = panel.has_texts_on_top
        down = -3 - LINE_PT * number if at_top else 3 + LINE_PT * number
        at_right = mark.at > ((panel.x.low or 0) + 2 * (panel.x.high or math.inf)) / 3
        place = {"xycoords": axes.get_xaxis_transform(), "xytext": (-4 if at_right else 4, down)}
        sides: Any = {"ha": "right" if at_right else "left", "va": "top" if at_top else "bottom"}
        axes.annotate(mark.text, (at, 1 if at_top else 0), **sides, **place, **words)


_MARKS: Final[dict[type, Callable[[Axes, Any, figures.Panel], None]]] = {
    figures.PointsMark: _points,
    figures.LineMark: _line,
    figures.BandMark: _band,
    figures.Bars: _bars,
    figures.Span: _span,
    figures.Rule: _rule,
}
