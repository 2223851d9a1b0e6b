"""Figures of paper U for any window: bandwidth with FSU (10), FSU histogram (11), I/O sizes (12); targets × time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import MIB, epoch_us, format_bytes
from iolens.views.render.figures import (
    FSU,
    NO_DATA,
    READ,
    READ_SHADES,
    SATURATED,
    SHADES,
    STEADY,
    UTIL,
    WRITE,
    WRITE_SHADES,
    Axis,
    BandMark,
    Bars,
    Figure,
    HeatMapMark,
    Mark,
    Panel,
    Rule,
    Span,
    side_by_side,
)  # fmt: skip
from iolens.views.render.section import grouped_rows
from iolens.views.render.tables import show_percent, show_seconds
from iolens.views.render.window_axes import (
    EMPTY,
    finer_line,
    largest,
    outside,
    over_time,
    robust_high,
    rows_height,
    target_axis,
    time_axis,
    window_title,
    with_finer,
    zoomed_in,
)
from iolens.views.utilization.tables import io_size_span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from iolens.analyses.utilization.analysis import Category, Utilization
    from iolens.analyses.utilization.saturation import Plateau
    from iolens.arrays import Floats

FSU_HEIGHT: Final = 0.8
PALER: Final = {FSU: SHADES[0], READ: READ_SHADES[1], WRITE: WRITE_SHADES[1], UTIL: SHADES[0]}
_SI: Final = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_THOUSANDS: Final = ((1e12, "trillions"), (1e9, "billions"), (1e6, "millions"), (1e3, "thousands"), (1.0, ""))


FIGURES: Final = ("bandwidth", "histogram", "sizes", "heatmap", "util")


def figures(result: Utilization) -> dict[str, Callable[[], Figure]]:
    """Figures 10, 11 and 12 of paper U, a heat map of targets over time, and the kernel's view beside FSU.

    Those without anything to show are not among them: sizes need a histogram, %util devices that count it.
    """
    systems = [result] if result.compare is None else [result, result.compare]
    described: dict[str, Callable[[], Figure]] = {
        "bandwidth": lambda: bandwidth(result),
        "histogram": lambda: histogram(result),
    }
    if any(system.model == "histogram" for system in systems):
        described["sizes"] = lambda: sizes(result)
    described["heatmap"] = lambda: heat_map(result)
    if any(system.mean_util_pct is not None for system in systems):
        described["util"] = lambda: util(result)
    return described


def bandwidth(result: Utilization) -> Figure:
    """FSU above read and write bandwidth (Fig. 10), steady and saturated stretches shaded.

    A long window has median, spread and maximum of each bucket, and the series itself where it is zoomed into.
    """
    systems = _systems(result)
    top_rate = max(_top(system, "read_bytes_per_s", "write_bytes_per_s") for system in systems)
    top_fsu = max(_top(system, "fsu_pct") for system in systems)
    unit = _unit(top_rate, _SI)
    panels = [
        panel
        for system in systems
        for panel in (_fsu_panel(system, top_fsu), _bandwidth_panel(system, unit, top_rate / unit[0]))
    ]
    return Figure("bandwidth", "File system utilization and bandwidth", tuple(panels), linked_x=_same_window(systems))


def histogram(result: Utilization) -> Figure:
    """All FSU observations in bins of 2 % with an overflow bar (Fig. 11), in three shades by category."""
    systems = _systems(result)
    y = _share_axis([share for system in systems for share in _shares(system)])
    panels = tuple(_histogram_panel(system, y) for system in systems)
    return Figure("histogram", "Distribution of file system utilization", panels)


def sizes(result: Utilization) -> Figure:
    """Disk I/Os by size (Fig. 12)."""
    systems = _systems(result)
    bins = io_size_span([size for system in systems for size in system.io_sizes])
    top = max((size.count for system in systems for size in system.io_sizes), default=0)
    return Figure("sizes", "Disk I/Os by size", tuple(_sizes_panel(system, bins, top) for system in systems))


def heat_map(result: Utilization) -> Figure:
    """Mean FSU of every target over time."""
    systems = _systems(result)
    maps = [system.heat_map.fsu_pct for system in systems if system.heat_map is not None]
    panels = tuple(_heat_map_panel(system, robust_high(*maps) or 1.0, largest(*maps)) for system in systems)
    return Figure("heatmap", "Utilization of every target", panels, linked_x=_same_window(systems))


def util(result: Utilization) -> Figure:
    """FSU and the kernel's %util over time: the share of capacity beside the share of time with anything to do."""
    systems = _systems(result)
    top = max(_top(system, "fsu_pct", "util_pct") for system in systems)
    panels = tuple(_util_panel(system, max(105.0, 1.05 * top)) for system in systems)
    return Figure("util", "File system utilization and the kernel's %util", panels, linked_x=_same_window(systems))


