"""How long disk I/Os take: latency percentiles per target over time."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.options import DURATION, analysis_options, in_zone, present, progress


@click.command(
    "latency",
    epilog="""\b
Examples:
  iolens latency --filesystem scratch --from 2026-01-05 --to 2026-01-06
  iolens latency -f scratch --every 1h --format json
  iolens latency -f scratch --figure day.png --figure heatmap=p99.svg
""",
)
@click.option("--every", type=DURATION, metavar="TIME", help="Width of a time bucket, such as 1h [by the window]")
@analysis_options
def COMMAND(
    every: float | None,
    store: str | None,
    config: str | None,
    engine: str | None,
    filesystem: str | None,
    target: tuple[str, ...],
    source: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    resolution: str,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
) -> None:
    """Time of disk I/Os as percentiles, reads and writes apart, and which targets are slower than their peers.

    Percentiles come from the servers' histogram of I/O times. Devices without one have a mean wait, which is shown as
    what it is.
    """
    from iolens.notebook import OpenStore

    with OpenStore(store, engine=engine, config=config) as opened, progress(None, "reading") as step:
        result = opened.analyse(
            "latency",
            filesystem,
            since=in_zone(since, timezone),
            until=in_zone(until, timezone),
            targets=target,
            source=source,
            resolution=resolution,
            every=every,
            progress=lambda day: step(str(day)),
        )
    present(result, format_, output, figures)
