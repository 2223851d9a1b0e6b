"""Groups of like runs for people: their I/O times and how these vary (Table IV)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t
from iolens.views.runs.words import number, project_name, rate_warnings, titled, window_words
from iolens.visible_text import counted, shortened

if TYPE_CHECKING:
    from iolens.analyses.runs_variance import LikeRuns, RunVariance
    from iolens.views.render.tables import TableView


def tables(result: RunVariance) -> list[TableView]:
    """One line for each group."""
    columns = (
        t.text("project", "Project"), t.text("user", "User"), t.text("executable", "Executable"),
        t.count("samples", "Runs"), t.count("nprocs", "Processes"), t.count("files", "Files"),
        t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"), number("mean_s", "Mean", "s"),
        number("min_s", "Shortest", "s"), number("max_s", "Longest", "s"),
        number("stddev_s", "Std. deviation", "s"), t.percent("cv_pct", "CV"),
    )  # fmt: skip
    rows = [
        t.row_of(line, columns, {"project": project_name(line.project), "executable": _executable(line)})
        for line in result.groups
    ]
    title = titled(result, "I/O time of the slowest rank in like runs")
    warnings = tuple(rate_warnings(result.runs_short, result.runs_without_rate, result.method))
    return [t.TableView(title, columns, rows, "\n".join(notes(result)), warnings=warnings, name="groups")]


def _executable(line: LikeRuns) -> str | None:
    more = line.executables - 1
    return f"{line.executable} and {counted(more, 'other')}" if more > 0 else line.executable


def label_of(line: LikeRuns) -> str:
    """What a group is called below a figure: project and processes."""
    return f"{shortened(project_name(line.project), 14)}, {line.nprocs:,}"


def notes(result: RunVariance) -> list[str]:
    """What a group is, and which runs are in none."""
    lines = [
        f"{window_words(result)}; {result.runs_grouped:,} of them in {counted(result.groups_known, 'group')} of at"
        f" least {counted(result.min_samples, 'like run')}: same user, processes and files, bytes within 1 %."
    ]
    if result.groups_left_out:
        lines.append(f"Not listed: {counted(result.groups_left_out, 'group')} with no more variation.")
    missing = (
        (result.runs_without_user, "the user is not known"),
        (result.runs_without_time, "the I/O time, processes, files or bytes are not known"),
    )
    return [*lines, *(f"{counted(count, 'run')} in no group: {words}." for count, words in missing if count)]
