"""Like jobs before and after a change: which RPC sizes moved, and is it more than chance."""

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
@click.option("--before", type=TIME, metavar="TIME", help="The first group ended by then [--after]")
@click.option("--after", type=TIME, metavar="TIME", help="The second group started then or later [--before]")
@click.option("--jobs", type=WORDS, default="", metavar="IDS", help="The second group: job ids")
@click.option("--against", type=WORDS, default="", metavar="IDS", help="The first group, the reference: job ids")
@click.option("--exclusive", is_flag=True, help="Only jobs that are known to have had their nodes to themselves")
@click.option(
    "--significance",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.01,
    show_default=True,
    help="Share of comparisons of like with like that may raise a false alarm",
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

    The job is the unit: the shares of its RPCs that each size has, and its totals. A difference is called real when
    at most one of a hundred arrangements of the jobs into two such groups has a difference as large in any measure.
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
