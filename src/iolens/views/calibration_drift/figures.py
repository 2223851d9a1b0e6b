"""Coefficients over months with their bands, and the fullness beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import MIB
from iolens.views.render.figures import FSU, READ, WRITE, Axis, BandMark, Figure, LineMark, Mark, Panel, PointsMark
from iolens.views.render.window_axes import midnight_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from iolens.analyses.calibration_drift import CalibrationDrift, MonthlyCost

COLOURS: Final = {"write": WRITE, "read": READ}
PALE: Final = 0.25
FIGURES: Final = ("drift",)
NOTHING: Final = "no month in which this coefficient is identified"
MIDDLE_US: Final = 14 * 86_400_000_000  # after the first day of the month, about
_WEIGHT: Final = 2.5


def figures(result: CalibrationDrift) -> dict[str, Callable[[], Figure]]:
    """The one there is."""
    return {"drift": lambda: drift(result)}


def drift(result: CalibrationDrift) -> Figure:
    """Latency, and time per MiB, of each class; the last panel is their fullness."""
    names = [chosen.name for chosen in result.classes]
    panels: list[Panel] = []
    ends = _ends(result.months)
    for name in names:
        of_class = [item for item in result.months if item.target_class == name]
        panels += [
            _panel(of_class, name, ends, ("latency", "latency_s", "latency_low_s", "latency_high_s"), 1e3, "ms"),
            _panel(
                of_class, name, ends, ("s_per_byte", "s_per_byte", "s_per_byte_low", "s_per_byte_high"),
                1e3 * MIB, "ms per MiB",
            ),
        ]  # fmt: skip
    return Figure("drift", "What a disk I/O costs, month by month", (*panels, *_fullness(result, ends)), linked_x=True)


def _ends(months: Sequence[MonthlyCost]) -> tuple[float, float]:
    times = [_time(item) for item in months]
    return (min(times) - MIDDLE_US, max(times) + MIDDLE_US) if times else (0.0, 1.0)


def _time(item: MonthlyCost) -> float:
    return float(midnight_us(item.month) + MIDDLE_US)


def _panel(
    months: Sequence[MonthlyCost],
    name: str | None,
    ends: tuple[float, float],
    fields: tuple[str, str, str, str],
    factor: float,
    unit: str,
) -> Panel:
    """One coefficient of one class: only months in which it is identified."""
    coefficient, *columns = fields
    marks: list[Mark] = []
    highest = 0.0
    for direction, colour in COLOURS.items():
        same = [item for item in months if item.direction == direction]
        is_known = [coefficient in item.identified and not item.upper_bound for item in same]
        if not any(is_known):
            continue
        x = np.array([_time(item) for item in same])
        value, low, high = (_values(same, is_known, column) * factor for column in columns)
        marks += [
            BandMark(x, low, high, f"{direction}s, 95 %", colour, PALE),
            LineMark(x, value, f"{direction}s", colour),
            PointsMark(x, value, "", colour, weight=_WEIGHT),
        ]
        highest = max(highest, float(np.nanmax(high)))
    what = "Latency" if coefficient == "latency" else "Time per byte"
    title = f"{what} of {name}" if name else what
    y = Axis(f"{what.lower()} ({unit})", low=0, high=1.1 * highest or None)
    return Panel(title, Axis("time", "time", *ends), y, tuple(marks), message="" if marks else NOTHING)


def _values(months: Sequence[MonthlyCost], is_known: Sequence[bool], column: str) -> NDArray[Any]:
    values = [getattr(item, column) if known else None for item, known in zip(months, is_known, strict=True)]
    return np.array([np.nan if value is None else value for value in values])


def _fullness(result: CalibrationDrift, ends: tuple[float, float]) -> list[Panel]:
    """Of each class, where it is stored."""
    marks: list[Mark] = []
    for chosen in result.classes:
        same = {item.month: item for item in result.months if item.target_class == chosen.name}
        known = [item for item in same.values() if item.fullness_pct is not None]
        if known:
            x = np.array([_time(item) for item in known])
            y = np.array([item.fullness_pct for item in known])
            label = chosen.name or "all targets"
            marks += [LineMark(x, y, label, FSU), PointsMark(x, y, "", FSU, weight=_WEIGHT)]
    message = "" if marks else "fullness is not stored"
    axes = Axis("time", "time", *ends), Axis("full (%)", low=0, high=105)
    return [Panel("Fullness", *axes, tuple(marks), message=message, height=0.7)]
