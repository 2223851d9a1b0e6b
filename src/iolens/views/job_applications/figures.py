"""Figures of applications, as in Figs. 2–9 of the study on Pleiades: GB, opens and closes, RPCs by size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.schema import DIRECTIONS
from iolens.units import format_bytes
from iolens.views.job_applications.tables import label_of
from iolens.views.render.figures import (
    NAMES,
    OTHERS,
    READ,
    WRITE,
    Axis,
    Figure,
    Panel,
    side_by_side,
)
from iolens.views.render.log_scales import log_axis
from iolens.visible_text import shortened, visible

if TYPE_CHECKING:
    from iolens.analyses.job_applications import Applications, ApplicationTotals
    from iolens.arrays import Floats

FIGURES: Final = ("gigabytes", "opens", "rpcs", "counts")
# Paul Tol's bright scheme and two of his muted one: apart for every kind of colour vision.
COLOURS: Final = (*NAMES[:7], OTHERS)
WIDE: Final = 200.0  # largest over smallest: from here on the scale is logarithmic
LINE: Final = 90  # characters below all bars together
EMPTY: Final = "none known"


def figures(result: Applications) -> dict[str, Callable[[], Figure]]:
    """Bytes (Fig. 2), opens and closes (Figs. 3, 4), shares and numbers of RPCs by size (Figs. 5–9)."""
    return {
        "gigabytes": lambda: pairs(
            result,
            "gigabytes",
            "GB per job",
            (("GB read", READ, "read_bytes_mean"), ("GB written", WRITE, "write_bytes_mean")),
            1e-9,
        ),
        "opens": lambda: pairs(
            result,
            "opens",
            "operations per job",
            (("opens", READ, "opens_mean"), ("closes", WRITE, "closes_mean")),
            1.0,
        ),
        "rpcs": lambda: by_size(result, "rpcs"),
        "counts": lambda: by_size(result, "counts"),
    }


def pairs(result: Applications, name: str, label: str, sides: Sequence[tuple[str, str, str]], unit: float) -> Figure:
    """Two bars for each application."""
    names = tuple(label_of(line) for line in result.applications)
    known = [getattr(line, field) for line in result.applications for _, _, field in sides]
    positive = np.array([value * unit for value in known if value])
    title = f"{result.filesystem}: {' and '.join(word for word, _, _ in sides)}, {_what(result)}"
    x = _categories(names, "cores" if result.by == "cores" else "application", result)
    if not positive.size:
        return Figure(name, title, (Panel("", x, Axis(label), message=EMPTY),))
    y = _bar_axis(label, positive)
    bars = side_by_side(
        [
            (word, colour, _heights([getattr(line, field) for line in result.applications], unit, y))
            for word, colour, field in sides
        ],
        names,
    )
    return Figure(name, title, (Panel("mean of the jobs of each", x, y, bars),))


def by_size(result: Applications, name: str) -> Figure:
    """Reads above writes: per cent of the RPCs (`rpcs`), or RPCs per job (`counts`), a colour for each application."""
    shown = [line for line in result.applications if line.rpc_sizes][: len(COLOURS)]
    bins = sorted({size.size_bytes for line in shown for size in line.rpc_sizes})
    panels = tuple(_sizes_panel(shown, bins, direction, name) for direction in DIRECTIONS)
    left = len([line for line in result.applications if line.rpc_sizes]) - len(shown)
    more = f" (the first {len(shown)})" if left else ""
    what = "sizes of RPCs" if name == "rpcs" else "RPCs by size"
    return Figure(name, f"{result.filesystem}: {what} of {_what(result)}{more}", panels)


def _sizes_panel(shown: Sequence[ApplicationTotals], bins: Sequence[int], direction: str, name: str) -> Panel:
    names = tuple(format_bytes(size) for size in bins)
    x = Axis("size of RPC, up to", low=-0.6, high=max(len(bins), 1) - 0.4, ticks=tuple(enumerate(names)))
    label = f"% of {direction}s" if name == "rpcs" else f"{direction}s per job"
    values = [_of_sizes(line, bins, direction, name) for line in shown]
    positive = np.array([value for row in values for value in row if value])
    if not positive.size:
        return Panel(f"{direction}s", x, Axis(label), message=EMPTY)
    y = Axis(label, low=0.0, high=100.0) if name == "rpcs" else _bar_axis(label, positive)
    groups = [
        (label_of(line), colour, _heights(row, 1.0, y))
        for line, colour, row in zip(shown, COLOURS, values, strict=False)
    ]
    return Panel(f"{direction}s", x, y, side_by_side(groups, names))


def _of_sizes(line: ApplicationTotals, bins: Sequence[int], direction: str, name: str) -> list[float | None]:
    field = f"{direction}_pct" if name == "rpcs" else f"{direction}s"
    by_bin: dict[int, Any] = {size.size_bytes: getattr(size, field) for size in line.rpc_sizes}
    shares = [by_bin.get(size) for size in bins]
    return shares if name == "rpcs" else [None if value is None else value / line.rpc_jobs for value in shares]


def _what(result: Applications) -> str:
    names = {line.name for line in result.applications}
    if result.by == "cores" and len(names) == 1:
        return f"{next(iter(names))} across core counts"
    return "applications across core counts" if result.by == "cores" else "applications"


def _categories(names: tuple[str, ...], label: str, result: Applications) -> Axis:
    """Names below the bars; of one application only its core counts."""
    if result.by == "cores" and len({line.name for line in result.applications}) == 1:
        names = tuple(f"{line.cores:,}" for line in result.applications)
    most = max(LINE // max(len(names), 1), 6)
    names = tuple(shortened(visible(name), most) for name in names)
    return Axis(label, low=-0.6, high=max(len(names), 1) - 0.4, ticks=tuple(enumerate(names)))


def _bar_axis(label: str, positive: Floats) -> Axis:
    if positive.max() / positive.min() > WIDE:
        return log_axis(f"{label}, log scale", positive)
    return Axis(label, low=0.0)


def _heights(values: Sequence[float | None], unit: float, axis: Axis) -> Floats:
    """What is not known, or nothing, has no bar."""
    heights = np.array([np.nan if value is None else value * unit for value in values], dtype=float)
    return np.where(heights > 0, heights, np.nan) if axis.scale == "log" else np.nan_to_num(heights)
