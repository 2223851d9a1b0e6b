"""Unique, shared and partially shared files by the size of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "patterns",
    epilog="""\b
Examples:
  iolens runs patterns --from 2026-11-01 --figure patterns.svg
""",
)
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions) -> None:
    """How runs share files, in runs and bytes, by their processes (Fig. 3b).

    A file opened by one rank is unique (N:N), by all ranks shared (N:1), by some partially shared (N:M). A run counts
    under each pattern it uses.
    """
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(opened, "patterns", asked.scope, like)
    asked.show(result)
