"""Who made a file system busy, in shares of what the disks or the metadata servers did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iolens.errors import OptionError
from iolens.question import DURATION, SWITCH, Option, choice, question, whole
from iolens.questions.shared import CALIBRATION, SHOWN_NAMES

if TYPE_CHECKING:
    from iolens.analyses.blame import Blame
    from iolens.questions.asking import Ask

KINDS: Final = ("job", "user", "project", "executable", "node")


@question(
    "blame", "Who made a file system busy: job, user, project, program, node",
    Option("by", "What the shares are listed by", choice(*KINDS), "job"),
    Option("metadata", "Time of the metadata servers instead of the disks", SWITCH),
    SHOWN_NAMES,
    Option("busiest", "Use only the busiest part of this length, such as 1h", DURATION, metavar="TIME"),
    Option("plateau", "Use only the Nth plateau of `iolens utilization`", whole(1), metavar="N"),
    CALIBRATION,
    about="raw",
    examples=(
        "-f scratch --from 2026-01-05T14:00 --to 2026-01-05T15:00",
        "-f scratch --from 2026-01-05 --to 2026-01-12 --busiest 1h --by user",
        "-f scratch --metadata --by executable --figure shares=who.png",
    ),
)  # fmt: skip
def blame(ask: Ask, busiest: float | None, plateau: int | None, **options: Any) -> Blame:
    """Who kept the disks busy, in shares of what the disks did.

    Shares come from job_stats of the servers: the disk time of a job's RPCs and bytes on each target is computed with
    the calibration. It never adds up to more than the disk time of the target; the rest is unattributed. Names come
    from the scheduler's records, from Darshan logs and from the ids. Without job_stats, jobs that moved bytes at that
    time are shown, as an association.
    """
    from iolens.api.blame import BlameOptions, blame_of

    if busiest is not None and plateau is not None:
        raise OptionError("--busiest and --plateau both choose the window: give one of them")
    chosen = BlameOptions(busiest_s=busiest, plateau=plateau, **options)
    return blame_of(ask.store, ask.scope, chosen, ask.day_done)
