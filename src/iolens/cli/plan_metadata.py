"""How much metadata capacity: data on MDTs, inodes, price."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iolens.api.plans.defaults import DOM_METHODS
from iolens.cli.options import BYTES, WORDS, Asked, analysis_options
from iolens.cli.shared_plan_options import option_of, smaller_option

usual = option_of("metadata")


@click.command(
    "metadata",
    epilog="""\b
Examples:
  iolens plan metadata --file-sizes sizes.csv --capacity 30PB --dom 64KiB,1MiB
  iolens plan metadata --file-sizes sizes.csv --capacity 22PB..30PB --method both --figure mdt.png
  iolens plan metadata -f scratch --capacity 30PB --cost-mdt 400 --cost-ost 150 --layout-mdt 5+5 --layout-ost 8+2
""",
)
@click.option(
    "--file-sizes",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Histogram of sizes, or a listing of files; default: the newest scan in the store",
)
@click.option("--capacity", required=True, metavar="SIZE", help="Capacity of the new file system, such as 30PB")
@usual("--dom", type=WORDS, metavar="SIZES", help="DOM thresholds to answer for")
@usual("--method", type=click.Choice(DOM_METHODS), help="How the band is found")
@usual("--inode-size", type=BYTES, metavar="SIZE", help="Space for an inode")
@click.option("--largest-file", type=BYTES, metavar="SIZE", help="Largest file, where the last bin has no upper end")
@click.option("--cost-mdt", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on MDTs")
@click.option("--cost-ost", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on OSTs")
@usual("--layout-mdt", metavar="D+P", help="Data and parity blocks of MDTs")
@usual("--layout-ost", metavar="D+P", help="Data and parity blocks of OSTs")
@smaller_option
@analysis_options
def COMMAND(asked: Asked, **options: Any) -> None:
    """Capacity of the metadata targets: the first bytes of every file (Data-on-MDT) and all inodes.

    Sizes come from a histogram or a listing of the reference system, or from the newest scan in the store. A histogram
    leaves a range inside its bins: the answer has a lowest, an average and a highest value.
    """
    asked.show(asked.plan("metadata", options))
