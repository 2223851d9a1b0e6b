"""A figure as a plain description, with no drawing library in sight; two renderers draw it.

Positions are plain numbers; on a time axis they are microseconds since 1970 UTC. Categories are positions 0, 1, 2, …
with their names as the axis's ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

from iolens.errors import UsageError
from iolens.units import from_epoch_us
from iolens.views.render.shown_times import shown_zone, zone_name
from iolens.visible_text import shortened, visible, with_short_words

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# One colour for one thing, everywhere. Paul Tol's vibrant colours: apart for every kind of colour vision.
READ: Final = "#CC3311"
WRITE: Final = "#0077BB"
FSU: Final = "#111111"
TOGETHER: Final = FSU  # all targets, all kinds, or both directions
METADATA: Final = "#009988"
UTIL: Final = "#EE3377"  # the kernel's %util
FIT: Final = "#009988"  # a model or a limit beside what was measured
SECOND_FIT: Final = "#EE7733"
GROUP_LINE: Final = "#5F8787"
OTHERS: Final = "#999999"
NOBODY: Final = "#DDDDDD"
NO_DATA: Final = "#D9D9D9"
BACKGROUND: Final = "#BBBBBB"  # beside what is compared
READ_SHADES: Final = ("#F3C1B5", "#E07A63", READ)
WRITE_SHADES: Final = ("#B3D4EA", "#5AA5D6", WRITE)
SHADES: Final = ("#C4C4C4", "#868686", "#111111")  # idle, moderate, busy
KINDS: Final = (
    WRITE,
    "#EE7733",
    METADATA,
    READ,
    "#33BBEE",
    UTIL,
)  # of anything, where they have no colour of their own
NAMES: Final = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#EE8866", "#44BB99")  # of people
BEFORE_AFTER: Final = (SHADES[1], KINDS[1])
SATURATED: Final = "#FAD9A6"
STEADY: Final = "#DCEBF5"
PURGE: Final = "#CFE3F3"
UNANNOUNCED: Final = "#DDD6F0"  # maintenance nobody reported
RULE: Final = "#666666"
GRID: Final = "#E6E6E6"
TEXT: Final = "#222222"
SPAN_TEXT: Final = "#7A4A00"
_MAGMA: Final = (
    "FBFCBFFCF5B7FCEEB0FCE6A8FDDFA1FDD89AFDD193FEC98DFEC286FEBB80FEB37BFEAA74FDA26FFD9B6AFC9366FC8C63"
    "FB8460F97D5DF8755CF66E5BF3675BF0605DED595FE85461E44E64DE4A67D9466AD3426DCD3F70C63C73C03A75B93778"
    "B1357AAB337CA4307D9E2E7E972C7F912A808A28818426817E2481772181711F816B1C80651A805E177F58157E52127C"
    "4B1079450F763E0F72370F6C3010652811592211501C1046170F3C120D330E0A2A0A0722060519030311010109000003"
)
# Light is low: even to the eye, and for every kind of colour vision. Missing is grey, which is not among them.
HEAT: Final = tuple(f"#{_MAGMA[place : place + 6]}" for place in range(0, len(_MAGMA), 6))

LONGEST_NAME: Final = 40  # characters beside the picture: more would leave no space for it
LONGEST_LABEL: Final = 72  # of an axis
LONGEST_TITLE: Final = 160

Scale = Literal["linear", "log", "time"]
Side = Literal["left", "right"]
# Where a figure can be zoomed: drawn only while the x axis is narrower (`in`) or not narrower (`out`) than this. What
# is only drawn zoomed in is not in a still picture.
Zoom = tuple[Literal["in", "out"], float]

_RENDERERS: Final = {
    ".html": "bokeh_figure",
    ".pdf": "matplotlib_figure",
    ".png": "matplotlib_figure",
    ".svg": "matplotlib_figure",
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its label with unit, its ends (None: from the marks), and named ticks instead of numbers.

    `slanted` ticks have place for longer names below an x axis.
    """

    label: str
    scale: Scale = "linear"
    low: float | None = None
    high: float | None = None
    ticks: tuple[tuple[float, str], ...] = ()
    slanted: bool = False


@dataclass(frozen=True, slots=True)
class PointsMark:
    """Dots, larger or smaller by `weight`; a NaN is not drawn."""

    x: NDArray[Any]
    y: NDArray[Any]
    label: str
    colour: str
    side: Side = "left"
    weight: float = 1.0
    zoom: Zoom | None = None


@dataclass(frozen=True, slots=True)
class LineMark:
    """A line; a NaN breaks it."""

    x: NDArray[Any]
    y: NDArray[Any]
    label: str
    colour: str
    side: Side = "left"
    weight: float = 1.0
    zoom: Zoom | None = None


