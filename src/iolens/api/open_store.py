"""An open store: its analyses, and what else is made of it or for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolens.api.access.listener import Listener
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.store.scope import Scope
from iolens.times import utc_period, utc_time

if TYPE_CHECKING:
    from iolens.analyses.blame.results import Blame
    from iolens.analyses.calibration_drift.results import CalibrationDrift
    from iolens.analyses.calibration_estimate.results import CalibrationEstimate
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.analyses.lost.analysis import LostCoreHours
    from iolens.analyses.runs.run_conditions import RunConditions
    from iolens.analyses.scan_summary import ScanSummary
    from iolens.api.report import WrittenReport
    from iolens.store.ingest import Tally
    from iolens.store.undo import Undone


class OpenStore(StoreAnalyses):
    """A store with every analysis as a method: `store.utilization("scratch", since="2012-10-22")`."""

    def ingest(
        self,
        *places: str | Path,
        source: str | None = None,
        rebuild: bool = False,
        workers: int | None = None,
        timezone: str | None = None,
        at: str | datetime | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        **options: Any,
    ) -> Tally:
        """Load files, directories or databases; without a `source` each file's format is recognised.

        `filesystem`, `target`, `timezone`, `interval_s` and `at` supply what the format lacks; `since` and `until`
        bound what is read of a database. The tally says what was loaded, what was refused, and what was estimated.
        """
        from iolens.api.ingest import ingest_and_estimate
        from iolens.sources import ReadOptions

        at, since, until = (utc_time(time, timezone) for time in (at, since, until))
        wanted = ReadOptions(timezone=timezone, at=at, since=since, until=until, **options)
        words = [str(place) for place in places]
        return ingest_and_estimate(self, words, wanted, source=source, rebuild=rebuild, workers=workers)

    def undo(
        self,
        *batches: str,
        source: str | None = None,
        since: str | datetime | None = None,
        timezone: str | None = None,
        dry_run: bool = False,
    ) -> Undone:
        """Take batches back, by the ids of `iolens store log` or by file, or all of a source ingested since a time."""
        from iolens.counters.ceilings import RateCeilings
        from iolens.store.undo import undo

        ceilings = RateCeilings.of_config(self.config.filesystems)
        return undo(self.store, batches, source, utc_time(since, timezone), dry_run=dry_run, ceilings=ceilings)

    def blame(
        self, filesystem: str | Scope | None = None, *, listener: Listener | None = None, **options: Any
    ) -> Blame:
        """Who made a file system busy: `store.blame("scratch", by="user", since="2026-01-05", busiest="1h")`.

        Options are those of `iolens blame`: `by`, `metadata`, `top`, `busiest`, `plateau`, `calibration`; `since`,
        `until`, `targets` and `source` narrow the rows.
        """
        from iolens.api.blame import BlameOptions, blame_of
        from iolens.units import parse_duration

        scope = Scope.taken_from(options, filesystem)
        if (busiest := options.pop("busiest", None)) is not None:
            options["busiest_s"] = parse_duration(busiest) if isinstance(busiest, str) else float(busiest)
        step = listener.step if listener is not None else None
        return blame_of(self, scope, BlameOptions(**options), None if step is None else lambda day: step(str(day)))

    def explain(self, run: str, filesystem: str | Scope | None = None, **options: Any) -> RunExplanation:
        """Why a run was slow, by its job, its id or its log: `store.explain("4400017")`.

        `since` and `until` bound its history, `targets` stand in where its log does not name OSTs, `source` narrows the
        rows; `calibration` as in `iolens explain`. With `load=True` the figure of its time can be drawn.
        """
        from iolens.api.explain import explanation

        scope = Scope.taken_from(options, filesystem)
        return explanation(self, run, scope, **options)

    def calibration_estimate(
        self,
        filesystem: str | Scope | None = None,
        *,
        save: str | None = None,
        listener: Listener | None = None,
        **narrowing: Any,
    ) -> CalibrationEstimate:
        """What disk I/Os cost by the telemetry: `store.calibration_estimate("scratch", since="2026-01-05")`.

        `since`, `until`, `targets` and `source` narrow the rows. `save` is the name under which the coefficients are
        stored; it is refused where a direction is not identified.
        """
        from iolens.api.calibration_estimate import estimated_calibrations, save_estimate

        scope = Scope.taken_from(narrowing, filesystem)
        step = listener.step if listener is not None else None
        result = estimated_calibrations(self, scope, None if step is None else lambda day: step(str(day)))
        if save is not None:
            save_estimate(result, self, save)
        return result

    def calibration_drift(
        self, filesystem: str | Scope | None = None, *, listener: Listener | None = None, **narrowing: Any
    ) -> CalibrationDrift:
        """Slow targets and costs by month, by the telemetry: `store.calibration_drift("scratch", since="2026-01-05")`.

        `since`, `until`, `targets` and `source` narrow the rows.
        """
        from iolens.api.calibration_drift import drift_of

        scope = Scope.taken_from(narrowing, filesystem)
        step = listener.step if listener is not None else None
        return drift_of(self, scope, None if step is None else lambda day: step(str(day)))

    def lost(
        self, filesystem: str | Scope | None = None, *, like: RunConditions | None = None, **options: Any
    ) -> LostCoreHours:
        """Core-hours lost to slow I/O, by application, project and finding.

        `since` and `until` narrow the runs, `like` says of whom; `top` and `most` as in `iolens lost`.
        """
        from iolens.api.lost import lost_hours

        scope = Scope.taken_from(options, filesystem)
        return lost_hours(self, scope, like, **options)

    def plan(
        self,
        name: str,
        filesystem: str | Scope | None = None,
        *,
        timezone: str | None = None,
        listener: Listener | None = None,
        **options: Any,
    ) -> Any:
        """The next system: `capacity`, `endurance`, `metadata`, `performance`, or the `rationale` of all four.

        Options are those of `iolens plan NAME`, with `_` for `-`: `store.plan("performance", "scratch", ssi=[3, 4])`.
        `since`, `until`, `targets`, `source` and `resolution` narrow the rows, as those of an analysis.
        """
        from iolens.api.plans.making import call_text, make_plan
        from iolens.api.plans.reference_system import StoreAccess

        command = call_text(f"iolens.open({self.store.url!r}).plan", name, filesystem, **options)
        scope = Scope.taken_from(options, filesystem)
        return make_plan(
            name, StoreAccess.of(self), scope, options, timezone=timezone, listener=listener, command=command
        )

    def scan(
        self,
        path: str | Path,
        filesystem: str | None = None,
        *,
        at: str | datetime | None = None,
        listener: Listener | None = None,
        **options: Any,
    ) -> ScanSummary:
        """Count what lies below a directory and store the histograms, as `iolens scan`.

        Options are those of the verb: `workers`, `rules` (of projects), `project_ids`, `exclude`, `cross_filesystems`,
        `max_rate`, `part` with `save`, `keep_entries`, `state`, `resume`, `restart`, `top`.
        """
        from iolens.api.scan import scan_tree

        return scan_tree(
            path, lambda: self.store, self.config, filesystem=filesystem, at=at, listener=listener, **options
        )

    def merge_scans(self, paths: Sequence[str | Path], filesystem: str | None = None) -> ScanSummary:
        """Put the saved parts of a scan together, and store that."""
        from iolens.api.scan import merged_parts

        return merged_parts([Path(path) for path in paths], lambda: self.store, filesystem)

    def report(
        self,
        output: str | Path,
        filesystems: str | Sequence[str] = (),
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        during: str | None = None,
        timezone: str | None = None,
        resolution: str | None = None,
        listener: Listener | None = None,
        **options: Any,
    ) -> WrittenReport:
        """Write every table and figure of the file systems (all of them, if none is named) into one HTML file.

        Times without a zone are those of `timezone`, or UTC; `during` is a whole period (`"last week"`). Other options
        go to every analysis that has them: `calibration`, `peak`.
        """
        from iolens.api.report import write_report

        names = (filesystems,) if isinstance(filesystems, str) else tuple(filesystems)
        since, until = (since, until) if during is None else utc_period(during, timezone)
        scope = Scope(None, utc_time(since, timezone), utc_time(until, timezone), resolution=resolution)
        return write_report(self, Path(output), names, scope, timezone=timezone, listener=listener, **options)
