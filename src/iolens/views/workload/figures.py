"""A workload's distributions and the Pareto models of them (Figs. 5, 11 and 13 of paper S), with their tails."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import KIB, epoch_us, format_bytes
from iolens.views.render.figures import (
    FIT,
    FSU,
    NO_DATA,
    OTHERS,
    READ,
    READ_SHADES,
    SATURATED,
    SECOND_FIT,
    TOGETHER,
    UNANNOUNCED,
    WRITE,
    WRITE_SHADES,
    Axis,
    Bars,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
    Rule,
    Span,
    side_by_side,
)
from iolens.views.render.log_scales import (
    MOST_POINTS,
    bytes_unit,
    curve_points,
    decades,
    log_axis,
    middle,
    powers,
    staircase,
)
from iolens.views.render.tables import show_percent
from iolens.views.render.window_axes import (
    EMPTY,
    finer_line,
    largest,
    names_axis,
    over_time,
    time_axis,
    window_title,
    with_finer,
)
from iolens.views.workload.tables import ORDINALS, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.workload.analysis import BandwidthSeries, Workload
    from iolens.analyses.workload.bandwidth import PeakAgainstSum, RhythmHours
    from iolens.arrays import Floats, Integers
    from iolens.models.heavy_tail import HeavyTail
    from iolens.models.tails import TailSample


COLOURS: Final = {"read": READ, "write": WRITE}
PALE: Final = {"read": READ_SHADES, "write": WRITE_SHADES}  # 95, 99, 100 %
PAPER, QUANTISED, LIKELY = FIT, SECOND_FIT, FSU  # Pareto curves by method
NOT_COUNTED: Final = "requests are not counted here"


def tail_samples(result: Workload, what: str) -> dict[str, TailSample]:
    """By direction, where there is any value."""
    samples = result.distributions or {}
    return {
        direction: samples[name]
        for direction in COLOURS
        if (name := f"{direction}_{what}") in samples and samples[name].size
    }


def model_figure(result: Workload, what: str, name: str, title: str) -> Figure:
    """Reads and writes as cumulative shares, and both tails on logarithmic scales."""
    samples = tail_samples(result, what)
    scale, unit = _model_unit(what, samples)
    if not samples:
        message = NOT_COUNTED if what == "interarrival" else EMPTY
        panel = Panel(window_title(result), Axis(unit), Axis("share (%)"), message=message)
        return Figure(name, title, (panel,))
    low, high = decades(samples.values(), scale)
    x = Axis(f"{unit}, log scale", "log", 10.0**low, 10.0**high, powers(low, high))
    panels = [
        _cumulative(result, f"{direction}_{what}", sample, scale, x, (low, high))
        for direction, sample in samples.items()
    ]
    return Figure(name, title, (*panels, _tails(result, what, samples, scale, x)))


def _model_unit(what: str, samples: dict[str, TailSample]) -> tuple[float, str]:
    if what != "bandwidth":
        return (1e3, "time between requests (ms)") if what == "interarrival" else (1.0, "idle time (s)")
    middles = [middle(sample.smallest, sample.largest) for sample in samples.values()]
    factor, unit = bytes_unit(max(middles, default=1.0))
    return 1.0 / factor, f"bandwidth ({unit}/s)"


def _cumulative(
    result: Workload, model: str, sample: TailSample, scale: float, x: Axis, decades: tuple[int, int]
) -> Panel:
    values, shares = observed(sample)
    shown = curve_points(values.size)
    direction = model.partition("_")[0]
    marks: list[Mark] = [PointsMark(scale * values[shown], 100.0 * shares[shown], "observed", COLOURS[direction])]
    grid = np.logspace(*decades, MOST_POINTS)
    for label, colour, start, left, alpha in _curves(result.models[model], sample.size):
        inside = grid / scale >= start
        above = left * (start / (grid[inside] / scale)) ** alpha
        marks.append(LineMark(grid[inside], 100.0 * (1.0 - above), label, colour))
    y = Axis("samples up to this (%)", low=0, high=103)
    return Panel(f"{window_title(result)}: {named(model)}", x, y, tuple(marks))


def _tails(result: Workload, what: str, samples: dict[str, TailSample], scale: float, x: Axis) -> Panel:
    """Share above a value, where a Pareto distribution is a straight line."""
    marks: list[Mark] = []
    smallest = 1.0
    for direction, sample in samples.items():
        values, shares = observed(sample)
        above = 1.0 - shares
        some = np.flatnonzero(above > 0.5 / sample.size)
        smallest = min(smallest, float(above[some].min(initial=1.0)))
        kept = some[curve_points(some.size)]
        marks.append(PointsMark(scale * values[kept], 100.0 * above[kept], f"{direction}s", COLOURS[direction]))
        for label, _, start, left, alpha in _curves(result.models[f"{direction}_{what}"], sample.size):
            if label.startswith("likelihood"):
                ends = np.array([start, sample.largest])
                label = f"{direction}s: Pareto, alpha {alpha:.3g}"
                marks.append(LineMark(scale * ends, 100.0 * left * (start / ends) ** alpha, label, PALE[direction][1]))
    low = int(np.floor(np.log10(100.0 * smallest)))
    y = Axis("samples above this (%), log scale", "log", 10.0**low, 150.0, powers(low, 2))
    return Panel("The tails", x, y, tuple(marks))


def observed(sample: TailSample) -> tuple[Floats, Floats]:
    """Ends of bins (or values) and the share of positive values up to them."""
    known = np.isfinite(sample.upper)
    shares = np.cumsum(sample.counts) / sample.counts.sum()
    return sample.upper[known], shares[known]


def _curves(tail: HeavyTail, size: int) -> list[tuple[str, str, float, float, float]]:
    """Label, colour, x_m, share of the values above it, and alpha of each Pareto fit."""
    curves = []
    if tail.paper is not None:
        label = f"paper: alpha {tail.paper.alpha:.3g}, R² {tail.paper.r2:.3f}"
        curves.append((label, PAPER, tail.paper.xm, 1.0, tail.paper.alpha))
    if tail.quantised is not None:
        label = f"quantised: alpha {tail.quantised.alpha:.3g}, R² {tail.quantised.r2:.3f}"
        curves.append((label, QUANTISED, tail.quantised.xm, 1.0, tail.quantised.alpha))
    if tail.mle is not None:
        label = f"likelihood: alpha {tail.mle.alpha:.3g} above x_m"
        curves.append((label, LIKELY, tail.mle.xm, tail.mle.n_tail / size, tail.mle.alpha))
    return curves


# Figures of paper S (3–13, 15) and of paper D (6, 7) for any window ---------------------------------------------------
# Bandwidth, models, sizes, idle times, rhythm.

MOST_MINUTES: Final = 5_000  # beyond, the largest minute of each bucket stands for it
BARS_AT_MOST: Final = 48  # targets; more are dots
NO_SIZES: Final = "no request sizes in this window"
NO_PAIRS: Final = "sizes are not known by minute"


FIGURES: Final = (
    "bandwidth",
    "percentiles",
    "bandwidth-model",
    "peak-vs-sum",
    "mix",
    "sizes-pdf",
    "sizes-cdf",
    "size-bandwidth",
    "interarrival",
    "interarrival-model",
    "idle",
    "idle-model",
    "rhythm-week",
    "rhythm-day",
    "throughput",
    "throughput-cdf",
)


def figures(result: Workload) -> dict[str, Callable[[], Figure]]:
    """The figures of the sections that were asked for."""
    every: tuple[tuple[str, str, Callable[[Workload], Figure]], ...] = (
        ("bandwidth", "bandwidth", bandwidth),
        ("bandwidth", "percentiles", percentiles),
        ("bandwidth", "bandwidth-model", bandwidth_model),
        ("bandwidth", "peak-vs-sum", peak_vs_sum),
        ("mix", "mix", mix),
        ("sizes", "sizes-pdf", sizes_pdf),
        ("sizes", "sizes-cdf", sizes_cdf),
        ("sizes", "size-bandwidth", size_bandwidth),
        ("arrivals", "interarrival", interarrival),
        ("arrivals", "interarrival-model", interarrival_model),
        ("idle", "idle", idle),
        ("idle", "idle-model", idle_model),
        ("rhythm", "rhythm-week", rhythm_week),
        ("rhythm", "rhythm-day", rhythm_day),
        ("throughput", "throughput", bandwidth),
        ("throughput", "throughput-cdf", throughput_cdf),
    )
    asked = [(name, describe) for section, name, describe in every if section in result.sections]
    if "bandwidth" in result.sections:  # the same series
        asked = [(name, describe) for name, describe in asked if name != "throughput"]
    return {name: _described(describe, result) for name, describe in asked}


def _described(describe: Callable[[Workload], Figure], result: Workload) -> Callable[[], Figure]:
    return lambda: describe(result)


def bandwidth(result: Workload) -> Figure:
    """All targets together over time (S Fig. 3, D Fig. 6), maintenance shaded."""
    series, title, time = result.series, window_title(result), time_axis(result)
    if series is None or not series.end_us.size:
        return Figure("bandwidth", "Bandwidth", (Panel(title, time, Axis("bandwidth"), message=EMPTY),))
    factor, unit = bytes_unit(largest(*series.bytes_per_s.values()))
    y = Axis(f"bandwidth ({unit}/s)", low=0, high=1.08 * largest(*series.bytes_per_s.values()) / factor or 1.0)
    marks = [mark for direction in series.bytes_per_s for mark in _direction(series, direction, factor)]
    shaded = (*_maintenance(result), *_not_seen(result, series))
    return Figure("bandwidth", "Bandwidth of all targets together", (Panel(title, time, y, (*shaded, *marks)),))


def _direction(series: BandwidthSeries, direction: str, factor: float) -> list[Mark]:
    """Every minute of a short window; of a long one its envelope, and minutes or buckets of them to zoom into."""
    colour, envelope = COLOURS[direction], series.envelope
    x, bucket_s, curves = _thinned(series)
    values = curves[direction] / factor
    if envelope is None or direction not in envelope.bytes_per_s:
        return [over_time(x, values, bucket_s, direction, colour, "left")]
    name = direction if bucket_s == series.width_s else f"{direction}, largest {_width(series.width_s)}"
    middles = envelope.start_us + round(envelope.bucket_s * 5e5)
    shades = colour, PALE[direction][1]
    finer = finer_line(x, values, bucket_s, name, colour)
    return with_finer(middles, envelope.bytes_per_s[direction], factor, shades, direction, finer)


def percentiles(result: Workload) -> Figure:
    """The 95th, 99th and 100th percentile of every target (S Fig. 4)."""
    names = [line.target.removeprefix(f"{result.filesystem}-") for line in result.targets]
    values = {
        direction: [_column(result, f"{direction}_{name}_bytes_per_s") for name in ("p95", "p99", "max")]
        for direction in COLOURS
    }
    shown = np.concatenate([array for several in values.values() for array in several] or [np.zeros(0)])
    shown = shown[np.isfinite(shown) & (shown > 0)]
    factor, unit = bytes_unit(middle(float(shown.min()), float(shown.max())) if shown.size else 1.0)
    y = log_axis(f"bandwidth ({unit}/s), log scale", shown / factor)
    panels = []
    for side, several in values.items():
        title = f"{window_title(result)}: {side}s"
        known = any((values > 0).any() for values in several)
        places = np.arange(len(names), dtype=float)
        dots = tuple(
            PointsMark(places, np.where(values > 0, values, np.nan) / factor, label, colour, weight=_weight(names))
            for label, colour, values in zip(("95 %", "99 %", "largest"), PALE[side], several, strict=True)
        )
        panels.append(
            Panel(title, names_axis("target", names), y, dots if known else (), message="" if known else EMPTY)
        )
    return Figure("percentiles", "Percentiles of every target's bandwidth", tuple(panels))


def bandwidth_model(result: Workload) -> Figure:
    """Observed bandwidth of targets, and Pareto curves (S Fig. 5)."""
    return model_figure(result, "bandwidth", "bandwidth-model", "Bandwidth of targets and its Pareto models")


def interarrival_model(result: Workload) -> Figure:
    """Observed time between requests, and Pareto curves (S Fig. 11)."""
    return model_figure(result, "interarrival", "interarrival-model", "Time between requests and its Pareto models")


def idle_model(result: Workload) -> Figure:
    """Observed idle times, and Pareto curves (S Fig. 13)."""
    return model_figure(result, "idle", "idle-model", "Idle times and their Pareto models")


def peak_vs_sum(result: Workload) -> Figure:
    """All targets together against the sum of each at its own percentile (S Fig. 6)."""
    peak_against_sums, title = result.peak_vs_sum, window_title(result)
    if not peak_against_sums:
        panel = Panel(title, Axis("percentile"), Axis("bandwidth"), message=EMPTY)
        return Figure("peak-vs-sum", "Peaks at once, and one by one", (panel,))
    panels = tuple(
        _peaks_panel(
            title if place == 0 else "",
            [peak_against_sum for peak_against_sum in peak_against_sums if peak_against_sum.percentile == percentile],
        )
        for place, percentile in enumerate(
            dict.fromkeys(peak_against_sum.percentile for peak_against_sum in peak_against_sums)
        )
    )
    return Figure("peak-vs-sum", "Peaks at once, and one by one", panels)


def _peaks_panel(title: str, peak_against_sums: list[PeakAgainstSum]) -> Panel:
    names = tuple(f"{peak_against_sum.direction}s" for peak_against_sum in peak_against_sums)
    together, alone = (
        np.array([getattr(peak_against_sum, name) for peak_against_sum in peak_against_sums])
        for name in ("aggregate_bytes_per_s", "sum_of_targets_bytes_per_s")
    )
    factor, unit = bytes_unit(largest(together, alone))
    groups = [
        ("all together", TOGETHER, together / factor),
        ("sum of the targets' own percentiles", OTHERS, alone / factor),
    ]
    y = Axis(f"bandwidth ({unit}/s)", low=0, high=1.1 * largest(together, alone) / factor or 1.0)
    ticks = tuple((float(place), name) for place, name in enumerate(names))
    x = Axis(ORDINALS[peak_against_sums[0].percentile], low=-0.6, high=len(names) - 0.4, ticks=ticks)
    return Panel(title, x, y, side_by_side(groups, names), height=0.75)


def mix(result: Workload) -> Figure:
    """Share of writes by target (S Fig. 7)."""
    names = [line.target.removeprefix(f"{result.filesystem}-") for line in result.targets]
    y, title = Axis("writes (%)", low=0, high=105), window_title(result)
    by_requests, by_bytes = (_column(result, name) for name in ("write_requests_pct", "write_bytes_pct"))
    measures = (("of requests", WRITE, by_requests), ("of bytes", OTHERS, by_bytes))
    groups = [group for group in measures if np.isfinite(group[2]).any()]
    if not groups:
        return Figure("mix", "Share of writes", (Panel(title, names_axis("target", names), y, message=EMPTY),))
    whole = result.aggregate
    share = None
    if whole is not None:
        share = whole.write_bytes_pct if whole.write_requests_pct is None else whole.write_requests_pct
    rules = () if share is None else (Rule(share, "horizontal", f"all: {show_percent(share)} %"),)
    panel = Panel(title, names_axis("target", names), y, (*_by_target(groups, names), *rules))
    return Figure("mix", "Share of writes", (panel,))


def sizes_pdf(result: Workload) -> Figure:
    """Share of requests by size (S Fig. 8a)."""
    title, (x, step) = window_title(result), _size_axis(result)
    if not result.sizes:
        return Figure("sizes-pdf", "Request sizes", (Panel(title, x, Axis("requests (%)"), message=NO_SIZES),))
    shares = {direction: _sizes_of(result, direction, "pdf") for direction in COLOURS}
    top = max((float(values.max()) for _, values in shares.values() if values.size), default=1.0)
    bars = [
        _size_bars(direction, place, sizes, values, step)
        for place, (direction, (sizes, values)) in enumerate(shares.items())
    ]
    y = Axis("requests (%)", low=0, high=110 * top)
    return Figure("sizes-pdf", "Request sizes", (Panel(title, x, y, tuple(bars)),))


def sizes_cdf(result: Workload) -> Figure:
    """Share of requests no larger than a size (S Fig. 8b)."""
    title, (x, step) = window_title(result), _size_axis(result)
    y = Axis("requests up to this size (%)", low=0, high=103)
    if not result.sizes:
        return Figure("sizes-cdf", "Request sizes, cumulative", (Panel(title, x, y, message=NO_SIZES),))
    marks = []
    for direction in COLOURS:
        sizes, values = _sizes_of(result, direction, "cdf")
        if sizes.size:
            places = sizes / KIB if step else np.log2(sizes)
            marks.append(staircase(places, values, x.high, f"{direction}s", COLOURS[direction]))
    return Figure("sizes-cdf", "Request sizes, cumulative", (Panel(title, x, y, tuple(marks)),))


def size_bandwidth(result: Workload) -> Figure:
    """The 99th percentile of size and of bandwidth in the same minute of the same target (S Fig. 9)."""
    sizes_against_bandwidths = {
        sizes_against_bandwidth.direction: sizes_against_bandwidth
        for sizes_against_bandwidth in result.size_pairs or ()
    }
    if not sizes_against_bandwidths:
        panel = Panel(window_title(result), Axis("request size"), Axis("bandwidth"), message=NO_PAIRS)
        return Figure("size-bandwidth", "Request size and bandwidth", (panel,))
    factor, unit = bytes_unit(
        largest(*(sizes_against_bandwidth.bytes_per_s for sizes_against_bandwidth in sizes_against_bandwidths.values()))
    )
    top = (
        largest(*(sizes_against_bandwidth.bytes_per_s for sizes_against_bandwidth in sizes_against_bandwidths.values()))
        / factor
    )
    widest = (
        1.05
        * largest(
            *(sizes_against_bandwidth.size_bytes for sizes_against_bandwidth in sizes_against_bandwidths.values())
        )
        / KIB
        or 1.0
    )
    x = Axis("request size (KiB)", low=0, high=widest)
    y = Axis(f"bandwidth ({unit}/s)", low=0, high=1.05 * top or 1.0)
    panels = []
    for direction, colour in COLOURS.items():
        title = f"{window_title(result)}: {direction}s"
        if direction not in sizes_against_bandwidths:
            panels.append(Panel(title, x, y, message=NO_PAIRS))
            continue
        item = sizes_against_bandwidths[direction]
        dots = PointsMark(item.size_bytes / KIB, item.bytes_per_s / factor, f"99 % of {direction}s in a minute", colour)
        panels.append(Panel(title, x, y, (dots,)))
    return Figure("size-bandwidth", "Request size and bandwidth", tuple(panels))


def interarrival(result: Workload) -> Figure:
    """How often requests came how far apart (S Fig. 10)."""
    samples = tail_samples(result, "interarrival")
    if not samples:
        panel = Panel(window_title(result), Axis("ms"), Axis("samples (%)"), message=NOT_COUNTED)
        return Figure("interarrival", "Time between requests", (panel,))
    low, high = decades(samples.values(), 1e3)
    edges = np.logspace(low, high, 20 * (high - low) + 1)
    x = Axis("time between requests (ms), log scale", "log", 10.0**low, 10.0**high, powers(low, high))
    marks, top = [], 0.0
    for direction, sample in samples.items():
        counts = np.histogram(1e3 * np.exp(sample.mean_log), edges, weights=sample.counts)[0]
        share = 100.0 * counts / counts.sum()
        top = max(top, float(share.max()))
        marks.append(LineMark(np.repeat(edges, 2)[1:-1], np.repeat(share, 2), f"{direction}s", COLOURS[direction]))
    panel = Panel(window_title(result), x, Axis("samples with requests (%)", low=0, high=1.1 * top), tuple(marks))
    return Figure("interarrival", "Time between requests", (panel,))


def idle(result: Workload) -> Figure:
    """Idle times of targets, cumulative (S Fig. 12)."""
    samples = tail_samples(result, "idle")
    y = Axis("idle times up to this (%)", low=0, high=103)
    if not samples:
        return Figure("idle", "Idle times", (Panel(window_title(result), Axis("s"), y, message=EMPTY),))
    low, high = decades(samples.values(), 1.0)
    x = Axis("idle time (s), log scale", "log", 10.0**low, 10.0**high, powers(low, high))
    marks = []
    for direction, sample in samples.items():
        times, shares = np.exp(sample.mean_log), np.cumsum(sample.counts) / sample.counts.sum()
        shown = curve_points(times.size)
        marks.append(staircase(times[shown], shares[shown], x.high, f"{direction}s", COLOURS[direction]))
    return Figure("idle", "Idle times of targets", (Panel(window_title(result), x, y, tuple(marks)),))


def rhythm_week(result: Workload) -> Figure:
    """Bytes per observed hour by weekday (S Fig. 15a)."""
    lines = [] if result.rhythm is None else result.rhythm.weekday
    return _rhythm(result, "rhythm-week", "The week", "weekday", [line.name[:3] for line in lines], lines)


def rhythm_day(result: Workload) -> Figure:
    """Bytes per observed hour by hour of the day (S Fig. 15b)."""
    lines = [] if result.rhythm is None else result.rhythm.hour
    return _rhythm(result, "rhythm-day", "The day", "hour", [line.name for line in lines], lines)


def throughput_cdf(result: Workload) -> Figure:
    """Minutes by throughput, reads and writes together, cumulative (D Fig. 7)."""
    series, throughput, title = result.series, result.throughput, window_title(result)
    y = Axis("time (%)", low=0, high=118)
    if series is None or throughput is None:
        panel = Panel(title, Axis("throughput"), y, message=EMPTY)
        return Figure("throughput-cdf", "Throughput, cumulative", (panel,))
    total = np.sort(np.sum(list(series.bytes_per_s.values()), axis=0))
    factor, unit = bytes_unit(max(float(total[-1]), throughput.peak_bytes_per_s))
    shares = 100.0 * np.arange(1, total.size + 1) / total.size
    shown = curve_points(total.size)
    x = Axis(f"throughput ({unit}/s)", low=0, high=1.02 * max(total[-1], throughput.peak_bytes_per_s) / factor or 1.0)
    marks: list[Mark] = [LineMark(total[shown] / factor, shares[shown], "reads and writes", TOGETHER)]
    if throughput.peak_bytes_per_s:
        marks.append(Rule(0.33 * throughput.peak_bytes_per_s / factor, "vertical", "a third of the peak"))
    return Figure("throughput-cdf", "Throughput, cumulative", (Panel(title, x, y, tuple(marks)),))


# Time.


def _thinned(series: BandwidthSeries) -> tuple[Integers, float, dict[str, Floats]]:
    """Middles of minutes or of buckets, their width, and the largest minute of each by direction."""
    half_us = round(series.width_s * 5e5)
    if series.end_us.size <= MOST_MINUTES:
        return series.end_us - half_us, series.width_s, series.bytes_per_s
    span = int(series.end_us[-1] - series.end_us[0]) + 2 * half_us
    every = -(-span // (2 * half_us * MOST_MINUTES))
    width_us = every * 2 * half_us
    buckets, starts = np.unique((series.end_us - 1) // width_us, return_index=True)
    curves = {direction: np.maximum.reduceat(values, starts) for direction, values in series.bytes_per_s.items()}
    return buckets * width_us + width_us // 2, width_us / 1e6, curves


def _width(seconds: float) -> str:
    if seconds == 60:
        return "minute"
    return (
        f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
    )


def _maintenance(result: Workload) -> list[Span]:
    """Maintenance windows, named where there is space."""
    if result.window_start is None or result.window_end is None:
        return []
    first, last = epoch_us(result.window_start), epoch_us(result.window_end)
    spans = []
    for maintenance in result.maintenance:
        start, end = max(epoch_us(maintenance.start), first), min(epoch_us(maintenance.end), last)
        if start < end:
            text = maintenance.name if end - start > (last - first) / 12 else ""
            label, colour = (
                ("maintenance", SATURATED) if maintenance.origin == "configured" else (maintenance.name, UNANNOUNCED)
            )
            spans.append(Span(start, end, label, colour, text if maintenance.origin == "configured" else ""))
    return spans


def _not_seen(result: Workload, series: BandwidthSeries) -> list[Span]:
    """Stretches without any minute, so that missing is not taken for idle; maintenance that was left out is shaded."""
    start, end = (epoch_us(time) for time in (result.window_start, result.window_end) if time is not None)
    width = round(series.width_s * 1e6)
    before = np.concatenate([[start], series.end_us])
    after = np.concatenate([series.end_us - width, [end]])
    visible = after - before > max(2 * width, (end - start) / 300)
    left_out = [
        (epoch_us(maintenance.start), epoch_us(maintenance.end))
        for maintenance in result.maintenance
        if result.maintenance_left_out
    ]
    return [
        Span(float(a), float(b), "no data", NO_DATA)
        for a, b in zip(before[visible], after[visible], strict=True)
        if not any(low <= a + width and b - width <= high for low, high in left_out)
    ]


# Targets.


def _column(result: Workload, name: str) -> Floats:
    return np.array([np.nan if (item := getattr(line, name)) is None else item for line in result.targets], float)


def _weight(names: Sequence[str]) -> float:
    """Of dots, one for each target: smaller where there are many."""
    return 2.0 if len(names) <= BARS_AT_MOST else 1.0


def _by_target(groups: list[tuple[str, str, Floats]], names: list[str]) -> tuple[Mark, ...]:
    if len(names) <= BARS_AT_MOST:
        return side_by_side(groups, tuple(names))
    places = np.arange(len(names), dtype=float)
    return tuple(PointsMark(places, values, label, colour, weight=_weight(names)) for label, colour, values in groups)


# Sizes.


def _sizes_of(result: Workload, direction: str, what: str) -> tuple[Floats, Floats]:
    mine = [size for size in result.sizes if size.direction == direction]
    return np.array([size.size_bytes for size in mine], float), np.array([getattr(size, what) for size in mine], float)


def _size_axis(result: Workload) -> tuple[Axis, float]:
    """An axis in KiB and the width of a bin, or powers of two and no width; as far as all but 1 in 200 requests go."""
    bins = sorted({size.size_bytes for size in result.sizes})
    most = max((size.size_bytes for size in result.sizes if size.cdf - size.pdf < 0.995), default=KIB)
    if all(size & (size - 1) == 0 for size in bins):
        places = np.arange(np.log2(bins[0]), np.log2(bins[-1]) + 1) if bins else np.zeros(0)
        ticks = tuple((float(place), format_bytes(2**place)) for place in places)
        ends = (float(places[0]) - 0.6, float(places[-1]) + 0.6) if bins else (None, None)
        return Axis("request size (upper end of bin)", low=ends[0], high=ends[1], ticks=ticks), 0.0
    step = gcd(*bins) / KIB
    return Axis("request size (KiB)", low=-step, high=most / KIB + step), step


def _size_bars(direction: str, place: int, sizes: Floats, shares: Floats, step: float) -> Bars:
    """One half of every bin for each direction."""
    middle, half = (sizes / KIB - step / 2, step / 2) if step else (np.log2(sizes), 0.4)
    starts = middle - half + place * half
    names = tuple(f"up to {format_bytes(size)}" for size in sizes)
    return Bars(starts, starts + half, 100.0 * shares, f"{direction}s", COLOURS[direction], names)


# Rhythm.


def _rhythm(
    result: Workload, name: str, title: str, label: str, names: list[str], lines: Sequence[RhythmHours]
) -> Figure:
    values = {
        direction: np.array(
            [np.nan if (item := getattr(line, f"{direction}_bytes_per_hour")) is None else item for line in lines]
        )
        for direction in COLOURS
    }
    known = {direction: value for direction, value in values.items() if np.isfinite(value).any()}
    if not known or result.rhythm is None:
        panel = Panel(window_title(result), Axis(label), Axis("bytes per hour"), message=EMPTY)
        return Figure(name, title, (panel,))
    factor, unit = bytes_unit(largest(*known.values()))
    groups = [
        (f"{direction}s", COLOURS[direction], np.nan_to_num(values) / factor) for direction, values in known.items()
    ]
    ticks = tuple((float(place), name) for place, name in enumerate(names))
    x = Axis(f"{label} ({result.rhythm.timezone})", low=-0.6, high=len(names) - 0.4, ticks=ticks)
    y = Axis(f"{unit} per observed hour", low=0, high=1.08 * largest(*known.values()) / factor or 1.0)
    never = [
        Span(place - 0.5, place + 0.5, "never observed", NO_DATA)
        for place, line in enumerate(lines)
        if not line.observed_hours
    ]
    return Figure(name, title, (Panel(window_title(result), x, y, (*never, *side_by_side(groups, tuple(names)))),))
