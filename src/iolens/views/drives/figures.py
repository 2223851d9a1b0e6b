"""Figures of drives: Fig. 2 of paper P (WAF, and lifetime writes against it), drive writes per day, wear over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import epoch_us
from iolens.views.render.figures import FSU, READ, WRITE, Axis, Bars, Figure, LineMark, Mark, Panel, PointsMark, Rule
from iolens.views.render.window_axes import EMPTY, LINE_AT_MOST, window_title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from iolens.analyses.drives.analysis import DriveLife, Drives
    from iolens.analyses.drives.readings import FleetReading
    from iolens.arrays import Floats

BINS: Final = 40
MARGIN: Final = 1.15  # of a logarithmic axis beyond its values
NARROWEST: Final = 1.5  # ratio of its ends
SPACE: Final = 3.0  # … beyond a rating
TICK_STEPS: Final = ((0.5, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)), (1.2, (1, 1.5, 2, 3, 5, 7)), (2.5, (1, 2, 5)))
NO_WEAR: Final = "no drive reports its wear"
UNWORN: Final = "every drive reports 0 %"
NO_RATES: Final = "drives were read once: nothing to compare"


FIGURES: Final = ("waf", "dwpd", "wear")


def figures(result: Drives) -> dict[str, Callable[[], Figure]]:
    """Fig. 2 of paper P, drive writes per day, and wear over time."""
    return {
        "waf": lambda: amplification(result),
        "dwpd": lambda: drive_writes_per_day(result),
        "wear": lambda: over_time(result),
    }


def amplification(result: Drives) -> Figure:
    """How many drives have which WAF, and how much the host has written to them (Fig. 2); logarithmic scales."""
    heading, name = "Write amplification, and lifetime writes against it", "waf"
    known = [life for life in result.per_drive if life.waf is not None]
    if not known:
        panel = Panel(window_title(result), Axis("write amplification (WAF)"), Axis("drives"), message=EMPTY)
        return Figure(name, heading, (panel,))
    wafs = _values(known, lambda life: life.waf)
    x = _log_axis("write amplification (WAF)", wafs)
    return Figure(name, heading, (_distribution(result, wafs, x), _scatter(result, known, x)), linked_x=True)


def drive_writes_per_day(result: Drives) -> Figure:
    """How many drives are written how often, over their lives and in the window."""
    heading, name = "Drive writes per day", "dwpd"
    values = _values(result.per_drive, lambda life: life.dwpd)
    positive = values[values > 0]
    if not positive.size:
        panel = Panel(window_title(result), Axis("drive writes per day"), Axis("drives"), message=EMPTY)
        return Figure(name, heading, (panel,))
    recent = _values(result.per_drive, lambda life: life.window.dwpd if life.window else None)
    shown = np.concatenate([positive, recent[recent >= positive.min()]])
    x = _log_axis("drive writes per day (DWPD)", shown, result.rated_dwpd)
    panels = (_distribution(result, positive, x), _shares(values, recent, x, result.rated_dwpd))
    return Figure(name, heading, panels, linked_x=True)


def over_time(result: Drives) -> Figure:
    """Wear of the least worn, the mean and the most worn drive, and drive writes per day and WAF between readings."""
    heading, name = "Wear, drive writes and write amplification over time", "wear"
    timestamps = result.over_time
    if not timestamps:
        panel = Panel(window_title(result), Axis("time", "time"), Axis("wear (%)"), message=EMPTY)
        return Figure(name, heading, (panel,))
    times = np.array([epoch_us(fleet_reading.time) for fleet_reading in timestamps])
    spare = 0 if len(times) > 1 else 43_200_000_000
    x = Axis("time", "time", float(times[0] - spare), float(times[-1] + spare))
    panels = (_wear(result, timestamps, times, x), _paces(timestamps, times, x))
    return Figure(name, heading, panels, linked_x=True)


def _values(lives: Iterable[DriveLife], number: Callable[[DriveLife], float | None]) -> Floats:
    return np.array([value for value in map(number, lives) if value is not None], dtype=float)


def _log_axis(label: str, values: Floats, rated: float | None = None) -> Axis:
    """From the smallest to the largest value; a rating stands inside, with space for its text."""
    low, high = float(values.min()), max(float(values.max()), SPACE * (rated or 0.0))
    widen = max(1.0, (NARROWEST * low / high) ** 0.5)
    low, high = low / MARGIN / widen, high * MARGIN * widen
    return Axis(f"{label}, log scale", "log", low, high, _ticks(low, high))


def _ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Round numbers, as many as can be read."""
    decades = np.log10(high / low)
    steps = next((steps for most, steps in TICK_STEPS if decades <= most), (1,))
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))))
    places = [float(f"{step}e{power}") for power in powers for step in steps]
    return tuple((place, f"{place:,.10g}") for place in places if low <= place <= high)


