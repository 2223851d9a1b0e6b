"""How the I/O time of like runs varies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options, rate_method_option
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "variance",
    epilog="""\b
Examples:
  iolens runs variance --from 2026-11-01 --min-samples 5
  iolens runs variance --project climate --format json
""",
)
@click.option(
    "--min-samples", type=click.IntRange(2), default=2, show_default=True, help="Least number of runs in a group"
)
@click.option(
    "--top", type=click.IntRange(1), default=100, show_default=True, help="Number of groups shown, by variation"
)
@rate_method_option
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions, method: str, min_samples: int, top: int) -> None:
    """Groups of like runs and their I/O times (Table IV): mean, shortest, longest, deviation.

    Like runs have the same user, processes and files, and bytes read and written within 1 %.
    """
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(opened, "variance", asked.scope, like, min_samples=min_samples, method=method, top=top)
    asked.show(result)
