"""Figures of latency: percentiles over time, reads above writes, and a heat map of every target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import epoch_us
from iolens.views.render.figures import (
    READ_SHADES,
    TOGETHER,
    WRITE_SHADES,
    Axis,
    Figure,
    HeatMapMark,
    Mark,
    Panel,
)
from iolens.views.render.server_rows import grouped_rows
from iolens.views.render.window_axes import (
    EMPTY,
    largest,
    outside,
    robust_range,
    rows_height,
    target_axis,
    time_axis,
    window_title,
)
from iolens.views.render.window_axes import over_time as curve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.analyses.latency.analysis import Latency, LatencySeries
    from iolens.arrays import Integers

    Curve = tuple[NDArray[Any], str, str]

DIRECTIONS: Final = ("read", "write")
PALE: Final = {"read": READ_SHADES, "write": WRITE_SHADES}  # 50, 95, 99 %
MOST_TICKS: Final = 9


FIGURES: Final = ("latency", "heatmap")


def figures(result: Latency) -> dict[str, Callable[[], Figure]]:
    """Percentiles over time, and every target over time."""
    return {"latency": lambda: over_time(result), "heatmap": lambda: heat_map(result)}


def over_time(result: Latency) -> Figure:
    """The 50th, 95th and 99th percentile of all data targets, or their mean wait where there is no histogram."""
    whole = [latency_series for latency_series in result.over_time if latency_series.target is None]
    curves = {latency_series.direction: _of(latency_series) for latency_series in whole}
    shown = [values[np.isfinite(values) & (values > 0)] for same in curves.values() for values, _, _ in same]
    y = _log_axis(np.concatenate(shown) if shown else np.zeros(0))
    panels = tuple(_curves(result, direction, curves.get(direction, []), y) for direction in DIRECTIONS)
    return Figure("latency", "Latency of disk I/Os", panels, linked_x=True)


def heat_map(result: Latency) -> Figure:
    """The 99th percentile by target and time, or the mean wait where there is no histogram anywhere."""
    has_histogram = any(np.isfinite(latency_series.p99_ms).any() for latency_series in result.over_time)
    measure, label = ("p99_ms", "99 % within (ms), log") if has_histogram else ("mean_wait_ms", "mean wait (ms), log")
    values = [
        getattr(latency_series, measure) for latency_series in result.over_time if latency_series.target is not None
    ]
    positive = [array[np.isfinite(array) & (array > 0)] for array in values]
    low, high = robust_range(positive)
    label = f"{label}, largest {largest(*values):.3g}"
    panels = tuple(_heat_panel(result, direction, measure, (low, high, label)) for direction in DIRECTIONS)
    return Figure("heatmap", "Latency of every target", panels, linked_x=True)


def _curves(result: Latency, direction: str, curves: list[Curve], y: Axis) -> Panel:
    title, time = f"{window_title(result)}: {direction}s", time_axis(result)
    if not curves:
        return Panel(title, time, Axis("milliseconds"), message=EMPTY)
    x = _starts_us(result) + round(result.bucket_s * 5e5)
    marks: list[Mark] = [curve(x, values, result.bucket_s, label, colour, "left") for values, label, colour in curves]
    return Panel(title, time, y, tuple(marks))


def _log_axis(shown: NDArray[Any]) -> Axis:
    """The same for reads and writes, from a number to a number of the kind 1, 2, 5, 10, with as many as can be read."""
    if not shown.size:
        return Axis("milliseconds")
    powers = range(math.floor(math.log10(float(shown.min()))) - 1, math.ceil(math.log10(float(shown.max()))) + 2)
    numbers = [step * 10.0**power for power in powers for step in (1.0, 2.0, 5.0)]
    low = max(number for number in numbers if number < shown.min())
    high = min(number for number in numbers if number > shown.max())
    ticks = [number for number in numbers if low <= number <= high]
    if len(ticks) > MOST_TICKS:
        ticks = [number for number in ticks if number in (low, high) or math.log10(number).is_integer()]
    return Axis("milliseconds, log scale", "log", low, high, tuple((place, f"{place:,g}") for place in ticks))


def _of(whole: LatencySeries) -> list[Curve]:
    """What is known of all data targets together: values, name and colour of each curve."""
    measures = ((whole.p50_ms, "50 %"), (whole.p95_ms, "95 %"), (whole.p99_ms, "99 %"))
    percentiles = [
        (values, f"{share} within", colour)
        for (values, share), colour in zip(measures, PALE[whole.direction], strict=True)
        if np.isfinite(values).any()
    ]
    wait = [(whole.mean_wait_ms, "mean wait", TOGETHER)] if np.isfinite(whole.mean_wait_ms).any() else []
    return [*percentiles, *wait]


def _starts_us(result: Latency) -> Integers:
    return np.array([epoch_us(start) for start in result.bucket_starts], dtype=np.int64)


def _heat_panel(result: Latency, direction: str, measure: str, scale: tuple[float, float, str]) -> Panel:
    title, time = f"{window_title(result)}: {direction}s", time_axis(result)
    series = [
        latency_series
        for latency_series in result.over_time
        if latency_series.target is not None and latency_series.direction == direction
    ]
    rows = [latency_series for latency_series in series if np.isfinite(getattr(latency_series, measure)).any()]
    if not rows:
        return Panel(title, time, Axis("target"), message=EMPTY)
    order, groups = grouped_rows(result.servers, [str(row.target) for row in rows])
    rows = [rows[place] for place in order]
    names = tuple(str(row.target).removeprefix(f"{result.filesystem}-") for row in rows)
    start = float(_starts_us(result)[0])
    values = np.array([getattr(row, measure) for row in rows])
    low, high, label = scale
    end, counts = start + result.bucket_s * 1e6 * values.shape[1], tuple(count for _, count in groups)
    mark = HeatMapMark(start, end, names, values, low, high, label, groups=counts)
    return Panel(title, time, target_axis(names, groups), (*outside(time, mark), mark), height=rows_height(names))
