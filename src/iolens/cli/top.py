"""Watch the targets of a file system in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import click

from iolens.cli.options import DURATION, TIME, in_zone, store_options

if TYPE_CHECKING:
    from iolens.agent.feed import SpoolFeed, TreeFeed
    from iolens.agent.store_feed import StoreFeed
    from iolens.analyses.live.analysis import Board, LiveReading
    from iolens.analyses.live.boards import Boards
    from iolens.config import Config
    from iolens.models.transaction_time import Calibration

DEFAULT_SPOOL: Final = Path("/var/spool/iolens")
SHORTEST_INTERVAL_S: Final = 0.1
HOUR_US: Final = 3_600_000_000
PATIENCE_INTERVALS: Final = 2.5  # one reader brings all targets of a tick at once …
STORE_PATIENCE_US: Final = 600_000_000  # … while agents ship to a store at moments of their own
RECORDED_CELLS: Final = 2_000_000


@click.command(
    "top",
    epilog="""\b
Examples:
  iolens top --root /                                    this server, read directly
  iolens top --spool /var/spool/iolens                   what the agent here sees
  iolens top --store centre -f scratch                   the newest intervals of a store
  iolens top --store centre -f scratch --from 2012-10-22T19:00    an hour played back
  iolens top --root / --once --format json               one reading, for scripts
