"""How busy a file system is: File System Utilization."""

from __future__ import annotations

import click

from iolens.cli.options import RATE, Asked, analysis_options


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
    help="I/Os by size, or counts of operations and bytes of disks; auto: sizes if there are any",
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
    asked: Asked,
    model: str,
    calibration: str | None,
    compare: str | None,
    peak: float | None,
) -> None:
    """Utilization of a file system or of any disks, from counts and sizes of their I/Os.

    FSU is the share of time that the disks needed for the I/Os they did, by a calibrated transaction model. It shows
    load that bandwidth does not show: many small I/Os keep disks busy without moving much.
    """
    from dataclasses import replace

    others = () if compare is None else (compare,)
    result = asked.analyse("utilization", *others, model=model, calibration=calibration, peak=peak)
    asked.show(replace(result[0], compare=result[1]) if others else result)
