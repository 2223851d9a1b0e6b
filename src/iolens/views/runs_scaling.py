"""Runs by their size for people: by nodes or processes (Table VIII), and single runs (Table VII)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import FSU, READ, RULE, WRITE, Axis, Figure, LineMark, Mark, Panel, PointsMark
from iolens.views.render.log_scales import bytes_unit, log_axis
from iolens.views.runs import EMPTY, number, project_name, rate_warnings, titled, window_words
from iolens.visible_text import counted, listed

if TYPE_CHECKING:
    from iolens.analyses.runs_scaling import RunScaling, ScalingRun
    from iolens.arrays import Floats
    from iolens.views.render.tables import TableView


def tables(result: RunScaling) -> list[TableView]:
    """Sizes, then runs from the fastest to the slowest."""
    return [steps(result), runs(result)]


def subject(result: RunScaling) -> str:
    """Whose runs."""
    return listed([*result.projects, *result.executables], 4) or "all runs"


def steps(result: RunScaling) -> TableView:
    """Medians by nodes or processes."""
    columns = (
        t.count("count", result.by.capitalize()), t.count("runs", "Runs"),
        number("mib_per_s_per_node", "MiB/s per node"), number("mib_per_s", "MiB/s"),
        t.percent("io_time_pct", "Time in I/O"), t.percent("metadata_time_pct", "I/O time in metadata"),
        t.volume("bytes", "Bytes"), t.volume("bytes_per_process", "Bytes per process"),
    )  # fmt: skip
    title = titled(result, f"{subject(result)} by {result.by}")
    warnings = tuple(rate_warnings(result.runs_short, result.runs_without_rate, result.method))
    rows = t.rows_of(result.steps, columns)
    return t.TableView(title, columns, rows, "\n".join(notes(result)), warnings=warnings, name="steps")


def notes(result: RunScaling) -> list[str]:
    """The verdict and what it rests on."""
    verdict = result.verdict
    if verdict.slope is None:
        return [f"{window_words(result)}. Scaling: undecided, {verdict.reason}."]
    fit = "" if verdict.r2 is None or t.is_missing(verdict.r2) else f", R² {verdict.r2:.2f}"
    counts = counted(verdict.process_counts, "process count")
    sizes = f"{counts} from {verdict.processes_min:,} to {verdict.processes_max:,}{fit}"
    return [f"{window_words(result)}. Scaling: {verdict.scaling}; {verdict.reason}; {sizes}."]


def runs(result: RunScaling) -> TableView:
    """Single runs with their most frequent access size."""
    columns = (
        t.text("job_id", "Job"), t.text("project", "Project"), t.text("user", "User"),
        t.text("executable", "Executable"), t.count("processes", "Processes"), t.count("nodes", "Nodes"),
        number("mib_per_s_per_node", "MiB/s per node"), number("mib_per_s", "MiB/s"),
        t.percent("metadata_time_pct", "I/O time in metadata"), t.text("key_access_bytes", "Key access size"),
    )  # fmt: skip
    rows = [
        t.row_of(line, columns, {"project": project_name(line.project), "key_access_bytes": _key(line)})
        for line in result.listed
    ]
    more = f"{result.runs_not_listed:,} more between these, in speed." if result.runs_not_listed else ""
    return t.TableView(
        titled(result, f"runs of {subject(result)}, the fastest first"), columns, rows, more, name="runs"
    )


def _key(line: ScalingRun) -> str | None:
    if line.key_access_bytes is None:
        return None
    direction = f" ({line.key_access_direction})" if line.key_access_direction else ""
    return f"{format_bytes(line.key_access_bytes)}{direction}"


# Figures of runs by their size ----------------------------------------------------------------------------------------
# Performance, and total bytes beside what strong and weak scaling would have.

FIGURES: Final = ("performance", "bytes")


def figures(result: RunScaling) -> dict[str, Callable[[], Figure]]:
    """MiB/s per node (or MiB/s), and bytes, by nodes or processes."""
    return {"performance": lambda: performance(result), "bytes": lambda: volumes(result)}


def performance(result: RunScaling) -> Figure:
    """Medians by size."""
    has_nodes = any(step.mib_per_s_per_node is not None for step in result.steps)
    field, words = ("mib_per_s_per_node", "MiB/s per node") if has_nodes else ("mib_per_s", "MiB/s")
    values = np.array([getattr(step, field) for step in result.steps], dtype=float)
    title = titled(result, f"{words} of {subject(result)} by {result.by}")
    return Figure("performance", title, (_panel(result, values, f"median {words}", READ),))


def volumes(result: RunScaling) -> Figure:
    """Total bytes; level is strong scaling, along the diagonal weak."""
    values = np.array([step.bytes for step in result.steps], dtype=float)
    known = values[np.isfinite(values) & (values > 0)]
    factor, unit = bytes_unit(float(known.max()) if known.size else 1.0)
    title = titled(result, f"bytes of {subject(result)} by {result.by}")
    return Figure("bytes", title, (_panel(result, values / factor, f"median {unit} moved", WRITE, guides=True),))


def _panel(result: RunScaling, values: Floats, label: str, colour: str, *, guides: bool = False) -> Panel:
    counts = np.array([float(step.count) for step in result.steps])
    drawn = np.isfinite(values) & (values > 0)
    if not drawn.any():
        return Panel(window_words(result), Axis(result.by), Axis(label), message=EMPTY)
    x, y = counts[drawn], values[drawn]
    marks: list[Mark] = [LineMark(x, y, label, colour), PointsMark(x, y, label, colour, weight=2.0)]
    every = y
    if guides and x.size > 1:
        weak = y[0] * x / x[0]
        every = np.concatenate([y, weak])
        level = np.full(x.size, y[0])
        marks += [LineMark(x, level, "strong scaling", FSU), LineMark(x, weak, "weak scaling", RULE)]
    return Panel(window_words(result), log_axis(result.by, x), log_axis(label, every), tuple(marks), height=1.2)
