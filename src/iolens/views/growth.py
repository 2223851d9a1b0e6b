"""Daily growth for people: the distribution of Fig. 1 of paper P, and what was left out of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.analyses.capacity.readings import LEAST_DAYS
from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.figures import WRITE, Axis, Bars, Figure, Panel, Rule
from iolens.views.render.section import Part, ReportSection
from iolens.views.render.window_axes import window_title
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.growth import Growth
    from iolens.views.render.tables import TableColumn, TableView


NO_GROWTH: Final = "No day of growth is known"
REPORT_ORDER: Final = 45


def tables(result: Growth) -> list[TableView]:
    """The headline, and every day for machines."""
    return [headline(result), daily(result)]


def per_day(name: str, heading: str) -> TableColumn:
    """Bytes per day, in powers of ten (`133 TB/day`)."""
    return t.TableColumn(name, heading, "number", lambda value: f"{format_bytes_si(value)}/day")


def interval(ends: tuple[float, float] | None) -> str | None:
    """`120 TB … 150 TB`."""
    return None if ends is None else f"{format_bytes_si(ends[0])} … {format_bytes_si(ends[1])}"


def headline(result: Growth) -> TableView:
    """Mean and median, and which days they are of."""
    columns = (
        t.text("filesystem", "File system"), t.time("window_start", "From"), t.time("window_end", "To"),
        t.text("method", "Method"), per_day("mean_bytes_per_day", "Mean"), t.text("mean_ci95", "… 95 % interval"),
        per_day("median_bytes_per_day", "Median"), t.text("median_ci95", "… 95 % interval"),
        per_day("p95_bytes_per_day", "95 % of days are at or below"), per_day("max_bytes_per_day", "Largest"),
        t.count("days_with_growth", "Days of growth"), t.count("days_excluded", "Days left out"),
        t.count("days_shrinking", "… usage fell"), t.count("days_after_gap", "… after a gap"),
        t.count("days_targets_changed", "… other targets"), t.count("days_before_cutoff", "Days before the cut-off"),
        t.count("incomplete_days", "Days without a complete reading"), t.text("readings", "Readings"),
        t.volume("capacity_bytes", "Capacity"), t.text("capacity_origin", "Capacity is"),
    )  # fmt: skip
    own = {"mean_ci95": interval(result.mean_ci95), "median_ci95": interval(result.median_ci95)}
    row = t.row_of(result, columns, own)
    begins = [] if result.days_with_growth else [NO_GROWTH]
    notes = [*([result.too_little_data] if result.too_little_data is not None else begins), *result.notes]
    return t.TableView(
        f"{result.filesystem}: daily growth", columns, [row], "\n".join(map(t.sentence, notes)), True, name="growth"
    )


def daily(result: Growth) -> TableView:
    """The days of largest growth."""
    columns = (t.day("date", "Day"), per_day("bytes_per_day", "Growth"))
    kept = [(day.date, day.bytes_per_day) for day in result.daily if day.fate == "kept"]
    largest = sorted(kept, key=lambda row: -(row[1] or 0.0))[:10]
    days = counted(len(kept), "day")
    note = f"{len(largest)} of {days} of growth; JSON has them all." if len(kept) > len(largest) else ""
    note = note if kept else f"{NO_GROWTH}."
    return t.TableView("Days of largest growth", columns, list(largest), note, name="per_day")


def report_sections(result: Growth) -> list[ReportSection]:
    """Fig. 1 and what it rests on."""
    if not result.days_with_growth:
        return []

    figure = distribution(result)
    parts: tuple[Part, ...] = (figure if figure.has_content else figure.message, headline(result))
    return [ReportSection("Daily growth", parts, "capacity")]


# Figure 1 of paper P for any file system ------------------------------------------------------------------------------
# How the days of growth are distributed.

BINS: Final = 40
UNITS: Final = ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def figures(result: Growth) -> dict[str, Callable[[], Figure]]:
    """Fig. 1."""
    return {"growth": lambda: distribution(result)}


def byte_unit(top: float) -> tuple[float, str]:
    """The power of ten that shows `top` as a number from one to a thousand."""
    return next((unit for unit in UNITS if top >= unit[0]), UNITS[-1])


def distribution(result: Growth) -> Figure:
    """Days by growth in equal bins, with mean and median."""
    heading, name = "Distribution of daily growth", "growth"
    kept = np.array(result.kept)
    if result.too_little_data is not None or kept.size < LEAST_DAYS:
        days = f"{counted(kept.size, 'day')} of growth: a distribution needs {LEAST_DAYS}"
        words = result.too_little_data or (days if kept.size else "no day of growth is known")
        return Figure(name, heading, (Panel(result.filesystem, Axis("daily growth"), Axis("days"), message=words),))
    mean, median = float(kept.mean()), float(np.median(kept))
    factor, unit = byte_unit(mean)
    counts, edges = np.histogram(kept / factor, BINS, (0.0, float(kept.max()) / factor or 1.0))
    names = tuple(f"{low:.3g} to {high:.3g} {unit}" for low, high in itertools.pairwise(edges))
    label = f"{counted(kept.size, 'day')} of growth, method {result.method}"
    bars = Bars(edges[:-1], edges[1:], counts.astype(float), label, WRITE, names)
    words = f"median {format_bytes_si(median)}, mean {format_bytes_si(mean)} a day"
    rules = (Rule(median / factor, "vertical", ""), Rule(mean / factor, "vertical", words))
    x = Axis(f"daily growth ({unit})", low=0, high=float(edges[-1]))
    y = Axis("days", low=0, high=1.15 * float(counts.max()))
    return Figure(name, heading, (Panel(window_title(result), x, y, (bars, *rules)),))
