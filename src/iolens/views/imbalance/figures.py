"""Figures of imbalance: Figs. 1, 16a–c, 17a and b of paper S, and a map of who was hot when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import format_bytes_si
from iolens.views.growth import byte_unit
from iolens.views.imbalance.tables import threshold_name
from iolens.views.render.figures import (
    BACKGROUND,
    FSU,
    KINDS,
    METADATA,
    READ,
    SHADES,
    WRITE,
    Axis,
    Bars,
    Figure,
    HeatMapMark,
    LineMark,
    Mark,
    Panel,
    PointsMark,
    Rule,
)
from iolens.views.render.figures import stacked as stacked_bars
from iolens.views.render.section import grouped_rows
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.tables import show_seconds
from iolens.views.render.window_axes import largest, names_axis, robust_high, rows_height, target_axis, window_title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from iolens.analyses.imbalance.analysis import Imbalance
    from iolens.analyses.imbalance.part import LoadSnapshot
    from iolens.arrays import Floats

CURVES: Final = (WRITE, READ, FSU, METADATA, KINDS[1])  # of thresholds
HOT_SHOWN: Final = 24
POINTS: Final = 500
CELLS_PER_DECADE: Final = 20
DENSITY: Final = ((1, 10, "1 to 9 ticks", 0.6), (10, 100, "10 to 99", 0.8), (100, None, "100 and more", 1.0))
NOTHING: Final = "no tick was unbalanced"
TIMES: Final = (
    (0.1, "0.1 s"), (0.2, "0.2 s"), (0.5, "0.5 s"), (1.0, "1 s"), (2.0, "2 s"), (5.0, "5 s"), (10.0, "10 s"),
    (20.0, "20 s"), (60.0, "1 min"), (120.0, "2 min"), (300.0, "5 min"), (600.0, "10 min"), (1800.0, "30 min"),
    (3600.0, "1 h"), (7200.0, "2 h"), (21_600.0, "6 h"), (43_200.0, "12 h"), (86_400.0, "1 d"), (172_800.0, "2 d"),
    (604_800.0, "7 d"), (2_592_000.0, "30 d"), (7_776_000.0, "90 d"), (31_536_000.0, "365 d"),
)  # fmt: skip
MOST_TIMES: Final = 10


FIGURES: Final = ("snapshot", "extremes", "std-cdf", "dispersion", "lifetimes", "distances", "hot-targets")


def figures(result: Imbalance) -> dict[str, Callable[[], Figure]]:
    """Figs. 1, 16 and 17 of paper S, and when each target was hot."""
    return {
        "snapshot": lambda: snapshot(result),
        "extremes": lambda: extremes(result),
        "std-cdf": lambda: std_cdf(result),
        "dispersion": lambda: dispersion(result),
        "lifetimes": lambda: lifetimes(result),
        "distances": lambda: distances(result),
        "hot-targets": lambda: hot_targets(result),
    }


def snapshot(result: Imbalance) -> Figure:
    """What every target moved at two times."""
    panels = tuple(_snapshot_panel(result, load_snapshot) for load_snapshot in result.snapshots)
    return Figure("snapshot", "Load of targets at single times", panels)


def _snapshot_panel(result: Imbalance, snapshot: LoadSnapshot) -> Panel:
    factor, unit = byte_unit(snapshot.max_bytes_per_s)
    names = tuple(line.target.removeprefix(f"{result.filesystem}-") for line in snapshot.targets)
    counted = result.background is None or result.background.included
    kinds = (
        ("read", "read", READ),
        ("written", "write", WRITE),
        ("background" if counted else "background, not in the numbers", "background", BACKGROUND),
    )
    groups = [
        (
            word,
            colour,
            np.array([getattr(line, f"{name}_bytes_per_s") or 0.0 for line in snapshot.targets]) / factor,
        )
        for word, name, colour in kinds
        if any(getattr(line, f"{name}_bytes_per_s") is not None for line in snapshot.targets)
    ]
    reported = ", ".join(
        f"{word} {value / factor:.3g}"
        for word, value in (("min", snapshot.min_bytes_per_s), ("max", snapshot.max_bytes_per_s),
                            ("mean", snapshot.mean_bytes_per_s), ("std", snapshot.std_bytes_per_s))
    )  # fmt: skip
    title = f"{result.filesystem}, {time_with_zone(snapshot.time)}: {reported} {unit}/s"
    rule = Rule(snapshot.mean_bytes_per_s / factor, "horizontal", "mean")
    top = float(sum(heights for _, _, heights in groups).max())  # type: ignore[union-attr]
    y = Axis(f"{unit}/s", low=0, high=1.08 * top or 1.0)
    return Panel(title, names_axis("target", names), y, (*stacked_bars(groups, names), rule))


def extremes(result: Imbalance) -> Figure:
    """CDFs of the least, mean and most loaded target."""
    words = (("minimum", "least loaded", WRITE), ("mean", "mean", FSU), ("maximum", "most loaded", READ))
    curves = [(word, colour, *result.series.extremes[name].cumulative(points=POINTS)) for name, word, colour in words]
    panel = _cumulative_rates(window_title(result), curves, "load of a target", ())
    return Figure("extremes", "Least, mean and most loaded target", (panel,))


def std_cdf(result: Imbalance) -> Figure:
    """CDF of the standard deviation between targets, with the thresholds."""
    shares = _shares()
    curve = ("standard deviation", FSU, np.quantile(result.series.std, shares), shares)
    marks = [
        (
            threshold.std_bytes_per_s,
            float((result.series.std <= threshold.std_bytes_per_s).mean()),
            threshold.percentile,
        )
        for threshold in result.thresholds
    ]
    panel = _cumulative_rates(window_title(result), [curve], "standard deviation between targets", marks)
    return Figure("std-cdf", "Standard deviation between targets", (panel,))


def _shares() -> Floats:
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, POINTS), 1.0 - np.logspace(-1.0, -5.0, POINTS // 4)]))


def _with_value(percentile: float | None, at: float) -> str:
    value = f"{format_bytes_si(at)}/s"
    return value if percentile is None else f"p{percentile:g}: {value}"


def _cumulative_rates(
    title: str,
    curves: list[tuple[str, str, NDArray[Any], NDArray[Any]]],
    what: str,
    thresholds: Sequence[tuple[float, float, float | None]],
) -> Panel:
    top = max(float(values.max()) for _, _, values, _ in curves)
    factor, unit = byte_unit(top / 100 or 1.0)
    y = Axis("share of ticks", low=0, high=1.02)
    positive = [values[values > 0] / factor for _, _, values, _ in curves]
    low = min((float(values.min()) for values in positive if values.size), default=0.0)
    if not low:
        return Panel(title, Axis(what), y, message="no target moved anything")
    x = Axis(f"{what} ({unit}/s), log scale", "log", low=max(low, top / factor / 1e9), high=1.1 * top / factor)
    lines = tuple(LineMark(np.where(values > 0, values / factor, np.nan), shares, word, colour)
                  for word, colour, values, shares in curves)  # fmt: skip
    marks = tuple(
        PointsMark(np.array([at / factor]), np.array([share]), _with_value(percentile, at), colour, weight=2.5)
        for (at, share, percentile), colour in zip(thresholds, _colours(len(thresholds)), strict=True)
        if at > 0
    )
    return Panel(title, x, y, (*lines, *marks))


def dispersion(result: Imbalance) -> Figure:
    """Standard deviation against mean load: a dot for every cell of a fine grid that holds ticks."""
    title, heading = window_title(result), "Spread between targets by their load"
    std, mean = result.series.std, result.series.mean.astype(np.float64)
    some = (std > 0) & (mean > 0)
    if not some.any():
        message = "targets never differed"
        return Figure("dispersion", heading, (Panel(title, Axis("mean load"), Axis("std"), message=message),))
    factor, unit = byte_unit(float(mean.max()) / 100 or 1.0)
    x, y, counts = _cells(mean[some] / factor, std[some] / factor)
    marks: list[Mark] = []
    for (low, high, label, weight), colour in zip(DENSITY, SHADES, strict=True):
        mine = (counts >= low) & (counts < (high or np.inf))
        if mine.any():
            marks.append(PointsMark(x[mine], y[mine], label, colour, weight=weight))
    bins = [item for item in result.dispersion if item.std_p50_bytes_per_s > 0]
    middle = np.array([np.sqrt(item.mean_from_bytes_per_s * item.mean_to_bytes_per_s) for item in bins]) / factor
    marks.append(LineMark(middle, np.array([item.std_p50_bytes_per_s for item in bins]) / factor, "median", WRITE))
    ends = Axis(f"mean load of a target ({unit}/s), log scale", "log"), Axis(f"std ({unit}/s), log scale", "log")
    return Figure("dispersion", heading, (Panel(title, *ends, tuple(marks), height=1.2),))


def _cells(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Middles of the occupied cells of a logarithmic grid, and how many fall into each."""
    places = np.floor(np.log10(np.stack([x, y])) * CELLS_PER_DECADE).astype(np.int64)
    cells, counts = np.unique(places, axis=1, return_counts=True)
    middles = 10.0 ** ((cells + 0.5) / CELLS_PER_DECADE)
    return middles[0], middles[1], counts


