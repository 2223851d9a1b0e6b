"""Like jobs before and after a change: what moved, is it chance."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.like_jobs import like_jobs_options
from iolens.cli.options import WORDS, Asked, analysis_options
from iolens.cli.shared_time_options import TIME

if TYPE_CHECKING:
    from iolens.store.jobs import JobFilter


@click.command(
    "compare",
    epilog="""\b
Examples:
  iolens job compare -f scratch --name 'enzo*' --after 2026-03-01
  iolens job compare -f scratch --name enzo --cores 1024 --before 2026-03-01 --after 2026-03-03
  iolens job compare -f scratch --jobs 4711,4712,4713 --against 3901,3902,3907 --figure shift.png
""",
)
@click.option("--before", type=TIME, metavar="TIME", help="First group: jobs that ended by this time [--after]")
@click.option(
    "--after", type=TIME, metavar="TIME", help="Second group: jobs that started at this time or later [--before]"
)
@click.option("--jobs", type=WORDS, default="", metavar="IDS", help="Second group: job ids")
@click.option("--against", type=WORDS, default="", metavar="IDS", help="First group (reference): job ids")
@click.option("--exclusive", is_flag=True, help="Only jobs that are known to have shared no node")
@click.option(
    "--significance",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.01,
    show_default=True,
    help="Accepted share of false alarms when there is no difference",
)
@like_jobs_options
@analysis_options
def COMMAND(
    asked: Asked,
    before: datetime | None,
    after: datetime | None,
    jobs: tuple[str, ...],
    against: tuple[str, ...],
    exclusive: bool,
    significance: float,
    like: JobFilter,
) -> None:
    """Compare like jobs before and after a date, such as that of an upgrade, or between two lists.

    Jobs are compared by the shares of their RPCs of each size, and by their totals. A difference is called real if at
    most one in a hundred random divisions of the jobs into two such groups has a difference as large in any measure.
    """
    from iolens.api.job_compare import compare_at, compare_lists

    dates = [before, after]
    how: dict[str, Any] = {"exclusive": exclusive, "significance": significance}
    if (jobs or against) and (before or after):
        raise click.UsageError("a date (--before, --after) or two lists (--jobs, --against), not both")
    with asked.opened() as opened:
        if jobs or against:
            result = compare_lists(opened, asked.scope, like, jobs, against, **how)
        else:
            result = compare_at(opened, asked.scope, like, dates[0], dates[1], **how)
    asked.show(result)
