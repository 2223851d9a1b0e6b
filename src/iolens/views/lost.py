"""Core-hours lost for people: applications, projects, and fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import READ, WRITE, Axis, Bars, Figure, Panel
from iolens.views.runs import EMPTY, MOST_NAMES, names_axis, number, shown_number, titled, window_words
from iolens.visible_text import core_hours, counted, listed, shown_name

if TYPE_CHECKING:
    from iolens.analyses.lost import LostCoreHours, PayingFix
    from iolens.views.render.tables import TableView


ID_DIGITS: Final = 12  # of a run id that people see: enough to name it


def tables(result: LostCoreHours) -> list[TableView]:
    """Applications first, which CSV and Parquet take."""
    title = titled(result, lost_words(result))
    applications = t.TableView(
        title, _columns("Application"), t.rows_of(result.applications, _columns("")), name="applications"
    )
    projects = t.TableView("By project", _columns("Project"), t.rows_of(result.projects, _columns("")), name="projects")
    columns = (
        t.text("code", "Finding"), t.text("severity", "Severity"), t.count("runs", "Runs"),
        number("core_hours_lost", "Lost", "core-hours"), t.percent("lost_pct", "of all"),
        number("core_hours_regained", "A fix brings back", "core-hours"), t.count("runs_measured", "Measured on"),
        t.text("executable", "Worst program"), t.text("job_id", "Job"), t.text("remedy", "What to do"),
    )  # fmt: skip
    rows = t.rows_of(result.fixes, columns)
    return [
        applications,
        projects,
        t.TableView(
            "By finding; a run with several counts under each",
            columns,
            rows,
            "\n".join(notes(result)),
            name="findings",
            keep=("core_hours_lost", "remedy"),
        ),
    ]


def _columns(heading: str) -> tuple[t.TableColumn, ...]:
    return (
        t.text("name", heading), t.count("runs", "Runs"), t.count("runs_compared", "With history"),
        number("io_core_hours", "In I/O", "core-hours"), number("core_hours_lost", "Lost", "core-hours"),
        t.percent("lost_pct", "of all"),
        t.TableColumn("worst_run", "Worst run", "text", lambda run: str(run)[:ID_DIGITS]),
    )  # fmt: skip


def lost_words(result: LostCoreHours) -> str:
    """What is lost, and which fix pays most; where no gain is known, what was found in the runs that lost most."""
    if result.core_hours_lost is None:
        return "what was lost to slow I/O is not known: no run has five like runs"
    lost = f"{core_hours(shown_number(result.core_hours_lost))} lost to slow I/O"
    if not result.fixes or not result.core_hours_lost:
        return lost
    fix = result.fixes[0]
    if fix.core_hours_regained:
        same = [other for other in result.fixes if other.core_hours_regained == fix.core_hours_regained]
        pays = f"{'the fix of' if len(same) == 1 else 'fixes of'} {_codes(same)}"
        hours = f"about {core_hours(shown_number(fix.core_hours_regained))}{'' if len(same) == 1 else ' each'}"
        return f"{lost}; {pays} would pay most: {hours}, by like runs without it{_program(same)}"
    same = [other for other in result.fixes if other.core_hours_lost == fix.core_hours_lost]
    share = "" if fix.lost_pct is None else f" ({t.show_percent(fix.lost_pct)} %)"
    hours = shown_number(fix.core_hours_lost)
    if len(same) > 1:
        return f"{lost}; {hours} of them{share} by runs with each of {_codes(same)}{_program(same)}"
    return f"{lost}; {hours} of them{share} by runs with {_codes(same)}{_program(same)}"


def _codes(fixes: Sequence[PayingFix]) -> str:
    return listed([fix.code for fix in fixes], len(fixes))


def _program(fixes: Sequence[PayingFix]) -> str:
    """The program of the worst run, where all of these findings have the same."""
    names = {fix.executable for fix in fixes}
    name = next(iter(names))
    return f", most of all by {shown_name(name)}" if len(names) == 1 and name else ""


def notes(result: LostCoreHours) -> Iterator[str]:
    """What the numbers rest on."""
    yield (
        f"{window_words(result)}; {result.runs_compared:,} compared with the best quarter of like runs,"
        f" {result.runs_relaxed:,} of them by the rate of runs of the same user, program and processes."
    )
    if result.io_core_hours is not None:
        yield "Core-hours are cores × I/O time of the slowest rank, for which the others wait."
    without = (
        (result.runs_without_history, "without history: fewer than five like runs"),
        (result.runs_without_time, "without I/O time"),
    )
    yield from (f"{counted(count, 'run')} {words}." for count, words in without if count)
    if result.runs_judged:
        share = (
            "" if result.judged_lost_pct is None else f", {t.show_percent(result.judged_lost_pct)} % of what is lost"
        )
        clean = f"; {counted(result.runs_without_findings, 'run')} of them without a finding"
        yield f"Findings of the {counted(result.runs_judged, 'run')} that lost most{share}{clean}."
    if result.fixes:
        yield (
            "What a fix brings back: the time beyond that of like runs without the finding, where there are five;"
            " a run with several findings counts in each, so do not add them up."
        )
    for count, what in ((result.applications_left_out, "application"), (result.projects_left_out, "project")):
        if count:
            yield f"{counted(count, what)} that lost less not listed (--top)."


# Figures of core-hours lost: by application, by project, by finding ---------------------------------------------------

FIGURES: Final = ("lost", "fixes")


def figures(result: LostCoreHours) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {"lost": lambda: lost(result), "fixes": lambda: fixes(result)}


def lost(result: LostCoreHours) -> Figure:
    """Applications above projects."""
    panels = [
        _bars(what, [(line.name, line.core_hours_lost) for line in lines], WRITE)
        for what, lines in (("application", result.applications), ("project", result.projects))
    ]
    return Figure("lost", titled(result, "core-hours lost to slow I/O"), tuple(panels))


def fixes(result: LostCoreHours) -> Figure:
    """Findings by what their runs lost."""
    lines = [(fix.code, fix.core_hours_lost) for fix in result.fixes]
    return Figure("fixes", titled(result, "core-hours lost by runs with a finding"), (_bars("finding", lines, READ),))


def _bars(what: str, lines: Sequence[tuple[str, float | None]], colour: str) -> Panel:
    known = [(name, hours) for name, hours in lines if hours][:MOST_NAMES]
    names = tuple(name for name, _ in known)
    y = Axis("core-hours lost", low=0.0)
    if not known:
        return Panel(f"by {what}", Axis(what), y, message=EMPTY)
    places = np.arange(float(len(known)))
    bars = Bars(places - 0.4, places + 0.4, np.array([hours for _, hours in known]), "core-hours", colour, names)
    return Panel(f"by {what}", names_axis(names), y, (bars,))
