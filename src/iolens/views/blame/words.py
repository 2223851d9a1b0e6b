"""Who made it busy, in sentences that can be quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.analyses.attribution.whose import OF_PEOPLE
from iolens.views.render import tables as t
from iolens.visible_text import counted, visible

if TYPE_CHECKING:
    from iolens.analyses.blame import Blame, WhoShare

MUCH_UNATTRIBUTED_PCT: Final = 20.0
FAR_MORE: Final = 3.0  # share of the time ÷ share of the bytes
WHAT: Final = {"disk": "disk time", "metadata": "time of the metadata servers"}
BY: Final = {"job": "job", "user": "user", "project": "project", "executable": "program", "node": "node"}


def title(result: Blame) -> str:
    """Of tables and figures; where FSU has no level it is not known whether it was busy."""
    return "Who made it busy" if result.has_levels else "Whose I/O it was"


def measured(result: Blame) -> str:
    """What shares are of."""
    if result.disk_seconds is None:
        return "metadata operations"
    return WHAT[result.basis]


def verdict(result: Blame) -> str:
    """Who comes first, and with how much."""
    if not result.who:
        return f"No {measured(result)} of this window belongs to a job."
    first = result.who[0]
    verb = "took" if result.method == "job_stats" else "is associated with"
    words = f"{named(first, result)} {verb} {t.show_percent(first.share_pct)} % of the {measured(result)}"
    bytes_pct = share_of_bytes(result, first)
    if bytes_pct is not None and result.basis == "disk":
        moved = f"{t.show_percent(bytes_pct)} % of the bytes that jobs moved"
        joint = "but" if first.share_pct > FAR_MORE * bytes_pct else "and"
        words += f", {joint} moved {moved}"
    return f"{words}."


def named(who: WhoShare, result: Blame) -> str:
    """`Job 1234 (alice, climate)`; `Jobs without a record (5 ids)`."""
    name = visible(who.name)
    if not who.is_known and result.by in OF_PEOPLE:
        return f"{name.capitalize()} ({counted(who.jobs, 'id')})"
    more = ", ".join(visible(word) for word in (who.user, who.executable) if word)
    kind = BY[result.by].capitalize() if who.is_known else "Id"
    return f"{kind} {name}{f' ({more})' if more else ''}"


def share_of_bytes(result: Blame, who: WhoShare) -> float | None:
    """Of all bytes that jobs moved, in per cent; None where they are not known."""
    lines = [*result.who, *([result.others] if result.others is not None else [])]
    total = sum((line.read_bytes or 0) + (line.write_bytes or 0) for line in lines)
    if who.read_bytes is None or who.write_bytes is None or not total:
        return None
    return 100.0 * (who.read_bytes + who.write_bytes) / total


def method(result: Blame) -> str:
    """How it is known."""
    if result.method == "overlap":
        return (
            "No job_stats are stored: shares are of bytes that jobs moved while the targets were busy. That is"
            " association, not cause."
        )
    if result.disk_seconds is None:
        return "From job_stats. No mdtest result says what an operation costs, so all count the same."
    return f"From job_stats and the calibration {', '.join(visible(name) for name in result.coverage.calibrations)}."


def warnings(result: Blame) -> tuple[str, ...]:
    """What to know before the shares are believed."""
    coverage = result.coverage
    said = []
    if result.unattributed_pct >= MUCH_UNATTRIBUTED_PCT:
        said.append(f"{t.show_percent(result.unattributed_pct)} % of the {measured(result)} is unattributed")
    if coverage.targets_without_job_stats:
        missing = counted(len(coverage.targets_without_job_stats), "target")
        said.append(f"no job_stats of {missing}: their disk time is unattributed")
    if coverage.assumed_pct:
        share = t.show_percent(coverage.assumed_pct)
        said.append(f"for {share} % one disk I/O per RPC is assumed, because the true number is not known")
    if coverage.unmeasured_pct:
        share = t.show_percent(coverage.unmeasured_pct)
        said.append(f"for {share} % the requests of the jobs are used, because the sizes of disk I/Os are not known")
    for count, why in (
        (coverage.incomplete_ids, "cut short or without a field"),
        (coverage.contradictory_ids, "with records of several users"),
    ):
        if count:
            end = f"of no {result.by}" if result.by in OF_PEOPLE else "shown as they are"
            said.append(f"{counted(count, 'job id')} {why}: {end}")
    return (*said, *coverage.notes)