def _distribution(result: Drives, values: Floats, x: Axis) -> Panel:
    """Drives in bins of equal ratio; single drives show on a logarithmic scale."""
    assert x.low is not None
    assert x.high is not None
    counts, edges = np.histogram(values, np.geomspace(x.low, x.high, BINS + 1))
    names = tuple(
        f"{low:.3g} to {high:.3g}: {count} drives"
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )
    ends = [float(end) for end in np.percentile(values, [50.0, 95.0])]
    label = f"{values.size:,} drives; dashed: median {ends[0]:.3g}, 95th percentile {ends[1]:.3g}"
    bars = Bars(edges[:-1], edges[1:], counts.astype(float), label, WRITE, names)
    rules = (Rule(end, "vertical", "") for end in ends)
    y = Axis("drives, log scale", "log", 0.5, 3.0 * float(counts.max()))
    return Panel(window_title(result), x, y, (bars, *rules))


def _scatter(result: Drives, known: list[DriveLife], x: Axis) -> Panel:
    title = "Lifetime writes ÷ capacity of each drive"
    written = [life for life in known if life.drive_writes]
    if not written:
        return Panel(title, x, Axis("drive writes"), message="the capacity of the drives is not known")
    outliers = result.outliers
    marks: list[Mark] = []
    for name, colour, high in (("usual", WRITE, False), (f"WAF above {outliers.waf_above or 0.0:.3g}", READ, True)):
        mine = [life for life in written if life.outlier == high]
        if mine:
            wafs, writes = _values(mine, lambda life: life.waf), _values(mine, lambda life: life.drive_writes)
            marks.append(PointsMark(wafs, writes, name, colour, weight=1.5 if high else 1.0))
    if outliers.drives and outliers.waf_above is not None:
        marks.append(Rule(outliers.waf_above, "vertical", ""))
    if outliers.drive_writes_below is not None:
        marks.append(Rule(outliers.drive_writes_below, "horizontal", "half the median"))
    y = _log_axis("drive writes", _values(written, lambda life: life.drive_writes))
    return Panel(title, x, y, tuple(marks))


def _shares(values: Floats, recent: Floats, x: Axis, rated: float | None) -> Panel:
    """Share of drives at or below a DWPD; those below the axis stand at its beginning."""
    marks: list[Mark] = [
        LineMark(
            np.maximum(np.sort(some), x.low or 0.0), 100.0 * np.arange(1, some.size + 1) / some.size, label, colour
        )
        for some, label, colour in ((values, "lifetime", FSU), (recent, "in the window", READ))
        if some.size
    ]
    if rated is not None:
        marks.append(Rule(rated, "vertical", f"rated {rated:g}"))
    return Panel("Drives at or below", x, Axis("drives (%)", low=0, high=102), tuple(marks))


def _wear(result: Drives, timestamps: list[FleetReading], times: NDArray[Any], x: Axis) -> Panel:
    lines = (("most worn", "wear_max_pct", READ), ("mean", "wear_mean_pct", FSU), ("least worn", "wear_min_pct", WRITE))
    series = [(label, _series(timestamps, name), colour) for label, name, colour in lines]
    known = np.concatenate([values for _, values, _ in series])
    known = known[np.isfinite(known)]
    if not known.size:
        return Panel(window_title(result), x, Axis("rated life used (%)"), message=NO_WEAR)
    if not known.any():
        return Panel(window_title(result), x, Axis("rated life used (%)"), message=UNWORN)
    marks = tuple(_mark(times, values, label, colour) for label, values, colour in series)
    return Panel(window_title(result), x, Axis("rated life used (%)", low=0, high=1.1 * max(known.max(), 1.0)), marks)


def _paces(timestamps: list[FleetReading], times: NDArray[Any], x: Axis) -> Panel:
    dwpd, waf = _series(timestamps, "dwpd"), _series(timestamps, "waf")
    if not np.isfinite(dwpd).any():
        return Panel("Between readings", x, Axis("drive writes per day"), message=NO_RATES)
    marks: list[Mark] = [_mark(times, dwpd, "drive writes per day", WRITE)]
    right = None
    if np.isfinite(waf).any():
        marks.append(_mark(times, waf, "write amplification", READ, "right"))
        right = Axis("WAF", low=0, high=1.1 * float(np.nanmax(waf)))
    y = Axis("drive writes per day", low=0, high=1.1 * float(np.nanmax(dwpd)) or 1.0)
    return Panel("All drives together, since the readings before", x, y, tuple(marks), right)


def _series(times: list[FleetReading], name: str) -> Floats:
    values = [getattr(fleet_reading, name) for fleet_reading in times]
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _mark(times: NDArray[Any], values: Floats, label: str, colour: str, side: Any = "left") -> Mark:
    """A line over what is known; dots where that is a single one, or very many."""
    known = np.isfinite(values)
    shown = LineMark if 1 < int(known.sum()) <= LINE_AT_MOST else PointsMark
    return shown(times[known], values[known], label, colour, side)
