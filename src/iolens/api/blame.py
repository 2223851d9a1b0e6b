"""Who made a file system busy, out of a store: job_stats, records of the scheduler, logs and calibrations (B1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from iolens.analyses.attribution.job_sums import JobSums, associated, job_sums
from iolens.analyses.attribution.whose import JobIdForm, Kind, LoggedRun, Whose, guessed_parts
from iolens.analyses.attribution.work import DiskWork, MetadataWork
from iolens.analyses.blame import TOP, Blame, BlameCoverage, BlameQuestion, blame, busiest_us, disk_load, metadata_load
from iolens.analyses.blame_reported import ReportedBlame
from iolens.analyses.calibration.applied import AppliedCalibration, applied_calibrations
from iolens.analyses.calibration.runs import TOOL, find_metadata_calibration
from iolens.analyses.intervals.buckets import bucket_seconds
from iolens.analyses.intervals.coverage import notes_on_sources, sources_of
from iolens.analyses.job_totals import KnownJob
from iolens.analyses.results import ratio
from iolens.analyses.utilization.targets import model_rows
from iolens.api.job_totals import moved_by_jobs
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.store_state import nothing_stored
from iolens.errors import NotKnownError, OptionError, UsageError
from iolens.models.metadata_time import MetadataCalibration
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.target_names import kind_by_name
from iolens.units import DAY_US, epoch_us, from_epoch_us

REPORTED: Final = 10  # names in a report
MOST_BUCKETS: Final = 240
LEAST_S: Final = 60.0  # job_stats are read every minute
MOST_ASKED: Final = 5_000  # ids whose records are asked for by name
BESIDE_US: Final = 7 * DAY_US  # logs of jobs that began up to a week before


@dataclass(frozen=True, slots=True)
class BlameOptions:
    """What is asked beside file system and window; `plateau` counts from 1, as `utilization` lists them."""

    by: Kind = "job"
    metadata: bool = False
    top: int = TOP
    busiest_s: float | None = None
    plateau: int | None = None
    calibration: str | None = None
    beside: bool = True  # also count what the jobs did to the targets that the shares are not of


def blame_of(
    opened: StoreAnalyses,
    scope: Scope,
    options: BlameOptions | None = None,
    progress: Callable[[date], None] | None = None,
) -> Blame:
    """Shares by name of what the disks, or with `metadata` the metadata servers, of the scope did."""
    asked = options or BlameOptions()
    if scope.rollup is not None:
        raise OptionError("--resolution does not go with blame: job_stats are not rolled up")
    chosen = _chosen_window(opened, scope, asked)
    return opened.ask(lambda selection: _answer(opened, selection, chosen, asked, progress), chosen)


def reported_blame(opened: StoreAnalyses, scope: Scope) -> ReportedBlame | None:
    """As a report shows it; None where the window has no job_stats, or its FSU is not known."""
    if not opened.ask(lambda selection: selection.holds("job_io"), scope):
        return None
    try:
        users = blame_of(opened, scope, BlameOptions(by="user", top=REPORTED))
        hour = blame_of(opened, scope, BlameOptions(top=REPORTED, busiest_s=3600.0))
    except NotKnownError:
        return None
    return ReportedBlame(users.filesystem, users.window_start, users.window_end, users, hour)


def _chosen_window(opened: StoreAnalyses, scope: Scope, asked: BlameOptions) -> Scope:
    """The window itself, or the busiest or steadily busy part of it."""
    if asked.plateau is not None:
        load = opened.analyse("utilization", scope, calibration=asked.calibration)
        if not load.is_calibrated:
            raise NotKnownError(f"{load.level_unknown} So which stretches were steady is not known; --busiest is.")
        plateaus = load.plateaus or []
        if not 1 <= asked.plateau <= len(plateaus):
            there = f"there are {len(plateaus)}" if plateaus else "there is none"
            raise UsageError(f"no plateau {asked.plateau} in this window: {there} (`iolens utilization` lists them)")
        plateau = plateaus[asked.plateau - 1]
        return replace(scope, since=plateau.start, until=plateau.end)
    if asked.busiest_s is None:
        return scope
    first_us, last_us = opened.ask(lambda selection: _busiest_us(opened, selection, asked), scope)
    return replace(scope, since=from_epoch_us(first_us), until=from_epoch_us(last_us))


def _busiest_us(opened: StoreAnalyses, selection: StoreSelection, asked: BlameOptions) -> tuple[int, int]:
    """Of the disks by their time, of metadata servers by that of their operations, or by the operations."""
    if asked.metadata:
        load = metadata_load(selection, MetadataWork(_metadata_costs(opened, selection)[0]))
    else:
        load = disk_load(selection, _calibrations(opened, selection, asked)[0])
    return busiest_us(load, round((asked.busiest_s or 0.0) * 1e6))


def _metadata_costs(
    opened: StoreAnalyses, selection: StoreSelection
) -> tuple[MetadataCalibration | None, tuple[str, ...]]:
    return find_metadata_calibration(opened.store.benchmark_runs(TOOL), None, selection.filesystem)


def _answer(
    opened: StoreAnalyses,
    selection: StoreSelection,
    scope: Scope,
    asked: BlameOptions,
    progress: Callable[[date], None] | None,
) -> Blame:
    applied, notes = _calibrations(opened, selection, asked)
    costs, more = _metadata_costs(opened, selection)
    disks, servers = DiskWork(tuple(applied), model_rows(selection, "auto")), MetadataWork(costs)
    extent_us = selection.extent_us("job_io", "target_sizes", "target_io", "metadata_ops")
    if extent_us is None:
        raise NotKnownError(nothing_stored(opened, "blame", selection.filesystem))
    width_s = bucket_seconds(extent_us[1] - extent_us[0], MOST_BUCKETS, LEAST_S)
    has_servers = asked.metadata or (asked.beside and selection.holds("job_io", "target_kind", ("mdt",)))
    has_disks = not asked.metadata or (asked.beside and selection.holds("job_io"))
    sums = job_sums(selection, disks, width_s, progress) if has_disks else None
    beside = job_sums(selection, servers, width_s) if has_servers else None
    if asked.metadata:
        sums, beside = beside, sums
    if sums is not None and not sums.intervals:
        sums = _by_overlap(opened, selection, scope, sums, asked, extent_us)
    if sums is None or not len(sums.targets["bucket"]):
        what = "operations of its metadata servers are" if asked.metadata else "disk I/Os of its targets are"
        raise NotKnownError(f"{selection.filesystem}: no {what} known in this window")
    ids = sorted({*sums.jobs["job_id"].tolist(), *(beside.jobs["job_id"].tolist() if beside else ())})
    whose = _whose(opened, selection, scope, ids, asked.by)
    window = scope.since or from_epoch_us(extent_us[0]), scope.until or from_epoch_us(extent_us[1])
    question = BlameQuestion(
        selection.filesystem,
        window,
        asked.by,
        "metadata" if asked.metadata else "disk",
        asked.top,
        is_calibrated=not asked.metadata or costs is not None,
        saturation_fsu_pct=None if asked.metadata else _ceiling(opened, selection, applied),
        applied=applied,
    )
    names = [costs.name] if asked.metadata and costs else sorted({item.calibration.name for item in applied})
    said = [*(more if asked.metadata else notes), *disks.rows.notes]
    return blame(question, sums, beside, whose, _coverage(selection, sums, ids, whose, names, said))


def _by_overlap(
    opened: StoreAnalyses,
    selection: StoreSelection,
    scope: Scope,
    sums: JobSums,
    asked: BlameOptions,
    extent_us: tuple[int, int],
) -> JobSums:
    missing = f"{selection.filesystem} has no job_stats in this window"
    if asked.metadata:
        raise NotKnownError(f"{selection.filesystem} has no job_stats of its metadata targets in this window")
    if scope.targets:
        raise NotKnownError(f"{missing}: without them jobs are not known by target; leave --target out")
    window = replace(scope, since=from_epoch_us(extent_us[0]), until=from_epoch_us(extent_us[1]))
    moved = moved_by_jobs(opened, window)
    if not moved:
        raise NotKnownError(
            f"{missing}, and no job's bytes are known: switch job_stats on (jobid_var), load Darshan logs, or sample"
            " the nodes"
        )
    return associated(sums, moved, extent_us)


def _calibrations(
    opened: StoreAnalyses, selection: StoreSelection, asked: BlameOptions
) -> tuple[list[AppliedCalibration], tuple[str, ...]]:
    """As `utilization` takes them."""
    configured = opened.config.filesystem(selection.filesystem).calibration
    extent_us = selection.extent_us("target_sizes") or selection.extent_us("job_io", "target_io")
    name, known = asked.calibration or configured, selection.known_targets()
    return applied_calibrations(
        opened.store.calibrations(), opened.config, name, selection.filesystem, extent_us, known
    )


def _ceiling(opened: StoreAnalyses, selection: StoreSelection, applied: Sequence[AppliedCalibration]) -> float | None:
    configured = opened.config.filesystem(selection.filesystem).ceiling_fsu_pct
    seen = [item.ceiling_fsu_pct for item in applied if item.ceiling_fsu_pct is not None]
    return configured if configured is not None else min(seen, default=None)


def _whose(opened: StoreAnalyses, selection: StoreSelection, scope: Scope, ids: Sequence[str], by: Kind) -> Whose:
    """Records and logs of the jobs behind the ids."""
    form = opened.config.filesystem(selection.filesystem).jobid_name
    whose = Whose(JobIdForm(form).parts if form else guessed_parts)
    wanted = {parts.job_id for text in ids if (parts := whose.parts_of(text)).job_id is not None}
    like = JobFilter(job_ids=sorted(wanted)) if len(wanted) <= MOST_ASKED else JobFilter()
    rows = opened.store.jobs(scope.since, scope.until, like=like) if wanted else []
    nodes = expand_nodes if by == "node" else lambda _: ()
    whose.add_records(KnownJob.of_row(row, nodes) for row in rows if row["job_id"] in wanted)
    whose.add_runs(opened.ask_all(lambda everything: _logged(everything, wanted), _a_week_earlier(scope)))
    return whose


def _a_week_earlier(scope: Scope) -> Scope:
    since = None if scope.since is None else from_epoch_us(epoch_us(scope.since) - BESIDE_US)
    return Scope(None, since, scope.until)


def _logged(selection: StoreSelection, wanted: Collection[str | None]) -> list[LoggedRun]:
    if not selection.holds("runs"):
        return []
    rows = selection.frame("runs").select("job_id", "user", "uid", "executable", "start_us")
    ordered = rows.sort("start_us").collect(backend="pyarrow").to_native().to_pylist()
    runs = [LoggedRun(str(row["job_id"]), row["user"], row["uid"], row["executable"]) for row in ordered]
    return [run if run.job_id in wanted else run._replace(job_id="") for run in runs]


def _coverage(
    selection: StoreSelection,
    sums: JobSums,
    ids: Sequence[str],
    whose: Whose,
    calibrations: list[str],
    notes: Sequence[str],
) -> BlameCoverage:
    reporting = set(sums.targets["target"].tolist())
    named = set(sums.places["target"].tolist())
    kinds = {kind_by_name(name) for name in reporting}
    known = {name for name in selection.known_targets() if kind_by_name(name) in kinds} | reporting
    parts = [whose.parts_of(text) for text in ids]
    attributed_s = float(sums.jobs["seconds"].sum())

    def share(seconds: float) -> float | None:
        quotient = ratio(seconds, attributed_s)
        return None if quotient is None else 100.0 * quotient

    return BlameCoverage(
        targets_known=len(known),
        targets_with_job_stats=len(named),
        targets_without_job_stats=sorted(reporting - named) if sums.method == "job_stats" else [],
        intervals=sums.intervals,
        assumed_pct=share(sums.assumed_s),
        unmeasured_pct=share(sums.unmeasured_s),
        job_ids=len(ids),
        ids_without_record=sum(whose.record_of(part) is None for part in parts),
        incomplete_ids=sum(not part.is_whole for part in parts),
        contradictory_ids=sum(part.job_id in whose.contradictory for part in parts),
        sources=sources_of(selection, ("job_io", "target_sizes")),
        overlapping_rows=selection.overlapping_rows,
        calibrations=calibrations,
        notes=[*notes, *notes_on_sources(selection, ("job_io", "target_sizes"))],
    )
