"""Files of runs for people: categories (Fig. 5), new files, and both by project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.views.runs.words import number, project_name, titled, window_words
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.runs_files import RunFileCounts
    from iolens.views.render.tables import TableView

MEANINGS: Final = {
    "no files": "used no file",
    "serial": "one process",
    "N:N": "most files unique to a rank, at least one for each process",
    "N:1": "most files shared by all ranks, or one rank does all I/O",
    "N:M": "files of a subset of ranks",
    "unknown": "not known from the log",
}


def tables(result: RunFileCounts) -> list[TableView]:
    """All runs, then projects."""
    return [categories(result), projects(result)]


def categories(result: RunFileCounts) -> TableView:
    """How many runs use files in which manner."""
    columns = (
        t.text("category", "Category"), t.count("runs", "Runs"), t.percent("runs_pct", "Of runs"),
        t.text("meaning", "Meaning"),
    )  # fmt: skip
    rows = [t.row_of(line, columns, {"meaning": MEANINGS[line.category]}) for line in result.categories if line.runs]
    return t.TableView(
        titled(result, "runs by their files"), columns, rows, "\n".join(notes(result)), name="categories"
    )


def notes(result: RunFileCounts) -> list[str]:
    """How many runs have none, and how many files are new."""
    lines = [f"{window_words(result)}; {result.runs_without_files:,} of them used no file."]
    if result.new_files_pct is not None:
        written = f"Of {counted(result.written_files or 0, 'file')} written, {t.show_percent(result.new_files_pct)} %"
        lines.append(
            f"{written} were created by the run or empty before (an estimate: not read, and written from the first byte"
            " to the last)."
        )
    return lines


def projects(result: RunFileCounts) -> TableView:
    """One line for each project."""
    kinds = ("N:N", "N:1", "N:M", "serial")
    columns = (
        t.text("project", "Project"), t.count("runs", "Runs"), t.count("runs_without_files", "Without files"),
        *(t.count(kind, kind) for kind in kinds), t.count("files", "Files"),
        number("files_per_proc_max", "Most files per process"), t.count("written_files", "Written"),
        t.percent("new_files_pct", "New"),
    )  # fmt: skip
    rows = [
        t.row_of(
            line, columns, {"project": project_name(line.project), **{kind: line.categories[kind] for kind in kinds}}
        )
        for line in result.projects
    ]
    return t.TableView(titled(result, "files of runs by project"), columns, rows, name="projects")
