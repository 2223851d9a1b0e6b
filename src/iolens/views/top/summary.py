"""The lines above the table: the file system as a whole, how old the data are, and what is not known."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from iolens.analyses.live.analysis import NAMES_SHOWN, LiveReading
from iolens.views.render.shown_times import time_with_zone
from iolens.views.render.tables import is_missing
from iolens.views.top import words
from iolens.views.top.columns import short_name
from iolens.visible_text import counted, shown_name, some_names, visible

BAR_WIDTH: Final = 20
NARROW: Final = 80


def title(origin: str, reading: LiveReading | None, mode: str, width: int) -> Text:
    """`iolens top  live  scratch  2026-01-01 12:00:05 UTC (3 s ago)  store centre`."""
    line = Text(no_wrap=True)
    line.append(" iolens top " if width >= NARROW else " top ", style="bold reverse")
    line.append(" ")
    line.append(f" {mode} ", style="bold" if mode == "live" else f"reverse {words.STYLES['moderate']}")
    if reading is not None:
        line.append(f" {shown_name(reading.filesystem)}", style="bold")
        if reading.time is not None:
            line.append(f"  {time_with_zone(reading.time)}")
        if reading.age_s is not None:
            style = f"reverse {words.STYLES['busy']}" if reading.stale else "dim"
            line.append(f" ({words.ago(reading.age_s)} ago)", style=style)
    line.append(f"  {visible(origin)}", style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


def no_data(reading: LiveReading) -> str:
    """What is said where the newest tick is too old: `no data for 300 d`."""
    return f"no data for {words.ago(reading.age_s)}: has its writer stopped? ← shows the past"


def totals(reading: LiveReading | None, width: int) -> Text:
    """Mean FSU as number, bar and course, and what is moved."""
    line = Text(" ", no_wrap=True)
    if reading is None:
        return line
    by_bytes = reading.mean_fsu_pct is None and reading.mean_fsu_bytes_pct is not None
    mean = reading.mean_fsu_bytes_pct if by_bytes else reading.mean_fsu_pct
    style = words.style_of(mean, reading.has_levels)
    line.append(f"{reading.calibration_words}: " if not reading.has_levels else "", style="bold")
    line.append("FSUb " if by_bytes else "FSU ")
    line.append(f"{words.per_cent(mean):>5} %", style=style)
    if width >= 100 and reading.has_levels:
        line.append(" ▕", style="dim")
        line.append(words.bar((mean or 0.0) / 100.0, BAR_WIDTH), style=style)
        line.append("▏", style="dim")
    unit = "MiB/s" if width >= NARROW else ""
    parts = [
        ("read", words.mib_per_s(reading.read_bytes_per_s), unit),
        ("write", words.mib_per_s(reading.write_bytes_per_s), "MiB/s"),
        ("", words.short(reading.iops), "I/O/s"),
    ]
    if reading.metadata_ops_per_s is not None:
        parts.append(("", words.short(reading.metadata_ops_per_s), "md/s"))
    for name, value, measured_in in parts:
        line.append(f"  {name} " if name else "  ")
        line.append(value, style="bold")
        line.append(f" {measured_in}" if measured_in else "", style="dim")
    space = width - line.cell_len - 3
    if space >= 10 and reading.course:
        line.append("  ")
        append_sparkline(line, reading.course, min(space, len(reading.course)), reading.has_levels)
    line.truncate(width, overflow="ellipsis")
    return line


def coverage(reading: LiveReading | None, width: int) -> Text:
    """How many targets report, which do not, resets, gaps, and the calibration."""
    line = Text(" ", no_wrap=True)
    if reading is None:
        return line
    all_there = reading.targets_reporting == reading.targets_known
    reporting = f"{reading.targets_reporting} of {counted(reading.targets_known, 'target')}"
    line.append(f"{reporting} report{'s' * (reading.targets_reporting == 1)}", style="" if all_there else "bold")
    if reading.missing_targets:
        names = [short_name(name, reading.filesystem) for name in reading.missing_targets]
        line.append(f" · {words.SILENT} silent: {some_names(names, NAMES_SHOWN)}", style=words.STYLES["busy"])
    if reading.resets:
        line.append(f" · {words.AFTER_RESET} {reading.resets} after a reset", style=words.STYLES["moderate"])
    if reading.gaps:
        line.append(f" · {reading.gaps} with missed samples", style=words.STYLES["moderate"])
    if reading.interval_s is not None and not is_missing(reading.interval_s):
        line.append(f" · interval {reading.interval_s:.3g} s", style="dim")
    state = "" if reading.calibration_state is None else f" ({reading.calibration_state})"
    line.append(f" · calibration {visible(reading.calibration)}{state}", style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


def append_sparkline(line: Text, course: tuple[float | None, ...], width: int, has_levels: bool) -> None:
    """A sparkline, each tick in the colour of its category; without levels as high as its share of the largest."""
    shown = course[-width:] if width > 0 else ()
    largest = None if has_levels else words.largest(shown)
    line.append(" " * (width - len(shown)))
    for value in shown:
        line.append(words.level(value, largest), style=words.style_of(value, has_levels))
