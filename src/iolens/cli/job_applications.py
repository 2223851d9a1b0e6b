"""Applications side by side, and each across core counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from iolens.cli.like_jobs import like_jobs_options
from iolens.cli.options import Asked, analysis_options

if TYPE_CHECKING:
    from iolens.store.jobs import JobFilter


@click.command(
    "applications",
    epilog="""\b
Examples:
  iolens job applications -f scratch --from 2026-01-01 --figure gigabytes.png --figure rpcs=sizes.png
  iolens job applications -f scratch --name overflow --by cores --figure rpcs=overflow.svg
""",
)
@click.option(
    "--by", type=click.Choice(["name", "cores"]), default="name", show_default=True,
    help="Compare job names, or the core counts of each",
)  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Number shown, by bytes moved")
@like_jobs_options
@analysis_options
def COMMAND(asked: Asked, by: Literal["name", "cores"], top: int, like: JobFilter) -> None:
    """What each application did: bytes read and written, opens and closes, RPCs by size.

    An application is the name of its jobs in the scheduler's records. Bytes and opens are means of a job; shares are of
    all RPCs of the application.
    """
    from iolens.api.job_applications import applications_of

    with asked.opened() as opened:
        result = applications_of(opened, asked.scope, like, by, top)
    asked.show(result)
