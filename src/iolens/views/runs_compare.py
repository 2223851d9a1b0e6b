"""Measures of a comparison as people read them, and what changed in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import BEFORE_AFTER, METADATA, READ, WRITE, Axis, Bars, Figure, Panel, stacked
from iolens.views.runs import rate_warnings

if TYPE_CHECKING:
    from iolens.analyses.runs.compare import ComparedRuns, RunComparison
    from iolens.views.render.tables import TableView


MEASURES: Final[Mapping[str, tuple[str, float, str]]] = {
    "mib_per_s_per_node": ("Rate per node, MiB/s", 1.0, ",.2f"),
    "mib_per_s": ("Rate, MiB/s", 1.0, ",.1f"),
    "runtime_s": ("Run time, s", 1.0, ",.4g"),
    "rate_s": ("I/O time of the slowest rank, s", 1.0, ",.4g"),
    "slowest_rank_s": ("The same by POSIX and STDIO alone, s", 1.0, ",.4g"),
    "io_time_pct": ("Time in I/O, %", 1.0, ",.3g"),
    "metadata_time_pct": ("of it metadata, %", 1.0, ",.3g"),
    "read_s": ("Time in reads, all ranks, s", 1.0, ",.4g"),
    "write_s": ("Time in writes, all ranks, s", 1.0, ",.4g"),
    "metadata_s": ("Time in metadata, all ranks, s", 1.0, ",.4g"),
    "io_core_hours": ("Core-hours in I/O", 1.0, ",.3g"),
    "read_bytes": ("Read, GB", 1e9, ",.4g"),
    "write_bytes": ("Written, GB", 1e9, ",.4g"),
    "nprocs": ("Processes", 1.0, ",.0f"),
    "nodes": ("Nodes", 1.0, ",.0f"),
    "files": ("Files", 1.0, ",.0f"),
    "files_per_process": ("Files per process", 1.0, ",.3g"),
    "opens": ("Opens", 1.0, ",.0f"),
    "mean_read_bytes": ("Mean read, KiB", 1024.0, ",.4g"),
    "mean_write_bytes": ("Mean write, KiB", 1024.0, ",.4g"),
    "sequential_pct": ("Sequential accesses, %", 1.0, ",.3g"),
    "aligned_pct": ("Aligned accesses, %", 1.0, ",.3g"),
}
"""What a measure is called, what it is divided by, and how it is shown."""


WORK: Final[Mapping[bool | None, str]] = {
    True: "the amount of data is the same",
    False: "the amount of data is not the same",
    None: "whether the amount of data is the same is not known",
}


def factor_text(factor: float) -> str:
    """Three digits, without powers of ten."""
    return f"{factor:,.0f}" if abs(factor) >= 100 else f"{factor:.3g}" if abs(factor) >= 0.001 else f"{factor:.1g}"


def verdict(result: RunComparison) -> str:
    """How much faster or slower the I/O is; by the rate where the two sides did not do the same work."""
    rate = next(line.factor for line in result.measures if line.name == "mib_per_s")
    if result.same_work and result.io_time_factor:
        pace = _pace(result.io_time_factor, "equally fast", "times faster", "times slower")
        return f"The I/O of the slowest rank is {pace} after, for the same amount of data."
    if rate:
        pace = _pace(rate, "the same", "times as high", "of what it was", "1/")
        return f"The rate of the I/O is {pace} after; {WORK[result.same_work]}."
    return "Times of the slowest rank are not known of both sides: no factor."


def _pace(factor: float, same: str, more: str, less: str, part: str = "") -> str:
    shown = factor_text(max(factor, 1 / factor))
    if shown == "1":
        return same
    return f"{shown} {more}" if factor > 1 else f"{part}{shown} {less}"


# Two runs, or groups of runs, side by side for people -----------------------------------------------------------------


def tables(result: RunComparison) -> list[TableView]:
    """The numbers first, then what is compared and the findings."""
    return [measures(result), sides(result), findings(result)]


def measures(result: RunComparison) -> TableView:
    """Every measure that one side has."""
    columns = (
        t.text("name", "Measure"), t.text("before", "Before"), t.text("after", "After"),
        t.TableColumn("factor", "After ÷ before", "number", factor_text),
    )  # fmt: skip
    rows: list[t.Row] = []
    for line in result.measures:
        heading, unit, form = MEASURES[line.name]
        shown = [None if value is None else format(value / unit, form) for value in (line.before, line.after)]
        if any(shown):
            rows.append((heading, *shown, line.factor))
    notes = [verdict(result)]
    if result.before.runs > 1 or result.after.runs > 1:
        notes.append("Medians over the runs of each side.")
    title = f"{_names(result.after)}: after beside before"
    doubts = tuple(rate_warnings(result.before.runs_short + result.after.runs_short))
    return t.TableView(title, columns, rows, "\n".join(notes), warnings=doubts, name="measures")


def _names(side: ComparedRuns) -> str:
    return ", ".join(dict.fromkeys(name or "run" for name in side.executables))


def sides(result: RunComparison) -> TableView:
    """Which runs, and their strategies."""
    columns = (
        t.text("label", "Side"), t.count("runs", "Runs"), t.text("jobids", "Jobs"), t.text("executables", "Programs"),
        t.text("strategies", "Strategies"),
    )  # fmt: skip
    rows = [t.row_of(side, columns, _lists(side)) for side in (result.before, result.after)]
    return t.TableView("Runs", columns, rows, name="sides")


def _lists(side: ComparedRuns) -> dict[str, object]:
    lists = {name: getattr(side, name) for name in ("jobids", "executables", "strategies")}
    return {name: [value or "not known" for value in dict.fromkeys(values)] for name, values in lists.items()}


def findings(result: RunComparison) -> TableView:
    """What is gone, new, or still there."""
    columns = (
        t.text("change", "Change"), t.text("code", "Finding"), t.text("message", "What was seen"),
        t.text("remedy", "What to do"),
    )  # fmt: skip
    kinds = (("gone", result.findings_gone), ("new", result.findings_new), ("still there", result.findings_kept))
    rows: list[t.Row] = [
        (change, item.code, item.message, None if change == "gone" else item.remedy)
        for change, items in kinds
        for item in items
    ]
    return t.TableView("Findings", columns, rows, "" if rows else "No finding on either side.", name="findings")


# Figures of a comparison of runs --------------------------------------------------------------------------------------
# Rates side by side (the study's Fig. 14), and where the I/O time goes.

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
