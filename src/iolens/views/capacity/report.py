"""Capacity in the report; nothing where no reading is complete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.units import format_bytes_si
from iolens.views.capacity import figures as drawn
from iolens.views.capacity import tables as view
from iolens.views.render import tables as t
from iolens.views.render.section import Answer, Fact, Notice, Part, ReportSection
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.capacity.analysis import Capacity

REPORT_ORDER: Final = 40
SOON_DAYS: Final = 180
PURGE: Final = "See what can be purged or moved, and size the next system with `iolens plan capacity`."


def report_answers(result: Capacity) -> list[Answer]:
    """How full it is and when it will be too full."""
    return [Answer("capacity", (view.verdict(result),), drawn.usage(result))] if result.samples else []


def report_identity(result: Capacity) -> list[str]:
    """Its capacity."""
    if not result.samples or result.capacity_bytes is None:
        return []
    return [f"{format_bytes_si(result.capacity_bytes)} of capacity"]


def report_facts(result: Capacity) -> list[Fact]:
    """How full it is."""
    if not result.samples or result.fullness_pct is None or result.used_bytes is None:
        return []
    return [Fact(f"{t.show_percent(result.fullness_pct)} %", "full", f"{format_bytes_si(result.used_bytes)} used")]


def report_now(result: Capacity) -> list[Fact]:
    """How full it is, and when it will be too full."""
    facts = report_facts(result)
    if facts and result.too_little_data is not None and result.threshold_state != "reached":
        return [replace(facts[0], remark=result.too_little_data)]
    if not facts or result.threshold_state != "projected" or result.threshold_date is None:
        return facts
    return [replace(facts[0], remark=f"{result.threshold_pct:g} % on {result.threshold_date}")]


def report_notices(result: Capacity) -> list[Notice]:
    """A threshold that is passed, or will be soon, for bytes and for inodes."""
    if not result.samples or result.window_end is None:
        return []
    measured: list[tuple[str, Any]] = [("the bytes", result)]
    measured += [("the inodes", result.inodes)] if result.inodes is not None else []
    return [notice for what, usage in measured for notice in _threshold(what, usage, result)]


def _threshold(what: str, usage: Any, result: Capacity) -> list[Notice]:
    full = usage.fullness_pct
    if full is None or t.is_missing(full) or result.window_end is None:
        return []
    now = f"{t.show_percent(full)} % of {what} are used"
    if full >= result.threshold_pct:
        return [Notice("high", "capacity", f"{now}: above {result.threshold_pct:g} %.", PURGE, ("contents",))]
    if usage.threshold_state != "projected" or usage.threshold_date is None:
        return []
    days = (usage.threshold_date - result.window_end.date()).days
    if not 0 <= days <= SOON_DAYS:
        return []
    soon = f"{result.threshold_pct:g} % is expected on {usage.threshold_date}, in {counted(days, 'day')}"
    return [Notice("warn", "capacity", f"{now}; {soon}.", PURGE, ("contents",))]


def report_sections(result: Capacity) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.samples:
        return []
    parts: list[Part] = [view.projections(result), view.events(result)]
    if result.fullness is not None:
        parts += [drawn.targets(result), view.spread(result)]
    if result.inodes is not None:
        parts.append(view.inodes(result.inodes))
    return [ReportSection("Capacity", (*parts, view.headline(result)), "capacity")]


def report_methods(results: Sequence[Capacity]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.samples for result in results):
        return []
    return [
        ReportSection(
            "Capacity over time",
            (
                "Usage is the sum over all targets at times when each of them answered. Two lines are fitted to it:"
                " least squares, and Theil–Sen (the median slope of all pairs of readings), on which purges have little"
                " effect. Their intervals come from 2,000 resamples with noise as large and persistent as that"
                " of the readings.",
                "A purge or surge is a run of changes on one side of the usual pace that adds up to more than four"
                " times what the usual spread would, and to at least one per cent of the capacity.",
            ),
        )
    ]