@dataclass(frozen=True, slots=True)
class BandMark:
    """The area between two lines; a NaN breaks it."""

    x: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    label: str
    colour: str
    alpha: float = 1.0
    zoom: Zoom | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars between `starts` and `ends`, from the bottom of the axis; `names` say what each one counts.

    Side by side or stacked is a matter of `starts`, `ends` and `bottoms`.
    """

    starts: NDArray[Any]
    ends: NDArray[Any]
    heights: NDArray[Any]
    label: str
    colour: str
    names: tuple[str, ...]
    bottoms: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class HeatMapMark:
    """Rows of equal steps from `start` to `end`, the first on top; colours from `low` to `high`, NaN grey.

    What is beyond them has the colour of the end. Colours are logarithmic unless `linear`. Row i of n is centred on
    n − 1 − i of the y axis. `grey` says what NaN means, `row_kind` what a row is. `groups` are numbers of rows that
    belong together, from the top: thin lines part them.
    """

    start: float
    end: float
    rows: tuple[str, ...]
    values: NDArray[Any]
    low: float
    high: float
    label: str
    grey: str = "no data"
    row_kind: str = "target"
    linear: bool = False
    groups: tuple[int, ...] = ()

    @property
    def borders(self) -> list[float]:
        """Between the groups, on the y axis."""
        return [len(self.rows) - end - 0.5 for end in accumulate(self.groups[:-1])]


@dataclass(frozen=True, slots=True)
class Span:
    """A shaded stretch of the x axis; `text` stands in it where there is space."""

    start: float
    end: float
    label: str
    colour: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A reference line across the panel."""

    at: float
    direction: Literal["horizontal", "vertical"]
    text: str
    side: Side = "left"


