"""The file systems of a store, by its logs and a few small questions, so that every page can ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from iolens.analyses.centre_state.fullness import LastReading, LatestFullness, latest_fullness
from iolens.analyses.centre_state.results import CentreState, FileSystemState, RollupSpan
from iolens.analyses.quotients import pct
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.config import FileSystemConfig
from iolens.store.duckdb_engine import query
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.snapshot import Snapshot
from iolens.store.store import RESOLUTIONS
from iolens.target_names import kind_by_name
from iolens.units import DAY_US, from_epoch_us

LOAD: Final = ("target_io", "target_sizes", "metadata_ops")  # whose rows say when a file system was observed
CLIENT: Final = ("client_io", "client_rpcs", "client_metadata")
OTHERS: Final = ("target_capacity", "job_io", "contents", "drives")
UNKNOWN_KIND: Final = "unknown"
LAST_READINGS: Final = """
    SELECT filesystem, arg_max(target_kind, epoch_us), max(epoch_us), arg_max(total_bytes, epoch_us),
           arg_max(used_bytes, epoch_us)
    FROM stored WHERE used_bytes IS NOT NULL GROUP BY filesystem, target"""

Readings = dict[str, list[LastReading]]  # by file system
Rollups = dict[str, list[Snapshot]]  # by resolution


def centre_state(opened: StoreAnalyses) -> CentreState:
    """Every file system that any batch named. Tables of load are not read, but by their logs."""
    return opened.ask_all(lambda everything: _state(opened, everything), Scope())


def _state(opened: StoreAnalyses, everything: StoreSelection) -> CentreState:
    for table in (*LOAD, *CLIENT, *OTHERS):
        everything.snapshot(table)  # read once for all file systems
    rollups = {resolution: _rolled(everything, resolution) for resolution in RESOLUTIONS}
    known = sorted(opened.store.targets_by_filesystem().items())
    selections = [everything.of_filesystem(name, targets) for name, targets in known]
    readings = _last_readings(everything, selections)
    return CentreState(
        opened.store.url,
        everything.snapshot("jobs").rows > 0,
        everything.snapshot("runs").rows > 0,
        [
            _filesystem(selection, opened.config.filesystem(name), latest_fullness(readings.get(name, ())), rollups)
            for (name, _), selection in zip(known, selections, strict=True)
        ],
    )


def _filesystem(
    selection: StoreSelection, configured: FileSystemConfig, fullness: LatestFullness | None, rollups: Rollups
) -> FileSystemState:
    selection.source_order, selection.servers = configured.sources, configured.servers
    extent_us = selection.extent_us(*LOAD)
    return FileSystemState(
        selection.filesystem,
        len(selection.targets_known),
        _kinds(selection),
        selection.target_servers().servers or None,
        from_epoch_us(extent_us[0]) if extent_us else None,
        from_epoch_us(extent_us[1]) if extent_us else None,
        from_epoch_us(fullness.time_us) if fullness else None,
        fullness.total_bytes if fullness else None,
        fullness.used_bytes if fullness else None,
        pct(fullness.used_bytes, fullness.total_bytes) if fullness else None,
        configured.peak_bytes_per_s,
        selection.holds("target_sizes"),
        selection.holds("metadata_ops"),
        selection.holds("job_io"),
        any(selection.holds(table) for table in CLIENT),
        selection.holds("contents"),
        selection.holds("drives"),
        list(_rollup_spans(selection.filesystem, rollups)),
    )


def _kinds(selection: StoreSelection) -> dict[str, int]:
    """How many targets of each kind: by their names, which Lustre's tell, else by the rows of the last day."""
    kinds = {target: kind_by_name(target) for target in selection.targets_known}
    if None in kinds.values() and (days := selection.days("target_io")):
        last = selection.frame("target_io", max(days), max(days)).select("target", "target_kind")
        rows = last.unique().collect(backend="pyarrow").to_native().to_pylist()
        seen = {row["target"]: row["target_kind"] for row in rows}
        kinds = {target: kind or seen.get(target) for target, kind in kinds.items()}
    return dict(Counter(kind or UNKNOWN_KIND for kind in kinds.values()).most_common())


def _last_readings(everything: StoreSelection, selections: Iterable[StoreSelection]) -> Readings:
    """By file system, the last reading of each target in the last two days of that file system."""
    handle = everything.tables.load("target_capacity")
    ends = [extent[1] for selection in selections if (extent := selection.extent_us("target_capacity"))]
    if handle is None or not ends:
        return {}
    days = {day for end_us in ends for day in ((end_us - DAY_US) // DAY_US, end_us // DAY_US)}
    readings: Readings = {}
    for filesystem, *reading in query(everything.tables, handle, "target_capacity", LAST_READINGS, days=days):
        readings.setdefault(filesystem, []).append(LastReading(*reading))
    return readings


def _rolled(everything: StoreSelection, resolution: str) -> list[Snapshot]:
    """What the logs say of a rollup of load."""
    handles = (everything.tables.load(f"{resolution}/{table}") for table in LOAD)
    return [Snapshot.of(handle) for handle in handles if handle is not None]


def _rollup_spans(filesystem: str, rollups: Rollups) -> Iterator[RollupSpan]:
    for resolution, snapshots in rollups.items():
        days = {day for snapshot in snapshots for day in snapshot.with_value("filesystem", filesystem).days()}
        if days:
            yield RollupSpan(resolution, min(days), max(days))
