"""Figures of a comparison of runs: rates side by side (the study's Fig. 14), and where the I/O time goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import (
    BEFORE_AFTER,
    METADATA,
    READ,
    WRITE,
    Axis,
    Bars,
    Figure,
    Panel,
    stacked,
)

if TYPE_CHECKING:
    from iolens.analyses.runs.compare import ComparedRuns, RunComparison

FIGURES: Final = ("rates", "time")


def figures(result: RunComparison) -> dict[str, Callable[[], Figure]]:
    """Rates of every run, and the parts of the I/O time."""
    return {"rates": lambda: rates(result), "time": lambda: times(result)}


def rates(result: RunComparison) -> Figure:
    """A bar for each run, before and after; per node where nodes are known."""
    per_node = all(
        value is not None for side in (result.before, result.after) for value in side.mib_per_s_per_node
    )  # fmt: skip
    name, label = ("mib_per_s_per_node", "MiB/s per node") if per_node else ("mib_per_s", "MiB/s, all nodes together")
    return Figure("rates", "I/O rate before and after", (_bars(result, name, label),))


def _bars(result: RunComparison, name: str, label: str) -> Panel:
    marks, ticks, place = [], [], 0
    for side, colour in zip((result.before, result.after), BEFORE_AFTER, strict=True):
        heights = _known(getattr(side, name))
        places = np.arange(place, place + len(heights), dtype=float)
        names = tuple(_run_names(side))
        marks.append(Bars(places - 0.4, places + 0.4, heights, side.label, colour, names))
        ticks += list(zip(places.tolist(), names, strict=True))
        place += len(heights)
    x = Axis("run", low=-0.6, high=place - 0.4, ticks=tuple(ticks))
    return Panel("bytes ÷ I/O time of the slowest rank", x, Axis(label, low=0.0), tuple(marks))


def _run_names(side: ComparedRuns) -> list[str]:
    names = [jobid or side.label for jobid in side.jobids]
    return names if len({*names}) == len(names) else [f"{side.label} {place}" for place in range(1, len(names) + 1)]


def times(result: RunComparison) -> Figure:
    """Reads, writes and metadata operations, summed over ranks."""
    by_name = {line.name: line for line in result.measures}
    names = ("before", "after")
    groups = [
        (label, colour, _known([by_name[measure].before, by_name[measure].after]))
        for measure, label, colour in (
            ("read_s", "reads", READ), ("write_s", "writes", WRITE), ("metadata_s", "metadata operations", METADATA),
        )
    ]  # fmt: skip
    x = Axis("", low=-0.6, high=1.6, ticks=tuple(enumerate(names)))
    panel = Panel("where the I/O time goes", x, Axis("seconds, all ranks", low=0.0), stacked(groups, names))
    return Figure("time", "I/O time before and after", (panel,))


def _known(values: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([0.0 if value is None else value for value in values])
