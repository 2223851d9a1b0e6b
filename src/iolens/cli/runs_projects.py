"""Projects by their runs: bytes, rates, time in I/O, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_runs import like_runs_options, rate_method_option
from iolens.cli.options import BYTES, Asked, analysis_options

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions


@click.command(
    "projects",
    epilog="""\b
Examples:
  iolens runs projects --from 2026-11-01 --figure top.png --figure performance=boxes.png
  iolens runs projects --min-processes 16 --min-bytes 1MiB --ceiling 800 --format json
""",
)
@click.option(
    "--min-processes",
    type=click.IntRange(0),
    default=1024,
    show_default=True,
    help="Least number of processes of runs in means",
)
@click.option("--min-bytes", type=BYTES, default="500MiB", show_default=True, help="Least bytes moved by runs in means")
@click.option(
    "--ceiling", type=click.FloatRange(0, min_open=True), metavar="MIB",
    help="MiB/s a node can move; runs above it are listed separately [runs.ceiling_mib_per_s_per_node]",
)  # fmt: skip
@rate_method_option
@like_runs_options
@analysis_options
def COMMAND(
    asked: Asked, like: RunConditions, method: str, min_processes: int, min_bytes: int, ceiling: float | None
) -> None:
    """What each project's runs are like: Table VI, Figs. 4, 11 and 12 of the study on Intrepid.

    Means are unweighted over runs of at least --min-processes and --min-bytes, by default the limits of the study;
    use lower ones for a small centre. Project and nodes of a run are those of its job.
    """
    from iolens.api.run_analyses import run_analysis

    with asked.opened() as opened:
        result = run_analysis(
            opened,
            "projects",
            asked.scope,
            like,
            min_processes=min_processes,
            min_bytes=min_bytes,
            method=method,
            ceiling_mib_per_s_per_node=ceiling,
        )
    asked.show(result)
