"""Was it me or the system: which run or job is meant, its file system, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from iolens.analyses.attribution.whose import JobIdForm, guessed_parts
from iolens.analyses.calibration.applied import applied_calibrations
from iolens.analyses.explain.analysis import RunExplanation, explained_job, explained_run, with_load
from iolens.analyses.explain.history import MOST, NamedResource, named_resources, neighbours_of
from iolens.analyses.explain.results import RunNeighbour
from iolens.analyses.explain.window_sums import ObservedSystem
from iolens.analyses.job_page import MissingPart
from iolens.analyses.runs.summary import run_summary
from iolens.analyses.utilization.targets import model_rows
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.page_parts import thresholds_of
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_runs import StoredRuns
from iolens.errors import IolensError, NotKnownError, UsageError
from iolens.findings.rule import Finding
from iolens.nearest_names import not_among
from iolens.run_tables import RUN_FILES
from iolens.store.scope import Scope
from iolens.store.source_choice import chosen_targets
from iolens.units import from_epoch_us, iso
from iolens.visible_text import counted

SLOW_OST: Final = "slow-ost"
LISTED: Final = 5  # runs that a message names
MOST_NAMES: Final = 20_000  # among which the nearest is looked for
SEVERAL_SYSTEMS: Final = "which file system the run used is not known; name it with --filesystem"
NO_TELEMETRY: Final = "the store has no telemetry of a file system"

Row = Mapping[str, Any]


def explanation(
    opened: StoreAnalyses, which: str, scope: Scope | None = None, *, load: bool = False, calibration: str | None = None
) -> RunExplanation:
    """Of a run by its id, the beginning of one, its log's name or its job; of a job without a log the system alone.

    The scope's window bounds the history, its targets stand in where a log does not name OSTs. With `load` the result
    has what the figure of its time shows.
    """
    asked = scope or Scope()
    stored = StoredRuns(opened.store)
    rows = stored.named(which) or stored.of_log(PurePath(which).name)
    if not rows:
        return opened.ask_all(lambda _: _of_job(opened, which, asked, calibration, load), Scope())
    row, notes = _chosen(which, rows)
    _check_window(row, asked)
    _check_filesystem(row, asked)

    def answer(runs: Any) -> RunExplanation:
        system, why_not, more = _system(opened, asked, row["filesystem"], calibration)
        result = explained_run(runs, str(row["run_id"]), system, why_not, [*notes, *more], _slow_osts(opened, row))
        if system is None:
            return result
        complete = _with_neighbours(opened, result, system, calibration)
        return with_load(complete, stored.record(row), system) if load else complete

    return opened.ask_all(answer, Scope(None, asked.since, asked.until))


def _slow_osts(opened: StoreAnalyses, row: Row) -> list[Finding]:
    """OSTs on which files of the run took much longer than others of equal work."""
    (record,) = StoredRuns(opened.store).records([row], (RUN_FILES.name,))
    findings = run_summary(record, None, thresholds_of(opened)).findings
    return [finding for finding in findings if finding.code == SLOW_OST]


def _of_job(opened: StoreAnalyses, which: str, asked: Scope, calibration: str | None, load: bool) -> RunExplanation:
    jobs = opened.store.jobs(job_id=which)
    if not jobs:
        raise UsageError(f"no run, log or job is called {which!r}{not_among(which, _known_names(opened))}")
    job = max(jobs, key=lambda job: int(str(job["time"])))
    system, why_not, notes = _system(opened, asked, None, calibration)
    result = explained_job(job, system, why_not, notes)
    if system is None:
        return result
    complete = _with_neighbours(opened, result, system, calibration)
    return with_load(complete, None, system) if load else complete


def _with_neighbours(
    opened: StoreAnalyses, result: RunExplanation, system: ObservedSystem, calibration: str | None
) -> RunExplanation:
    """With those who used what the verdict names."""
    resources = named_resources(result.evidence)
    neighbours = [line for item in resources for line in _neighbours(opened, result, system, item, calibration)]
    return replace(
        result, neighbours=neighbours, neighbours_on=[target for item in resources for target in item.targets]
    )


def _neighbours(
    opened: StoreAnalyses,
    result: RunExplanation,
    system: ObservedSystem,
    resource: NamedResource,
    calibration: str | None,
) -> list[RunNeighbour]:
    """By job_stats of the targets; without them it is not known who did what there."""
    is_disk = resource.basis == "disk"
    if is_disk and result.method != "job_stats" and result.run is not None:
        return []
    targets = resource.targets or (tuple(result.targets) if is_disk and result.targets_known else ())
    scope = Scope(result.filesystem, result.window_start, result.window_end, targets, system.selection.source)
    options = BlameOptions(metadata=not is_disk, top=MOST + 1, calibration=calibration, beside=False)
    try:
        blame = blame_of(opened, scope, options)
    except NotKnownError:
        return []
    return neighbours_of(blame, result.job_id, system.parts_of) if blame.method == "job_stats" else []


def _chosen(which: str, rows: Sequence[Row]) -> tuple[Row, list[str]]:
    """The run that is meant; of a job with several the longest, and what is said of the others."""
    if len(rows) == 1:
        return rows[0], []
    shown = ", ".join(str(row["run_id"])[:12] for row in rows[:LISTED])
    if any(row["job_id"] != which for row in rows):
        raise UsageError(f"{len(rows):,} runs may be meant by {which!r}: {shown}{'' if len(rows) <= LISTED else ', …'}")
    longest = max(rows, key=lambda row: row["duration_s"] or 0.0)
    others = [str(row["run_id"])[:12] for row in rows if row is not longest]
    listed = ", ".join(others[:LISTED]) + ("" if len(others) <= LISTED else ", …")
    return longest, [f"job {which} has {counted(len(rows), 'run')}: this is the longest; the others are {listed}"]


def _check_window(row: Row, asked: Scope) -> None:
    start = from_epoch_us(int(row["start"]))
    if (asked.since is not None and start < asked.since) or (asked.until is not None and start >= asked.until):
        raise UsageError(f"the run started at {iso(start)}, outside the window of its history (--from, --to)")


def _check_filesystem(row: Row, asked: Scope) -> None:
    """One that its log names is no matter of choice; one that it does not name is."""
    if asked.filesystem is not None and row["filesystem"] not in (None, asked.filesystem):
        raise UsageError(f"the run used file system {row['filesystem']!r}, not {asked.filesystem!r}")


def _system(
    opened: StoreAnalyses, asked: Scope, filesystem: str | None, calibration: str | None
) -> tuple[ObservedSystem | None, str, tuple[str, ...]]:
    """The file system of the run, or why there is none, and what is to be known of its calibrations."""
    known = opened.store.targets_by_filesystem()
    name = asked.filesystem or filesystem or (next(iter(known)) if len(known) == 1 else None)
    if asked.filesystem is None and (name is None or name not in known):
        reason = SEVERAL_SYSTEMS if known and name is None else NO_TELEMETRY
        return None, f"{reason} {name}" if name is not None else reason, ()
    selection = opened.store.select(Scope(name, source=asked.source, resolution=asked.resolution))
    settings = opened.config.filesystem(selection.filesystem)
    selection.source_order = settings.sources
    applied, notes = applied_calibrations(
        opened.store.calibrations(), opened.config, calibration or settings.calibration, selection.filesystem,
        selection.extent_us("target_sizes"), selection.known_targets(),
    )  # fmt: skip
    targets = frozenset(chosen_targets(asked.targets, known[selection.filesystem], selection.filesystem))
    form = settings.jobid_name
    rows, parts_of = model_rows(selection, "auto"), JobIdForm(form).parts if form else guessed_parts
    return ObservedSystem(selection, applied, rows, parts_of, targets or None), "", (*notes, *rows.notes)


def _known_names(opened: StoreAnalyses) -> list[str]:
    """Jobs that have runs, and their logs; of many some."""
    runs = opened.store.select_all(Scope()).frame("runs").select("job_id", "log").unique().head(MOST_NAMES)
    table = runs.collect(backend="pyarrow").to_native()
    return [name for column in ("job_id", "log") for name in table.column(column).to_pylist() if name is not None]


# Was it me or the system, for a page that is sent to a user -----------------------------------------------------------
# Without the names of others.

WHAT = "whether it was slow, and why"


def verdict_of(
    opened: StoreAnalyses, which: str, scope: Scope, names: bool = False
) -> tuple[RunExplanation | None, list[MissingPart]]:
    """The explanation of a run or job, or why there is none. `names`: with its neighbours."""
    try:
        result = explanation(opened, which, scope)
    except IolensError as error:
        return None, [MissingPart(WHAT, str(error))]
    return (result if names else replace(result, neighbours=[])), []