""",
)
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), help="Read a server's files below this root")
@click.option("--spool", type=click.Path(path_type=Path, file_okay=False), help="Follow the agent that writes here")
@click.option("--interval", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Look this often")
@click.option("--filesystem", "-f", metavar="NAME", help="Only this file system")
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration  [the file system's]")
@click.option("--once", is_flag=True, help="Print one reading and end")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="Format of --once",
)  # fmt: skip
@click.option("--from", "since", type=TIME, metavar="TIME", help="Play the store back from here")
@click.option("--to", "until", type=TIME, metavar="TIME", help="End of the playback  [an hour later]")
@click.option("--at", "at", type=TIME, metavar="TIME", help="The store at this moment, held")
@click.option("--timezone", metavar="ZONE", help="Zone of times given without one  [UTC]")
@store_options
def COMMAND(
    root: Path | None,
    spool: Path | None,
    interval: float,
    filesystem: str | None,
    calibration: str | None,
    once: bool,
    format_: str,
    since: datetime | None,
    until: datetime | None,
    at: datetime | None,
    timezone: str | None,
    store: str | None,
    config: str | None,
) -> None:
    """Targets with their utilisation, rates, I/O sizes, latency and fullness, refreshed in place.

    Without --root, --spool or --store: the agent's spool on this server, else the configured store, else this server's
    own files. With --root or --spool, --store only supplies calibrations. Press ? for the keys.
    """
    from iolens.config import load_config

    if interval < SHORTEST_INTERVAL_S:
        raise click.UsageError(f"--interval is at least {SHORTEST_INTERVAL_S} s")
    if root is not None and spool is not None:
        raise click.UsageError("--root and --spool are two places to look at: give one")
    moments = [in_zone(one, timezone) for one in (since, until, at)]
    if any(moment is not None for moment in moments) and (root is not None or spool is not None):
        raise click.UsageError("only a store can be played back: give --store with --from or --at")
    if moments[0] is None and moments[1] is not None:
        raise click.UsageError("--to ends what --from begins")
    if moments[0] is not None and at is not None:
        raise click.UsageError("--from plays, --at holds: give one")
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("this is not a terminal: use --once")
    settings = load_config(config)
    begin = next((moment for moment in moments if moment is not None), None)
    watch = _watch(root, spool, store, interval, filesystem, calibration, settings, begin)
    if once:
        _print(watch.once(interval, moments[0] or moments[2]), format_)
    else:
        watch.show(moments[0], moments[1], moments[2])


def _print(reading: LiveReading, format_: str) -> None:
    if format_ != "table":
        from iolens.views.render.formats import render

        render(reading, cast("Any", format_))
        return
    import shutil

    from iolens.views.live.tables import compact
    from iolens.views.render.tables import to_terminal

    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    click.echo(to_terminal(compact(reading), width, colour=is_terminal), nl=False)


@dataclass(frozen=True, slots=True)
class _Watch:
    """One source and how it is looked at; `store` is the feed when that is a store."""

    feed: TreeFeed | SpoolFeed | StoreFeed
    store: StoreFeed | None
    boards: Boards
    new_board: Callable[[str], Board]
    filesystem: str | None

    def once(self, interval_s: float, at: datetime | None) -> LiveReading:
        """One reading: of two samples, or of the last complete interval (before `at`)."""
        import time

        from iolens.agent.feed import TreeFeed
        from iolens.errors import InputError

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
        found = self.boards.board(name).reading(now_us=time.time_ns() // 1000)
        if found.time is None:
            raise InputError(self.feed.origin, f"no interval of {name} yet", "two samples that differ in time")
        return found

    def _once_at(self, store: StoreFeed, at: datetime) -> LiveReading:
        from iolens.errors import InputError
        from iolens.units import epoch_us, iso

        known, at_us = store.expected(), epoch_us(at)
        name = self._choose(sorted(known))
        board = self.new_board(name)
        board.expect(known[name])
        board.take(store.rows(name, at_us - STORE_PATIENCE_US, at_us))
        found = board.reading(at_us)
        if found.time is None:
            raise InputError(store.origin, f"no interval of {name} in the ten minutes before {iso(at)}")
        return found

    def show(self, since: datetime | None, until: datetime | None, at: datetime | None) -> None:
        """The view, until it is left."""
        from iolens.units import epoch_us
        from iolens.views.top.app import TopApp
        from iolens.views.top.session import Session

        store = self.store
        if store is not None and (since or at):
            known = store.expected()
            self.boards.expect(known)
            begin = epoch_us(since) if since is not None else epoch_us(at) - HOUR_US // 2  # type: ignore[arg-type]
            end = epoch_us(until) if until is not None else begin + HOUR_US
            if end <= begin:
                raise click.UsageError("the window is empty: --to is not after --from")
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
        from iolens.errors import InputError, UsageError

        if self.filesystem is not None or len(names) == 1:
            return self.filesystem or names[0]
        if not names:
            raise InputError(self.feed.origin, "no interval yet", "two samples of at least one target")
        raise UsageError(f"there are several file systems here, name one with --filesystem: {', '.join(names)}")


def _watch(
    root: Path | None,
    spool: Path | None,
    store: str | None,
    interval_s: float,
    filesystem: str | None,
    calibration: str | None,
    config: Config,
    begin: datetime | None,
) -> _Watch:
    """The source asked for; `begin` when a past stretch of a store is."""
    import time

    from iolens.analyses.live.analysis import MOST_CELLS, Board
    from iolens.analyses.live.boards import Boards
    from iolens.units import epoch_us

    if root is None and spool is None and store is None and begin is None:
        root, spool = _default_place(config)
    patience_us, most_cells = round(PATIENCE_INTERVALS * interval_s * 1e6), MOST_CELLS
    feed: TreeFeed | SpoolFeed | StoreFeed
    kept: StoreFeed | None = None
    if root is not None:
        feed = _tree(root, interval_s, filesystem, config)
    elif spool is not None:
        from iolens.agent.feed import SpoolFeed

        feed = SpoolFeed(spool, min(interval_s, 1.0))
    else:
        feed = kept = _store(store, interval_s, filesystem, config)
        patience_us = STORE_PATIENCE_US
        most_cells = RECORDED_CELLS if begin is not None else MOST_CELLS
    find = _calibrations(store, calibration, config, kept)
    at_us = epoch_us(begin) if begin is not None else time.time_ns() // 1000

    def new_board(name: str) -> Board:
        general, notes, of_target = find(name, at_us)
        return Board(name, general, notes, patience_us=patience_us, most_cells=most_cells, calibration_of=of_target)

    return _Watch(feed, kept, Boards(new_board, filesystem), new_board, filesystem)


def _default_place(config: Config) -> tuple[Path | None, Path | None]:
    """A root or a spool when nothing was said; neither: the store."""
    import os

    spool = Path(config.agent.spool) if config.agent.spool else DEFAULT_SPOOL
    if spool.is_dir() and any(spool.glob("*~*")):
        return None, spool
    has_store = bool(os.environ.get("IOLENS_STORE") or config.store) or Path(config.store_url()).is_dir()
    return (None, None) if has_store else (Path(config.agent.root or "/"), None)


def _tree(root: Path, interval_s: float, filesystem: str | None, config: Config) -> TreeFeed:
    from iolens.agent.feed import TreeFeed, device_reader
    from iolens.sources.lustre.lustre_proc import read_tree

    return TreeFeed(root, interval_s, filesystem, (read_tree, device_reader(root, config.devices)))


def _store(url: str | None, interval_s: float, filesystem: str | None, config: Config) -> StoreFeed:
    from iolens.agent.store_feed import StoreFeed
    from iolens.store.store import Store

    orders = {name: known.sources for name, known in config.filesystems.items()}
    return StoreFeed(Store(config.store_url(url), config.engine), interval_s, filesystem, dict(orders))


class _TopCalibration(NamedTuple):
    """The calibration of a file system, what must be known about it, and the one of each target (by class)."""

    general: Calibration
    notes: tuple[str, ...]
    of_target: Callable[[str], Calibration]


def _calibrations(
    url: str | None, name: str | None, config: Config, feed: StoreFeed | None
) -> Callable[[str, int], _TopCalibration]:
    """Finds the calibrations of a file system that hold at a moment."""
    import os

    from iolens.analyses.calibration.applied import applied_calibrations
    from iolens.errors import IolensError

    given = url or os.environ.get("IOLENS_STORE") or config.store
    stored: list[dict[str, Any]] = []
    trouble: tuple[str, ...] = ()
    if feed is not None or given is not None:
        from iolens.store.store import Store

        try:
            stored = (feed.store if feed is not None else Store(str(given))).calibrations()
        except (IolensError, OSError) as error:
            trouble = (f"calibrations cannot be read: {error}",)

    def find(filesystem: str, at_us: int) -> _TopCalibration:
        chosen, extent = name or config.filesystem(filesystem).calibration, (at_us, at_us + 1)
        for_all = [row for row in stored if chosen is not None or row["target_class"] is None]
        general, notes = applied_calibrations(for_all, config, chosen, filesystem, extent, ())

        def of_target(target: str) -> Calibration:
            applied, _ = applied_calibrations(stored, config, chosen, filesystem, extent, (target,))
            return applied[0].calibration

        return _TopCalibration(general[0].calibration, (*trouble, *notes), of_target)

    if name is not None:
        find("", 0)  # an unknown name is an error now, not in the middle of the view
    return find
