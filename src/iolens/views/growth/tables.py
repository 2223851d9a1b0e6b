"""Daily growth for people: the distribution of Fig. 1 of paper P, and what was left out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.section import Part, ReportSection
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
    from iolens.views.growth import figures as drawn

    figure = drawn.distribution(result)
    parts: tuple[Part, ...] = (figure if figure.has_content else figure.message, headline(result))
    return [ReportSection("Daily growth", parts, "capacity")]
