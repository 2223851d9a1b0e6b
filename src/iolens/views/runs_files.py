"""Files of runs for people: categories (Fig. 5), new files, and both by project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import RULE, Axis, Figure, LineMark, Panel, PointsMark, side_by_side
from iolens.views.render.log_scales import decades_of, powers
from iolens.views.runs import COLOURS, EMPTY, names_axis, number, project_name, titled, window_words
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs_files import RunFileCounts
    from iolens.views.render.tables import TableView


MEANINGS: Final = {
    "no files": "used no file",
    "serial": "one process",
    "N:N": "most files unique to a rank, at least one for each process",
    "N:1": "most files shared by all ranks, or one rank does all I/O",
    "N:M": "files of a subset of ranks",
    "unknown": "not known from the log",
}


def tables(result: RunFileCounts) -> list[TableView]:
    """All runs, then projects."""
    return [categories(result), projects(result)]


def categories(result: RunFileCounts) -> TableView:
    """How many runs use files in which manner."""
    columns = (
        t.text("category", "Category"), t.count("runs", "Runs"), t.percent("runs_pct", "Of runs"),
        t.text("meaning", "Meaning"),
    )  # fmt: skip
    rows = [t.row_of(line, columns, {"meaning": MEANINGS[line.category]}) for line in result.categories if line.runs]
    return t.TableView(
        titled(result, "runs by their files"), columns, rows, "\n".join(notes(result)), name="categories"
    )


def notes(result: RunFileCounts) -> list[str]:
    """How many runs have none, and how many files are new."""
    lines = [f"{window_words(result)}; {result.runs_without_files:,} of them used no file."]
    if result.new_files_pct is not None:
        written = f"Of {counted(result.written_files or 0, 'file')} written, {t.show_percent(result.new_files_pct)} %"
        lines.append(
            f"{written} were created by the run or empty before (an estimate: not read, and written from the first byte"
            " to the last)."
        )
    return lines


def projects(result: RunFileCounts) -> TableView:
    """One line for each project."""
    kinds = ("N:N", "N:1", "N:M", "serial")
    columns = (
        t.text("project", "Project"), t.count("runs", "Runs"), t.count("runs_without_files", "Without files"),
        *(t.count(kind, kind) for kind in kinds), t.count("files", "Files"),
        number("files_per_proc_max", "Most files per process"), t.count("written_files", "Written"),
        t.percent("new_files_pct", "New"),
    )  # fmt: skip
    rows = [
        t.row_of(
            line, columns, {"project": project_name(line.project), **{kind: line.categories[kind] for kind in kinds}}
        )
        for line in result.projects
    ]
    return t.TableView(titled(result, "files of runs by project"), columns, rows, name="projects")


# Figure of files against processes (Fig. 5 of the study on Intrepid) --------------------------------------------------
# One colour for each project.

FIGURES: Final = ("files", "categories")
NOTHING: Final = 0.3  # where runs without a file stand on a logarithmic axis


def figures(result: RunFileCounts) -> dict[str, Callable[[], Figure]]:
    """Files against processes, and runs by category."""
    return {"files": lambda: files(result), "categories": lambda: categories_figure(result)}


def files(result: RunFileCounts) -> Figure:
    """A dot for each pair of processes and files; runs without a file stand below."""
    title = titled(result, "files of runs against their processes")
    points = [point for point in result.points if point.processes]
    if not points:
        return Figure("files", title, (Panel("", Axis("processes"), Axis("files"), message=EMPTY),))
    processes = np.array([float(point.processes) for point in points])
    counts = np.array([float(point.files) or NOTHING for point in points])
    _, right = decades_of(processes)
    _, top = decades_of(counts[counts >= 1] if (counts >= 1).any() else np.ones(1))
    x = Axis("processes", "log", 0.8, 1.3 * 10.0**right, powers(0, right))
    y = Axis("files", "log", NOTHING / 2, 1.3 * 10.0**top, ((NOTHING, "0"), *powers(0, top)))
    names = list(dict.fromkeys(line.project for line in result.projects if line.project in {p.project for p in points}))
    diagonal = np.array([1.0, 10.0 ** min(right, top)])
    marks = [LineMark(diagonal, diagonal, "as many files as processes", RULE)]
    dots = [
        PointsMark(processes[own], counts[own], project_name(name), colour, weight=1.4)
        for name, colour in zip(names, COLOURS, strict=False)
        if (own := np.array([point.project == name for point in points])).any()
    ]
    return Figure("files", title, (Panel(window_words(result), x, y, (*marks, *dots), height=1.5),))


def categories_figure(result: RunFileCounts) -> Figure:
    """How many runs use files in which manner."""
    lines = [line for line in result.categories if line.runs]
    names = tuple(line.category for line in lines)
    x, y = names_axis(names), Axis("runs", low=0.0)
    title = titled(result, "runs by their files")
    if not lines:
        return Figure("categories", title, (Panel("", x, y, message=EMPTY),))
    bars = side_by_side([("runs", COLOURS[0], np.array([float(line.runs) for line in lines]))], names)
    return Figure("categories", title, (Panel(window_words(result), x, y, bars),))
