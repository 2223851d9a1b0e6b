"""Coverage for people: jobs and core-hours with a log, by project (Table II); bytes of devices that runs explain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import READ, WRITE, Axis, Figure, Panel, side_by_side
from iolens.views.runs import (
    EMPTY,
    MOST_NAMES,
    first_of,
    joined_words,
    names_axis,
    number,
    project_name,
    shown_number,
    titled,
    window_words,
)
from iolens.visible_text import core_hours, counted

if TYPE_CHECKING:
    from iolens.analyses.runs_coverage import RunCoverage
    from iolens.views.render.tables import TableView


APIS: Final = "P POSIX, S STDIO, M MPI-IO, H HDF5, N PnetCDF, D DFS, used directly"


def tables(result: RunCoverage) -> list[TableView]:
    """Projects, then file systems."""
    return [projects(result), *([explained(result)] if result.explained else [])]


def projects(result: RunCoverage) -> TableView:
    """Table II."""
    columns = (
        t.text("project", "Project"), t.count("jobs_with_log", "Jobs with a log"), t.count("jobs", "Jobs"),
        t.percent("jobs_pct", "Of jobs"), number("core_hours_with_log", "Core-hours with a log"),
        number("core_hours", "Core-hours"), t.percent("core_hours_pct", "Of core-hours"),
        t.count("runs", "Runs"), t.text("apis", "APIs"),
    )  # fmt: skip
    rows = [
        t.row_of(line, columns, {"project": project_name(line.project), "apis": ",".join(line.apis) or None})
        for line in result.projects
    ]
    return t.TableView(
        titled(result, "jobs with a Darshan log, by project"), columns, rows, "\n".join(notes(result)), name="projects"
    )


def coverage_words(result: RunCoverage) -> str:
    """The whole of it in a sentence."""
    if not result.jobs or result.jobs_pct is None:
        return "No job of the scheduler is known: load its records with `iolens ingest slurm`."
    jobs = f"{result.jobs_with_log:,} of {counted(result.jobs, 'job')} ({t.show_percent(result.jobs_pct)} %) left a log"
    if result.core_hours_pct is None:
        return f"{jobs}."
    hours = f"{shown_number(result.core_hours_with_log)} of {core_hours(shown_number(result.core_hours))}"
    return f"{jobs}, with {hours} ({t.show_percent(result.core_hours_pct)} %)."


def notes(result: RunCoverage) -> list[str]:
    """The sum, how runs were matched, what could not be, and what the letters mean."""
    lines = [f"{window_words(result)}. {coverage_words(result)}", joined_words(result.joined)]
    if result.jobs_of_arrays:
        lines.append(
            f"{counted(result.jobs_of_arrays, 'job')} of arrays: no run names their id, they are matched by user,"
            " executable and time only."
        )
    missing = (
        (result.jobs_running, "still running: left out"),
        (result.jobs_without_cores, "of which cores are not known: in no core-hours"),
    )
    lines += [f"{counted(count, 'job')} {words}." for count, words in missing if count]
    return [*lines, f"APIs: {APIS}."]


def explained(result: RunCoverage) -> TableView:
    """Which share of what the devices moved the runs explain."""
    columns = (
        t.text("filesystem", "File system"), t.volume("run_bytes", "Bytes of runs"),
        t.volume("device_bytes", "Bytes of targets"), t.percent("explained_pct", "Explained"),
        t.text("target_kind", "Targets"),
    )  # fmt: skip
    note = "Caches serve reads that no target sees, and targets move what no run asked for: the share may exceed 100 %."
    return t.TableView(
        "Bytes of targets that runs explain", columns, t.rows_of(result.explained, columns), note, name="explained"
    )


# Figure of coverage ---------------------------------------------------------------------------------------------------
# Shares of jobs and core-hours with a log, by project.

FIGURES: Final = ("coverage",)


def figures(result: RunCoverage) -> dict[str, Callable[[], Figure]]:
    """Shares by project."""
    return {"coverage": lambda: coverage(result)}


def coverage(result: RunCoverage) -> Figure:
    """Two bars for each project, those with most core-hours first."""
    known = [line for line in result.projects if line.jobs]
    lines = known[:MOST_NAMES]
    title = titled(result, f"jobs and core-hours with a Darshan log{first_of(len(lines), len(known))}")
    names = tuple(project_name(line.project) for line in lines)
    x, y = names_axis(names), Axis("% with a log", low=0.0, high=100.0)
    if not lines:
        return Figure("coverage", title, (Panel("", x, y, message=EMPTY),))
    jobs = np.array([line.jobs_pct or 0.0 for line in lines])
    hours = np.array([line.core_hours_pct or 0.0 for line in lines])
    bars = side_by_side([("jobs", READ, jobs), ("core-hours", WRITE, hours)], names)
    return Figure("coverage", title, (Panel("", x, y, bars, height=1.2),))
