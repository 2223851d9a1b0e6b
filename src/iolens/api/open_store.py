"""An open store: its analyses, and what else is made of it or for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolens.api.listener import Listener
from iolens.api.question_methods import method_of, method_words, plan_question
from iolens.api.store_analyses import StoreAnalyses
from iolens.nearest_names import not_among
from iolens.store.scope import Scope
from iolens.times import utc_period, utc_time

if TYPE_CHECKING:
    from iolens.analyses.scan_summary import ScanSummary
    from iolens.api.report import WrittenReport
    from iolens.store.ingest import Tally
    from iolens.store.undo import Undone


class OpenStore(StoreAnalyses):
    """A store with every question as a method: `store.utilization("scratch", since="2012-10-22")`.

    A method has the name and the options of its command, with `_` for blanks and `-`: `store.runs_projects(top=3)`.
    """

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *method_words()})

    def __getattr__(self, name: str) -> Any:
        if name in method_words():
            return method_of(self, name)
        try:
            return super().__getattr__(name)
        except AttributeError:
            known = not_among(name, [known for known in dir(self) if not known.startswith("_")])
            raise AttributeError(f"a store answers no question called {name!r}{known}") from None

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

    def plan(self, name: str, filesystem: str | Scope | None = None, **options: Any) -> Any:
        """The next system: `capacity`, `endurance`, `metadata`, `performance`, or the `rationale` of all four.

        Options are those of `iolens plan NAME`, with `_` for `-`: `store.plan("performance", "scratch", ssi=[3, 4])` is
        `store.plan_performance("scratch", ssi=[3, 4])`.
        """
        return method_of(self, plan_question(name).name)(filesystem, **options)

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
