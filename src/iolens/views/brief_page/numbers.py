"""Numbers in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.analyses.calibration.state import DISK_TIME_WITHOUT_LEVEL
from iolens.units import format_bytes_si
from iolens.views.render.tables import sentence, show_percent
from iolens.views.runs.words import shown_number
from iolens.visible_text import core_hours, listed

if TYPE_CHECKING:
    from iolens.analyses.job_page import DiskCost

LEAST_HOURS: Final = 0.01  # that are shown as a number
DISK_TIME: Final = "Disk time: the seconds for which the disks of the file system worked on what was asked for."
ASSOCIATED: Final = {
    "overlap": "The servers did not count by job: the share is by bytes that moved at the same time. That is"
    " association, not proof.",
    "both": "The servers did not count by job all the time: some of the share is by bytes that moved at the same time."
    " That is association, not proof.",
}


def hours(value: float) -> str:
    """`64 core-hours`."""
    if 0 < value < LEAST_HOURS:
        return f"less than {LEAST_HOURS:g} core-hours"
    return core_hours(plain_hours(value))


def plain_hours(value: float) -> str:
    """`1,504`, and three digits of fewer than a hundred."""
    return shown_number(value)


def moved_words(read_bytes: int | None, write_bytes: int | None) -> str | None:
    """`read 748 GB and wrote 808 GB`; None where neither is known."""
    said = [
        f"{verb} {format_bytes_si(count)}"
        for verb, count in (("read", read_bytes), ("wrote", write_bytes))
        if count is not None
    ]
    return listed(said, 2) if said else None


def cost_words(whose: str, filesystem: str, cost: DiskCost, when: str) -> str:
    """What share of the disk time it took; `when`: while it ran, in this window."""
    about = "" if cost.method == "job_stats" else " about"
    seconds = "" if cost.disk_seconds is None else f" ({plain_hours(cost.disk_seconds)} s)"
    busy = "" if cost.fsu_pct is None else f"; {_busy(cost, cost.fsu_pct)}"
    share = f"{show_percent(cost.share_pct)} % of the disk time of {filesystem} {when}"
    words = cost.calibration_words if cost.has_levels else DISK_TIME_WITHOUT_LEVEL
    is_said = words and cost.fsu_pct is not None
    return f"{whose} took{about} {share}{seconds}{busy}." + (f" {sentence(words.removesuffix('.'))}" if is_said else "")


def _busy(cost: DiskCost, fsu_pct: float) -> str:
    """How busy the disks were; their FSU alone where it has no level."""
    if not cost.has_levels:
        why = f" ({cost.calibration_words})" if cost.calibration_words else ""
        return f"FSU of all was {show_percent(fsu_pct)} %, which has no level{why}"
    return f"the disks were {show_percent(fsu_pct)} % busy in all"


def bytes_words(cost: DiskCost) -> str | None:
    """How the share of disk time compares with that of bytes."""
    if cost.bytes_share_pct is None or cost.method != "job_stats":
        return None
    share = show_percent(cost.bytes_share_pct)
    if cost.share_pct > 2 * cost.bytes_share_pct:
        return (
            f"It moved only {share} % of the bytes of all jobs: its bytes were expensive, as small or scattered I/O is."
        )
    return f"It moved {share} % of the bytes of all jobs."
