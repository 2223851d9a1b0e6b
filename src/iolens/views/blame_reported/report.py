"""Who made it busy in the report: users over the window, jobs in the busiest hour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolens.views.blame import figures as drawn
from iolens.views.blame import tables as view
from iolens.views.blame import words
from iolens.views.render import tables as t
from iolens.views.render.section import Part, ReportSection
from iolens.views.render.shown_times import time_with_zone

if TYPE_CHECKING:
    from iolens.analyses.blame.reported import ReportedBlame

REPORT_ORDER: Final = 15


def report_summary(result: ReportedBlame) -> list[Part]:
    """Who comes first over the window, and in the busiest hour."""
    hour = result.busiest_hour
    began = f"In the busiest hour, from {time_with_zone(hour.window_start)}"
    busy = "" if hour.fsu_pct is None else f" (FSU {t.show_percent(hour.fsu_pct)} %)"
    return [words.verdict(result.users), f"{began}{busy}: {words.verdict(hour)}"]


def report_sections(result: ReportedBlame) -> list[ReportSection]:
    """Shares over time and by target, and the names."""
    hour = result.busiest_hour
    return [
        ReportSection("Who made it busy", (drawn.shares(result.users), view.who(result.users))),
        ReportSection("Who made the busiest hour busy", (drawn.shares(hour), view.who(hour), drawn.targets(hour))),
    ]


def report_methods(results: Sequence[ReportedBlame]) -> list[ReportSection]:
    """What a share is."""
    text = (
        "A job's RPCs and bytes on a target, by job_stats, are priced by the calibration of its disks, with as many"
        " disk I/Os for each RPC as the target made of all RPCs of that interval. Where that adds up to more than the"
        " disks did by their own count, it is scaled down to it; what is left is unattributed: I/O without a job id,"
        " journals, read-ahead, write-back of an earlier interval. Shares and the unattributed rest make 100 %."
    )
    return [ReportSection("Who made it busy", (text,))] if results else []
