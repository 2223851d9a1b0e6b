"""Files of runs against their processes, and how many are new."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "files",
    epilog="""\b
Examples:
  iolens runs files --from 2026-11-01 --figure files.png
""",
)
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions) -> None:
    """How many files runs use (Fig. 5), which use none, and how many of the files they wrote are new."""
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(opened, "files", asked.scope, like)
    asked.show(result)
