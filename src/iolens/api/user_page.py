"""The page of one user, out of whatever the store has: records, logs, counters of nodes, job_stats of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from iolens.analyses.blame.results import Blame, WhoShare
from iolens.analyses.job_page.costs import disk_cost
from iolens.analyses.job_page.results import MissingPart
from iolens.analyses.user_page.jobs import JobsOfUser, first_jobs, total
from iolens.analyses.user_page.results import UserDay, UserPage, UserUse
from iolens.analyses.user_page.slow_runs import slow_candidates
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.job_totals import jobs_of_window
from iolens.api.page_advice import advice_of
from iolens.api.page_names import check_filesystems, names_in_runs, unknown_name
from iolens.api.page_verdict import verdict_of
from iolens.api.stored_runs import StoredRuns, WantedRuns
from iolens.errors import IolensError, NotKnownError, StoreError
from iolens.schema import CLIENT_IO
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.units import from_epoch_us

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

EVERY: Final = 1_000_000  # lines of a blame: all there are
WINDOW: Final = timedelta(days=7)
MOST_DAYS: Final = 31  # that are shown one by one, the last ones
MOST_RUNS: Final = 200  # whose findings are looked for, those with most I/O time
MOST_EXPLAINED: Final = 5
TELEMETRY: Final = ("job_io", "target_io", "target_sizes", "client_io")

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
    check_filesystems(filesystems, {*telemetry, *names_in_runs(opened, "filesystem")})
    since, until = _window(opened, scope or Scope(), telemetry)
    window = Scope(None, since, until)
    chosen = [name for name in telemetry if not filesystems or name in filesystems]
    blames, why_not = _blames(opened, window, chosen)
    runs = _runs(opened, user, window, filesystems)
    jobs = _jobs(opened, user, window, runs, blames)
    if not jobs.parts:
        _check_user(opened, user, blames.values())
    lines = jobs.jobs()
    advice = advice_of(opened, runs[:MOST_RUNS], len(runs[MOST_RUNS:]))
    slow, explained = _slow_runs(opened, runs, window)
    return UserPage(
        user=user,
        window_start=since,
        window_end=until,
        jobs=len(lines),
        runs=len(runs),
        core_hours=total(job.core_hours for job in lines),
        io_core_hours=None if advice is None else advice.core_hours,
        **{name: _whole(total(getattr(job, name) for job in lines)) for name in ("read_bytes", "write_bytes")},
        uses=[UserUse(name, disk_cost(blame, _is_of(user))) for name, blame in blames.items()],
        top_jobs=first_jobs(lines),
        days=_days(opened, user, window, blames, runs, ZoneInfo(timezone or "UTC")),
        advice=[] if advice is None else list(advice.lines),
        is_judged=advice is not None,
        runs_looked_at=0 if advice is None else advice.runs,
        slow_runs=slow,
        runs_explained=explained,
        missing=[*why_not, *_missing(jobs, runs)],
    )


def _window(opened: StoreAnalyses, scope: Scope, telemetry: Sequence[str]) -> tuple[datetime, datetime]:
    """As asked; else the last seven days of which anything is stored."""
    if scope.since is not None and scope.until is not None:
        return scope.since, scope.until
    extents = [opened.store.select(name).extent_us(*TELEMETRY) for name in telemetry]
    extents.append(opened.store.select_all(Scope()).extent_us("runs", "jobs"))
    known = [extent for extent in extents if extent is not None]
    if not known:
        raise StoreError(f"{opened.store.url} holds no data yet; load some with `iolens ingest`")
    until = scope.until or from_epoch_us(max(end_us for _, end_us in known))
    return scope.since or until - WINDOW, until


def _blames(opened: StoreAnalyses, window: Scope, names: Sequence[str]) -> tuple[dict[str, Blame], list[MissingPart]]:
    """By file system, and those of which shares are not known."""
    blames: dict[str, Blame] = {}
    missing = []
    for name in names:
        try:
            blames[name] = _blame(opened, Scope(name, window.since, window.until))
        except IolensError as error:
            missing.append(MissingPart(f"the disk time on {name}", str(error)))
    if not names:
        missing.append(MissingPart("the disk time", "nothing of the file systems' servers is stored"))
    return blames, missing


def _blame(opened: StoreAnalyses, scope: Scope) -> Blame:
    return blame_of(opened, scope, BlameOptions(by="job", top=EVERY))


def _is_of(user: str) -> Any:
    return lambda line: line.user == user


def _runs(opened: StoreAnalyses, user: str, window: Scope, filesystems: Sequence[str]) -> list[Row]:
    """Runs of that very name, those with most I/O time first."""
    if not opened.store.select_all(window).holds("runs"):
        return []
    rows = StoredRuns(opened.store).wanted(WantedRuns(users=(user,), since=window.since, until=window.until))
    return [row for row in rows if row["user"] == user and (not filesystems or row["filesystem"] in filesystems)]


def _jobs(
    opened: StoreAnalyses, user: str, window: Scope, runs: Sequence[Row], blames: Mapping[str, Blame]
) -> JobsOfUser:
    jobs = JobsOfUser()
    jobs.add_records(opened.store.jobs(window.since, window.until, like=JobFilter(users=(user,))))
    jobs.add_runs(runs)
    for name, blame in blames.items():
        own = [line for line in blame.who if line.user == user]
        jobs.add_shares(_by_job(own), blame.method == "job_stats")
        if opened.store.select(name).holds(CLIENT_IO.name):
            scope = Scope(name, window.since, window.until)
            jobs.add_totals(jobs_of_window(opened, scope, JobFilter(users=(user,))).jobs)
    return jobs


def _by_job(lines: Sequence[WhoShare]) -> list[tuple[str, WhoShare]]:
    return [(line.name, line) for line in lines]


def _check_user(opened: StoreAnalyses, user: str, blames: Any) -> None:
    """Whether the user is known outside the window at least."""
    known = {str(row["user"]) for row in opened.store.jobs() if row["user"]} | names_in_runs(opened, "user")
    known |= {line.user for blame in blames for line in blame.who if line.user}
    if user not in known:
        raise unknown_name(opened, "user", user, known)


def _days(
    opened: StoreAnalyses,
    user: str,
    window: Scope,
    blames: Mapping[str, Blame],
    runs: Sequence[Row],
    zone: ZoneInfo,
) -> list[UserDay]:
    """By file system and day; where no shares are known, bytes of the logs by the day a run began."""
    assert window.since is not None
    assert window.until is not None
    ends = _midnights(window.since, window.until, zone)
    days = []
    for since, until in pairwise(ends):
        day = since.astimezone(zone).date()
        days += [_day(opened, user, Scope(name, since, until), day) for name in blames]
        if not blames:
            own = [row for row in runs if since <= from_epoch_us(int(row["start"])) < until]
            moved = total(row[name] for row in own for name in ("read_bytes", "write_bytes"))
            days.append(UserDay(day, None, None, None, _whole(moved)))
    return days if any(day.share_pct is not None or day.moved_bytes for day in days) else []


def _midnights(since: datetime, until: datetime, zone: ZoneInfo) -> list[datetime]:
    """Ends of days, the window's own ends among them; at most the last days."""
    ends, day = [since], since.astimezone(zone).date()
    while ends[-1] < until:
        day += timedelta(days=1)
        ends.append(min(datetime.combine(day, datetime.min.time(), zone).astimezone(since.tzinfo), until))
    return ends[-MOST_DAYS - 1 :]


