"""Watch the targets of a file system: a server's own files, an agent's spool, or a store, live or played back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iolens.agent.feed import SpoolFeed, TreeFeed, device_reader
from iolens.analyses.calibration.applied import AppliedCalibration, applied_calibrations
from iolens.analyses.live.analysis import MOST_CELLS, Board, LiveReading
from iolens.analyses.live.boards import Boards
from iolens.config import Config
from iolens.errors import InputError, IolensError, OptionError, UsageError
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.units import epoch_us, from_epoch_us, iso

if TYPE_CHECKING:
    from iolens.agent.store_feed import StoreFeed
    from iolens.store.store import Store

DEFAULT_SPOOL: Final = Path("/var/spool/iolens")
HOUR_US: Final = 3_600_000_000
PATIENCE_INTERVALS: Final = 2.5  # one reader brings all targets of a tick at once …
STORE_PATIENCE_US: Final = 600_000_000  # … while agents ship to a store at times of their own
RECORDED_CELLS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Watch:
    """One source and how it is looked at; `store` is the feed when that is a store."""

    feed: TreeFeed | SpoolFeed | StoreFeed
    store: StoreFeed | None
    boards: Boards
    new_board: Callable[[str], Board]
    filesystem: str | None

    def once(self, interval_s: float, at: datetime | None) -> LiveReading:
        """One reading: of two samples, or of the last complete interval (before `at`)."""
        if at is not None and self.store is not None:
            return self._once_at(self.store, at)
        items = self.feed.poll()
        if isinstance(self.feed, TreeFeed):
            time.sleep(interval_s)
            items = [*items, *self.feed.poll()]
        if self.store is not None:
            self.boards.expect(self.store.expected())
        self.boards.take(items)
        name = self._choose(self.boards.main())
        reading = self.boards.board(name).reading(now_us=time.time_ns() // 1000)
        if reading.time is None:
            raise InputError(self.feed.origin, f"no interval of {name} yet", "two samples that differ in time")
        return reading

    def _once_at(self, store: StoreFeed, at: datetime) -> LiveReading:
        known, at_us = store.expected(), epoch_us(at)
        name = self._choose(sorted(known))
        board = self.new_board(name)
        board.expect(known[name])
        board.take(store.rows(name, at_us - STORE_PATIENCE_US, at_us))
        reading = board.reading(at_us)
        if reading.time is None:
            raise InputError(store.origin, f"no interval of {name} in the ten minutes before {iso(at)}")
        return reading

    def show(self, since: datetime | None, until: datetime | None, at: datetime | None) -> None:
        """The view, until it is left."""
        from iolens.views.top.app import TopApp
        from iolens.views.top.session import Session

        store = self.store
        if store is not None and (since or at):
            known = store.expected()
            self.boards.expect(known)
            begin = epoch_us(since) if since is not None else epoch_us(at) - HOUR_US // 2  # type: ignore[arg-type]
            end = epoch_us(until) if until is not None else begin + HOUR_US
            if end <= begin:
                raise OptionError("the window is empty: --to is not after --from")
            session = Session(
                self.boards,
                filesystem=self.filesystem,
                window=(begin, end),
                at_us=epoch_us(at) if at is not None else None,
            )
            TopApp(session, recording=store, new_board=self.new_board).run()
            return
        session = Session(self.boards, filesystem=self.filesystem)
        TopApp(session, self.feed, expected=store.expected if store is not None else None).run()

    def _choose(self, names: Sequence[str]) -> str:
        if self.filesystem is not None or len(names) == 1:
            return self.filesystem or names[0]
        if not names:
            raise InputError(self.feed.origin, "no interval yet", "two samples of at least one target")
        raise UsageError(f"there are several file systems here, name one with --filesystem: {', '.join(names)}")


def watch(
    root: Path | None,
    spool: Path | None,
    store: str | None,
    interval_s: float,
    filesystem: str | None,
    calibration: str | None,
    config: Config,
    begin: datetime | None,
) -> Watch:
    """The source asked for; `begin` when a past stretch of a store is."""
    if root is None and spool is None and store is None and begin is None:
        root, spool = _default_place(config)
    patience_us, most_cells = round(PATIENCE_INTERVALS * interval_s * 1e6), MOST_CELLS
    feed: TreeFeed | SpoolFeed | StoreFeed
    kept: StoreFeed | None = None
    if root is not None:
        feed = _tree(root, interval_s, filesystem, config)
    elif spool is not None:
        feed = SpoolFeed(spool, min(interval_s, 1.0))
    else:
        feed = kept = _store(store, interval_s, filesystem, config)
        patience_us = STORE_PATIENCE_US
        most_cells = RECORDED_CELLS if begin is not None else MOST_CELLS
    find = _calibrations(store, calibration, config, kept)
    at_us = epoch_us(begin) if begin is not None else time.time_ns() // 1000

    def new_board(name: str) -> Board:
        general, notes, of_target = find(name, at_us)
        slow = _slow_targets(kept.store, config, name, at_us) if kept is not None else []
        return Board(
            name, general, [*slow, *notes], patience_us=patience_us, most_cells=most_cells, calibration_of=of_target
        )

    return Watch(feed, kept, Boards(new_board, filesystem), new_board, filesystem)


def _slow_targets(store: Store, config: Config, filesystem: str, at_us: int) -> list[str]:
    """A sentence for each target that is slower than its class by the days before, where that is known already."""
    from iolens.api.calibration_estimate import slow_targets_if_known

    with suppress(IolensError):  # a file system without such rows
        slow = slow_targets_if_known(store, config, filesystem, from_epoch_us(at_us))
        return [f"{item.words}." for item in slow.targets]
    return []


def _default_place(config: Config) -> tuple[Path | None, Path | None]:
    """A root or a spool when nothing was said; neither: the store."""
    spool = Path(config.agent.spool) if config.agent.spool else DEFAULT_SPOOL
    if spool.is_dir() and any(spool.glob("*~*")):
        return None, spool
    has_store = bool(os.environ.get("IOLENS_STORE") or config.store) or Path(config.store_url()).is_dir()
    return (None, None) if has_store else (Path(config.agent.root or "/"), None)


def _tree(root: Path, interval_s: float, filesystem: str | None, config: Config) -> TreeFeed:
    return TreeFeed(root, interval_s, filesystem, (read_tree, device_reader(root, config.devices)))


def _store(url: str | None, interval_s: float, filesystem: str | None, config: Config) -> StoreFeed:
    from iolens.agent.store_feed import StoreFeed
    from iolens.store.store import Store  # only for stores: a server is watched without their engines

    orders = {name: known.sources for name, known in config.filesystems.items()}
    servers = {name: known.servers for name, known in config.filesystems.items()}
    return StoreFeed(Store(config.store_url(url), config.engine), interval_s, filesystem, dict(orders), dict(servers))


class WatchCalibration(NamedTuple):
    """The calibration of a file system, what must be known about it, and the one of each target (by class)."""

    general: AppliedCalibration
    notes: tuple[str, ...]
    of_target: Callable[[str], AppliedCalibration]


def _calibrations(
    url: str | None, name: str | None, config: Config, feed: StoreFeed | None
) -> Callable[[str, int], WatchCalibration]:
    """Finds the calibrations of a file system that hold at a time."""
    given = url or os.environ.get("IOLENS_STORE") or config.store
    stored: list[dict[str, Any]] = []
    trouble: tuple[str, ...] = ()
    if feed is not None or given is not None:
        from iolens.store.store import Store

        try:
            stored = (feed.store if feed is not None else Store(str(given))).calibrations()
        except (IolensError, OSError) as error:
            trouble = (f"calibrations cannot be read: {error}",)

    def find(filesystem: str, at_us: int) -> WatchCalibration:
        chosen, extent = name or config.filesystem(filesystem).calibration, (at_us, at_us + 1)
        for_all = [row for row in stored if chosen is not None or row["target_class"] is None]
        general, notes = applied_calibrations(for_all, config, chosen, filesystem, extent, ())

        def of_target(target: str) -> AppliedCalibration:
            applied, _ = applied_calibrations(stored, config, chosen, filesystem, extent, (target,))
            return applied[0]

        return WatchCalibration(general[0], (*trouble, *notes), of_target)

    if name is not None:
        find("", 0)  # an unknown name is an error now, not in the middle of the view
    return find
