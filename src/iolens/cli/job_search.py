"""Search all jobs of a window that anything is known of."""

from __future__ import annotations

from typing import Any

import click

from iolens.cli.options import WORDS, Asked, analysis_options

SORTS = ("start", "disk", "bytes", "read", "written", "core-hours", "duration")


@click.command(
    "search",
    epilog="""\b
Examples:
  iolens job search wrf --store centre
  iolens job search -f scratch --sort disk --top 20
  iolens job search '4400*' --user alice,bob --sort core-hours --format csv
""",
)
@click.argument("text", default="")
@click.option(
    "--sort", type=click.Choice(SORTS), default="start", show_default=True, help="Order; newest or largest first"
)
@click.option("--reverse", is_flag=True, help="Oldest or smallest first")
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="How many")
@click.option("--skip", type=click.IntRange(0), default=0, show_default=True, help="After how many")
@click.option("--user", "users", type=WORDS, default="", metavar="LIST", help="Only jobs of these users")
@click.option("--project", "projects", type=WORDS, default="", metavar="LIST", help="Only jobs of these projects")
@click.option(
    "--name", "names", type=WORDS, default="", metavar="LIST",
    help="Only jobs with these programs or names; * and ? stand for anything",
)  # fmt: skip
@click.option("--cluster", "clusters", type=WORDS, default="", metavar="LIST", help="Only jobs of these clusters")
@click.option("--state", "states", type=WORDS, default="", metavar="LIST", help="Only jobs with this state")
@analysis_options
def COMMAND(asked: Asked, **wanted: Any) -> None:
    """Jobs that ran in the window (the last seven days of data), by records, logs, job_stats and nodes together.

    TEXT is the start of a job id, or part of a user, project, program or job name; upper and lower case are the same.
    With * or ? it must match the whole of one of these. Without -f all file systems count; with it, only jobs that
    used this one, and what they did there.
    """
    from iolens.api.job_search import JobSearchOptions, search_jobs

    with asked.opened() as opened:
        result = search_jobs(opened, asked.scope, JobSearchOptions(**wanted))
    asked.show(result)
