"""Jobs that match, for people: whose, when, what each moved, and what it cost the disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.job_search import JobSearch
    from iolens.views.render.tables import TableView


ORDER_WORDS: Final = {  # and with `reverse`
    "start": ("newest first", "oldest first"),
    "disk": ("most disk time first", "least disk time first"),
    "bytes": ("most bytes first", "fewest bytes first"),
    "read": ("most bytes read first", "fewest bytes read first"),
    "written": ("most bytes written first", "fewest bytes written first"),
    "core-hours": ("most core-hours first", "fewest core-hours first"),
    "duration": ("longest first", "shortest first"),
}
COLUMNS: Final = (
    t.text("job_id", "Job"), t.text("user", "User"), t.text("project", "Project"), t.text("name", "Name"),
    t.time("start", "Start"), t.number("duration_s", "Duration", "s", ",.0f"), t.count("nodes", "Nodes"),
    t.number("core_hours", "Core-hours", "", ",.1f"), t.volume("read_bytes", "Read"),
    t.volume("write_bytes", "Written"), t.number("disk_seconds", "Disk time", "s", ",.1f"),
    t.percent("disk_share_pct", "Share of disk time"), t.count("runs", "Logs"), t.text("state", "State"),
    t.text("filesystems", "File systems"), t.text("cluster", "Cluster"), t.count("cores", "Cores"),
    t.time("end", "End"), t.text("job_name", "Job name"), t.text("known_by", "Known by"),
)  # fmt: skip


def tables(result: JobSearch) -> list[TableView]:
    """One line for each job."""
    where = f"{result.filesystem}: " if result.filesystem else ""
    what = f"jobs that match {result.text!r}" if result.text else "jobs"
    title = f"{where}{what}, {ORDER_WORDS[result.sorted_by][result.reverse]}"
    rows = t.rows_of(result.jobs, COLUMNS)
    return [t.TableView(title, COLUMNS, rows, _note(result), name="jobs", keep=("read_bytes", "write_bytes"))]


def _note(result: JobSearch) -> str:
    last = result.skip + len(result.jobs)
    span = f"{t.show_time(result.window_start)} to {t.show_time(result.window_end)}"
    shown = f"{result.skip + 1:,} to {last:,} of {counted(result.jobs_known, 'job')}" if result.jobs else (
        f"None of {counted(result.jobs_known, 'job')}"
    )  # fmt: skip
    reasons = [f"disk time on {name} is not known: {reason}" for name, reason in result.disk_missing.items()]
    return " ".join(map(t.sentence, (f"{shown}, {span}", *reasons)))
