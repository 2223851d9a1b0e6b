"""Core-hours lost to slow I/O, by application, project, finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "lost",
    epilog="""\b
Examples:
  iolens lost --from 2026-11-01 --store centre
  iolens lost --project climate --format json
  iolens lost --user alice --figure fixes=fixes.png
""",
)
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Number of applications and projects shown"
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Number of runs to search for findings, largest loss first",
)
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions, top: int, most: int) -> None:
    """What runs lost against the best quarter of their like: cores × the I/O time beyond theirs.

    Findings are ordered by what a fix brings back, measured on like runs without the finding; if there are no such
    runs, by what the runs with the finding lost. A run with several findings counts in each. The number of runs
    without history is shown.
    """
    from iolens.api.lost import lost_hours

    with asked.opened() as opened:
        result = lost_hours(opened, asked.scope, like, top=top, most=most)
    asked.show(result)
