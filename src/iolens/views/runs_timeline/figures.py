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
MOST_NAMED: Final = 12  # rows that are named beside the map
STEPS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
NOTHING: Final = "no I/O is known"
SHARED: Final = "all ranks, shared"


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
    modules = f" ({', '.join(result.modules)})" if result.modules else ""
    title = f"{verb}, from {ORIGINS[result.origin]}{modules}"
    per_rank, names = _rows(result, moved)
    top = float(per_rank.max()) if per_rank.size else 0.0
    if not top:
        return Panel(title, _time(result), Axis("rank"), message=NOTHING)
    scale, unit = bytes_unit(top)
    values = np.where(per_rank > 0, per_rank / scale, np.nan)
    high = top / scale
    mark = HeatMapMark(
        0.0, result.bins * result.bin_s, names, values, max(high / 1000.0, 0.5 * float(np.nanmin(values))), high,
        f"{unit} per rank in {result.bin_s:.3g} s", "no I/O", "rank",
    )  # fmt: skip
    group = "rank" if result.ranks_per_row == 1 or names == (SHARED,) else f"rank (rows of {result.ranks_per_row:,})"
    height = float(np.clip(len(names) / 30, 0.5, 1.6))
    return Panel(title, _time(result), Axis(group, ticks=_ticks(names)), (mark,), height=height)


def _rows(result: RunTimeline, moved: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Bytes per rank, row by row, with their names; files that ranks share get a band that can be seen.

    Where no rank has files of its own, there is only that band.
    """
    ranks = result.nprocs or 1
    sizes = np.array([min(result.ranks_per_row, ranks - first) for first in result.first_ranks], dtype=float)
    own = moved[: len(sizes)] / sizes[:, None]
    names = tuple(f"{first:,}" for first in result.first_ranks)
    if not result.has_shared_row:
        return own, names
    band = np.repeat(moved[-1:] / ranks, max(len(names) // 12, 1), axis=0)
    shared = (SHARED,) * len(band)
    return (np.concatenate([own, band]), (*names, *shared)) if own.any() else (band[:1], (SHARED,))


def _ticks(names: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """Round steps, the first on top; the band of shared files is named in its middle."""
    last, ranks = len(names) - 1, len(names) - names.count(SHARED)
    every = next((step for step in STEPS if ranks <= step * MOST_NAMED), STEPS[-1])
    own = [(float(last - place), name) for place, name in enumerate(names[:ranks]) if place % every == 0]
    if ranks < len(names):
        own = [tick for tick in own if ranks == 1 or tick[0] > names.count(SHARED)]
        own.append(((names.count(SHARED) - 1) / 2, SHARED))
    return tuple(own)


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
