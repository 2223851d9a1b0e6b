"""Drives in the report; nothing where no drive was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.drives import figures as drawn
from iolens.views.drives import tables as view
from iolens.views.render import tables as t
from iolens.views.render.section import Answer, Notice, Part, ReportSection
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.drives.analysis import Drives

REPORT_ORDER: Final = 48
NEARLY_WORN_PCT: Final = 80.0
WORN_PCT: Final = 100.0


def report_answers(result: Drives) -> list[Answer]:
    """How the drives are doing."""
    return [Answer("drives", (view.verdict(result),), drawn.amplification(result))] if result.drives else []


def report_identity(result: Drives) -> list[str]:
    """How many drives were read."""
    return [counted(result.drives, "drive")] if result.drives else []


def report_notices(result: Drives) -> list[Notice]:
    """Drives that are worn out, or nearly."""
    worn = result.wear_pct.max
    if not result.drives or worn is None or not worn >= NEARLY_WORN_PCT:
        return []
    words = f"The most worn drive has used {t.show_percent(worn)} % of its rated life."
    step = "Replace worn drives, and check how long the others last."
    return [Notice("high" if worn >= WORN_PCT else "warn", "drives", words, step, ("drives",))]


def report_sections(result: Drives) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.drives:
        return []
    parts: list[Part] = []
    if result.outliers.drives:
        parts.append(view.outliers(result))
    parts += [
        drawn.drive_writes_per_day(result),
        view.spreads(result),
        drawn.over_time(result),
        view.years_left(result),
    ]
    parts += [view.busiest(result), view.groups(result), view.headline(result)]
    return [
        ReportSection("Drives", tuple(parts), "drives"),
        ReportSection("What the wear of drives rests on", (view.coverage(result),), "appendix"),
    ]


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
