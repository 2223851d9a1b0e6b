"""Jobs of a window for people: whose, when, and what each moved and opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.job_list import JobList
    from iolens.views.render.tables import TableView


ORDER_WORDS: Final = {
    "bytes": "most bytes first",
    "read": "most bytes read first",
    "written": "most bytes written first",
    "operations": "most metadata operations first",
    "opens": "most opens first",
    "rpcs": "most RPCs first",
    "disk": "most disk time first",
    "start": "earliest first",
}


def tables(result: JobList) -> list[TableView]:
    """One line for each job."""
    columns = (
        t.text("jobid", "Job"), t.text("user", "User"), t.text("name", "Name"), t.time("start", "Start"),
        t.number("duration_s", "Duration", "s", ",.0f"), t.count("nodes", "Nodes"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"), t.count("opens", "Opens"),
        t.count("metadata_operations", "Metadata operations"), t.count("rpcs", "RPCs"),
        t.number("disk_s", "Disk time", "s", ",.1f"),
        t.percent("observed_pct", "Observed"),
    )  # fmt: skip
    title = f"{result.filesystem}: jobs, {ORDER_WORDS[result.sorted_by]}"
    rows = t.rows_of(result.jobs, columns)
    return [
        t.TableView(
            title,
            columns,
            rows,
            _note(result),
            warnings=_warnings(result),
            name="jobs",
            keep=("read_bytes", "write_bytes", "disk_s"),
        )
    ]


def _note(result: JobList) -> str:
    reasons = (
        (result.jobs_known - len(result.jobs), "further down the list"),
        (result.jobs_without_counters, "without counters"),
        (result.jobs_running, "still running"),
    )
    missing = [f"{counted(count, 'job')} {words}" for count, words in reasons if count]
    parts = [f"Not here: {', '.join(missing)}."] if missing else []
    if any(job.disk_s is not None for job in result.jobs):
        parts.append(f"Disk time: of the OSTs, by job_stats and the calibration {', '.join(result.disk_calibrations)}.")
    return " ".join(parts)


def _warnings(result: JobList) -> tuple[str, ...]:
    sharing = sum(job.shares_nodes is True for job in result.jobs)
    warnings = [f"{counted(sharing, 'job')} shared nodes with others, whose I/O is in the counters"] if sharing else []
    if result.disk_assumed_pct:
        share = f"{t.show_percent(result.disk_assumed_pct)} %"
        warnings.append(f"for {share} of the disk time one disk I/O per RPC is assumed: the true number is not known")
    return tuple(warnings)
