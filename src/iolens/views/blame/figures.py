"""Figures of who made it busy: FSU by name over time, and names by target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import epoch_us
from iolens.views.blame import words
from iolens.views.render.figures import (
    FSU,
    NAMES,
    NOBODY,
    OTHERS,
    Axis,
    BandMark,
    Figure,
    HeatMapMark,
    LineMark,
    Mark,
    Panel,
    Rule,
)
from iolens.views.render.window_axes import EMPTY, names_axis, target_axis, time_axis, window_title

if TYPE_CHECKING:
    from iolens.analyses.blame import Blame, BusyTarget
    from iolens.arrays import Floats

FIGURES: Final = ("shares", "targets")
REST: Final = "others"


def figures(result: Blame) -> dict[str, Callable[[], Figure]]:
    """Shares over time, and by target."""
    return {"shares": lambda: shares(result), "targets": lambda: targets(result)}


def shares(result: Blame) -> Figure:
    """How busy, stacked by name; what is nobody's on top."""
    title = words.title(result)
    busy, unit = ("FSU (%)", "FSU") if result.basis == "disk" else ("MDU (%)", "MDU")
    x = np.array([epoch_us(tick.time) for tick in result.series], np.float64)
    level = np.array([np.nan if tick.fsu_pct is None else tick.fsu_pct for tick in result.series])
    if not len(x):
        return Figure("shares", title, (Panel(window_title(result), time_axis(result), Axis(busy), message=EMPTY),))
    if not np.isfinite(level).any():  # operations without a cost
        level, busy, unit = np.full(len(x), 100.0), "share of the operations (%)", "all"
    places, level = _steps(x, level, result.bucket_s)
    labels = _labels(result)
    marks: list[Mark] = []
    floor = np.zeros(len(places))
    for name, colour in _colours(result).items():
        _, share = _steps(x, [tick.shares.get(name, 0.0) for tick in result.series], result.bucket_s)
        top = floor + level * share / 100.0
        marks.append(BandMark(places, floor, top, labels.get(name, name), colour))
        floor = top
    marks.append(BandMark(places, floor, np.maximum(level, floor), "unattributed", NOBODY))
    marks.append(LineMark(places, level, unit, FSU))
    if result.saturation_fsu_pct is not None:
        marks.append(Rule(result.saturation_fsu_pct, "horizontal", "saturated"))
    y = Axis(busy, low=0, high=1.08 * max(float(np.nanmax(level)), 1e-9))
    return Figure("shares", title, (Panel(window_title(result), time_axis(result), y, tuple(marks)),))


def _steps(x: Floats, values: Sequence[float] | Floats, bucket_s: int) -> tuple[Floats, Floats]:
    """Both ends of every bucket, so that a band is a step; NaN between buckets that are apart."""
    width = bucket_s * 1e6
    gaps = np.flatnonzero(np.diff(x) > 1.5 * width) + 1
    ends = np.insert(np.column_stack([x, x + width]).reshape(-1), 2 * gaps, x[gaps])
    return ends, np.insert(np.repeat(np.asarray(values, np.float64), 2), 2 * gaps, np.nan)


def _labels(result: Blame) -> dict[str, str]:
    """A job's number with its user."""
    return {who.name: f"{who.name} {who.user}" for who in result.who if who.user is not None}


def _colours(result: Blame) -> dict[str, str]:
    """A colour for each name that is drawn, the same in every figure."""
    names = list(dict.fromkeys(name for tick in result.series[:1] for name in tick.shares))
    return {name: OTHERS if name == REST else NAMES[place % len(NAMES)] for place, name in enumerate(names)}


def targets(result: Blame) -> Figure:
    """Seconds by name and target."""
    title, x_name = "Who was on which target", "target"
    names = [*_colours(result), "unattributed"]
    if not result.targets:
        why = "job_stats are needed to distinguish targets" if result.method == "overlap" else EMPTY
        return Figure("targets", title, (Panel(window_title(result), Axis(x_name), Axis(""), message=why),))
    values = np.array([[_done(target) * _share(target, name) / 100.0 for target in result.targets] for name in names])
    high = max(float(values.max()), 1e-9)
    low = min((float(value) for value in values[values > 0]), default=high)
    low = min(max(low, high / 1000.0), high / 2.0)
    time = "disk time (s)" if result.basis == "disk" else "server time (s)"
    unit = time if result.disk_seconds is not None else "operations"
    labels_of = _labels(result)
    shown = tuple(labels_of.get(name, name) for name in names)
    mark = HeatMapMark(-0.5, len(result.targets) - 0.5, shown, values, low, high, unit, row_kind="who")
    labels = tuple(target.target.removeprefix(f"{result.filesystem}-") for target in result.targets)
    x = replace(names_axis(x_name, labels), low=-0.5, high=len(labels) - 0.5)
    rows = replace(target_axis(shown), label="")
    return Figure("targets", title, (Panel(window_title(result), x, rows, (mark,)),))


def _done(target: BusyTarget) -> float:
    """Seconds, or operations without a cost."""
    done = target.disk_seconds if target.disk_seconds is not None else target.metadata_operations
    return float(done or 0.0)


def _share(target: Any, name: str) -> float:
    share: float = target.unattributed_pct if name == "unattributed" else target.shares.get(name, 0.0)
    return share
