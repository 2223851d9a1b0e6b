"""What a light probe determined: coefficients with wide intervals, where its few runs follow the model at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from iolens.analyses.calibration.fit import CalibrationFit, DirectionFit, calibration_fit
from iolens.analyses.calibration.runs import DIRECTIONS, Row
from iolens.errors import UsageError
from iolens.units import format_bytes

MEASURED: Final = "measured"  # the state of coefficients fitted to a sweep of the targets themselves
LEAST_R2: Final = 0.5  # of each direction: below, the model explains less than half of what differs
LEAST_FACTOR: Final = 1.25  # of a coefficient: short runs, a small file and a resampling of few runs hide that much


def light_fit(rows: Sequence[Row]) -> tuple[CalibrationFit | None, str | None]:
    """The fit of a probe's runs, or why there is none."""
    try:
        fit = calibration_fit(rows)
    except UsageError as error:
        return None, str(error)
    return fit, _why_not_kept(fit)


def _why_not_kept(fit: CalibrationFit) -> str | None:
    kept = _kept(fit)
    for direction in DIRECTIONS:
        of_direction = kept.of(direction)
        if of_direction is None:
            return f"there is no {direction} fit"
        if of_direction.negative:
            return f"a coefficient of the {direction}s came out negative"
        if of_direction.r2 is None or of_direction.r2 < LEAST_R2:
            return f"the {direction}s do not follow the model (R² {of_direction.r2 or 0:.2f}, at least {LEAST_R2:g})"
    return None


def _kept(fit: CalibrationFit) -> Any:
    """The fit that a record keeps: on observed sizes where both directions have it."""
    return fit.observed if fit.observed.write is not None and fit.observed.read is not None else fit.requested


def light_record(fit: CalibrationFit, name: str) -> dict[str, Any]:
    """The calibration of a probe: `measured`, without a ceiling, with wide ends.

    An end is the wider of the 95 % interval and the factor by which a run differs most from the fit, at least 1.25.
    """
    kept = _kept(fit)
    record = fit.record(name) | {"state": MEASURED, "ceiling_fsu_pct": None}
    for direction in DIRECTIONS:
        of_direction = kept.of(direction)
        factor = max(LEAST_FACTOR, _largest_factor(fit, direction))
        for coefficient, (low, high) in _ends(of_direction, factor).items():
            record |= {f"{direction}_{coefficient[0]}": low, f"{direction}_{coefficient[1]}": high}
    record["evidence"] = f"light probe: {record['evidence']}"
    return record


def _largest_factor(fit: CalibrationFit, direction: str) -> float:
    """How many times faster or slower than predicted the run was that follows the fit least."""
    ratios = [
        run.predicted_bytes_per_s / run.measured_bytes_per_s
        for run in fit.runs
        if run.direction == direction and run.predicted_bytes_per_s is not None
    ]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _ends(fit: DirectionFit, factor: float) -> dict[tuple[str, str], tuple[float, float]]:
    """By the names of the low and the high end."""
    return {
        ("latency_low_s", "latency_high_s"): _wide(fit.latency_s, fit.ci95.latency_s, factor),
        ("s_per_byte_low", "s_per_byte_high"): _wide(fit.s_per_byte, fit.ci95.s_per_byte, factor),
    }


def _wide(value: float, interval: Sequence[float | None], factor: float) -> tuple[float, float]:
    low, high = (value if end is None else end for end in interval)
    return min(low, value / factor), max(high, value * factor)


def not_determined(
    rows: Iterable[Row], transfer_sizes: Sequence[int], queue_depth: int, why_no_fit: str | None
) -> list[str]:
    """What a reader must not take from a probe."""
    known = {(row["direction"], row["transfer_bytes"]) for row in rows}
    lacking = [
        f"{direction}s of {', '.join(format_bytes(size) for size in sizes)}: no undisturbed run"
        for direction in DIRECTIONS
        if (sizes := [size for size in transfer_sizes if (direction, size) not in known])
    ]
    return [
        *([] if why_no_fit is None else [f"the coefficients: {why_no_fit}"]),
        *lacking,
        f"I/Os larger than {format_bytes(max(transfer_sizes))}, and other queue depths than {queue_depth}",
        "whether a cache answered: the file is small",
        "the FSU of a full disk: nothing was saturated with a mix of sizes",
        "how other targets differ from this one",
    ]
