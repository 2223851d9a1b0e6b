"""File systems of a store for people: targets, time of the data, fullness, and what else is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.centre_state import CentreState, FileSystemState
    from iolens.views.render.tables import Row, TableView


BESIDE: Final = {
    "has_sizes": "I/O sizes",
    "has_metadata": "metadata",
    "has_job_stats": "job_stats",
    "has_client_counters": "clients",
    "has_contents": "contents",
    "has_drives": "drives",
}
COLUMNS: Final = (
    t.text("filesystem", "File system"), t.text("targets_by_kind", "Targets"), t.count("servers", "Servers"),
    t.time("first_time", "First data"), t.time("last_time", "Last data"), t.volume("capacity_bytes", "Capacity"),
    t.volume("used_bytes", "Used"), t.percent("fullness_pct", "Full"), t.rate("peak_bytes_per_s", "Peak"),
    t.text("stored", "Also stored"), t.text("rollups", "Rollups"),
)  # fmt: skip


def tables(result: CentreState) -> list[TableView]:
    """One line for each file system."""
    rows = [_row(filesystem) for filesystem in result.filesystems]
    title = f"{counted(len(rows), 'file system')} in {result.store}"
    return [t.TableView(title, COLUMNS, rows, _note(result), name="filesystems", keep=("fullness_pct",))]


def _row(state: FileSystemState) -> Row:
    own = {
        "targets_by_kind": [f"{count} {kind}" for kind, count in state.targets_by_kind.items()],
        "servers": None if state.servers is None else len(state.servers),
        "stored": [word for name, word in BESIDE.items() if getattr(state, name)],
        "rollups": [f"{span.resolution} until {span.last_day}" for span in state.rollups],
    }
    return t.row_of(state, COLUMNS, own)


def _note(result: CentreState) -> str:
    kinds = (("scheduler records", result.has_jobs), ("Darshan runs", result.has_runs))
    return " ".join(t.sentence(f"{kind} are {'' if is_stored else 'not '}stored") for kind, is_stored in kinds)
