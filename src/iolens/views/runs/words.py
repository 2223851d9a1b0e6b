"""Titles, names and axes that views of many application runs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.analyses.runs.asked import UNKNOWN
from iolens.run_tables import SHORT_S
from iolens.units import format_bytes
from iolens.views.render.figures import HEAT, NAMES, OTHERS, RULE, Axis
from iolens.views.render.log_scales import log_axis
from iolens.views.render.shown_times import show_time, time_with_zone
from iolens.views.render.tables import TableColumn, is_missing, show_percent
from iolens.visible_text import counted, shortened, visible

if TYPE_CHECKING:
    from iolens.analyses.runs.asked import JoinedRuns, OverRuns
    from iolens.arrays import Floats

COLOURS: Final = (*NAMES, OTHERS, RULE)
SHADES_OF_SIZE: Final = HEAT[6:60:6] + HEAT[-1:]  # from small to large
EMPTY: Final = "none known"
MOST_NAMES: Final = 20  # of projects below a figure
LONGEST: Final = 22  # characters of one of them
WIDE: Final = 200.0  # largest over smallest: from here on a scale is logarithmic


def project_name(project: str | None) -> str:
    """What a project is called; one that nobody knows too."""
    return UNKNOWN if project is None else project


def titled(result: OverRuns, what: str) -> str:
    """What is shown, and of which file system where one was asked for."""
    return f"{result.filesystem}: {what}" if result.filesystem else f"{what[:1].upper()}{what[1:]}"


def window_words(result: OverRuns) -> str:
    """How many runs, and when."""
    runs = counted(result.runs, "run")
    if result.window_start is None or result.window_end is None:
        return runs
    return f"{runs}, {show_time(result.window_start)} to {time_with_zone(result.window_end)}"


def rate_warnings(runs_short: int, runs_without_rate: int = 0, method: str = "") -> list[str]:
    """What to know of rates before they are believed."""
    doubts = (
        (runs_short, f"{counted(runs_short, 'run')} with less than {SHORT_S:g} s in I/O: so short a time says little"),
        (
            runs_without_rate,
            f"{counted(runs_without_rate, 'run')} loaded by an iolens that kept no times of MPI-IO and DFS: the rate is"
            " not known; load the logs into a new store",
        ),
        (
            method == "paper",
            "rates and times by POSIX and STDIO alone, as in the study: without the time that MPI-IO spends above them",
        ),
    )
    return [words for holds, words in doubts if holds]


def names_axis(names: Sequence[str], label: str = "") -> Axis:
    """Names below the marks, slanted where they would touch."""
    if not names:
        return Axis(label)
    short = [shortened(visible(name), LONGEST) for name in names]
    slanted = len(short) > 1 and sum(map(len, short)) + 2 * len(short) > 60
    ticks = tuple((float(place), name) for place, name in enumerate(short))
    return Axis(label, low=-0.6, high=len(short) - 0.4, ticks=ticks, slanted=slanted)


def height_axis(label: str, values: Floats) -> Axis:
    """From zero, or logarithmic where values are far apart."""
    positive = values[np.isfinite(values) & (values > 0)]
    if positive.size and positive.max() / positive.min() > WIDE:
        return log_axis(f"{label}, log scale", positive)
    return Axis(label, low=0.0)


def shown_number(value: float) -> str:
    """Three digits, and all of those before the point, with thousands apart: `0.0123`, `45.6`, `62,960`.

    What is less than 100 is not shown as 100: it may be a percentage.
    """
    if 99.9 < value < 100.0 or is_missing(value):
        return show_percent(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def number(name: str, heading: str, unit: str = "") -> TableColumn:
    """A column of numbers of any size."""
    return TableColumn(name, heading, "number", shown_number, unit)


def first_of(shown: int, known: int) -> str:
    """Words for a figure that has no place for all."""
    return "" if shown >= known else f" (the first {shown} of {known})"


def bin_name(to_bytes: int | None) -> str:
    """A size of accesses by its upper end: `1 KiB`, `more`."""
    return "more" if to_bytes is None else format_bytes(to_bytes)


def joined_words(joined: JoinedRuns) -> str:
    """How runs found their jobs."""
    parts = (
        (joined.by_id, "by job id"),
        (joined.by_user_executable_time, "by user, executable and time"),
        (joined.without_job, "without a job of the scheduler"),
    )
    matched = ", ".join(f"{count:,} {words}" for count, words in parts if count)
    return f"Runs matched with jobs: {matched or 'none'}."
