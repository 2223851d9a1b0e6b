"""What a run's activity over time amounts to, in words from the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import READ, WRITE, Axis, Figure, HeatMapMark, LineMark, Panel
from iolens.views.render.log_scales import bytes_unit
from iolens.views.render.tables import show_whole_percent
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs.timeline import RunTimeline
    from iolens.arrays import Floats
    from iolens.views.render.tables import TableView


ORIGINS: Final[Mapping[str, str]] = {
    "dxt": "every access as DXT traced it",
    "heatmap": "Darshan's heat map",
    "records": "the first and last access to each file",
}

UNCOORDINATED: Final = (
    ": they are not coordinated, and the rate by the slowest rank says little of such a run (the study's Fig. 13)"
)


def activity_words(result: RunTimeline) -> str:
    """How much of the time there is I/O, in how many phases, and whether ranks do it together."""
    if not result.phases:
        return "No I/O is known at any time."
    share = "" if result.active_time_pct is None else f"in {show_whole_percent(result.active_time_pct)} % of the time, "
    words = f"There is I/O {share}in {counted(len(result.phases), 'phase')}."
    if result.mean_active_ranks_pct is None or (result.nprocs or 1) < 2:
        return words
    active = (
        f"In the mean {show_whole_percent(result.mean_active_ranks_pct)} % of the ranks are active at the same time"
    )
    return f"{words} {active}{'' if result.coordinated else UNCOORDINATED}."


# A run over time for people: its phases of I/O ------------------------------------------------------------------------

MOST_SHOWN: Final = 30


def tables(result: RunTimeline) -> list[TableView]:
    """The phases, in order of time; of many those that moved most."""
    columns = (
        t.number("start_s", "From", "s", ",.3f"), t.number("end_s", "To", "s", ",.3f"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"), t.number("mib_per_s", "Rate", "MiB/s", ",.1f"),
        t.count("active_ranks", "Ranks"), t.percent("active_ranks_pct", "of all ranks"),
    )  # fmt: skip
    largest = sorted(result.phases, key=lambda phase: phase.read_bytes + phase.write_bytes, reverse=True)[:MOST_SHOWN]
    shown = sorted(largest, key=lambda phase: phase.start_s)
    notes = [activity_words(result), f"From {ORIGINS[result.origin]}; bins of {result.bin_s:.3g} s."]
    notes += [t.sentence(note) for note in result.notes]
    if result.has_shared_row:
        notes.append("Which ranks used shared files is not known: they are not in the number of ranks.")
    if result.ranks_per_row > 1:
        notes.append(f"Ranks are counted in groups of {result.ranks_per_row:,}.")
    if len(result.phases) > len(shown):
        notes.append(f"{len(result.phases) - len(shown):,} phases that moved less are not shown.")
    name = result.executable or "run"
    title = f"{name}, job {result.jobid}: phases of I/O" if result.jobid else f"{name}: phases of I/O"
    return [t.TableView(title, columns, t.rows_of(shown, columns), "\n".join(notes), name="phases")]


# Figures of a run over time -------------------------------------------------------------------------------------------
# Ranks × time (the study's Fig. 13) above the bytes of all ranks.

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
