"""Applications in the report: top projects, coverage, interfaces and patterns, and the like runs that vary most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iolens.views import runs_coverage as coverage_figures
from iolens.views import runs_coverage as coverage_tables
from iolens.views import runs_interfaces as interface_figures
from iolens.views import runs_interfaces as interface_tables
from iolens.views import runs_patterns as pattern_figures
from iolens.views import runs_patterns as pattern_tables
from iolens.views import runs_projects as project_figures
from iolens.views import runs_projects as project_tables
from iolens.views import runs_variance as variance_tables
from iolens.views.render.section import Answer, ReportSection
from iolens.views.render.tables import show_percent
from iolens.views.runs import project_name, shown_number
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs_applications import ReportedRuns
    from iolens.analyses.runs_variance import RunVariance


REPORT_ORDER: Final = 70
REPORT_CHAPTER: Final = "Applications"
GROUPS_SHOWN: Final = 10


def report_answers(result: ReportedRuns) -> list[Answer]:
    """Who moved most, how much of the centre's work is known, and what varies."""
    words = [project_tables.most_words(result.projects), coverage_tables.coverage_words(result.coverage)]
    sentences = " ".join([*words, *([variance_words(result.variance)] if result.variance.groups else [])])
    return [Answer("other", (sentences,), project_figures.volumes_figure(result.projects))]


def report_sections(result: ReportedRuns) -> list[ReportSection]:
    """Four sections."""
    projects = result.projects
    characteristics = [project_tables.characteristics(projects)] if projects.projects else []
    return [
        ReportSection(
            "Projects",
            (
                project_tables.volumes(projects),
                *([project_figures.performance(projects)] if projects.projects else []),
                *characteristics,
            ),
        ),
        ReportSection(
            "Jobs with a Darshan log",
            (
                coverage_figures.coverage(result.coverage),
                *coverage_tables.tables(result.coverage),
            ),
        ),
        ReportSection(
            "Interfaces and access patterns",
            (
                interface_figures.figures(result.interfaces)["shares"](),
                *interface_tables.tables(result.interfaces),
                pattern_figures.figures(result.patterns)["shares"](),
                *pattern_tables.tables(result.patterns),
            ),
        ),
        *_variance(result.variance),
    ]


def _variance(variance: RunVariance) -> list[ReportSection]:
    if not variance.groups:
        return []
    left = variance.groups_left_out + max(len(variance.groups) - GROUPS_SHOWN, 0)
    shown = replace(variance, groups=variance.groups[:GROUPS_SHOWN], groups_left_out=left)
    return [ReportSection("Like runs", tuple(variance_tables.tables(shown)))]


def variance_words(variance: RunVariance) -> str:
    """The group that varies most, in a sentence."""
    worst = variance.groups[0]
    share = "" if worst.cv_pct is None else f" (CV {show_percent(worst.cv_pct)} %)"
    return (
        f"{counted(worst.samples, 'like run')} of {project_name(worst.project)} on {counted(worst.nprocs, 'process')}"
        f" spent {shown_number(worst.min_s)} to {shown_number(worst.max_s)} s in I/O{share}: no other group of at least"
        f" {variance.min_samples} varies more."
    )


def report_methods(results: Sequence[ReportedRuns]) -> list[ReportSection]:
    """Where the numbers of runs come from."""
    if not results:
        return []
    limits = results[0].projects
    words = (
        "A run is one Darshan log. Its project and nodes are those of the scheduler's record with its job id, else of"
        " the only job of its owner around it; runs without one are counted under their own project, or (unknown)."
        " MiB/s per node is bytes read and written ÷ I/O time of the slowest rank ÷ nodes, each file counted once:"
        " through MPI-IO, else POSIX and STDIO, else DFS."
        f" Means and box plots are of runs of at least {limits.min_processes:,} processes that moved"
        f" {limits.min_bytes:,} bytes. A job with a log counts once, with all its core-hours. Like runs have the same"
        " user, processes and files, and bytes within 1 %."
    )
    return [ReportSection("Applications", (words,))]
