"""One application run or several: from Darshan logs, or from what the store holds; and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.errors import InputError, UsageError
from iolens.units import from_epoch_us, iso

if TYPE_CHECKING:
    from iolens.analyses.runs.compare import RunComparison
    from iolens.analyses.runs.summary import RunSummary
    from iolens.analyses.runs.timeline import RunTimeline
    from iolens.analyses.runs.used_files import RunRecord
    from iolens.api.stored_runs import StoredRuns
    from iolens.findings import Thresholds

LOG_SUFFIX: Final = ".darshan"
LISTED: Final = 20  # runs that a message names


@dataclass(frozen=True, slots=True)
class RunAccess:
    """Where runs are looked for and judged by: a store (None: the configured one), a configuration, nodes as given."""

    store: str | None = None
    config: str | None = None
    nodes: int | None = None

    def thresholds(self) -> Thresholds:
        """Of findings, as far as the configuration sets them."""
        from iolens.config_path import config_path

        path = config_path(self.config)
        if path is None:
            return {}
        from iolens.config import load_config
        from iolens.findings import checked_thresholds

        known = load_config(path)
        return checked_thresholds(known.findings, str(known.path))

    def stored(self) -> StoredRuns:
        """The runs of the store."""
        from iolens.api.stored_runs import StoredRuns

        return StoredRuns.opened(self.store, self.config)


def log_path(which: str) -> Path | None:
    """The path, where a log is meant: one that exists, or that looks like a path."""
    path = Path(which)
    if path.is_dir():
        raise InputError(which, "a directory", "a Darshan log, a run or a job id")
    if path.exists():
        return path
    if "/" in which or which.endswith(LOG_SUFFIX):
        raise InputError(which, "no such file", "a Darshan log")
    return None


def record_of_log(path: str | Path) -> RunRecord:
    """A run out of its log; the process that reads it begins before NumPy is imported here."""
    from iolens.sources.darshan.isolated import rows_of_log

    rows = rows_of_log(path)
    from iolens.analyses.runs.used_files import RunRecord

    return RunRecord.of(rows)


def records_of(which: str, access: RunAccess, every: bool = False) -> list[RunRecord]:
    """The run that a log, a run id (or the beginning of one) or a job id names; of a job with several, `every` one."""
    path = log_path(which)
    if path is not None:
        return [record_of_log(path)]
    stored = access.stored()
    rows = stored.named(which)
    if not rows:
        raise InputError(stored.url, f"no run and no job {which!r}", "a run or job id of this store, or a log")
    if len(rows) > 1 and not every:
        raise UsageError(_several(which, rows))
    return [stored.record(row) for row in rows]


def _several(which: str, rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f"  {str(row['run_id'])[:12]}  {'' if row['start'] is None else iso(from_epoch_us(row['start']))}  "
        f"{row['processes']} processes  {row['executable'] or ''}"
        for row in rows[:LISTED]
    ]
    more = [f"  and {len(rows) - LISTED:,} more"] if len(rows) > LISTED else []
    is_job = any(row["job_id"] == which for row in rows)
    head = f"job {which} has {len(rows):,} runs" if is_job else f"{len(rows):,} runs begin with {which}"
    return "\n".join([f"{head}; name one by its run id, or take --all:", *lines, *more])


@dataclass(frozen=True, slots=True, eq=False)
class RunPage:
    """What is said of a run, and the run."""

    summary: RunSummary
    record: RunRecord


def pages(which: str, access: RunAccess, every: bool = False) -> list[RunPage]:
    """The pages of those runs. Better runs of the same application are looked for in a store that is named."""
    thresholds = access.thresholds()
    records = records_of(which, access, every)
    stored = access.stored() if log_path(which) is None or access.store is not None else None
    from iolens.analyses.runs.summary import run_summary  # after the log is read: NumPy takes as long as that

    return [
        RunPage(
            run_summary(record, access.nodes, thresholds, None if stored is None else stored.like(record.run)), record
        )
        for record in records
    ]


def timeline(which: str, access: RunAccess, dxt: bool = False) -> RunTimeline:
    """Activity over time; with `dxt` from the trace, for which the log is needed."""
    from iolens.analyses.runs.timeline import run_timeline

    path = log_path(which)
    if not dxt:
        return run_timeline(records_of(which, access)[0])
    if path is None:
        raise UsageError("--dxt needs the log: the store does not hold single accesses")
    from iolens.sources.darshan.traces import segments

    return run_timeline(record_of_log(path), segments(path))


def comparison(before: Sequence[str], after: Sequence[str], access: RunAccess) -> RunComparison:
    """Runs or logs before and after a change."""
    from iolens.analyses.runs.compare import run_comparison

    first, second = (
        [page.summary for which in side for page in pages(which, access, every=True)] for side in (before, after)
    )
    return run_comparison(first, second)


def write_page(page: RunPage, output: Path) -> None:
    """The page of one run as HTML that loads nothing."""
    from datetime import UTC, datetime

    from iolens import __version__
    from iolens.analyses.runs.timeline import run_timeline
    from iolens.views.render import atomic
    from iolens.views.report.page import ReportInfo
    from iolens.views.runs_summary.page import run_page

    atomic.check_place(output)
    activity = run_timeline(page.record)
    atomic.write(output, run_page(page.summary, activity, ReportInfo(__version__, datetime.now(UTC))))


def written(results: Sequence[RunSummary], format_: str) -> str:
    """Pages as people or programs read them; several as JSON are a list."""
    if format_ == "json":
        import json

        from iolens.views.render.json_text import to_json

        texts = [to_json(result) for result in results]
        return texts[0] if len(texts) == 1 else json.dumps([json.loads(text) for text in texts], indent=2) + "\n"
    from iolens.views.runs_summary.text import run_summary_text

    return f"\n{'-' * 80}\n\n".join(run_summary_text(result) for result in results)
