"""How long disk I/Os take: percentiles per target over time."""

from __future__ import annotations

import click

from iolens.cli.options import DURATION, Asked, analysis_options


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
    asked: Asked,
    every: float | None,
) -> None:
    """Time of disk I/Os as percentiles, reads and writes apart, and which targets are slower than their peers.

    Percentiles come from the servers' histogram of I/O times. For devices without one, the mean wait is shown.
    """
    result = asked.analyse(
        "latency",
        every=every,
    )
    asked.show(result)
