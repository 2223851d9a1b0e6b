"""Jobs of a window by what they moved, opened or asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.like_jobs import like_jobs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.store.jobs import JobFilter

ORDERS = ("bytes", "read", "written", "operations", "opens", "rpcs", "disk", "start")


@click.command(
    "list",
    epilog="""\b
Examples:
  iolens job list -f scratch --from 2026-03-01 --to 2026-03-02
  iolens job list -f scratch --sort disk
  iolens job list -f scratch --user alice --sort opens --top 50 --format csv
""",
)
@click.option(
    "--sort", "sorted_by", type=click.Choice(ORDERS), default="bytes", show_default=True, help="Order; largest first"
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="How many")
@like_jobs_options
@analysis_options
def COMMAND(asked: Asked, sorted_by: str, top: int, like: JobFilter) -> None:
    """Jobs that ran in the window, with what each did to the file system.

    Numbers come from the samples of a job's begin and end, else from the counters of its nodes while it ran. The time
    it kept the disks busy is known if job_stats of the servers and a calibration of the file system are stored.
    """
    from iolens.api.job_list import listed_jobs

    with asked.opened() as opened:
        result = listed_jobs(opened, asked.scope, like, sorted_by, top)
    asked.show(result)
