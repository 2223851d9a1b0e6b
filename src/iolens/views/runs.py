"""Titles, names and axes of views of many runs, and runs by classes of processes as tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.analyses.runs.asked import UNKNOWN
from iolens.run_tables import SHORT_S
from iolens.units import format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import HEAT, NAMES, OTHERS, RULE, Axis, Figure, Panel, side_by_side, stacked
from iolens.views.render.log_scales import bytes_unit, log_axis
from iolens.views.render.shown_times import show_time, time_with_zone
from iolens.views.render.tables import TableColumn, is_missing, show_percent
from iolens.visible_text import counted, shortened, visible

if TYPE_CHECKING:
    from iolens.analyses.runs.asked import JoinedRuns, OverRuns, ProcessClass, RunUse
    from iolens.analyses.runs_interfaces import RunInterfaces
    from iolens.analyses.runs_patterns import RunPatterns
    from iolens.arrays import Floats
    from iolens.views.render.tables import TableView


# Titles, names and axes that views of many application runs share -----------------------------------------------------

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


# Runs by classes of processes and what they use, as tables and figures ------------------------------------------------
# Interfaces and patterns are shown alike.

FIGURES: Final = ("shares", "bytes")
ALL: Final = "all runs"


def class_name(line: ProcessClass) -> str:
    """`1`, `2`, `3–4`, `5–8`, …"""
    if line.processes_from is None:
        return ALL
    if line.processes_from == line.processes_to:
        return f"{line.processes_to:,}"
    return f"{line.processes_from:,}–{line.processes_to:,}"


def class_tables(result: RunInterfaces | RunPatterns, what: str, words: Mapping[str, str]) -> list[TableView]:
    """One line for each class and use; what nobody uses is left out."""
    columns = (
        t.text("processes", "Processes"), t.text("name", f"{what[:1].upper()}{what[1:]}"), t.count("runs", "Runs"),
        t.percent("runs_pct", "Of runs"), t.volume("read_bytes", "Read"), t.percent("read_pct", "Of reads"),
        t.volume("write_bytes", "Written"), t.percent("write_pct", "Of writes"),
    )  # fmt: skip
    rows = [
        t.row_of(use, columns, {"processes": class_name(line), "name": words[use.name]})
        for line in (*result.classes, result.overall)
        for use in line.uses
        if use.runs
    ]
    return [
        t.TableView(
            titled(result, f"{what}s of runs by processes"),
            columns,
            rows,
            "\n".join(_notes(result, what)),
            name=f"{what.split()[-1]}s",
        )
    ]


def _notes(result: RunInterfaces | RunPatterns, what: str) -> list[str]:
    notes = [f"{window_words(result)}. A run counts under each {what} of which it used a file."]
    without = result.overall.runs_without_files
    if without:
        notes.append(f"{counted(without, 'run')} used no file.")
    if result.runs_without_processes:
        notes.append(f"{counted(result.runs_without_processes, 'run')} in no class: the processes are not known.")
    return notes


def class_figures(
    result: RunInterfaces | RunPatterns, what: str, words: Mapping[str, str]
) -> dict[str, Callable[[], Figure]]:
    """Shares of runs, bytes read and bytes written by class (Fig. 3), and the bytes themselves."""
    return {
        "shares": lambda: _shares(result, what, words),
        "bytes": lambda: _bytes(result, what, words),
    }


def _shares(result: RunInterfaces | RunPatterns, what: str, words: Mapping[str, str]) -> Figure:
    panels = (
        _panel(result, words, "runs", "runs_pct", "% of runs", is_stacked=False),
        _panel(result, words, "bytes read", "read_pct", "% of bytes"),
        _panel(result, words, "bytes written", "write_pct", "% of bytes"),
    )
    return Figure("shares", titled(result, f"{what}s of runs by processes"), panels)


def _bytes(result: RunInterfaces | RunPatterns, what: str, words: Mapping[str, str]) -> Figure:
    top = float(max((max(line.read_bytes, line.write_bytes) for line in result.classes), default=0))
    factor, unit = bytes_unit(top)
    panels = (
        _panel(result, words, "bytes read", "read_bytes", unit, factor=factor),
        _panel(result, words, "bytes written", "write_bytes", unit, factor=factor),
    )
    return Figure("bytes", titled(result, f"bytes by {what} and processes"), panels)


def _panel(
    result: RunInterfaces | RunPatterns,
    words: Mapping[str, str],
    title: str,
    field: str,
    label: str,
    *,
    is_stacked: bool = True,
    factor: float = 1.0,
) -> Panel:
    names = tuple(class_name(line) for line in result.classes)
    x = names_axis(names, "processes")
    y = Axis(label, low=0.0, high=100.0 if field.endswith("_pct") else None)
    used = [use.name for use in result.overall.uses if use.runs]
    groups = [
        (words[name], colour, np.array([_value(line, name, field) / factor for line in result.classes]))
        for name, colour in zip(words, COLOURS, strict=False)
        if name in used
    ]
    if not groups or not any(heights.any() for _, _, heights in groups):
        return Panel(title, x, y, message=EMPTY)
    return Panel(title, x, y, stacked(groups, names) if is_stacked else side_by_side(groups, names))


def _value(line: ProcessClass, name: str, field: str) -> float:
    """What is not known, or nothing, has no bar."""
    uses: Sequence[RunUse] = line.uses
    return next((float(getattr(use, field) or 0.0) for use in uses if use.name == name), 0.0)
