"""The page of one user, out of whatever the store has: records, logs, counters of nodes, job_stats of servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from iolens.analyses.blame import Blame, WhoShare
from iolens.analyses.job_page import MissingPart, disk_cost
from iolens.analyses.job_search import MergedJob
from iolens.analyses.user_page import UserDay, UserPage, UserUse, first_jobs, slow_candidates, total, user_job
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.explain import verdict_of
from iolens.api.job_totals import jobs_of_window
from iolens.api.jobs import runs_table, shares_table, totals_table
from iolens.api.page_parts import Piece, advice_of, check_filesystems, names_in, page_window, pieces_of, unknown_name
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_runs import StoredRuns, WantedRuns
from iolens.errors import NotKnownError
from iolens.schema import CLIENT_IO
from iolens.store.jobs import RECORD, JobFilter, JobLayers, records_of
from iolens.store.scope import Scope
from iolens.units import from_epoch_us

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

EVERY: Final = 1_000_000  # lines of a blame: all there are
MOST_RUNS: Final = 200  # whose findings are looked for, those with most I/O time
MOST_EXPLAINED: Final = 5

Row = Mapping[str, Any]


def user_page(
    opened: StoreAnalyses,
    user: str,
    scope: Scope | None = None,
    filesystems: Sequence[str] = (),
    timezone: str | None = None,
) -> UserPage:
    """The page; without a window in the scope, of the last seven days of data. Days are those of the time zone."""
    telemetry = sorted(opened.store.targets_by_filesystem())
    check_filesystems(opened, filesystems)
    zone = ZoneInfo(timezone or "UTC")
    window = page_window(opened, scope or Scope(), telemetry, zone)
    days_each, pieces = pieces_of(window, zone)
    chosen = [name for name in telemetry if not filesystems or name in filesystems]
    shares = {name: _shares(opened, name, pieces) for name in chosen}
    runs = _runs(opened, user, window, filesystems)
    jobs = _jobs(opened, user, window, runs, shares)
    if not jobs:
        _check_user(opened, user)
    lines = [user_job(job) for job in jobs]
    advice = advice_of(opened, runs[:MOST_RUNS], len(runs[MOST_RUNS:]))
    uses = [UserUse(name, cost) for name, by_day in shares.items() if (cost := disk_cost(by_day.known, _is_of(user)))]
    return UserPage(
        user=user,
        window_start=window[0],
        window_end=window[1],
        jobs=len(lines),
        runs=len(runs),
        core_hours=total(job.core_hours for job in lines),
        io_core_hours=None if advice is None else advice.core_hours,
        **{name: _whole(total(getattr(job, name) for job in lines)) for name in ("read_bytes", "write_bytes")},
        uses=uses,
        top_jobs=first_jobs(lines),
        days=_days(user, pieces, shares, runs, zone),
        days_each=days_each,
        advice=[] if advice is None else list(advice.lines),
        is_judged=advice is not None,
        slow_runs=_slow_runs(opened, runs),
        missing=[*_missing_shares(shares, uses), *_missing(jobs, runs)],
    )


@dataclass(frozen=True, slots=True)
class SharesByDay:
    """Shares of disk time on one file system for each piece of the window; None where they are not known."""

    blames: Sequence[Blame | None]
    why_not: str  # of the first of them

    @property
    def known(self) -> list[Blame]:
        """Those there are."""
        return [blame for blame in self.blames if blame is not None]


def _shares(opened: StoreAnalyses, name: str, pieces: Sequence[Piece]) -> SharesByDay:
    blames: list[Blame | None] = []
    reasons = []
    for since, until in pieces:
        try:
            blames.append(blame_of(opened, Scope(name, since, until), BlameOptions(by="job", top=EVERY)))
        except NotKnownError as error:
            blames.append(None)
            reasons.append(str(error))
    return SharesByDay(blames, reasons[0] if reasons else "")


def _missing_shares(shares: Mapping[str, SharesByDay], uses: Sequence[UserUse]) -> list[MissingPart]:
    if not shares:
        return [MissingPart("the disk time", "nothing of the file systems' servers is stored")]
    missing = [
        MissingPart(f"the disk time on {name}", by_day.why_not) for name, by_day in shares.items() if not by_day.known
    ]
    if not missing and not uses:
        return [MissingPart("the disk time", "the shares of disk time name none of these jobs")]
    return missing


def _is_of(user: str) -> Callable[[WhoShare], bool]:
    return lambda line: line.user == user


def _runs(opened: StoreAnalyses, user: str, window: tuple[datetime, datetime], filesystems: Sequence[str]) -> list[Row]:
    """Runs of that very name, those with most I/O time first."""
    if not opened.store.select_all(Scope(None, *window)).holds("runs"):
        return []
    rows = StoredRuns(opened.store).wanted(WantedRuns(users=(user,), since=window[0], until=window[1]))
    return [row for row in rows if row["user"] == user and (not filesystems or row["filesystem"] in filesystems)]


def _jobs(
    opened: StoreAnalyses,
    user: str,
    window: tuple[datetime, datetime],
    runs: Sequence[Row],
    shares: Mapping[str, SharesByDay],
) -> list[MergedJob]:
    like = JobFilter(users=(user,))
    own = [
        (name, blame.method == "job_stats", line)
        for name, by_day in shares.items()
        for blame in by_day.known
        for line in blame.who
        if line.user == user
    ]
    totals = [
        (name, line)
        for name in shares
        if opened.store.select(name).holds(CLIENT_IO.name)
        for line in jobs_of_window(opened, Scope(name, *window), like).jobs
    ]
    records = records_of(opened.store.jobs(*window, like=like))
    layers = JobLayers(records, runs_table(runs), shares_table(own), totals_table(totals))
    return sorted(map(MergedJob.of_row, layers.jobs()[0]), key=lambda job: (job.job_id, job.cluster or ""))


def _check_user(opened: StoreAnalyses, user: str) -> None:
    """Whether the user is known outside the window at least."""
    known = names_in(opened, "jobs", "user") | names_in(opened, "runs", "user")
    if user not in known:
        raise unknown_name(opened, "user", user, known)


def _days(
    user: str,
    pieces: Sequence[Piece],
    shares: Mapping[str, SharesByDay],
    runs: Sequence[Row],
    zone: ZoneInfo,
) -> list[UserDay]:
    """By file system and day or week; where no shares are known, bytes of the logs by the day a run began."""
    dates = [since.astimezone(zone).date() for since, _ in pieces]
    days = [
        _day(user, name, date, blame)
        for name, by_day in shares.items()
        for date, blame in zip(dates, by_day.blames, strict=True)
        if by_day.known
    ]
    if not days:
        days = [_logged_day(date, piece, runs) for date, piece in zip(dates, pieces, strict=True)]
    return days if any(day.share_pct or day.moved_bytes for day in days) else []


def _day(user: str, filesystem: str, day: date, blame: Blame | None) -> UserDay:
    if blame is None:
        return UserDay(day, filesystem, None, None, None)
    own = [line for line in blame.who if line.user == user]
    moved = total(value for line in own for value in (line.read_bytes, line.write_bytes))
    share, seconds = sum(line.share_pct for line in own), total(line.disk_seconds for line in own)
    return UserDay(day, filesystem, share, seconds or 0.0, _whole(moved))


def _logged_day(day: date, piece: Piece, runs: Sequence[Row]) -> UserDay:
    own = [row for row in runs if piece[0] <= from_epoch_us(int(row["start"])) < piece[1]]
    moved = total(row[name] for row in own for name in ("read_bytes", "write_bytes"))
    return UserDay(day, None, None, None, _whole(moved))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _slow_runs(opened: StoreAnalyses, runs: Sequence[Row]) -> list[RunExplanation]:
    """Runs that were slow against like runs, with why."""
    telemetry = set(opened.store.targets_by_filesystem())
    slow = []
    for row in slow_candidates(runs, MOST_EXPLAINED):
        scope = Scope(row["filesystem"] if row["filesystem"] in telemetry else None)
        result, _ = verdict_of(opened, str(row["run_id"]), scope)
        if result is not None and result.slow:
            slow.append(result)
    return slow


def _missing(jobs: Sequence[MergedJob], runs: Sequence[Row]) -> list[MissingPart]:
    missing = []
    without = sum(not job.runs for job in jobs)
    if without:
        which = f"{without} of {len(jobs)} jobs" if runs else "the jobs"
        missing.append(MissingPart(f"what could be better in {which}", "no Darshan logs of them are stored"))
    if len(runs) > MOST_RUNS:
        what = f"what could be better in {len(runs) - MOST_RUNS:,} runs"
        missing.append(MissingPart(what, f"only the {MOST_RUNS:,} with most I/O time are looked at"))
    unknown = sum(set(job.known_by) <= {RECORD} for job in jobs)
    if unknown:
        missing.append(MissingPart(f"what {unknown} of {len(jobs)} jobs moved", "nothing counted their bytes"))
    without_record = sum(RECORD not in job.known_by for job in jobs)
    if without_record:
        reason = "no scheduler's record of them is stored; core-hours are processes × time where a log tells"
        missing.append(MissingPart(f"cores of {without_record} of {len(jobs)} jobs", reason))
    return missing
