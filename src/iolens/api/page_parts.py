"""Parts of the pages of jobs and users: their window, names that the store knows, and advice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

from iolens.analyses.runs.advise import AdviceLine, RunAdvice, run_advice
from iolens.analyses.runs.summary import RunSummary, run_summary
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_runs import StoredRuns
from iolens.errors import InputError, StoreError, UsageError
from iolens.findings import Thresholds, checked_thresholds
from iolens.findings.rule import Finding
from iolens.nearest_names import not_among
from iolens.run_tables import RUN_FILES
from iolens.store.scope import Scope
from iolens.units import from_epoch_us

# The window of a user's page ------------------------------------------------------------------------------------------
# The last days of data, and the days or weeks in it.

DAYS: Final = 7  # of a window that nobody gave
MOST_DAYS: Final = 31  # that are looked at one by one; of more, weeks
TELEMETRY: Final = ("job_io", "target_io", "target_sizes", "client_io")

Piece = tuple[datetime, datetime]


def page_window(opened: StoreAnalyses, scope: Scope, telemetry: Sequence[str], zone: ZoneInfo) -> Piece:
    """As asked; else the last seven days of which anything is stored, from the midnight before."""
    if scope.since is not None and scope.until is not None:
        return scope.since, scope.until
    everything = opened.store.select_all(Scope())
    extents = [everything.of_filesystem(name, set()).extent_us(*TELEMETRY) for name in telemetry]
    extents.append(everything.extent_us("runs", "jobs"))
    known = [extent for extent in extents if extent is not None]
    if not known:
        raise StoreError(f"{opened.store.url} holds no data yet; load some with `iolens ingest`")
    until = scope.until or from_epoch_us(max(end_us for _, end_us in known))
    last = (until - timedelta(microseconds=1)).astimezone(zone).date()
    return scope.since or _midnight(last - timedelta(days=DAYS - 1), zone, until), until


def pieces_of(window: Piece, zone: ZoneInfo) -> tuple[int, list[Piece]]:
    """Days of the zone, or weeks where there are many: how many days each has, and from when to when they are."""
    since, until = window
    each = 1 if until - since <= timedelta(days=MOST_DAYS) else 7
    ends, day = [since], since.astimezone(zone).date()
    while ends[-1] < until:
        day += timedelta(days=each)
        ends.append(min(_midnight(day, zone, since), until))
    return each, list(pairwise(ends))


def _midnight(day: date, zone: ZoneInfo, like: datetime) -> datetime:
    """When the day begins, in the time zone of `like`."""
    return datetime.combine(day, time(), zone).astimezone(like.tzinfo)


# Names that the store knows, for a question about one that it does not ------------------------------------------------

MOST_COMPARED: Final = 20_000  # names; of more, those that begin alike
ALIKE: Final = 3  # characters


def unknown_name(opened: StoreAnalyses, kind: str, name: str, known: Iterable[str]) -> InputError:
    """One line that names what is nearest."""
    names = set(known)
    if len(names) > MOST_COMPARED:
        names = {other for other in names if other[:ALIKE] == name[:ALIKE]} or set(sorted(names)[:MOST_COMPARED])
    return InputError(opened.store.url, f"no {kind} {name!r}{not_among(name, names)}")


def names_in(opened: StoreAnalyses, table: str, column: str) -> set[str]:
    """Values of a column, of runs or jobs."""
    selection = opened.store.select_all(Scope())
    if not selection.holds(table):
        return set()
    values = selection.frame(table).select(column).unique().collect(backend="pyarrow").to_native()
    return {str(value) for value in values.column(column).to_pylist() if value is not None}


def check_filesystems(opened: StoreAnalyses, given: Collection[str]) -> None:
    """Whether the store knows them, by servers or logs."""
    if not given:
        return
    names = {*opened.store.targets_by_filesystem(), *names_in(opened, "runs", "filesystem")}
    for name in given:
        if name not in names:
            raise UsageError(f"no file system is called {name!r}{not_among(name, names)}")


# What to change, for the person who ran it ----------------------------------------------------------------------------
# Findings of logs, and of counters where no log shows the same.

AT_ONCE: Final = 100  # runs whose files are held together
BY_COUNTERS: Final = 0  # runs of a line that no log shows

Row = Mapping[str, Any]


def thresholds_of(opened: StoreAnalyses) -> Thresholds:
    """Those that the configuration sets."""
    return checked_thresholds(opened.config.findings, str(opened.config.path))


def summaries_of(opened: StoreAnalyses, rows: Sequence[Row]) -> list[RunSummary]:
    """Each run with its findings and the gain that like runs show."""
    stored, thresholds = StoredRuns(opened.store), thresholds_of(opened)
    return [
        run_summary(record, None, thresholds, stored.like(record.run))
        for first in range(0, len(rows), AT_ONCE)
        for record in stored.records(rows[first : first + AT_ONCE], (RUN_FILES.name,))
    ]


def advice_of(opened: StoreAnalyses, rows: Sequence[Row], left_out: int = 0) -> RunAdvice | None:
    """Over the runs, the most expensive first; None where there is no run."""
    return run_advice(summaries_of(opened, rows), "core-hours", left_out) if rows else None


def advice_lines(logged: RunAdvice | None, counted: Sequence[Finding]) -> list[AdviceLine]:
    """Lines of logs, then findings of counters that no log shows."""
    lines = [*logged.lines] if logged is not None else []
    shown = {line.code for line in lines}
    return [*lines, *(_line(finding) for finding in counted if finding.code not in shown)]


def _line(finding: Finding) -> AdviceLine:
    return AdviceLine(
        finding.code,
        finding.severity,
        user=None,
        executable=None,
        runs=BY_COUNTERS,
        core_hours=None,
        core_hours_lost=None,
        estimated_gain=finding.estimated_gain,
        gain_from=finding.gain_from,
        jobid=None,
        run_id=None,
        message=finding.message,
        evidence=finding.evidence,
        remedy=finding.remedy,
        reference=finding.reference,
    )
