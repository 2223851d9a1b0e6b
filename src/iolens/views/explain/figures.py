"""Figures of an explained run: its time over the load of its targets, and each factor over the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import epoch_us
from iolens.views.explain.words import LABELS, who_words
from iolens.views.render.figures import (
    FSU,
    OTHERS,
    READ,
    STEADY,
    WRITE,
    Axis,
    BandMark,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
)
from iolens.views.render.log_scales import bytes_unit

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.analyses.explain.results import HistorySeries
    from iolens.arrays import Booleans, Floats, Integers

FIGURES: Final = ("timeline", "factors")
NO_LOAD: Final = "the load of its targets is not known"
NO_HISTORY: Final = "no like runs"

LEAST_SPREAD: Final = 0.01  # of the largest value: what differs by less is not drawn


def figures(result: RunExplanation) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {"timeline": lambda: timeline(result), "factors": lambda: factors(result)}


def timeline(result: RunExplanation) -> Figure:
    """FSU of the run's targets with the share of others, above what the run moved."""
    title = f"{who_words(result)}: its I/O and the load of its targets"
    return Figure("timeline", title, (_load_panel(result), _activity_panel(result)), linked_x=True)


def factors(result: RunExplanation) -> Figure:
    """A panel for performance and each factor that varies: the history in the order of time, its quartiles, the run."""
    title = f"{who_words(result)}: the run among like runs"
    series = result.series
    shown = {} if series is None else _varying(result, series)
    if series is None or not shown:
        return Figure("factors", title, (Panel("", Axis("start of the run", "time"), Axis(""), message=NO_HISTORY),))
    is_run = series.is_run.astype(bool)
    panels = [_factor_panel(label, series.start_us, values, is_run) for label, values in shown.items()]
    last = [replace(panel, x=Axis("start of the run", "time")) for panel in panels[-1:]]
    return Figure("factors", title, (*panels[:-1], *last), linked_x=True)


def _varying(result: RunExplanation, series: HistorySeries) -> dict[str, Floats]:
    """Performance and factors that are known of the run and differ among runs, by their labels."""
    columns = {f"performance ({result.performance.unit})": series.performance}
    columns |= {LABELS[name]: values for name, values in series.factors.items() if name != "strategy"}
    is_run = series.is_run.astype(bool)
    return {label: values for label, values in columns.items() if _varies(values, is_run)}


def _varies(values: Floats, is_run: Booleans) -> bool:
    known = values[np.isfinite(values)]
    if not np.isfinite(values[is_run]).any():
        return False
    return bool(known.max() - known.min() > LEAST_SPREAD * np.abs(known).max())


def _factor_panel(label: str, start_us: Integers, values: Floats, is_run: Booleans) -> Panel:
    x = start_us.astype(float)
    others = values[~is_run & np.isfinite(values)]
    marks: list[Mark] = []
    if others.size:
        low, high = np.percentile(others, [25, 75])
        ends = np.array([x.min(), x.max()])
        marks.append(BandMark(ends, np.full(2, low), np.full(2, high), "middle half of like runs", STEADY))
    marks.append(PointsMark(x[~is_run], values[~is_run], "like runs", WRITE))
    marks.append(PointsMark(x[is_run], values[is_run], "this run", READ, weight=2.5))
    return Panel(label, Axis("", "time"), Axis(_unit(label)), tuple(marks), height=0.5)


def _unit(label: str) -> str:
    """What stands in brackets; the rest is the panel's title."""
    return label.partition("(")[2].removesuffix(")")


def _load_panel(result: RunExplanation) -> Panel:
    load = result.load
    y = Axis("FSU (%)", low=0.0)
    if load is None or not np.isfinite(load.fsu_pct).any():
        return Panel("load of its targets", _window(result), y, message=NO_LOAD)
    x = np.repeat(load.step_us, 2)[1:-1].astype(float)
    others, everyone = (np.repeat(values, 2) for values in (load.others_pct, load.fsu_pct))
    marks: list[Mark] = [LineMark(x, everyone, "all", FSU)]
    if np.isfinite(others).any():
        marks.insert(0, BandMark(x, np.zeros(len(x)), others, "others", OTHERS))
    return Panel("load of its targets", _window(result), y, tuple(marks))


def _activity_panel(result: RunExplanation) -> Panel:
    load = result.load
    if load is None or not load.bytes_per_s.any():
        return Panel("the run", _window(result), Axis("bytes/s"), message="no activity of the run is known")
    scale, unit = bytes_unit(float(load.bytes_per_s.max()))
    x = np.repeat(load.activity_us, 2)[1:-1].astype(float)
    line = LineMark(x, np.repeat(load.bytes_per_s / scale, 2), "read and written", WRITE)
    return Panel("the run", _window(result), Axis(f"{unit}/s, all ranks", low=0.0), (line,), height=0.7)


def _window(result: RunExplanation) -> Axis:
    low, high = (float(epoch_us(time)) for time in (result.window_start, result.window_end))
    return Axis("time", "time", low, high)
