"""How busy the metadata servers are: operations by kind and metadata utilization (MDU)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.options import DURATION, analysis_options, in_zone, present, progress


@click.command(
    "metadata",
    epilog="""\b
Examples:
  iolens metadata --filesystem scratch --from 2026-01-05 --to 2026-01-06
  iolens metadata -f scratch --calibration mdtest:testbed --format json
  iolens metadata -f scratch --figure operations.png --figure mdu=mdu.svg
""",
)
@click.option(
    "--calibration",
    metavar="NAME",
    help="mdtest (results stored for the file system), mdtest:NAME (a run or another file system), or none",
)
@click.option("--every", type=DURATION, metavar="TIME", help="Width of a time bucket, such as 1h [by the window]")
@analysis_options
def COMMAND(
    calibration: str | None,
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
    """Load on the metadata targets of a file system: operations by kind, their rates, and MDU.

    Metadata Utilization is the share of time the server needs for the operations it did, each at the rate mdtest
    reached at saturation. Where servers count service times, these stand beside it.
    """
    from iolens.notebook import OpenStore

    with OpenStore(store, engine=engine, config=config) as opened, progress(None, "reading") as step:
        result = opened.analyse(
            "metadata",
            filesystem,
            since=in_zone(since, timezone),
            until=in_zone(until, timezone),
            targets=target,
            source=source,
            resolution=resolution,
            calibration=calibration,
            every=every,
            progress=lambda day: step(str(day)),
        )
    present(result, format_, output, figures)
