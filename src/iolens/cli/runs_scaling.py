"""Runs of a project or program by nodes: strong, weak scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options, rate_method_option
from iolens.cli.options import BYTES, Asked, analysis_options
from iolens.errors import OptionError

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "scaling",
    epilog="""\b
Examples:
  iolens runs scaling --project CombustionPhysics
  iolens runs scaling --executable 'flash*' --min-bytes 500MiB --figure scaling.png
""",
)
@click.option(
    "--min-processes", type=click.IntRange(0), default=0, show_default=True, help="Least number of processes of a run"
)
@click.option("--min-bytes", type=BYTES, default="0", show_default=True, help="Least bytes that a run moved")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Number of runs listed")
@rate_method_option
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions, method: str, min_processes: int, min_bytes: int, top: int) -> None:
    """How fast runs are on more nodes (Table VIII), with single runs and their key access size (Table VII).

    Strong scaling: total bytes stay the same while processes grow; weak: bytes per process do.
    """
    from dataclasses import replace

    from iolens.api.run_analyses import run_analysis

    if not like.projects and not like.executables:
        raise OptionError("name a project or a program with --project or --executable")
    chosen = replace(like, min_processes=min_processes, min_bytes=min_bytes)
    with asked.opened() as opened:
        result = run_analysis(opened, "scaling", asked.scope, chosen, method=method, top=top)
    asked.show(result)
