"""The metadata load in the report; nothing where no metadata target reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.metadata import figures as drawn
from iolens.views.metadata import tables as view
from iolens.views.render import tables as t
from iolens.views.render.coverage import covered
from iolens.views.render.section import Answer, Notice, Part, ReportSection
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.metadata import Metadata

REPORT_ORDER: Final = 20
MUCH_PCT: Final = 30.0


def report_answers(result: Metadata) -> list[Answer]:
    """Rate, what the operations are, and how busy that made the servers."""
    if not result.samples or result.mean_ops_per_s is None or result.peak_ops_per_s is None:
        return []
    rates = f"{result.mean_ops_per_s:,.0f} operations per second on average, {result.peak_ops_per_s:,.0f} at most"
    kinds = [f"{t.show_percent(line.share_pct)} % {line.operation}" for line in result.mix[:3] if line.share_pct]
    most = f"; most are {', '.join(kinds)}" if kinds else ""
    words = covered(result, f"The metadata servers did {rates}{most}.")
    return [Answer("metadata", (words, view.verdict(result)), drawn.operations(result))]


def report_identity(result: Metadata) -> list[str]:
    """How many metadata targets."""
    return [counted(result.targets, "metadata target")] if result.samples else []


def report_notices(result: Metadata) -> list[Notice]:
    """Metadata servers that are busy much of the time."""
    busy = result.busy_time_pct
    if not result.samples or busy is None or not busy >= MUCH_PCT:
        return []
    words = covered(result, f"The metadata servers were busy {t.show_percent(busy)} % of the time by MDU.")
    return [Notice("warn", "metadata", words, "See whose operations they are.", ("blame", "--metadata"))]


def report_sections(result: Metadata) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.samples:
        return []
    parts: list[Part] = [view.mix(result)]
    if result.mean_mdu_pct is not None or result.mean_mdu_service_pct is not None:
        parts.append(drawn.mdu(result))
    costs = [view.costs(result)] if result.calibration is not None else []
    return [
        ReportSection(
            "Load on the metadata servers",
            (*parts, view.per_target(result), view.daily(result), *costs),
            "metadata",
        ),
        ReportSection("What metadata load rests on", (view.coverage(result),), "appendix"),
    ]


def report_methods(results: Sequence[Metadata]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.samples for result in results):
        return []
    return [
        ReportSection(
            "Metadata Utilization",
            (
                "Metadata Utilization (MDU) is the share of time a metadata server needs for the operations it did:"
                " each costs the time it takes at the highest rate mdtest reached. An operation that mdtest does not"
                " measure is taken at the cheapest cost it did; the share of those is stated. Idle, moderate and busy"
                " are as for FSU.",
                "By service times is the sum of the times the server itself counted, divided by the interval: 100 % is"
                " one operation under way throughout. Servers work on many at once, so this may pass 100 % long before"
                " they are full.",
            ),
        )
    ]
