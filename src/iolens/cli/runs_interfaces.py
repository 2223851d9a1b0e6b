"""POSIX, STDIO, MPI-IO, HDF5 and PnetCDF by the size of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "interfaces",
    epilog="""\b
Examples:
  iolens runs interfaces --from 2026-11-01 --figure interfaces.svg
""",
)
@like_runs_options
@analysis_options
def COMMAND(asked: Asked, like: RunConditions) -> None:
    """Which I/O interfaces runs use, in runs and bytes, by their processes (Fig. 3a).

    A file counts under the highest interface that opened it; a run counts under each interface it uses.
    """
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(opened, "interfaces", asked.scope, like)
    asked.show(result)
