"""Drives in the report; nothing where no drive was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.drives import figures as drawn
from iolens.views.drives import tables as view
from iolens.views.render.section import Part, ReportSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.drives.analysis import Drives

REPORT_ORDER: Final = 48


def report_summary(result: Drives) -> list[Part]:
    """How the drives are doing."""
    return [view.verdict(result)] if result.drives else []


def report_sections(result: Drives) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.drives:
        return []
    parts: list[Part] = [drawn.amplification(result)]
    if result.outliers.drives:
        parts.append(view.outliers(result))
    parts += [
        drawn.drive_writes_per_day(result),
        view.spreads(result),
        drawn.over_time(result),
        view.years_left(result),
    ]
    parts += [view.busiest(result), view.groups(result), view.headline(result), view.coverage(result)]
    return [ReportSection("Drives", tuple(parts))]


def report_methods(results: Sequence[Drives]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.drives for result in results):
        return []
    return [
        ReportSection(
            "Wear of drives",
            (
                "Write amplification (WAF) is bytes written to flash divided by bytes written by hosts, over a drive's"
                " life; for several drives together, the sums are divided. Drive writes per day (DWPD) are host bytes"
                " divided by capacity and by the days a drive was powered. Where drives were read more than once, the"
                " same numbers of the window are differences between readings, by the calendar.",
                "A drive rewrites its flash even when nobody writes to it, so a little-used drive shows a high WAF"
                " without wearing out. A WAF is called high beyond three inter-quartile ranges above the third"
                " quartile, and low use is less than half the median of lifetime writes.",
            ),
        )
    ]
