"""A calibration fit for people: both fits of paper U side by side, every run with its prediction, what to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import MIB, format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import (
    BACKGROUND,
    FSU,
    READ,
    WRITE,
    Axis,
    Bars,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
    Rule,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from iolens.analyses.calibration.fit import CacheGuard, CalibrationFit, DirectionFit, SmallestTransferSizes
    from iolens.views.render.tables import Row, TableView


DIRECTIONS: Final = ("write", "read")


def tables(result: CalibrationFit) -> list[TableView]:
    """Coefficients, runs, the cache guard, and what the reader must know."""
    views = [coefficients(result), runs(result), guard(result), facts(result)]
    return [table for table in views if table is not None]


def coefficients(result: CalibrationFit) -> TableView:
    """Table I, once by the sizes asked for and once by those at the disk."""
    columns = (
        t.text("fit", "Fit"), t.text("sizes", "Sizes"), t.text("direction", "Direction"),
        t.number("latency_s", "Latency", "s", ".3e"), t.text("latency_ci95", "95 %"),
        t.number("s_per_byte", "Time per byte", "s/B", ".3e"), t.text("s_per_byte_ci95", "95 %"),
        t.number("rate_mib_per_s", "Rate limit", "MiB/s", ",.0f"),
        t.number("iops_limit", "IOPS limit", "", ",.0f"), t.number("r2", "R²", "", ".3f"),
        t.percent("mape_pct", "MAPE"), t.count("runs", "Runs"),
    )  # fmt: skip
    rows: list[Row] = []
    for sizes, fits in (("requested", result.requested), ("observed", result.observed)):
        for direction in DIRECTIONS:
            fit = fits.of(direction)
            if fit is not None:
                rows.append((f"{direction}, {sizes}", sizes, direction, *_cells(fit)))
    depth = f"Queue depth {result.queue_depth}. " if result.queue_depth is not None else ""
    return t.TableView(
        "What a disk I/O costs", columns, rows, depth + comparison(result), sideways=True, name="coefficients"
    )


def comparison(result: CalibrationFit) -> str:
    """In words, how much worse the sizes asked for explain the runs (U5)."""
    sentences = []
    for direction in DIRECTIONS:
        asked, seen = result.requested.of(direction), result.observed.of(direction)
        if asked is not None and seen is not None:
            word = "worse" if asked.mape_pct > 1.05 * seen.mape_pct else "no worse"
            sentences.append(
                f"{direction.capitalize()}s: requested sizes miss by {asked.mape_pct:.1f} %, observed ones by"
                f" {seen.mape_pct:.1f} %: {word}."
            )
    if result.read_amplification is not None:
        unused = f", {result.discarded_pct:.1f} % of it unused" if result.discarded_pct is not None else ""
        sentences.append(f"The disk read {result.read_amplification:.3f} times the bytes asked for{unused}.")
    return " ".join(sentences)


def _cells(fit: DirectionFit) -> tuple[object, ...]:
    return (
        fit.latency_s,
        _interval(fit.ci95.latency_s),
        fit.s_per_byte,
        _interval(fit.ci95.s_per_byte),
        fit.rate_mib_per_s,
        fit.iops_limit,
        fit.r2,
        fit.mape_pct,
        fit.runs,
    )


def _interval(ends: list[float | None]) -> str | None:
    low, high = ends
    return None if low is None or high is None else f"{low:.3e} to {high:.3e}"


def runs(result: CalibrationFit) -> TableView:
    """Every run of the fit, measured and predicted (U6)."""
    columns = (
        t.text("direction", "Direction"), t.size("size_bytes", "Requested size"),
        t.size("observed_size_bytes", "At the disk"), t.number("measured_mib_per_s", "Measured", "MiB/s", ",.1f"),
        t.number("predicted_mib_per_s", "Predicted", "MiB/s", ",.1f"), t.number("error_pct", "Error", "%", "+.1f"),
    )  # fmt: skip
    rows: list[Row] = []
    for run in result.runs:
        predicted = run.predicted_bytes_per_s
        error = None if predicted is None else 100 * (predicted / run.measured_bytes_per_s - 1)
        reported = None if predicted is None else predicted / MIB
        size = run.observed_size_bytes
        rows.append((run.direction, run.size_bytes, size, run.measured_bytes_per_s / MIB, reported, error))
    return t.TableView("Runs", columns, rows, name="runs")


def guard(result: CalibrationFit) -> TableView | None:
    """Bandwidth against the size of all files (Fig. 2)."""
    columns = (
        t.text("direction", "Direction"), t.size("aggregate_bytes", "Aggregate size"),
        t.number("mib_per_s", "Bandwidth", "MiB/s", ",.1f"),
    )  # fmt: skip
    rows: list[Row] = [
        (asymptote.direction, size, rate / MIB)
        for asymptote in result.asymptotes
        for size, rate in zip(asymptote.aggregate_bytes, asymptote.bytes_per_s, strict=True)
    ]
    return t.TableView("Cache guard", columns, rows, name="cache_guard") if rows else None


def facts(result: CalibrationFit) -> TableView:
    """What the fit rests on."""
    columns = (
        t.text("what", "What"), t.text("tools", "Benchmarks"), t.text("devices", "Observed at"),
        t.count("runs", "Runs fitted"), t.count("runs_left_out", "Runs left out"),
        t.size("memory_bytes", "Memory of the machine"), t.percent("fullness_pct", "File system used"),
        t.percent("ceiling_fsu_pct", "FSU when full"),
    )  # fmt: skip
    row = (
        "fit", result.tools, result.devices, len(result.runs), result.runs_left_out, result.memory_bytes,
        result.fullness_pct, result.ceiling_fsu_pct,
    )  # fmt: skip
    return t.TableView("Basis", columns, [row], "\n".join(result.notes), sideways=True, name="basis")


# Figures of paper U for a calibration ---------------------------------------------------------------------------------
# Predicted and measured bandwidth (7), bandwidth by transfer size (4), sizes at the disk (6), bandwidth by aggregate
# size (2).

COLOURS: Final = {"write": WRITE, "read": READ}
REQUESTED: Final = BACKGROUND  # the fit that does not know the disk's sizes stays in the background
PREDICTED: Final = FSU
EMPTY: Final = "no runs of this kind"
_WEIGHT: Final = 2.5


FIGURES: Final = ("prediction", "bandwidth", "sizes", "asymptote")


def figures(result: CalibrationFit) -> dict[str, Callable[[], Figure]]:
    """Figures 7, 4, 6 and 2 of paper U."""
    return {
        "prediction": lambda: prediction(result),
        "bandwidth": lambda: bandwidth(result),
        "sizes": lambda: sizes(result),
        "asymptote": lambda: asymptote(result),
    }


def prediction(result: CalibrationFit) -> Figure:
    """Measured bandwidth against what both fits say it should be, by transfer size (Fig. 7)."""
    panels = tuple(_prediction_panel(result, direction) for direction in COLOURS)
    return Figure("prediction", "Measured and predicted bandwidth", panels, linked_x=True)


def bandwidth(result: CalibrationFit) -> Figure:
    """Bandwidth by transfer size, with a random seek after every transfer (Fig. 4)."""
    sizes = [run.size_bytes for run in result.runs]
    marks: list[Mark] = []
    for direction, colour in COLOURS.items():
        runs = [run for run in result.runs if run.direction == direction]
        x = np.log2([float(run.size_bytes) for run in runs])
        y = np.array([run.measured_bytes_per_s / MIB for run in runs])
        marks += [PointsMark(x, y, direction, colour, weight=_WEIGHT), _median_line(x, y, "", colour)] if runs else []
    y_axis = Axis("bandwidth (MiB/s)", low=0)
    panel = Panel(
        "random access", _size_axis("transfer size", sizes), y_axis, tuple(marks), message="" if marks else EMPTY
    )
    return Figure("bandwidth", "Bandwidth by transfer size", (panel,))


def sizes(result: CalibrationFit) -> Figure:
    """Disk I/Os by size during the run with the smallest transfers (Fig. 6); means where the device counts no sizes."""
    histograms = result.sizes_at_disk or []
    bins = sorted({size for histogram in histograms for size in histogram.counts})
    panels = [_histogram_panel(histogram, bins) for histogram in histograms] or [_mean_size_panel(result)]
    return Figure("sizes", "Sizes at the disk", tuple(panels))


def asymptote(result: CalibrationFit) -> Figure:
    """Bandwidth by aggregate size, and the level it settles at (Fig. 2)."""
    sizes = [size for guard in result.asymptotes for size in guard.aggregate_bytes]
    x = _size_axis("aggregate size", [*sizes, *([result.memory_bytes] if result.memory_bytes else [])])
    marks = [mark for guard in result.asymptotes for mark in _guard_marks(guard)]
    if result.memory_bytes and marks:
        marks.append(Rule(float(np.log2(result.memory_bytes)), "vertical", "memory"))
    y = _rate_axis(*_heights(marks))
    message = "" if marks else "all runs have the same aggregate size"
    panel = Panel("larger files leave the cache", x, y, tuple(marks), message=message)
    return Figure("asymptote", "Bandwidth by aggregate size", (panel,))


def _prediction_panel(result: CalibrationFit, direction: str) -> Panel:
    pairs = [
        (run, by_request)
        for run, by_request in zip(result.runs, result.predicted_by_request or [], strict=True)
        if run.direction == direction
    ]
    x_axis = _size_axis("requested transfer size", [run.size_bytes for run in result.runs])
    if not pairs:
        return Panel(f"{direction}s", x_axis, _rate_axis(), message=EMPTY)
    x = np.log2([float(run.size_bytes) for run, _ in pairs])
    measured = np.array([run.measured_bytes_per_s / MIB for run, _ in pairs])
    marks: list[Mark] = [PointsMark(x, measured, "measured", COLOURS[direction], weight=_WEIGHT)]
    asked = np.array([np.nan if reported is None else reported / MIB for _, reported in pairs])
    if np.isfinite(asked).any():
        marks.append(_median_line(x, asked, "from requested sizes", REQUESTED))
    if result.observed.of(direction) is not None:
        seen = np.array([(run.predicted_bytes_per_s or np.nan) / MIB for run, _ in pairs])
        marks.append(_median_line(x, seen, "from observed sizes", PREDICTED))
    return Panel(_title(result, direction), x_axis, _rate_axis(*_heights(marks)), tuple(marks))


def _title(result: CalibrationFit, direction: str) -> str:
    """`reads: R² 0.507 on requested sizes, 0.999 on observed ones`."""
    both = (("requested sizes", result.requested.of(direction)), ("observed ones", result.observed.of(direction)))
    reported = [f"{fit.r2:.3f} on {sizes}" for sizes, fit in both if fit is not None and fit.r2 is not None]
    return f"{direction}s: R² {', '.join(reported)}" if reported else f"{direction}s"


def _heights(marks: Sequence[Mark]) -> list[float]:
    return [float(np.nanmax(mark.y)) for mark in marks if isinstance(mark, PointsMark | LineMark)]


def _rate_axis(*heights: float) -> Axis:
    return Axis("bandwidth (MiB/s)", low=0, high=1.1 * max(heights) if heights else None)


def _median_line(x: NDArray[Any], y: NDArray[Any], label: str, colour: str) -> LineMark:
    places = np.unique(x)
    return LineMark(places, np.array([np.median(y[x == place]) for place in places]), label, colour)


def _histogram_panel(histogram: SmallestTransferSizes, bins: list[int]) -> Panel:
    places = np.arange(len(bins), dtype=float)
    names = tuple(format_bytes(size) for size in bins)
    counts = np.array([histogram.counts.get(size, 0) for size in bins], float)
    bars = Bars(places - 0.4, places + 0.4, counts, f"disk {histogram.direction}s", COLOURS[histogram.direction], names)
    asked, moved = format_bytes(histogram.requested_bytes), format_bytes(histogram.disk_bytes)
    transfers = f"{asked} of {histogram.direction}s in transfers of {format_bytes(histogram.transfer_bytes)}"
    x = Axis("size of disk I/O", low=-0.6, high=len(bins) - 0.4, ticks=tuple(zip(places.tolist(), names, strict=True)))
    return Panel(
        f"{transfers}: {moved} at the disk", x, Axis("disk I/Os", low=0, high=float(counts.max()) * 1.1), (bars,)
    )


def _mean_size_panel(result: CalibrationFit) -> Panel:
    runs = [run for run in result.runs if run.observed_size_bytes is not None]
    x_axis = _size_axis("requested transfer size", [run.size_bytes for run in runs])
    if not runs:
        return Panel("mean size at the disk", x_axis, Axis("mean size"), message="nothing was observed at the disk")
    asked = np.log2([float(run.size_bytes) for run in runs])
    marks: list[Mark] = [LineMark(np.unique(asked), np.unique(asked), "as requested", REQUESTED)]
    for direction, colour in COLOURS.items():
        mine = [run for run in runs if run.direction == direction]
        x = np.log2([float(run.size_bytes) for run in mine])
        y = np.log2([float(run.observed_size_bytes or 1) for run in mine])
        marks += [PointsMark(x, y, direction, colour, weight=_WEIGHT)] if mine else []
    seen = [round(run.observed_size_bytes or 1) for run in runs]
    y_axis = _size_axis("mean size of disk I/O", [*seen, *(run.size_bytes for run in runs)])
    return Panel("mean size at the disk (the device counts no sizes)", x_axis, y_axis, tuple(marks))


def _guard_marks(guard: CacheGuard) -> list[Mark]:
    x = np.log2([float(size) for size in guard.aggregate_bytes])
    y = np.array(guard.bytes_per_s) / MIB
    colour = COLOURS[guard.direction]
    level = None if guard.asymptote is None else guard.asymptote.bytes_per_s / MIB
    label = (
        f"{guard.direction}: still changing" if level is None else f"{guard.direction}: settles at {level:,.0f} MiB/s"
    )
    marks: list[Mark] = [PointsMark(x, y, label, colour, weight=_WEIGHT), _median_line(x, y, "", colour)]
    return marks if level is None else [*marks, Rule(level, "horizontal", "")]


def _size_axis(label: str, sizes: Sequence[int]) -> Axis:
    """Powers of two at equal steps, named."""
    if not sizes:
        return Axis(label)
    low, high = int(np.floor(np.log2(min(sizes)))), int(np.ceil(np.log2(max(sizes))))
    ticks = tuple((float(power), format_bytes(2**power)) for power in range(low, high + 1))
    return Axis(label, low=low - 0.3, high=high + 0.3, ticks=ticks)
