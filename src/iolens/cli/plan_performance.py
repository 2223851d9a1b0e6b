"""How much bandwidth and how many operations per second."""

from __future__ import annotations

from typing import Any

import click

from iolens.cli.options import WORDS, Asked, analysis_options
from iolens.cli.shared_plan_options import option_of

usual = option_of("performance")


@click.command(
    "performance",
    epilog="""\b
Examples:
  iolens plan performance --filesystem scratch --ssi 3,4
  iolens plan performance -f scratch --ssi 3..4 --percentile 99,100 --figure demand.png
  iolens plan performance --ssi 4 --demand write_bytes_per_s=90GB/s
""",
)
@usual("--ssi", metavar="LIST", help="Speed of the new system over the old")
@usual("--percentile", type=WORDS, metavar="LIST", help="50, 95, 99, 100 of ticks")
@click.option(
    "--demand",
    "demands",
    multiple=True,
    metavar="MEASURE=VALUE",
    help="Demand as known elsewhere, such as bytes_per_s=35GB/s or ops_per_s=2e6; repeatable",
)
@analysis_options
def COMMAND(asked: Asked, **options: Any) -> None:
    """Bandwidth and operations per second of the next system: demand at a percentile over ticks, times SSI.

    Bandwidth and operations come from the counters of data targets, disk I/Os from their histograms of sizes,
    metadata operations from the MDTs. With --demand no store is opened unless --store or --filesystem is given.
    """
    asked.show(asked.plan("performance", options))
