"""A report: every analysis of every file system of a store on one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from inspect import signature
from pathlib import Path
from typing import Any, Final, Literal

from iolens import __version__
from iolens.analyses import analysis_names, get_analysis
from iolens.analyses.calibration.state import NO_FSU, together
from iolens.analyses.period_change import COMPARED, PeriodChange, quantity_changes
from iolens.api.blame import reported_blame
from iolens.api.calibration_estimate import reported_drift
from iolens.api.jobs import reported_jobs
from iolens.api.listener import Listener
from iolens.api.run_analyses import reported_runs
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.studies import reported_studies, stored_studies
from iolens.errors import IolensError, NotKnownError, StoreError, UsageError
from iolens.nearest_names import not_among
from iolens.schema import CLIENT_IO
from iolens.store.scope import Scope
from iolens.views.render import atomic
from iolens.views.render.view_names import view_name
from iolens.views.report.centre import report_html
from iolens.views.report.page import ReportInfo

SHORT: Final = {"workload": {"sections": ("bandwidth", "mix", "rhythm", "throughput")}}  # what a short report has
WHOLE: Final = (
    "Not compared: the report is about all data. A report on a part of them is compared with the time before it."
)


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """Where the report is, how large it is, and what is not in it, a line each."""

    path: Path
    bytes: int
    filesystems: tuple[str, ...]
    refused: tuple[str, ...]


def write_report(
    opened: StoreAnalyses,
    output: Path,
    filesystems: Sequence[str],
    scope: Scope,
    *,
    timezone: str | None = None,
    full: bool = False,
    against: datetime | Literal["previous"] | None = "previous",
    listener: Listener | None = None,
    **options: Any,
) -> WrittenReport:
    """Write the page; `filesystems` are all of the store where none is named, `scope` has the window.

    `full`: every figure and table, nothing closed. `against`: the start of a period of the same length to compare with,
    `previous` for the one just before the window, None for no comparison. Other options go to every analysis that has
    a parameter for them.
    """
    atomic.check_place(output)
    names = _chosen(opened, filesystems)
    wanted = {**options, "timezone": timezone}
    results, refused = _analysed(opened, names, scope, wanted, {} if full else SHORT, listener or Listener())
    if against is not None:
        results += [_changed(opened, replace(scope, filesystem=name), results, against, wanted) for name in names]
    results += [reported_jobs(opened, replace(scope, filesystem=name)) for name in names if _has_clients(opened, name)]
    busy = [reported_blame(opened, replace(scope, filesystem=name)) for name in names] if scope.rollup is None else []
    drifts = [reported_drift(opened, replace(scope, filesystem=name)) for name in names]
    results += [result for result in (*busy, *drifts) if result is not None]
    runs = reported_runs(opened, scope)
    results += [runs] if runs is not None else []
    studies = reported_studies(opened.store)
    results += [studies] if studies is not None else []
    about = ReportInfo(__version__, datetime.now(UTC), (scope.since, scope.until), timezone, tuple(refused))
    page = report_html(results, about, full=full)
    atomic.write(output, page)
    return WrittenReport(output, len(page.encode()), tuple(names), tuple(refused))


def _changed(
    opened: StoreAnalyses, scope: Scope, results: Sequence[Any], against: datetime | str, options: dict[str, Any]
) -> PeriodChange:
    """The window against an earlier one of the same length."""
    now = {view_name(result): result for result in results if result.filesystem == scope.filesystem}
    load = now.get("utilization")
    start, end = scope.since, scope.until or (load.window_end if load is not None else None)
    common: dict[str, Any] = {"filesystem": scope.filesystem, "window_start": start, "window_end": end}
    if start is None or end is None:
        return PeriodChange(**NO_FSU, **common, reason=WHOLE)
    first = start - (end - start) if isinstance(against, str) else against
    earlier = replace(scope, since=first, until=min(first + (end - start), start))
    asked = {name: _understood(name, options) for name in COMPARED}
    before = {name: answer for name, answer in opened.together(asked, earlier) if not isinstance(answer, IolensError)}
    measured = before.get("utilization")
    if measured is None or not (measured.samples or measured.daily):
        return PeriodChange(
            **NO_FSU, **common, reason=f"Not compared: nothing is stored of the time from {first:%Y-%m-%d %H:%M}."
        )
    return PeriodChange(
        **together([part for part in (measured, load) if part is not None], has_mean=False),
        **common,
        against_start=earlier.since,
        against_end=earlier.until,
        against_complete_pct=measured.coverage.complete_pct,
        changes=quantity_changes(before, now),
    )


def _has_clients(opened: StoreAnalyses, name: str) -> bool:
    """Whether nodes of the file system were sampled: without their counters nothing is known of jobs."""
    return opened.store.select(name).holds(CLIENT_IO.name)


def _chosen(opened: StoreAnalyses, given: Sequence[str]) -> list[str]:
    """The file systems asked for, or all there are."""
    known = opened.store.targets_by_filesystem()
    if not known:
        opened.store.check_that_it_exists()
        if not given and (opened.store.select_all(Scope()).holds("runs") or stored_studies(opened.store)):
            return []  # runs and studies are reported though nothing is known of the file systems they used
        raise StoreError(f"{opened.store.url} holds no data yet; load some with `iolens ingest`")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"{opened.store.url} holds no file system {unknown[0]!r}{not_among(unknown[0], known)}")
    return list(dict.fromkeys(given)) or sorted(known)


def _analysed(
    opened: StoreAnalyses,
    names: Sequence[str],
    scope: Scope,
    options: dict[str, Any],
    narrowed: Mapping[str, Mapping[str, Any]],
    listener: Listener,
) -> tuple[list[Any], list[str]]:
    """Every analysis of every file system; one that fails does not stop the others, unless all do."""
    results: list[Any] = []
    failures: list[tuple[str, IolensError]] = []
    unknown: list[IolensError] = []
    for name in names:
        wanted = {**options, "progress": _steps(listener, name)}
        asked = {kind: {**_understood(kind, wanted), **narrowed.get(kind, {})} for kind in analysis_names()}
        for analysis, answer in opened.together(asked, replace(scope, filesystem=name)):
            if isinstance(answer, NotKnownError):
                unknown.append(answer)  # no section of it, as of every analysis that finds nothing
            elif isinstance(answer, UsageError):
                raise answer
            elif isinstance(answer, IolensError):
                failures.append((f"{analysis} of {name} is not in this report: {answer}", answer))
            else:
                results.append(answer)
    if not results and (failures or unknown):
        raise next(iter([*(error for _, error in failures), *unknown]))
    return results, [line for line, _ in failures]


def _steps(listener: Listener, name: str) -> Callable[[date], None]:
    return lambda day: listener.step(f"{name} {day}")


def _understood(analysis: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that the analysis has a parameter for."""
    names = {name.removesuffix("_bytes_per_s") for name in signature(get_analysis(analysis).run).parameters}
    return {name: value for name, value in options.items() if name in names and value is not None}