def _util_panel(system: Utilization, top: float) -> Panel:
    title, time, y = window_title(system), time_axis(system), Axis("share of time (%)", low=0, high=top)
    if system.series is None or system.series.util_pct is None or not len(system.series.time_us):
        return Panel(title, time, y, message=EMPTY)
    marks = (
        *_curve(system, "util_pct", 1.0, "%util (kernel)", UTIL),
        *_curve(system, "fsu_pct", 1.0, "FSU", FSU),
        *_no_data(system),
    )
    return Panel(title, time, y, marks)


def _curve(system: Utilization, name: str, factor: float, label: str, colour: str) -> list[Mark]:
    """A quantity over time: every tick, or the envelope of a long window with the series to zoom into."""
    series, envelope = system.series, system.envelope
    values = None if series is None else getattr(series, name)
    if series is None or values is None or not np.isfinite(values).any():
        return []
    x = series.time_us - round(series.bucket_s * 5e5)  # a mean belongs in the middle of its interval
    spread = None if envelope is None else getattr(envelope, name)
    if envelope is None or spread is None:
        return [over_time(x, values / factor, series.bucket_s, label, colour, "left")]
    middles = np.array([epoch_us(start) for start in envelope.bucket_starts]) + round(envelope.bucket_s * 5e5)
    finer = finer_line(x, values / factor, series.bucket_s, f"{label}, {_mean_of(series.bucket_s)}", colour)
    return with_finer(middles, spread, factor, (colour, PALER[colour]), label, finer)


def _mean_of(seconds: float) -> str:
    return f"mean of {show_seconds(seconds)}"


def _top(system: Utilization, *names: str) -> float:
    """The largest value that is drawn of a system."""
    envelope = system.envelope
    spreads = [] if envelope is None else [getattr(envelope, name) for name in names]
    arrays = [] if system.series is None else [getattr(system.series, name) for name in names]
    return largest(
        *(spread.max for spread in spreads if spread is not None), *(array for array in arrays if array is not None)
    )


def _systems(result: Utilization) -> list[Utilization]:
    return [result] if result.compare is None else [result, result.compare]


def _same_window(systems: list[Utilization]) -> bool:
    return len({(system.window_start, system.window_end) for system in systems}) == 1