def _day(opened: StoreAnalyses, user: str, scope: Scope, day: Any) -> UserDay:
    try:
        blame = _blame(opened, scope)
    except NotKnownError:
        return UserDay(day, scope.filesystem, None, None, None)
    own = [line for line in blame.who if line.user == user]
    moved = total(value for line in own for value in (line.read_bytes, line.write_bytes))
    share = sum(line.share_pct for line in own)
    return UserDay(day, scope.filesystem, share, total(line.disk_seconds for line in own) or 0.0, _whole(moved))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _slow_runs(opened: StoreAnalyses, runs: Sequence[Row], window: Scope) -> tuple[list[RunExplanation], int]:
    """Runs that were slow against like runs, with why; how many were looked at."""
    telemetry = set(opened.store.targets_by_filesystem())
    slow = []
    candidates = slow_candidates(runs, MOST_EXPLAINED)
    for row in candidates:
        scope = Scope(row["filesystem"] if row["filesystem"] in telemetry else None)
        result, _ = verdict_of(opened, str(row["run_id"]), scope)
        if result is not None and result.slow:
            slow.append(result)
    return slow, len(candidates)


def _missing(jobs: JobsOfUser, runs: Sequence[Row]) -> list[MissingPart]:
    missing = []
    without = sum(not parts.runs for parts in jobs.parts.values())
    if without:
        which = f"{without} of {len(jobs.parts)} jobs" if runs else "the jobs"
        missing.append(MissingPart(f"what could be better in {which}", "no Darshan logs of them are stored"))
    unknown = sum(not (parts.runs or parts.shares or parts.totals) for parts in jobs.parts.values())
    if unknown:
        missing.append(MissingPart(f"what {unknown} of {len(jobs.parts)} jobs moved", "nothing counted their bytes"))
    without_record = sum(parts.record is None for parts in jobs.parts.values())
    if without_record:
        reason = "no scheduler's record of them is stored; core-hours are processes × time where a log tells"
        missing.append(MissingPart(f"cores of {without_record} of {len(jobs.parts)} jobs", reason))
    return missing