Mark = PointsMark | LineMark | BandMark | Bars | HeatMapMark | Span | Rule


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with its marks, drawn in order, `height` times as high as usual.

    A `message` stands in place of marks that do not exist.
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...] = ()
    right: Axis | None = None
    message: str = ""
    height: float = 1.0

    @property
    def has_content(self) -> bool:
        """Whether anything measured is drawn in it: shades and reference lines alone are nothing."""
        return any(map(_has_values, self.marks))

    @property
    def has_texts_on_top(self) -> bool:
        """Whether texts of vertical rules stand at the top: over bars, or where no horizontal rule has a text."""
        horizontal = any(isinstance(mark, Rule) and mark.direction == "horizontal" for mark in self.marks)
        return not horizontal or any(isinstance(mark, Bars) for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels one above the other."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    linked_x: bool = False

    @property
    def has_content(self) -> bool:
        """Whether any panel has; a figure without is not worth its place in a report."""
        return any(panel.has_content for panel in self.panels)

    @property
    def message(self) -> str:
        """What stands in place of a figure without content, as a sentence; empty where its panels say nothing."""
        said = "; ".join(dict.fromkeys(panel.message for panel in self.panels if panel.message))
        return f"{said[:1].upper()}{said[1:]}." if said and not self.has_content else ""


def _has_values(mark: Mark) -> bool:
    import numpy as np

    if isinstance(mark, Span | Rule):
        return False
    values = {Bars: "heights", BandMark: "high", HeatMapMark: "values"}.get(type(mark), "y")
    return bool(np.isfinite(getattr(mark, values)).any())


def drawn(figure: Figure) -> Figure:
    """The figure without panels that have nothing to show, unless that is all of them: then they say why."""
    panels = tuple(panel for panel in figure.panels if panel.has_content)
    return replace(figure, panels=panels or figure.panels)


def still(figure: Figure) -> Figure:
    """The figure as it cannot be zoomed."""
    panels = (
        replace(
            panel, marks=tuple(mark for mark in panel.marks if (getattr(mark, "zoom", None) or ("out",))[0] == "out")
        )
        for panel in drawn(figure).panels
    )
    return replace(figure, panels=tuple(panels))


def side_by_side(groups: list[tuple[str, str, NDArray[Any]]], names: tuple[str, ...]) -> tuple[Bars, ...]:
    """Bars of several groups (label, colour, heights) next to each other in every category."""
    import numpy as np

    places = np.arange(len(names), dtype=float)
    width = 0.8 / len(groups)
    return tuple(
        Bars(places - 0.4 + i * width, places - 0.4 + (i + 1) * width, heights, label, colour, names)
        for i, (label, colour, heights) in enumerate(groups)
    )


def stacked(groups: list[tuple[str, str, NDArray[Any]]], names: tuple[str, ...]) -> tuple[Bars, ...]:
    """Bars of several groups (label, colour, heights) on top of each other in every category."""
    import numpy as np

    places = np.arange(len(names), dtype=float)
    bottoms = np.cumsum([np.zeros(len(names)), *(heights for _, _, heights in groups[:-1])], axis=0)
    return tuple(
        Bars(places - 0.4, places + 0.4, heights, label, colour, names, bottom)
        for (label, colour, heights), bottom in zip(groups, bottoms, strict=True)
    )


def legible(figure: Figure) -> Figure:
    """The figure fit to be drawn: names of others are made visible and shortened, times are those of the shown zone."""
    figure = in_shown_zone(figure)
    return replace(figure, title=_title(figure.title), panels=tuple(map(_legible_panel, figure.panels)))


def _legible_panel(panel: Panel) -> Panel:
    return replace(
        panel,
        title=_title(panel.title),
        message=_title(panel.message),
        x=_legible_axis(panel.x),
        y=_legible_axis(panel.y),
        right=None if panel.right is None else _legible_axis(panel.right),
        marks=tuple(map(_legible_mark, panel.marks)),
    )


def _legible_axis(axis: Axis) -> Axis:
    return replace(
        axis,
        label=shortened(visible(axis.label), LONGEST_LABEL),
        ticks=tuple((at, _name(name)) for at, name in axis.ticks),
    )


def _legible_mark(mark: Mark) -> Mark:
    texts = {name: _name(getattr(mark, name)) for name in ("label", "text") if hasattr(mark, name)}
    lists = {name: tuple(map(_name, getattr(mark, name))) for name in ("names", "rows") if hasattr(mark, name)}
    return replace(mark, **texts, **lists)  # type: ignore[arg-type]  # only what the mark has


def _title(text: str) -> str:
    return shortened(with_short_words(visible(text), LONGEST_NAME), LONGEST_TITLE)


def _name(text: str) -> str:
    return shortened(visible(text), LONGEST_NAME)


def in_shown_zone(figure: Figure) -> Figure:
    """Time axes moved to the clock of the zone that times are shown in, and its name in their labels.

    Clocks that change within a figure would tear it: it then keeps the offset it begins with, and its labels say which.
    """
    timed = [panel for panel in figure.panels if panel.x.scale == "time"]
    ends = [end for panel in timed for end in _time_ends(panel)]
    if not timed:
        return figure
    name, offset_us = zone_name(), 0
    if ends and name != "UTC":
        first, last = (from_epoch_us(round(end)).astimezone(shown_zone()) for end in (min(ends), max(ends)))
        offset_us = round((first.utcoffset() or timedelta()) / timedelta(microseconds=1))
        name = name if first.utcoffset() == last.utcoffset() else f"UTC{first.replace(microsecond=0).isoformat()[19:]}"
    return replace(figure, panels=tuple(_moved(panel, offset_us, name) for panel in figure.panels))


_PLACES: Final = ("x", "starts", "ends", "start", "end")  # of marks, on the x axis


def _time_ends(panel: Panel) -> list[float]:
    """The ends of the panel's time axis, or of its marks."""
    import numpy as np

    known = [end for end in (panel.x.low, panel.x.high) if end is not None]
    places = [np.ravel(getattr(mark, name)) for mark in panel.marks for name in _PLACES if hasattr(mark, name)]
    finite = [array[np.isfinite(array)] for array in places]
    return known or [float(end) for array in finite if array.size for end in (array.min(), array.max())]


def _moved(panel: Panel, offset_us: int, zone: str) -> Panel:
    if panel.x.scale != "time":
        return panel
    low, high = (None if end is None else end + offset_us for end in (panel.x.low, panel.x.high))
    x = replace(panel.x, label=f"{panel.x.label} ({zone})", low=low, high=high)
    return replace(panel, x=x, marks=tuple(_moved_mark(mark, offset_us) for mark in panel.marks))


def _moved_mark(mark: Mark, offset_us: int) -> Mark:
    names = ("at",) if isinstance(mark, Rule) and mark.direction == "vertical" else _PLACES
    places: dict[str, Any] = {name: getattr(mark, name) + offset_us for name in names if hasattr(mark, name)}
    return replace(mark, **places)


def check_suffix(path: Path) -> str:
    """The renderer for a file name, or a refusal that lists the suffixes there are."""
    try:
        return _RENDERERS[path.suffix.lower()]
    except KeyError:
        raise UsageError(f"{path}: a figure is written to a file that ends in {', '.join(_RENDERERS)}") from None


def draw(figure: Figure, path: Path) -> None:
    """Draw the figure into a file; its suffix says how."""
    import_module(f"iolens.views.render.{check_suffix(path)}").draw(figure, path)
