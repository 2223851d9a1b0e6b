"""Watch the targets of a file system in the terminal."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import timezone_option
from iolens.cli.output_options import format_option, present, shown_tables, table_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import DURATION, TIME

if TYPE_CHECKING:
    from iolens.analyses.live.analysis import LiveReading

SHORTEST_INTERVAL_S: Final = 0.1


@verb(
    "top",
    "Watch the targets of a file system in the terminal",
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
@click.option(
    "--spool", type=click.Path(path_type=Path, file_okay=False), help="Follow the agent that writes into this spool"
)
@click.option("--interval", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Refresh this often")
@click.option("--filesystem", "-f", metavar="NAME", help="Only this file system")
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration  [the file system's]")
@click.option("--once", is_flag=True, help="Print one reading and end")
@format_option("table", "json", "csv", words="Format of --once")
@click.option("--from", "since", type=TIME, metavar="TIME", help="Play back the store from this time")
@click.option("--to", "until", type=TIME, metavar="TIME", help="End of the playback  [an hour later]")
@click.option("--at", "at", type=TIME, metavar="TIME", help="Show the store at this time, paused")
@timezone_option()
@store_options
@table_options
def top(
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
    """Targets with their utilization, rates, I/O sizes, latency and fullness, refreshed in place.

    Without --root, --spool or --store: the agent's spool on this server, else the configured store, else this server's
    own files. With --root or --spool, --store only supplies calibrations. Press ? for the keys.
    """
    from iolens.api.watch import watch
    from iolens.config import load_config

    if interval < SHORTEST_INTERVAL_S:
        raise click.UsageError(f"--interval is at least {SHORTEST_INTERVAL_S} s")
    if root is not None and spool is not None:
        raise click.UsageError("--root and --spool are two places to look at: give one")
    times = [since, until, at]
    if any(time is not None for time in times) and (root is not None or spool is not None):
        raise click.UsageError("only a store can be played back: give --store with --from or --at")
    if times[0] is None and times[1] is not None:
        raise click.UsageError("--to ends what --from begins")
    if times[0] is not None and at is not None:
        raise click.UsageError("--from plays, --at holds: give one")
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("this is not a terminal: use --once")
    settings = load_config(config)
    begin = next((time for time in times if time is not None), None)
    watched = watch(root, spool, store, interval, filesystem, calibration, settings, begin)
    if once:
        _print(watched.once(interval, times[0] or times[2]), format_)
    else:
        watched.show(times[0], times[1], times[2])


def _print(reading: LiveReading, format_: str) -> None:
    shown = shown_tables()
    if format_ != "table" or shown.table is not None:
        present(reading, format_, None, ())
        return
    import shutil

    from iolens.views.live import compact
    from iolens.views.render.doubts import on_tables
    from iolens.views.render.tables import to_terminal

    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    click.echo(to_terminal(on_tables(reading, compact(reading)), width, colour=is_terminal, wide=shown.wide), nl=False)
