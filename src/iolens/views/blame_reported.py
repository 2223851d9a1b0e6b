"""Who made it busy in the report: users over the window, jobs in the busiest hour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolens.views import blame as drawn
from iolens.views import blame as view
from iolens.views import blame as words
from iolens.views.render import tables as t
from iolens.views.render.section import Answer, Notice, ReportSection
from iolens.views.render.shown_times import time_with_zone

if TYPE_CHECKING:
    from iolens.analyses.blame_reported import ReportedBlame


REPORT_ORDER: Final = 15
BUSY_PCT: Final = 30.0
MOST_PCT: Final = 50.0


def report_answers(result: ReportedBlame) -> list[Answer]:
    """Who comes first over the window, and in the busiest hour."""
    hour = result.busiest_hour
    which = "busiest hour" if hour.has_levels else "hour with most disk time"
    began = f"In the {which}, from {time_with_zone(hour.window_start)}"
    busy = "" if hour.fsu_pct is None else f" (FSU {t.show_percent(hour.fsu_pct)} %, {hour.calibration_words})"
    return [
        Answer("who", (words.verdict(result.users),), drawn.shares(result.users)),
        Answer("who", (f"{began}{busy}: {words.verdict(hour)}",)),
    ]


def report_notices(result: ReportedBlame) -> list[Notice]:
    """A job that took most of the disk time of a busy hour."""
    hour = result.busiest_hour
    if (
        not hour.has_levels
        or not hour.who
        or hour.fsu_pct is None
        or hour.fsu_pct < BUSY_PCT
        or hour.who[0].share_pct < MOST_PCT
    ):
        return []
    first = hour.who[0]
    share = f"{t.show_percent(first.share_pct)} % of the disk time of the busiest hour"
    said = f"{words.named(first, hour)} took {share} (FSU {t.show_percent(hour.fsu_pct)} %)."
    step = "Send its user a page with what to change."
    command = ("report", "--job", first.name) if hour.by == "job" and first.is_known else ("blame", "--busiest", "1h")
    return [Notice("warn", "who", said, step, command)]


def report_sections(result: ReportedBlame) -> list[ReportSection]:
    """Shares over time and by target, and the names."""
    hour = result.busiest_hour
    return [
        ReportSection("By user", (view.who(result.users),), "who"),
        ReportSection(
            "The busiest hour by job" if hour.has_levels else "The hour with most disk time by job",
            (drawn.shares(hour), view.who(hour), drawn.targets(hour)),
            "who",
        ),
    ]


def report_methods(results: Sequence[ReportedBlame]) -> list[ReportSection]:
    """What a share is."""
    text = (
        "The disk time of a job on a target is computed from its RPCs and bytes (job_stats) with the calibration of"
        " the disks and the target's number of disk I/Os per RPC in that interval. If the jobs add up to more than the"
        " disks did by their own count, they are scaled down to it; what is left is unattributed: I/O without a job id,"
        " journals, read-ahead, write-back of an earlier interval. Shares and the unattributed rest make 100 %."
    )
    return [ReportSection("Whose I/O it was", (text,))] if results else []
