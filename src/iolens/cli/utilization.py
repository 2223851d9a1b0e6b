"""How busy a file system is: File System Utilization (FSU)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.options import RATE, analysis_options, in_zone, present, progress


@click.command(
    "utilization",
    epilog="""\b
Examples:
  iolens utilization --filesystem scratch --from 2012-10-22 --to 2012-10-23
  iolens fsu -f scratch --compare scratch2 --peak 35GB/s --format json
  iolens fsu -f scratch --figure day.png --figure heatmap=osts.svg
  iolens fsu -f node17 --model counters --figure util=disks.png
""",
)
@click.option(
    "--model",
    type=click.Choice(["auto", "histogram", "counters"]),
    default="auto",
    show_default=True,
    help="I/Os by size, or a disk's own counts of operations and bytes; auto: sizes where there are any",
)
@click.option("--calibration", metavar="NAME", help="Stored, configured or shipped calibration (shipped: grace-2012)")
@click.option("--compare", metavar="FS", help="A second file system, side by side")
@click.option(
    "--peak",
    type=RATE,
    metavar="RATE",
    help="Peak bandwidth, such as 35GB/s; default: configured, else the largest tick",
)
@analysis_options
def COMMAND(
    model: str,
    calibration: str | None,
    compare: str | None,
    peak: float | None,
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
    """Utilisation of a file system or of any disks, from counts and sizes of their I/Os.

    FSU is the share of time the disks need for what they did, by a calibrated transaction model. It shows load that
    bandwidth hides: many small I/Os keep disks busy without moving much.
    """
    from dataclasses import replace

    from iolens.notebook import OpenStore

    with OpenStore(store, engine=engine, config=config) as opened, progress(None, "reading") as step:

        def run(name: str | None) -> object:
            return opened.analyse(
                "utilization",
                name,
                since=in_zone(since, timezone),
                until=in_zone(until, timezone),
                targets=target,
                source=source,
                resolution=resolution,
                model=model,
                calibration=calibration,
                peak=peak,
                progress=lambda day: step(str(day)),
            )

        result = run(filesystem)
        if compare is not None:
            result = replace(result, compare=run(compare))  # type: ignore[type-var]
    present(result, format_, output, figures)
