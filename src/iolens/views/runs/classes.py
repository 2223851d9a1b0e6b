"""Runs by classes of processes and what they use, as tables and figures: interfaces and patterns are shown alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import Axis, Figure, Panel, side_by_side, stacked
from iolens.views.render.log_scales import bytes_unit
from iolens.views.runs.words import COLOURS, EMPTY, names_axis, titled, window_words
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs.asked import ProcessClass, RunUse
    from iolens.analyses.runs_interfaces import RunInterfaces
    from iolens.analyses.runs_patterns import RunPatterns
    from iolens.views.render.tables import TableView

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
