"""Shares of disk time by job, kept in this process: paging, sorting and typing ask for the same ones again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from iolens.analyses.blame.results import WhoShare
from iolens.analyses.calibration.levels import NO_FSU, RestsOnCalibration, together
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.blame import BlameOptions, blame_of
from iolens.errors import NotKnownError
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.tables import Tables

EVERY: Final = 1_000_000_000  # lines of a blame: all there are
MOST_KEPT: Final = 8
TABLES_READ: Final = ("job_io", "target_sizes", "target_io", "jobs", "runs", "calibrations")


@dataclass(frozen=True, slots=True)
class JobShares:
    """Lines by job of one file system in a window; else why they are not known."""

    filesystem: str
    lines: Sequence[WhoShare]
    why_not: str = ""
    calibration: RestsOnCalibration = RestsOnCalibration(**NO_FSU)


_kept: Final[OrderedDict[object, JobShares]] = OrderedDict()
_lock: Final = Lock()


def job_shares(opened: StoreAnalyses, selection: StoreSelection) -> JobShares:
    """Of the selection's file system and window, by job_stats of its servers."""
    if not selection.holds("job_io"):
        return JobShares(selection.filesystem, (), "no job_stats in this window")
    key = _key(opened, selection)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    shares = _asked(opened, Scope(selection.filesystem, *selection.window))
    with _lock:
        _kept[key] = shares
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return shares


def _asked(opened: StoreAnalyses, scope: Scope) -> JobShares:
    try:
        blame = blame_of(opened, scope, BlameOptions(top=EVERY, beside=False))
    except NotKnownError as error:
        return JobShares(scope.filesystem or "", (), str(error))
    calibration = RestsOnCalibration(**together([blame], has_mean=True))
    return JobShares(blame.filesystem, blame.who, calibration=calibration)


def _key(opened: StoreAnalyses, selection: StoreSelection) -> object:
    """All that the shares depend on: the state of tables, and what is configured."""
    configured = repr((opened.config.filesystem(selection.filesystem), opened.config.calibrations))
    versions = tuple(_version(selection.tables, name) for name in TABLES_READ)
    return selection.tables.url, selection.filesystem, selection.window, configured, versions


def _version(tables: Tables, name: str) -> tuple[str, int] | None:
    handle = tables.load(name)
    return None if handle is None else (str(handle.metadata().id), handle.version())
