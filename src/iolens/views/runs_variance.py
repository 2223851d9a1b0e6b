"""Groups of like runs for people: their I/O times and how these vary (Table IV)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import READ, WRITE_SHADES, Axis, Bars, Figure, Panel, PointsMark
from iolens.views.runs import (
    EMPTY,
    MOST_NAMES,
    first_of,
    height_axis,
    names_axis,
    number,
    project_name,
    rate_warnings,
    titled,
    window_words,
)
from iolens.visible_text import counted, shortened

if TYPE_CHECKING:
    from iolens.analyses.runs_variance import LikeRuns, RunVariance
    from iolens.views.render.tables import TableView


def tables(result: RunVariance) -> list[TableView]:
    """One line for each group."""
    columns = (
        t.text("project", "Project"), t.text("user", "User"), t.text("executable", "Executable"),
        t.count("samples", "Runs"), t.count("nprocs", "Processes"), t.count("files", "Files"),
        t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"), number("mean_s", "Mean", "s"),
        number("min_s", "Shortest", "s"), number("max_s", "Longest", "s"),
        number("stddev_s", "Std. deviation", "s"), t.percent("cv_pct", "CV"),
    )  # fmt: skip
    rows = [
        t.row_of(line, columns, {"project": project_name(line.project), "executable": _executable(line)})
        for line in result.groups
    ]
    title = titled(result, "I/O time of the slowest rank in like runs")
    warnings = tuple(rate_warnings(result.runs_short, result.runs_without_rate, result.method))
    return [t.TableView(title, columns, rows, "\n".join(notes(result)), warnings=warnings, name="groups")]


def _executable(line: LikeRuns) -> str | None:
    more = line.executables - 1
    return f"{line.executable} and {counted(more, 'other')}" if more > 0 else line.executable


def label_of(line: LikeRuns) -> str:
    """What a group is called below a figure: project and processes."""
    return f"{shortened(project_name(line.project), 14)}, {line.nprocs:,}"


def notes(result: RunVariance) -> list[str]:
    """What a group is, and which runs are in none."""
    lines = [
        f"{window_words(result)}; {result.runs_grouped:,} of them in {counted(result.groups_known, 'group')} of at"
        f" least {counted(result.min_samples, 'like run')}: same user, processes and files, bytes within 1 %."
    ]
    if result.groups_left_out:
        lines.append(f"Not listed: {counted(result.groups_left_out, 'group')} with no more variation.")
    missing = (
        (result.runs_without_user, "the user is not known"),
        (result.runs_without_time, "the I/O time, processes, files or bytes are not known"),
    )
    return [*lines, *(f"{counted(count, 'run')} in no group: {words}." for count, words in missing if count)]


# Figure of like runs --------------------------------------------------------------------------------------------------
# Shortest, mean and longest I/O time of the groups that vary most.

FIGURES: Final = ("times",)
RANGE: Final = WRITE_SHADES[0]


def figures(result: RunVariance) -> dict[str, Callable[[], Figure]]:
    """I/O times by group."""
    return {"times": lambda: times(result)}


def times(result: RunVariance) -> Figure:
    """A bar from the shortest to the longest, a dot for the mean."""
    lines = [group for group in result.groups if group.max_s > 0][:MOST_NAMES]
    title = titled(result, f"I/O time of like runs{first_of(len(lines), result.groups_known)}")
    names = tuple(label_of(line) for line in lines)
    x = names_axis(names)
    if not lines:
        return Figure("times", title, (Panel("", x, Axis("s"), message=EMPTY),))
    low, mean, high = (np.array([getattr(line, name) for line in lines]) for name in ("min_s", "mean_s", "max_s"))
    y = height_axis("I/O time of the slowest rank (s)", np.concatenate([low, high]))
    places = np.arange(float(len(lines)))
    low = np.maximum(low, y.low if y.scale == "log" and y.low is not None else 0.0)
    marks = (
        Bars(places - 0.25, places + 0.25, high - low, "shortest to longest", RANGE, names, low),
        PointsMark(places, mean, "mean", READ, weight=2.0),
    )
    return Figure("times", title, (Panel("project and processes, largest variation first", x, y, marks, height=1.3),))
