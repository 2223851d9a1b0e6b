"""Sample this Lustre server on the clock and ship the samples to the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.options import BYTES, DURATION, store_options

if TYPE_CHECKING:
    from iolens.agent.health import Health

SHORTEST_INTERVAL_S = 0.05


@click.command(
    "collect",
    epilog="""\b
Examples:
  iolens collect --store s3://centre/telemetry      every 5 s until stopped
  iolens collect --once --root /copy/of/a/server    one sample
  iolens collect --no-ship --spool /shared/spool    others load it: iolens ingest spool /shared/spool
""",
)
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="Where /proc and /sys are"
)
@click.option("--interval", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Sample this often")
@click.option(
    "--slow-interval", type=DURATION, default="60s", show_default=True, metavar="TIME",
    help="job_stats and the long histograms this often",
)  # fmt: skip
@click.option(
    "--spool", type=click.Path(path_type=Path, file_okay=False), default=Path("/var/spool/iolens"), show_default=True,
    help="Where samples wait until the store has them",
)  # fmt: skip
@click.option(
    "--spool-limit", type=BYTES, default="1GiB", show_default=True, metavar="SIZE", help="Thin the spool beyond this"
)
@click.option(
    "--ship-every", type=DURATION, default="5min", show_default=True, metavar="TIME", help="Ship about this often"
)
@click.option("--no-ship", is_flag=True, help="Only spool; the segments travel some other way")
@click.option("--once", is_flag=True, help="One sample, shipped")
@click.option("--duration", type=DURATION, metavar="TIME", help="Stop after this long, ship what is left")
@click.option("--filesystem", "-f", metavar="NAME", help="File system of targets that do not carry its name")
@store_options
def COMMAND(
    root: Path,
    interval: float,
    slow_interval: float,
    spool: Path,
    spool_limit: int,
    ship_every: float,
    no_ship: bool,
    once: bool,
    duration: float | None,
    filesystem: str | None,
    store: str | None,
    config: str | None,
) -> int:
    """Sample on the clock, spool raw counters, ship them every few minutes.

    Ticks are multiples of the interval. A full spool is thinned, an absent store waited for. Stop with SIGTERM or
    Ctrl-C: what is spooled is shipped by the next start. SPOOL/health.json tells how it is doing.
    """
    from iolens.agent.clock import SystemClock
    from iolens.agent.collector import Collector, Settings
    from iolens.config import load_config

    if interval < SHORTEST_INTERVAL_S or slow_interval <= 0 or ship_every <= 0:
        raise click.UsageError(f"intervals are above zero, --interval at least {SHORTEST_INTERVAL_S} s")
    if once and duration is not None:
        raise click.UsageError("--once takes one sample; --duration has no meaning with it")
    url = None if no_ship else _absolute(load_config(config).store_url(store))
    settings = Settings(
        root, spool, url, interval, max(slow_interval, interval), ship_every, spool_limit, duration, filesystem
    )
    clock = SystemClock()
    clock.listen()
    collector = Collector(settings, lambda line: click.echo(f"iolens: {line}", err=True), clock)
    health = collector.once() if once else collector.run()
    return _report(health, url, asked_to_stop=clock.stopped)


def _absolute(url: str) -> str:
    return url if "://" in url else str(Path(url).absolute())


def _report(health: Health, url: str | None, *, asked_to_stop: bool) -> int:
    """What was seen; 3 when part of it was refused or still waits for the store, 1 when there was nothing."""
    where = f"{health.segments_shipped} segments shipped to {url}" if url else "none shipped"
    click.echo(
        f"{health.ticks} ticks ({health.late_ticks} late, {health.missed_ticks} missed, {health.lost_ticks} lost), "
        f"{health.targets} targets, {health.samples} samples; {where}, {health.segments_waiting} waiting"
    )
    if health.refused:
        click.echo(f"  {health.refused} places not understood or not readable", err=True)
    if asked_to_stop:
        return 0
    if not health.samples:
        return 1
    waits = bool(url) and health.segments_waiting
    aside = health.segments_bad or health.segments_late
    return 3 if health.refused or waits or aside or health.lost_ticks else 0
