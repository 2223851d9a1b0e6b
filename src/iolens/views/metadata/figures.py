"""Figures of the metadata load: operations by kind stacked over time, and metadata utilization over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.views.render.figures import FSU, KINDS, METADATA, OTHERS, Axis, Bars, Figure, Mark, Panel, Rule
from iolens.views.render.window_axes import EMPTY, largest, over_time, time_axis, window_title

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.analyses.metadata import Metadata, MetadataSeries

NOT_CALIBRATED: Final = "no mdtest result and no service times: not known"


FIGURES: Final = ("operations", "mdu")


def figures(result: Metadata) -> dict[str, Callable[[], Figure]]:
    """Operations by kind, stacked, and metadata utilization; both over time."""
    return {"operations": lambda: operations(result), "mdu": lambda: mdu(result)}


def operations(result: Metadata) -> Figure:
    """Operations per second by kind, the most frequent at the bottom."""
    title, time, series = window_title(result), time_axis(result), result.series
    if series is None or not series.ops_per_s:
        panel = Panel(title, time, Axis("operations per second"), message=EMPTY)
        return Figure("operations", "Metadata operations by kind", (panel,))
    layers = _layers(series)
    top = largest(np.sum([np.nan_to_num(values) for _, _, values in layers], axis=0))
    y = Axis("operations per second", low=0, high=1.08 * top or 1.0)
    return Figure(
        "operations", "Metadata operations by kind", (Panel(title, time, y, tuple(_stacked(series, layers))),)
    )


def mdu(result: Metadata) -> Figure:
    """Metadata utilization, and the same by service times where they are counted."""
    title, time, series = window_title(result), time_axis(result), result.series
    curves: list[tuple[NDArray[Any], str, str]] = []
    if series is not None and series.mdu_service_pct is not None:
        curves.append((series.mdu_service_pct, "by service times", METADATA))
    if series is not None and series.mdu_pct is not None:
        curves.append((series.mdu_pct, "MDU", FSU))
    if series is None or not curves:
        panel = Panel(title, time, Axis("MDU (%)"), message=EMPTY if series is None else NOT_CALIBRATED)
        return Figure("mdu", "Metadata utilization", (panel,))
    x = series.start_us + round(series.bucket_s * 5e5)
    marks: list[Mark] = [over_time(x, y, series.bucket_s, label, colour, "left") for y, label, colour in curves]
    y_axis = Axis("MDU (%)", low=0, high=max(40.0, 1.08 * largest(*(values for values, _, _ in curves))))
    return Figure(
        "mdu", "Metadata utilization", (Panel(title, time, y_axis, (*marks, Rule(30, "horizontal", "busy"))),)
    )


def _layers(series: MetadataSeries) -> list[tuple[str, str, NDArray[Any]]]:
    """Label, colour and rates of the most frequent kinds, and of the others together."""
    ordered = sorted(series.ops_per_s.items(), key=lambda item: -float(np.nansum(item[1])))
    named = [(name, colour, values) for (name, values), colour in zip(ordered, KINDS, strict=False)]
    rest = [values for _, values in ordered[len(KINDS) :]]
    return [*named, ("others", OTHERS, np.sum(rest, axis=0))] if rest else named


def _stacked(series: MetadataSeries, layers: list[tuple[str, str, NDArray[Any]]]) -> list[Bars]:
    """Bars of a bucket's width on top of each other; a bucket without data has none."""
    reported = np.isfinite(layers[0][2])
    starts = series.start_us[reported]
    ends = starts + round(series.bucket_s * 1e6)
    bars, bottoms = [], np.zeros(len(starts))
    for label, colour, values in layers:
        heights = values[reported]
        names = (label,) * len(starts)
        bars.append(Bars(starts, ends, heights, label, colour, names, bottoms))
        bottoms = bottoms + heights
    return bars
