"""How busy the metadata servers are: operations and MDU."""

from __future__ import annotations

import click

from iolens.cli.options import DURATION, Asked, analysis_options


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
    asked: Asked,
    calibration: str | None,
    every: float | None,
) -> None:
    """Load on the metadata targets of a file system: operations by kind, their rates, and MDU.

    Metadata Utilization is the share of time the server needs for the operations it did, each at the rate mdtest
    reached at saturation. Where servers count service times, these stand beside it.
    """
    result = asked.analyse(
        "metadata",
        calibration=calibration,
        every=every,
    )
    asked.show(result)