def lifetimes(result: Imbalance) -> Figure:
    """How long the targets stayed unbalanced."""
    curves = {name: period.lifetimes * result.tick_s for name, period in result.periods.items()}
    return Figure("lifetimes", "How long imbalance lasts", (_durations(result, "lifetime", curves),))


def distances(result: Imbalance) -> Figure:
    """How far apart the periods of imbalance are; below, the longest tenth alone."""
    curves = {name: period.distances * result.tick_s for name, period in result.periods.items()}
    whole = _durations(result, "distance", curves)
    tail = replace(whole, title="The longest tenth", y=replace(whole.y, low=0.9, high=1.002), marks=whole.marks[:-1])
    return Figure("distances", "Time between periods of imbalance", (whole,) if whole.message else (whole, tail))


def _durations(result: Imbalance, what: str, curves: dict[str, NDArray[Any]]) -> Panel:
    words = {threshold.name: threshold_name(threshold) for threshold in result.thresholds}
    marks = tuple(
        _steps(values, words[name], colour)
        for (name, values), colour in zip(curves.items(), _colours(len(curves)), strict=True)
        if values.size
    )
    title, y = window_title(result), Axis("share of periods", low=0, high=1.02)
    if not marks:
        return Panel(title, Axis(what), y, message=NOTHING)
    ends = [float(end) for curve in curves.values() if curve.size for end in (curve.min(), curve.max())]
    low, high = 0.8 * min(ends), 1.25 * max(ends)
    inside = [(at, name) for at, name in TIMES if low <= at <= high]
    every = -(-len(inside) // MOST_TIMES) or 1
    x = Axis(f"{what}, log scale", "log", low, high, tuple(inside[::every]))
    return Panel(title, x, y, (*marks, Rule(0.9, "horizontal", "nine in ten")))


def _colours(count: int) -> list[str]:
    return [CURVES[place % len(CURVES)] for place in range(count)]


def _steps(values: NDArray[Any], label: str, colour: str) -> LineMark:
    """The share of values up to each, as a staircase."""
    ends, counts = np.unique(values, return_counts=True)
    reached = np.cumsum(counts) / values.size
    return LineMark(np.repeat(ends, 2), np.append(0.0, np.repeat(reached, 2)[:-1]), label, colour)


def hot_targets(result: Imbalance) -> Figure:
    """Hours each target was hot, and when, by the first threshold."""
    first = result.thresholds[0]
    title = f"{window_title(result)}: {threshold_name(first)}"
    mine = [hot_target for hot_target in result.hot_targets if hot_target.threshold == first.name][:HOT_SHOWN]
    if not mine or result.hot_map is None:
        return Figure("hot-targets", "Hot targets", (Panel(title, Axis("target"), Axis("hot"), message=NOTHING),))
    return Figure("hot-targets", "Hot targets", (_hot_bars(result, title, mine), _hot_over_time(result, mine)))


def _hot_bars(result: Imbalance, title: str, mine: list[Any]) -> Panel:
    names = tuple(item.target.removeprefix(f"{result.filesystem}-") for item in mine)
    shares = [("most loaded", READ, "hottest_pct"), ("above mean + 2 std", WRITE, "outstanding_pct")]
    places = np.arange(len(mine), dtype=float)
    bars = tuple(
        Bars(places + left, places + left + 0.4, np.array([getattr(item, key) for item in mine]), label, colour, names)
        for (label, colour, key), left in zip(shares, (-0.4, 0.0), strict=True)
    )
    top = max(max(getattr(item, key) for item in mine) for _, _, key in shares)
    x = names_axis("target, hot for longest first", names)
    return Panel(title, x, Axis("share of unbalanced time (%)", low=0, high=1.08 * top), bars)


def _hot_over_time(result: Imbalance, mine: list[Any]) -> Panel:
    hot_map = result.hot_map
    assert hot_map is not None
    order, groups = grouped_rows(result.servers, [item.target for item in mine])
    rows = [hot_map.targets.index(mine[place].target) for place in order]
    names = tuple(hot_map.targets[row].removeprefix(f"{result.filesystem}-") for row in rows)
    share = 100.0 * hot_map.seconds[rows] / (hot_map.bucket_us / 1e6)
    high = max(robust_high(share), 1e-3)
    end = hot_map.start_us + hot_map.bucket_us * share.shape[1]
    label = f"% of {show_seconds(hot_map.bucket_us / 1e6)}, largest {largest(share):.3g}"
    start, counts = float(hot_map.start_us), tuple(count for _, count in groups)
    mark = HeatMapMark(start, float(end), names, share, 0.0, high, label, linear=True, groups=counts)
    time = Axis("time", "time", start, float(end))
    return Panel("When they were hot", time, target_axis(names, groups), (mark,), height=rows_height(names))
