"""All jobs of a window that the store knows anything of, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from zoneinfo import ZoneInfo

import narwhals as nw
import pyarrow as pa

from iolens.analyses.calibration.levels import RestsOnCalibration, together
from iolens.analyses.job_search.results import JobSearch, MergedJob
from iolens.analyses.job_totals.results import JobTotals, KnownJob
from iolens.analyses.job_totals.sums import job_totals
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.blame import BESIDE_US
from iolens.api.job_layers import shares_table, totals_table
from iolens.api.job_shares import job_shares
from iolens.api.page_names import check_filesystems
from iolens.api.page_window import Piece, page_window
from iolens.errors import OptionError, UsageError
from iolens.nearest_names import not_among
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import (
    ORDERS,
    RUNS,
    JobFilter,
    JobLayers,
    MergedCondition,
    record_columns,
    recorded_jobs,
    records_of,
)
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.units import epoch_us, from_epoch_us

MOST_SHOWN: Final = 50
CLIENT_IO: Final = "client_io"
BY_BYTES: Final = ("bytes", "read", "written")  # orders for which the bytes of every job must be known


@dataclass(frozen=True, slots=True)
class JobSearchOptions:
    """What is looked for; empty parts mean anything.

    `text` is the begin of an id, or a part of a user, project, program or job name, in any case; with `*` or `?` it is
    the whole of one of these. Users, projects, clusters and states are as they are stored; in names `*` and `?` stand
    for anything. `sort` is one of `SORTS`: the most or the newest first, with `reverse` last.
    """

    text: str = ""
    users: Sequence[str] = ()
    projects: Sequence[str] = ()
    names: Sequence[str] = ()
    clusters: Sequence[str] = ()
    states: Sequence[str] = ()
    sort: str = "start"
    reverse: bool = False
    top: int = MOST_SHOWN
    skip: int = 0


SORTS: Final = tuple(ORDERS)


def search_jobs(opened: StoreAnalyses, scope: Scope, wanted: JobSearchOptions | None = None) -> JobSearch:
    """Jobs that ran in the scope's window, or the last seven days of data; with a file system, those that used it."""
    asked = wanted or JobSearchOptions()
    _check(scope, asked)
    known = opened.store.targets_by_filesystem()
    if scope.filesystem is not None and scope.filesystem not in known:
        check_filesystems(opened, [scope.filesystem])
    window = page_window(opened, scope, sorted(known), ZoneInfo("UTC"))

    def answer(everything: StoreSelection) -> JobSearch:
        names = [name for name in sorted(known) if scope.filesystem in (None, name)]
        telemetry = [everything.of_filesystem(name, known[name]) for name in names]
        return _Search(opened, window, scope.filesystem, telemetry, asked).answer()

    return opened.ask_all(answer, Scope(None, *window))


def _calibrated(calibrations: Sequence[RestsOnCalibration]) -> dict[str, Any]:
    """Of the disk time of all file systems; a band is of one of them."""
    held = [item for item in calibrations if item.calibration_state is not None]
    return together(held, has_mean=len(held) == 1)


def _check(scope: Scope, asked: JobSearchOptions) -> None:
    if asked.sort not in ORDERS:
        raise UsageError(f"no order is called {asked.sort!r}{not_among(asked.sort, ORDERS)}")
    if scope.targets or scope.source or scope.rollup:
        raise OptionError("jobs are of all targets, sources and times: leave --target, --source and --resolution out")


@dataclass(frozen=True, slots=True)
class _Search:
    """One question: its window, the file system that it is about, and those whose servers are observed."""

    opened: StoreAnalyses
    window: Piece
    filesystem: str | None
    telemetry: Sequence[StoreSelection]
    asked: JobSearchOptions

    def answer(self) -> JobSearch:
        shares = [job_shares(self.opened, selection) for selection in self.telemetry]
        lines = [(known.filesystem, True, line) for known in shares for line in known.lines]
        with_counters = [selection for selection in self.telemetry if selection.holds(CLIENT_IO)]
        is_for_all = self.filesystem is not None or self.asked.sort in BY_BYTES
        totals = self._totals(with_counters, JobFilter()) if is_for_all else []
        layers = JobLayers(self._records(), self._runs(), shares_table(lines), totals_table(totals))
        rows, matched = self._page(layers)
        if not is_for_all and rows and with_counters:  # they change neither which jobs these are nor their order
            totals = self._totals(with_counters, JobFilter(job_ids=sorted({row["job_id"] for row in rows})))
            rows, _ = self._page(replace(layers, totals=totals_table(totals)))
        has_share = self.filesystem is not None
        jobs = [MergedJob.of_row(row, has_share=has_share) for row in rows]
        missing = {known.filesystem: known.why_not for known in shares if known.why_not}
        asked = self.asked
        return JobSearch(
            self.filesystem, *self.window, asked.text, asked.sort, asked.reverse, asked.skip, matched, jobs, missing,
            **_calibrated([known.calibration for known in shares]),
        )  # fmt: skip

    def _page(self, layers: JobLayers) -> tuple[list[dict[str, Any]], int]:
        asked = self.asked
        condition = MergedCondition(
            asked.text, asked.users, asked.projects, asked.names, asked.clusters, asked.states,
            did_io=self.filesystem is not None,
        )  # fmt: skip
        return layers.jobs(condition, asked.sort, reverse=asked.reverse, top=asked.top, skip=asked.skip)

    def _records(self) -> Any:
        """As the engine has them; what samples of nodes made is put together here, which few stores need."""
        recorded = recorded_jobs(self.opened.store.tables, *self.window)
        if recorded is None:
            return records_of(())
        if recorded.is_sampled:
            return records_of(self.opened.store.jobs(*self.window))
        return recorded.rows.project(record_columns())

    def _runs(self) -> pa.Table:
        """Those that ended in the window or later; they may have begun a while before it."""
        since, until = self.window
        earlier = from_epoch_us(max(epoch_us(since) - BESIDE_US, 0))
        selection = self.opened.store.select_all(Scope(self.filesystem, earlier, until))
        if not selection.holds("runs"):
            return RUNS.empty_table()
        frame = selection.frame("runs").filter(nw.col("epoch_us") >= epoch_us(since))
        names = [name for name in RUNS.names if name != "place"]
        rows: pa.Table = frame.select(*names).sort("start_us", "run_id").collect(backend="pyarrow").to_native()
        return rows.append_column("place", pa.array(range(len(rows)), pa.int64()))

    def _totals(self, with_counters: Sequence[StoreSelection], like: JobFilter) -> list[tuple[str, JobTotals]]:
        """By counters of nodes, of ended jobs that ran while there are any."""
        totals: list[tuple[str, JobTotals]] = []
        for selection in with_counters:
            if (extent_us := selection.extent_us(CLIENT_IO)) is None:
                continue
            first, last = map(from_epoch_us, extent_us)
            rows = self.opened.store.jobs(first, last, like=like)
            jobs = [KnownJob.of_row(row, expand_nodes) for row in rows if row["ended"] is not False]
            totals += [(selection.filesystem, line) for line in job_totals(selection, jobs)]
        return totals
