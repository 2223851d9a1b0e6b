"""Figure of files against processes (Fig. 5 of the study on Intrepid): one colour for each project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import RULE, Axis, Figure, LineMark, Panel, PointsMark, side_by_side
from iolens.views.render.log_scales import decades_of, powers
from iolens.views.runs.words import COLOURS, EMPTY, names_axis, project_name, titled, window_words

if TYPE_CHECKING:
    from iolens.analyses.runs_files import RunFileCounts

FIGURES: Final = ("files", "categories")
NOTHING: Final = 0.3  # where runs without a file stand on a logarithmic axis


def figures(result: RunFileCounts) -> dict[str, Callable[[], Figure]]:
    """Files against processes, and runs by category."""
    return {"files": lambda: files(result), "categories": lambda: categories(result)}


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


def categories(result: RunFileCounts) -> Figure:
    """How many runs use files in which manner."""
    lines = [line for line in result.categories if line.runs]
    names = tuple(line.category for line in lines)
    x, y = names_axis(names), Axis("runs", low=0.0)
    title = titled(result, "runs by their files")
    if not lines:
        return Figure("categories", title, (Panel("", x, y, message=EMPTY),))
    bars = side_by_side([("runs", COLOURS[0], np.array([float(line.runs) for line in lines]))], names)
    return Figure("categories", title, (Panel(window_words(result), x, y, bars),))
