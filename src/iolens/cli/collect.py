"""Sample this machine on the clock and ship to the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens import messages
from iolens.cli.lazy_verbs import verb
from iolens.cli.options import hub_options, known_hub
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import CAPACITY, DURATION

if TYPE_CHECKING:
    from iolens.agent.sampling.sampler import Health


@verb(
    "collect",
    "Sample this machine on the clock and ship to the store",
    epilog="""\b
Examples:
  iolens collect --store s3://centre/telemetry      every 5 s until stopped
  iolens collect --once --root /copy/of/a/server    one sample
  iolens collect --devices --device-interval 60s    block devices too, each minute
  iolens collect --hub https://iolens.example.org:8470 --hub-token-file /etc/iolens/token
  iolens collect --no-ship --spool /shared/spool    others load it: iolens ingest spool /shared/spool
""",
)
@click.option("--root", type=click.Path(path_type=Path), show_default="/", help="Where /proc and /sys are")
@click.option("--interval", type=DURATION, show_default="5s", metavar="TIME", help="Sample this often")
@click.option(
    "--slow-interval", type=DURATION, show_default="60s", metavar="TIME",
    help="Sample job_stats, the long histograms and a client's RPCs this often",
)  # fmt: skip
@click.option(
    "--devices/--no-devices", default=None, show_default="where there is no Lustre",
    help="Sample block devices (/proc/diskstats)",
)  # fmt: skip
@click.option(
    "--device-interval", type=DURATION, show_default="as --interval", metavar="TIME", help="Interval of block devices"
)
@click.option(
    "--spool", type=click.Path(path_type=Path, file_okay=False), show_default="/var/spool/iolens",
    help="Directory for samples that are not yet in the store",
)  # fmt: skip
@click.option("--spool-limit", type=CAPACITY, show_default="1GiB", metavar="SIZE", help="Largest size of the spool")
@click.option("--ship-every", type=DURATION, show_default="5min", metavar="TIME", help="Ship about this often")
@click.option("--no-ship", is_flag=True, help="Only write the spool; load the segments in another way")
@click.option("--once", is_flag=True, help="Take and ship one sample, then end")
@click.option("--duration", type=DURATION, metavar="TIME", help="Stop after this time, and ship what is left")
@click.option(
    "--filesystem", "-f", metavar="NAME", help="File system of targets whose names lack it, and of block devices"
)
@hub_options
@store_options
def collect(
    root: Path | None,
    interval: float | None,
    slow_interval: float | None,
    devices: bool | None,
    device_interval: float | None,
    spool: Path | None,
    spool_limit: int | None,
    ship_every: float | None,
    no_ship: bool,
    once: bool,
    duration: float | None,
    filesystem: str | None,
    hub: str | None,
    hub_token_file: Path | None,
    hub_ca: Path | None,
    store: str | None,
    config: str | None,
) -> int:
    """Sample on the clock, spool raw counters, ship them every few minutes.

    The machine may be a Lustre server, a client, or both; everything present is sampled. Ticks are multiples of the
    interval. A full spool is thinned out; if the store cannot be reached, shipping is tried again later. Stop with
    SIGTERM or Ctrl-C: what is in the spool is shipped after the next start. SPOOL/health.json shows the state. With a
    hub, an `iolens serve`, the agent needs no access to the store; --store on the command line overrides it.
    Defaults are taken from the sections [agent] and [devices] of the configuration.
    """
    from iolens.agent.sampling.collector import Agent, SystemClock, agent_settings
    from iolens.config import AgentConfig, load_config

    if once and duration is not None:
        raise click.UsageError("--once takes one sample; --duration has no meaning with it")
    if hub is not None and (store is not None or no_ship):
        raise click.UsageError("--hub does not go with --store or --no-ship: segments go to one place")
    known = load_config(config)
    address = None if no_ship or store is not None else known_hub(known.agent, hub, hub_token_file, hub_ca)
    url = None if no_ship else _absolute(known.store_url(store)) if address is None else address.url
    given = AgentConfig(
        interval,
        slow_interval,
        device_interval,
        ship_every,
        None if spool is None else str(spool),
        spool_limit,
        None if root is None else str(root),
        filesystem,
        devices,
    )
    settings = agent_settings(known, given, url, address, duration)
    clock = SystemClock()
    clock.listen()
    messages.set_log(not once)
    collector = Agent(settings, messages.say, clock)
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
