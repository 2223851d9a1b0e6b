"""A calibration fit for people: both fits of paper U side by side, every run with its prediction, what to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import MIB
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from iolens.analyses.calibration.fit import CalibrationFit, DirectionFit
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
