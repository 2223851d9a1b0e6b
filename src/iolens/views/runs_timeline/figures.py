"""Figures of a run over time: ranks × time (the study's Fig. 13) above the bytes of all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import READ, WRITE, Axis, Figure, HeatMapMark, LineMark, Panel
from iolens.views.render.log_scales import bytes_unit
from iolens.views.runs_timeline.words import ORIGINS

if TYPE_CHECKING:
    from iolens.analyses.runs.timeline import RunTimeline
    from iolens.arrays import Floats

FIGURES: Final = ("activity", "reads", "writes")
MOST_NAMED: Final = 16  # rows that are named beside the map
NOTHING: Final = "no I/O is known"
SHARED: Final = "all (shared files)"


def figures(result: RunTimeline) -> dict[str, Callable[[], Figure]]:
    """Reads and writes together with the bytes over time; reads alone; writes alone."""
    return {
        "activity": lambda: activity(result),
        "reads": lambda: _one_direction(result, "read"),
        "writes": lambda: _one_direction(result, "write"),
    }


def activity(result: RunTimeline) -> Figure:
    """The map of ranks above the bytes over time."""
    both = result.by_rank["read"] + result.by_rank["write"]
    panels = (_map(result, both, "read and written"), _bytes(result))
    return Figure("activity", f"{_name(result)}: I/O of each rank over time", panels, linked_x=False)


def _one_direction(result: RunTimeline, direction: str) -> Figure:
    verb = {"read": "read", "write": "written"}[direction]
    title = f"{_name(result)}: bytes {verb} by each rank over time"
    return Figure(f"{direction}s", title, (_map(result, result.by_rank[direction], verb),))


def _name(result: RunTimeline) -> str:
    return f"{result.executable or 'run'}, job {result.jobid}" if result.jobid else result.executable or "run"


def _time(result: RunTimeline) -> Axis:
    return Axis("time since the start of the run (s)", low=0.0, high=result.bins * result.bin_s)


def _map(result: RunTimeline, moved: Floats, verb: str) -> Panel:
    names = row_names(result)
    per_rank = moved / np.array([*_row_sizes(result)], dtype=float)[:, None]
    top = float(per_rank.max()) if per_rank.size else 0.0
    title = f"from {ORIGINS[result.origin]} ({', '.join(result.modules)})" if result.modules else ORIGINS[result.origin]
    if not top:
        return Panel(title, _time(result), Axis("rank"), message=NOTHING)
    scale, unit = bytes_unit(top)
    values = np.where(per_rank > 0, per_rank / scale, np.nan)
    high = top / scale
    mark = HeatMapMark(
        0.0, result.bins * result.bin_s, names, values, max(high / 1000.0, float(np.nanmin(values))), high,
        f"{unit} {verb} per rank in {result.bin_s:.3g} s",
    )  # fmt: skip
    group = "rank" if result.ranks_per_row == 1 else f"rank (rows of {result.ranks_per_row:,})"
    height = float(np.clip(len(names) / 40, 0.8, 1.6))
    return Panel(title, _time(result), Axis(group, ticks=_ticks(names)), (mark,), height=height)


def _row_sizes(result: RunTimeline) -> list[int]:
    """Ranks of each row; the row of shared files stands for itself."""
    ranks = result.nprocs or 1
    sizes = [min(result.ranks_per_row, ranks - first) for first in result.first_ranks]
    return [*sizes, 1] if result.has_shared_row else sizes


def row_names(result: RunTimeline) -> tuple[str, ...]:
    """Ranks, or the first of each group; and the row of files that nobody has alone."""
    names = [f"{first:,}" for first in result.first_ranks]
    return (*names, SHARED) if result.has_shared_row else tuple(names)


def _ticks(names: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """Round steps, the first on top."""
    steps = (1, 2, 4, 8, 16, 32, 64, 128)
    every = next(step for step in steps if len(names) <= step * MOST_NAMED)
    last = len(names) - 1
    return tuple((float(last - place), name) for place, name in enumerate(names) if _is_named(place, name, every))


def _is_named(place: int, name: str, every: int) -> bool:
    return place % every == 0 or name == SHARED


def _bytes(result: RunTimeline) -> Panel:
    moved = {name: np.array(getattr(result, f"{name}_bytes"), dtype=float) for name in ("read", "write")}
    top = max((float(values.max()) for values in moved.values() if values.size), default=0.0) / result.bin_s
    scale, unit = bytes_unit(top or 1.0)
    y = Axis(f"{unit}/s, all ranks", low=0.0)
    if not top:
        return Panel("all ranks together", _time(result), y, message=NOTHING)
    edges = np.repeat(np.arange(result.bins + 1) * result.bin_s, 2)[1:-1]
    marks = tuple(
        LineMark(edges, np.repeat(moved[name] / result.bin_s / scale, 2), label, colour)
        for name, label, colour in (("read", "read", READ), ("write", "written", WRITE))
        if moved[name].any()
    )
    return Panel("all ranks together", _time(result), y, marks, height=0.8)
