"""Which jobs and core-hours have a Darshan log, by project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "coverage",
    epilog="""\b
Examples:
  iolens runs coverage --from 2026-11-01 --to 2026-12-01
""",
)
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions) -> None:
    """How many jobs and core-hours left a log, and which interfaces projects use (Table II).

    A job with at least one log counts once, with all its core-hours. Also shown is the share of the bytes moved by
    the targets of each file system that the runs account for.
    """
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(opened, "coverage", asked.scope, like)
    asked.show(result)
