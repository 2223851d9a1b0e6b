"""What a run's activity over time amounts to, in words from the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from iolens.views.render.tables import show_whole_percent
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs.timeline import RunTimeline

ORIGINS: Final[Mapping[str, str]] = {
    "dxt": "every access as DXT traced it",
    "heatmap": "Darshan's heat map",
    "records": "the first and last access to each file",
}

UNCOORDINATED: Final = (
    ": they are not coordinated, and the rate by the slowest rank says little of such a run (the study's Fig. 13)"
)


def activity_words(result: RunTimeline) -> str:
    """How much of the time there is I/O, in how many phases, and whether ranks do it together."""
    if not result.phases:
        return "No I/O is known at any time."
    share = "" if result.active_time_pct is None else f"in {show_whole_percent(result.active_time_pct)} % of the time, "
    words = f"There is I/O {share}in {counted(len(result.phases), 'phase')}."
    if result.mean_active_ranks_pct is None or (result.nprocs or 1) < 2:
        return words
    active = (
        f"In the mean {show_whole_percent(result.mean_active_ranks_pct)} % of the ranks are active at the same time"
    )
    return f"{words} {active}{'' if result.coordinated else UNCOORDINATED}."
