"""Sizes of reads and writes, and which project dominates a size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options
from iolens.cli.options import WORDS, Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "sizes",
    epilog="""\b
Examples:
  iolens runs sizes --from 2026-11-01 --figure cdf.png
  iolens runs sizes --without CombustionPhysics,Turbulence1
""",
)
@click.option("--without", type=WORDS, default="", metavar="PROJECTS", help="Leave out the runs of these projects")
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions, without: tuple[str, ...]) -> None:
    """POSIX accesses by size, cumulative (Fig. 10), and the project with most accesses of each size."""
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(opened, "sizes", asked.scope, like, without_projects=without)
    asked.show(result)
