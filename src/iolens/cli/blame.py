"""Who made a file system busy: job, user, project, program, node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iolens.cli.options import DURATION, Asked, analysis_options
from iolens.cli.terminal_output import progress
from iolens.errors import OptionError

if TYPE_CHECKING:
    from iolens.analyses.attribution.whose import Kind

KINDS = ("job", "user", "project", "executable", "node")


@click.command(
    "blame",
    epilog="""\b
Examples:
  iolens blame -f scratch --from 2026-01-05T14:00 --to 2026-01-05T15:00
  iolens blame -f scratch --from 2026-01-05 --to 2026-01-12 --busiest 1h --by user
  iolens blame -f scratch --metadata --by executable --figure shares=who.png
""",
)
@click.option("--by", type=click.Choice(KINDS), default="job", show_default=True, help="What the shares are listed by")
@click.option("--metadata", is_flag=True, help="Time of the metadata servers instead of the disks")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Number of names shown")
@click.option("--busiest", type=DURATION, metavar="TIME", help="Use only the busiest part of this length, such as 1h")
@click.option("--plateau", type=click.IntRange(1), metavar="N", help="Use only the Nth plateau of `iolens utilization`")
@click.option("--calibration", metavar="NAME", help="Calibration of the disks [as `iolens utilization`]")
@analysis_options
def COMMAND(
    asked: Asked,
    by: Kind,
    metadata: bool,
    top: int,
    busiest: float | None,
    plateau: int | None,
    calibration: str | None,
) -> None:
    """Who kept the disks busy, in shares of what the disks did.

    Shares come from job_stats of the servers: the disk time of a job's RPCs and bytes on each target is computed with
    the calibration. It never adds up to more than the disk time of the target; the rest is unattributed. Names come
    from the scheduler's records, from Darshan logs and from the ids. Without job_stats, jobs that moved bytes at that
    time are shown, as an association.
    """
    from iolens.api.blame import BlameOptions, blame_of

    if busiest is not None and plateau is not None:
        raise OptionError("--busiest and --plateau both choose the window: give one of them")
    options = BlameOptions(by, metadata, top, busiest, plateau, calibration)
    with asked.opened() as opened, progress(None, "reading") as step:
        result = blame_of(opened, asked.scope, options, lambda day: step(str(day)))
    asked.show(result)