def _unit(top: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    return next((unit for unit in units if top >= unit[0]), units[-1])


def _fsu_panel(system: Utilization, top_fsu: float) -> Panel:
    high = max(105.0, top_fsu * 1.05) if system.has_levels else top_fsu * 1.05 or 1.0
    title, time, y = window_title(system), time_axis(system), _fsu_axis(system, high)
    curve = _curve(system, "fsu_pct", 1.0, "FSU", FSU)
    if not curve:
        return Panel(title, time, y, message=EMPTY, height=FSU_HEIGHT)
    marks = (*curve[:-1], *_band(system), curve[-1], *_stretches(system), *_no_data(system))  # the band is of the last
    return Panel(title, time, y, marks, height=FSU_HEIGHT)


def _band(system: Utilization) -> list[BandMark]:
    """FSU by the low and the high ends of the coefficients: as far from the curve as those of the mean from it.

    Of a long window it is around the finer line.
    """
    band, mean, series = system.fsu_band_pct, system.mean_pct, system.series
    if band is None or not mean or series is None:
        return []
    x = series.time_us - round(series.bucket_s * 5e5)
    low, high = (series.fsu_pct * (end / mean) for end in (band.low, band.high))
    label = f"by the ends of calibration {system.calibration.name}"
    zoom = None if system.envelope is None else zoomed_in(series.bucket_s)
    return [BandMark(x, low, high, label, PALER[FSU], 0.5, zoom)]


def _fsu_axis(system: Utilization, high: float) -> Axis:
    """With the band of the mean where the spread of buckets is drawn: two bands look alike."""
    band = system.fsu_band_pct
    is_said = band is not None and system.envelope is not None and system.has_levels
    return Axis(f"FSU (%), mean {band.low:.3g}–{band.high:.3g}" if band and is_said else "FSU (%)", low=0, high=high)


def _bandwidth_panel(system: Utilization, unit: tuple[float, str], top: float) -> Panel:
    factor, name = unit
    title, time = window_title(system), time_axis(system)
    y = Axis(f"bandwidth ({name})", low=0, high=top * 1.08 or 1.0)
    curves = [
        mark
        for direction, colour in (("read", READ), ("write", WRITE))
        for mark in _curve(system, f"{direction}_bytes_per_s", factor, direction, colour)
    ]
    if not curves:
        return Panel(title, time, y, message=EMPTY)
    return Panel("", time, y, (*curves, *_no_data(system)))


def _stretches(system: Utilization) -> list[Span]:
    window = _window_us(system)
    wide = (window[1] - window[0]) / 12
    return [
        Span(
            (start := epoch_us(plateau.start)),
            (end := epoch_us(plateau.end)),
            *(("saturated (no spare capacity)", SATURATED) if plateau.saturated else ("steady", STEADY)),
            f"FSU {plateau.median_pct:.0f} %" if end - start > wide and plateau.median_pct is not None else "",
        )
        for plateau in sorted(system.plateaus or (), key=_is_saturated)  # the legend has them in this order
    ]


def _is_saturated(plateau: Plateau) -> bool:
    return plateau.saturated


def _no_data(system: Utilization) -> list[Span]:
    """Stretches without any sample, so that missing is not taken for idle."""
    if system.series is None:
        return []
    start, end = _window_us(system)
    step = round(system.series.bucket_s * 1e6)
    before = np.concatenate([[start], system.series.time_us])
    after = np.concatenate([system.series.time_us - step, [end]])
    visible = after - before > max(2 * step, (end - start) / 300)
    return [Span(float(a), float(b), "no data", NO_DATA) for a, b in zip(before[visible], after[visible], strict=True)]


def _window_us(system: Utilization) -> tuple[int, int]:
    """The window, or what of it is known from the samples."""
    times = system.series.time_us if system.series is not None else np.zeros(0, np.int64)
    first, last = (int(times[0]), int(times[-1])) if len(times) else (0, 0)
    start = first if system.window_start is None else epoch_us(system.window_start)
    return start, last if system.window_end is None else epoch_us(system.window_end)


def _shares(system: Utilization) -> list[float]:
    """Every bin's share of the observations in per cent; nothing when there are none."""
    total = sum(bin_.observations for bin_ in system.histogram)
    return [100 * bin_.observations / total for bin_ in system.histogram] if total else []


def _share_axis(shares: list[float]) -> Axis:
    """Logarithmic where one bin would otherwise flatten all others."""
    some = [share for share in shares if share]
    if some and max(some) > 50 * float(np.median(some)):
        return Axis("observations (%), log scale", "log", min(some) / 2, 200)
    return Axis("observations (%)", low=0, high=1.15 * max(some, default=100.0))


def _histogram_panel(system: Utilization, y: Axis) -> Panel:
    end = max((bin_.fsu_to_pct or 0.0 for bin_ in system.histogram), default=0.0) or 200.0
    x = Axis("FSU (%)", low=0, high=end + 10, ticks=_histogram_ticks(end))
    shares = np.array(_shares(system))
    if not shares.size:
        return Panel(window_title(system), x, y, message=EMPTY)
    if not system.has_levels:
        return Panel(window_title(system), x, y, (_all_bars(system, shares, end),))
    rules = [Rule(c.fsu_from_pct, "vertical", c.name) for c in system.categories if c.fsu_from_pct]
    bars = [_category_bars(system, place, shares, end) for place in range(len(system.categories))]
    return Panel(window_title(system), x, y, (*bars, *rules))


def _histogram_ticks(end: float) -> tuple[tuple[float, str], ...]:
    return (*((float(at), f"{at:g}") for at in np.arange(0, end, 20)), (end + 6, f">{end:g}"))


def _category_bars(system: Utilization, place: int, shares: NDArray[Any], end: float) -> Bars:
    category = system.categories[place]
    within = [i for i, bin_ in enumerate(system.histogram) if _is_within(bin_.fsu_from_pct, category)]
    share = (
        "" if category.observations_pct is None else f": {show_percent(category.observations_pct)} % of observations"
    )
    return _bars(system, within, shares, end, f"{category.name}{share}", SHADES[min(place, len(SHADES) - 1)])


def _all_bars(system: Utilization, shares: NDArray[Any], end: float) -> Bars:
    """In one shade, where FSU has no level."""
    return _bars(system, list(range(len(system.histogram))), shares, end, "observations", SHADES[1])


def _bars(system: Utilization, within: list[int], shares: NDArray[Any], end: float, label: str, shade: str) -> Bars:
    edges = [(system.histogram[i].fsu_from_pct, system.histogram[i].fsu_to_pct) for i in within]
    return Bars(
        np.array([end + 4 if high is None else low for low, high in edges]),
        np.array([end + 8 if high is None else high for _, high in edges]),
        shares[within],
        label,
        shade,
        tuple(f"FSU above {low:g} %" if high is None else f"FSU {low:g}–{high:g} %" for low, high in edges),
    )


def _is_within(fsu_pct: float, category: Category) -> bool:
    return category.fsu_from_pct <= fsu_pct < (np.inf if category.fsu_to_pct is None else category.fsu_to_pct)


def _sizes_panel(system: Utilization, bins: list[int], top: int) -> Panel:
    factor, word = _unit(top, _THOUSANDS)
    names = tuple(format_bytes(size) for size in bins)
    ticks = tuple((float(place), name) for place, name in enumerate(names))
    x = Axis("size of disk I/O", low=-0.6, high=max(len(bins), 1) - 0.4, ticks=ticks)
    y = Axis(f"I/Os ({word})" if word else "I/Os", low=0, high=top / factor * 1.12 or 1.0)
    if not any(size.count for size in system.io_sizes):
        return Panel(window_title(system), x, y, message=EMPTY)
    colours = (("read", READ), ("write", WRITE))
    groups = [(direction, colour, _counts(system, direction, bins) / factor) for direction, colour in colours]
    return Panel(window_title(system), x, y, (*side_by_side(groups, names), *_optimal_rule(bins)))


def _optimal_rule(bins: list[int]) -> list[Rule]:
    optimal = [place for place, size in enumerate(bins) if size >= MIB]
    return [Rule(optimal[0] - 0.5, "vertical", "optimal")] if optimal else []


def _counts(system: Utilization, direction: str, bins: list[int]) -> Floats:
    counts = {size.size_bytes: size.count for size in system.io_sizes if size.direction == direction}
    return np.array([counts.get(size, 0) for size in bins], dtype=float)


def _heat_map_panel(system: Utilization, high: float, top: float) -> Panel:
    title, time, heat = window_title(system), time_axis(system), system.heat_map
    if heat is None or not heat.fsu_pct.size:
        return Panel(title, time, Axis("target"), message=EMPTY)
    step = round(heat.bucket_s * 1e6)
    places = (heat.time_us - heat.time_us[0]) // step
    order, groups = grouped_rows(system.servers, heat.targets)
    values = np.full((len(heat.targets), int(places[-1]) + 1), np.nan)
    values[:, places] = heat.fsu_pct[order]
    start = float(heat.time_us[0])
    rows = tuple(heat.targets[row].removeprefix(f"{system.filesystem}-") for row in order)
    mark = HeatMapMark(
        start, start + step * values.shape[1], rows, values, 0.0, high, _heat_label(system, top), linear=True,
        groups=tuple(count for _, count in groups),
    )  # fmt: skip
    return Panel(title, time, target_axis(rows, groups), (*outside(time, mark), mark), height=rows_height(rows))


def _heat_label(system: Utilization, top: float) -> str:
    return f"mean FSU (%), {f'largest {top:.3g}' if system.has_levels else system.without_level}"
